/*
 * Exponential backoff: base * 2^(n-1), at most max, times a factor from 0.5 to 1, which most
 * callers draw at random.  Most of what rqd tries again waits that long: messages (n:
 * failures so far), connections and calls to Redis, processes, probes of suspended queues.
 * Empty pops have a delay of their own (queue/leased_watch.c).
 */
#pragma once

#include "base/clock.h"

/* n >= 1; unit, from 0 to 1: 0 gives half of the delay, 1 all of it.  Never overflows. */
usec_t	backoff_delay(usec_t base, usec_t max, unsigned n, double unit);
