/*
 * Delays that double.
 *
 * The loop stops doubling as soon as the delay is max, so the delay cannot overflow, and the
 * loop is short, however many failures there were.
 */
#include "base/backoff.h"

usec_t
backoff_delay(usec_t base, usec_t max, unsigned n, double unit)
{
	usec_t d = base < 0 ? 0 : base;

	if (max < 0)
		max = 0;
	for (; n > 1 && d > 0 && d < max; n--)
		d = d > max / 2 ? max : d * 2;
	if (d > max)
		d = max;
	return d / 2 + (usec_t)((double)(d - d / 2) * unit);
}
