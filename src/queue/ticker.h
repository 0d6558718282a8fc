/*
 * The ticks of a queue that delivers at least once.  A tick requeues expired leases, promotes
 * due delayed messages, deletes orphaned fields of QDELIVERY, and adds counters to QSTATS.
 *
 * The ticker decides when a tick may be sent, and writes its words; its owner sends it.  The
 * owner calls ticker_begin() every 10 s (the pulse of service/daemon.c), when a delayed message
 * falls due (watcher.h), and before it closes, if counters wait.  The ticker calls due() when a
 * lease ends, when leases may be judged again after an outage, after a reconnect, and after the
 * backoff that follows an error.
 *
 * A tick looks at a bounded number of entries.  If some are left, the owner sends the next tick
 * at once, and that one continues where the last one stopped.  Such a sequence is a round.
 * Otherwise ticks are at least 100 ms apart.
 *
 *	if (ticker_begin(t, false)) {
 *		KEYS; ticker_add_words(t, &terms, &words); words of the kind;
 *		ticker_add_counters(t, &words); send
 *	}
 *	with its answer: ticker_answered(), ticker_refused(), or ticker_ended()
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/stats.h"
#include "loop/loop.h"
#include "queue/queue.h"
#include "redis/words.h"

struct ticker;

/* The parameters of a tick. */
struct ticker_terms {
	usec_t	lease;
	usec_t	foreign_timeout;
	usec_t	judge_at;	/* mono: judge others' leases from then on; USEC_MAX: never */
	double	redis_now;	/* seconds; 0: unknown */
};

/* The answer to a tick.  Times count from now; -1: none. */
struct ticker_answer {
	bool		 more;		/* it left work behind */
	unsigned	 requeued, promoted, dropped;
	usec_t		 expires_in;	/* no lease ends before */
	int64_t		 rank;		/* where the next step goes on in QBACKUP, */
	const char	*cursor;	/* in QDELIVERY ("-": as before), */
	const char	*scan;		/* and in the source; NULL: nowhere */
};

/* due() comes from the loop, when a tick should be sent.  stats are borrowed. */
struct ticker	*ticker_new(struct loop *, struct stats *, void (*due)(void *), void *arg);
void		 ticker_free(struct ticker *);

void		 ticker_up(struct ticker *);	/* connected: a tick is due now */
/* The queue is closing: due() comes no more, and no tick is followed by another. */
void		 ticker_close(struct ticker *);

/*
 * Returns true if the caller must send a tick now.  Otherwise one is on its way, or
 * due() comes later.  at_once: not 100 ms after the last one, but now, unless after an
 * error.
 */
bool		 ticker_begin(struct ticker *, bool at_once);
void		 ticker_add_words(const struct ticker *, const struct ticker_terms *,
		    struct words *);
void		 ticker_add_counters(struct ticker *, struct words *);
/* Where the kind's tick goes on in its source; "": at its beginning. */
const char	*ticker_scan(const struct ticker *);

/* Returns true if the round is not over: the next tick is sent at once. */
bool		 ticker_answered(struct ticker *, const struct ticker_answer *,
		    const struct ticker_terms *);
/* Redis has refused the tick; the next one is due after a backoff of at most `most`. */
void		 ticker_refused(struct ticker *, usec_t most);
/* No answer came.  acted: it may have acted. */
void		 ticker_ended(struct ticker *, bool acted);
/* Reports what the round has moved, once it is over; returns false if that is nothing. */
bool		 ticker_report(struct ticker *, struct tick_report *);

bool		 ticker_is_sent(const struct ticker *);	/* a tick is on its way */
/* Counters wait for a tick, and Redis has not refused the last one. */
bool		 ticker_has_counters(const struct ticker *);
