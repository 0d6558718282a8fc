/*
 * Estimates how long the oldest message of a list has waited, without help of
 * producers.
 *
 * Messages in a list have no times.  But the number of arrivals is known: the messages
 * taken so far plus the length of the list.  It only grows, and messages leave in the
 * order of their arrival.  So the oldest waiting message is number taken + 1, and it
 * arrived when the curve of arrivals passed that number.  The caller gives samples of
 * the curve.  This keeps the samples whose removal would make the largest error, and
 * interpolates between them.
 *
 * All consumers must count the messages that they take: daemons add to `taken` in QSTATS.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "policy/latency.h"

#define ARRIVALS_SAMPLES	64

/* Zero it to start: no sample. */
struct arrivals {
	struct arrival {
		usec_t	 at;
		int64_t	 count;		/* arrivals until then */
		usec_t	 error;		/* of interpolated times since the sample before */
	}		 sample[ARRIVALS_SAMPLES];	/* in order of time; counts do not fall */
	unsigned	 n;		/* samples; the last one is the newest */
	int64_t		 taken;		/* as in the newest */
	bool		 shared;	/* others took messages uncounted, last seen then: */
	usec_t		 shared_at;
};

/* A sample: at `now` (mono) all daemons had taken so many, and so many waited. */
void	arrivals_saw(struct arrivals *, usec_t now, int64_t taken, int64_t waiting);

/*
 * A consumer was seen that does not count the messages that it takes: the latency is
 * unknown for a while.
 */
void	arrivals_saw_others(struct arrivals *, usec_t now);

/*
 * How long the oldest message of the newest sample has waited.  LATENCY_LEAST: it was
 * there before the first sample.
 */
struct latency	arrivals_latency(const struct arrivals *, usec_t now);
