/*
 * Estimates how long the oldest message of a list has waited, without help of producers.
 *
 * Messages in a list have no times.  But arrivals can be counted: the messages taken so far plus
 * the length of the list.  Messages leave in the order of their arrival, so the oldest waiting
 * one is number taken + 1: it arrived between the last sample with no more arrivals than that and
 * the next sample.  Samples are kept so that the age of each is at most twice the age of the next
 * one, or close together.  So the estimate is within a factor of 2, or 10 seconds.
 *
 * All consumers must count the messages that they take: daemons add to `taken` in QSTATS.
 */
#pragma once

#include <stdint.h>

#include "base/clock.h"

#define WAITED_SAMPLES	64

/* Zero it to start: no sample. */
struct waited {
	struct waited_sample {
		usec_t	 at;
		int64_t	 count;		/* arrivals until then */
	}		 sample[WAITED_SAMPLES];	/* in order of time; counts do not fall */
	unsigned	 n;		/* samples; the last one is the newest */
	int64_t		 taken;		/* as in the newest */
};

/* A sample: at `now` (mono) all daemons had taken so many, and so many waited. */
void	waited_saw(struct waited *, usec_t now, int64_t taken, int64_t waiting);

/*
 * Seconds that the oldest message of the newest sample has waited; 0: none waits.  -1: not
 * known, because it was there before the first sample.
 */
double	waited_estimate(const struct waited *, usec_t now);

/* The longer one of two waits, of which -1 is not known; -1: one of them is not known. */
double	waited_longer(double, double);
