/*
 * Doubling delays with jitter; see backoff.h.
 */
#include "policy/backoff.h"

usec_t
backoff_delay(usec_t base, usec_t max, unsigned n, double unit)
{
	usec_t delay = base < max ? base : max;

	for (; n > 1 && delay < max; n--)
		delay = delay > max / 2 ? max : delay * 2;
	return (usec_t)((double)delay * (0.5 + unit / 2));
}
