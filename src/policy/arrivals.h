/*
 * How long the oldest message of a list has waited: an estimate that needs nothing from
 * producers.
 *
 * Messages in a list have no time.  But what was taken so far and the length of the list
 * together are the number of arrivals, which only grows, and messages leave in the order of
 * their arrival.  So the oldest waiting message is number taken + 1, and it arrived when that
 * curve passed its number.  The caller shows samples of the curve.  Those without which the line
 * through the others would be most wrong are kept; what lies between two is interpolated.
 *
 * All consumers must count the messages that they take: daemons add to `taken` in QSTATS.
 */
#ifndef RQD_POLICY_ARRIVALS_H
#define RQD_POLICY_ARRIVALS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "policy/latency.h"

#define ARRIVALS_SAMPLES	64

/* Zeroed: nothing was seen. */
struct arrivals {
	struct arrival {
		usec_t	 at;
		int64_t	 count;		/* arrivals until then */
		usec_t	 error;		/* of times between the sample before and this one */
	}		 sample[ARRIVALS_SAMPLES];	/* times rise, counts do not fall */
	unsigned	 n;		/* samples; the last one is the newest that was seen */
	int64_t		 taken;		/* as in the newest */
	bool		 shared;	/* somebody took messages uncounted, last seen then: */
	usec_t		 shared_at;
};

/* At `now` (mono) so many had been taken by all daemons, and so many waited. */
void	arrivals_saw(struct arrivals *, usec_t now, int64_t taken, int64_t waiting);

/* Consumers that do not count what they take were seen: not known until their time is past. */
void	arrivals_saw_others(struct arrivals *, usec_t now);

/*
 * How long the oldest message has waited, of those that the newest sample saw.  LATENCY_LEAST:
 * it was there before the first sample.
 */
struct latency	arrivals_latency(const struct arrivals *, usec_t now);

#endif
