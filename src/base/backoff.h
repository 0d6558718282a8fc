/*
 * Exponential backoff: base * 2^(n-1), at most max, times a random 0.5 to 1.
 * Used for retries of messages (n: failures so far), reconnects to Redis, and
 * probes of suspended queues.
 */
#ifndef RQD_BASE_BACKOFF_H
#define RQD_BASE_BACKOFF_H

#include "base/clock.h"

/* n >= 1; unit in [0, 1]: 0 gives half of the delay, 1 all of it.  Never overflows. */
usec_t	backoff_delay(usec_t base, usec_t max, unsigned n, double unit);

#endif
