/*
 * Counters, per queue and process.  QSTATS, /metrics and the man page use the
 * names of the table in stats.c.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

enum stat {
	STAT_DELIVERED,		/* handed to a handler */
	STAT_ACKED,		/* done: removed from Redis */
	STAT_FAILED,		/* attempts that failed (retried or dead) */
	STAT_RETRIED,		/* put back with a backoff */
	STAT_DEFERRED,		/* put off by their handler, no attempt counted */
	STAT_DEAD,		/* made a dead letter */
	STAT_RETURNED,		/* given back, no attempt counted */
	STAT_REQUEUED,		/* expired leases put back by the tick */
	STAT_PROMOTED,		/* delayed messages that fell due */
	STAT_DROPPED,		/* entries without a payload; messages given up unrun */
	STAT_STALE,		/* results refused: Redis did not know their delivery */
	STAT_PUSHED,		/* messages that acked deliveries handed over */
	STAT_CANCELLED,		/* delivered ones that rqctl cancel ended, dead letters included */
	STAT_TIMEOUTS,		/* handlers ended at time_limit */
	STAT_OUTPUT_CUT,	/* deliveries whose output passed output_limit */
	STAT_LEFTOVERS,		/* deliveries that left processes running */
	STAT_SUSPENDED,		/* times the queue was suspended */
	STAT_MAX
};

/* Their upper bounds are stats_bounds[] (seconds); one more bucket holds what is longer. */
#define STATS_BUCKETS	14

struct histogram {
	uint64_t	bucket[STATS_BUCKETS + 1];	/* not cumulative */
	uint64_t	count;
	double		sum;				/* seconds */
};

struct stats {
	uint64_t		n[STAT_MAX];	/* since this process started */
	uint64_t		sent[STAT_MAX];	/* <= n: already added to QSTATS */
	struct histogram	duration;	/* of handlers */
	/* About the longest of the last hundred of them that rqd has not ended; 0: none. */
	usec_t			usual;
	/* Of handlers of mode exec: see stats_use(). */
	usec_t			cpu;
	int64_t			maxrss[2];	/* of this period, and of the one before */
	usec_t			period;		/* mono: begin of this one */
};

extern const double stats_bounds[STATS_BUCKETS];

const char	*stats_name(enum stat);		/* "delivered" */
const char	*stats_help(enum stat);		/* one sentence */
void		 stats_observe(struct histogram *, usec_t);
/* A run has ended that used so much: counts its CPU time, and keeps the largest maxrss. */
void		 stats_use(struct stats *, usec_t cpu, int64_t maxrss);
/* The largest of the last 5 to 10 minutes; 0: no run has ended. */
int64_t		 stats_maxrss(const struct stats *);
bool		 stats_has_unsent(const struct stats *);	/* QSTATS lacks some of them */
