/*
 * The figures of queues in the last 15 minutes, so that the page has plots as soon as
 * it is opened.
 *
 * The caller passes the result of each survey.  A daemon's history keeps one sample in
 * HISTORY_STEP, the latest HISTORY_SAMPLES of them.  A queue takes about 2.9 KiB, and
 * there are HISTORY_QUEUES at most: 1.5 MiB.  A queue that neither the last survey nor one
 * of the last HISTORY_WINDOW has found is forgotten.
 *
 *	if (history_begin(h, clock_mono()))
 *		for (...)
 *			history_add(h, key, &point);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"

#define HISTORY_STEP	(10 * SEC)
#define HISTORY_APART	(HISTORY_STEP - 500 * MSEC)	/* a sample may come that much early */
#define HISTORY_WINDOW	(15 * MINUTE)
#define HISTORY_SAMPLES	((size_t)(HISTORY_WINDOW / HISTORY_STEP) + 1)
#define HISTORY_QUEUES	500

/*
 * Daemons add to the totals in QSTATS about every 10 seconds.  A rate over a shorter time than
 * HISTORY_RATE_SPAN jumps, and one over less than HISTORY_RATE_LEAST says nothing.
 */
#define HISTORY_RATE_SPAN	(21 * SEC)
#define HISTORY_RATE_LEAST	(9 * SEC)

struct history;

/* One queue at one moment; negative: not known. */
struct history_point {
	int64_t	 depth;		/* see depth_backlog() */
	double	 latency;	/* seconds */
	int64_t	 acked;		/* these two are totals, which grow */
	int64_t	 failed;
};

/* Messages per second, over the last 20 seconds; negative: not known. */
struct history_rates {
	double	 acked;
	double	 failed;
};

struct history	*history_new(void);
void		 history_free(struct history *);	/* NULL is fine */

/* Begins a sample at `now` (mono).  False: the last one is too young, so add nothing. */
bool		 history_begin(struct history *, usec_t now);
/* Adds a queue to the sample that has begun; a queue too many is left out. */
void		 history_add(struct history *, const char *key, const struct history_point *);

/* As of the last sample. */
struct history_rates history_rates(const struct history *, const char *key);

/* When the last sample began (mono); 0: there is none. */
usec_t		 history_last(const struct history *);

/*
 * Appends a line of JSON: "step" and "window" in seconds, "times" of the samples in seconds since
 * 1970, and "queues", an array of objects with the key and an array of each figure; null: not
 * known.  It changes only with a new sample, or when the wall clock was set.
 */
void		 history_text(const struct history *, struct buf *);

/*
 * How long a daemon waits between two surveys for its history: HISTORY_STEP, or longer in a
 * large fleet.  If all daemons take surveys, together they send at most HISTORY_COMMANDS per
 * second to Redis.
 */
#define HISTORY_COMMANDS 1000
usec_t		 history_pace(size_t daemons, size_t keys);
