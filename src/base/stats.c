/*
 * The table of counters, and the histogram of handler durations.
 *
 * The names are fields of QSTATS and parts of metric names: they never change.
 */
#include "base/stats.h"

#include <string.h>

#include "base/util.h"

static const struct {
	const char	*name;
	const char	*help;
} table[] = {
	[STAT_DELIVERED] = { "delivered", "Messages handed to a handler." },
	[STAT_ACKED] = { "acked", "Messages done and removed from Redis." },
	[STAT_FAILED] = { "failed", "Attempts that failed." },
	[STAT_RETRIED] = { "retried", "Messages put back with a backoff." },
	[STAT_DEFERRED] = { "deferred",
	    "Messages that their handler put off without an attempt." },
	[STAT_DEAD] = { "dead", "Messages made dead letters." },
	[STAT_RETURNED] = { "returned",
	    "Messages given back without counting an attempt." },
	[STAT_REQUEUED] = { "requeued",
	    "Messages whose lease expired, put back." },
	[STAT_PROMOTED] = { "promoted", "Delayed messages that fell due." },
	[STAT_DROPPED] = { "dropped",
	    "Entries dropped without a payload, and messages dropped unrun." },
	[STAT_STALE] = { "stale",
	    "Results refused because Redis did not know their delivery." },
	[STAT_PUSHED] = { "pushed", "Messages that acked deliveries handed over to other queues." },
	[STAT_CANCELLED] = { "cancelled",
	    "Delivered messages that rqctl cancel ended." },
	[STAT_TIMEOUTS] = { "timeouts", "Handlers ended at time_limit." },
	[STAT_OUTPUT_CUT] = { "output_cut",
	    "Deliveries whose output passed output_limit." },
	[STAT_LEFTOVERS] = { "leftovers",
	    "Deliveries that left processes running." },
	[STAT_SUSPENDED] = { "suspended", "Times the queue was suspended." },
};
_Static_assert(ARRAY_LEN(table) == STAT_MAX, "a name for every counter");

const double stats_bounds[STATS_BUCKETS] = {
	0.005, 0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600
};

const char *
stats_name(enum stat s)
{
	return table[s].name;
}

const char *
stats_help(enum stat s)
{
	return table[s].help;
}

/* A value equal to a bound belongs below it, as Prometheus' "le" says. */
void
stats_observe(struct histogram *h, usec_t duration)
{
	double v = (double)duration / SEC;
	size_t i;

	for (i = 0; i < STATS_BUCKETS && v > stats_bounds[i]; i++)
		continue;
	h->bucket[i]++;
	h->count++;
	h->sum += v;
}

#define PERIOD	(5 * MINUTE)

void
stats_use(struct stats *s, usec_t cpu, int64_t maxrss)
{
	usec_t now = clock_mono();

	if (now - s->period >= PERIOD) {
		s->maxrss[1] = now - s->period < 2 * PERIOD ? s->maxrss[0] : 0;
		s->maxrss[0] = 0;
		s->period = now;
	}
	s->cpu += cpu;
	if (maxrss > s->maxrss[0])
		s->maxrss[0] = maxrss;
}

int64_t
stats_maxrss(const struct stats *s)
{
	struct stats now = *s;

	stats_use(&now, 0, 0);
	return now.maxrss[0] > now.maxrss[1] ? now.maxrss[0] : now.maxrss[1];
}

bool
stats_has_unsent(const struct stats *s)
{
	return memcmp(s->n, s->sent, sizeof(s->n)) != 0;
}
