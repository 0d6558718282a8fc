/* The curve of arrivals; see arrivals.h. */
#include "policy/arrivals.h"

#include <math.h>
#include <string.h>

#define SPACING		SEC	/* from each sample to the next but one, at least */
#define COUNT_MAX	((int64_t)1 << 52)	/* bounds what others may have written to QSTATS */

/* The samples belong to another Redis, or to one that has lost its memory. */
static void
arrivals_forget(struct arrivals *a)
{
	a->n = 0;
	a->taken = 0;
}

void
arrivals_saw_others(struct arrivals *a, usec_t now)
{
	a->shared = true;
	a->shared_at = now;
}

static void
remove_sample(struct arrivals *a, unsigned i)
{
	a->n--;
	memmove(&a->sample[i], &a->sample[i + 1], (a->n - i) * sizeof(a->sample[0]));
}

/*
 * The distance of the line between its neighbours from sample i, and from the samples
 * that this line replaced.
 */
static usec_t
error_without(const struct arrival *s, unsigned i)
{
	usec_t error = s[i].error > s[i + 1].error ? s[i].error : s[i + 1].error;
	double part, at;

	if (s[i - 1].count == s[i + 1].count)
		return 0;
	part = (double)(s[i].count - s[i - 1].count) /
	    (double)(s[i + 1].count - s[i - 1].count);
	at = (double)s[i - 1].at + part * (double)(s[i + 1].at - s[i - 1].at);
	return error + (usec_t)fabs(at - (double)s[i].at);
}

/* Removes the sample whose removal makes the least error, for its age. */
static void
thin(struct arrivals *a, usec_t now)
{
	double error, least = INFINITY;
	unsigned i, which = 1;

	for (i = 1; i + 1 < a->n; i++) {
		error = (double)error_without(a->sample, i) /
		    (double)(now - a->sample[i].at + SEC);
		if (error < least) {
			least = error;
			which = i;
		}
	}
	a->sample[which + 1].error = error_without(a->sample, which);
	remove_sample(a, which);
}

/*
 * Messages have disappeared that no consumer has taken.  A few were cancelled, or
 * probes took the newest: lowers the curve.  Many were purged, perhaps the oldest: then
 * the times of the rest are unknown.
 */
static void
lower(struct arrivals *a, int64_t count)
{
	int64_t last = a->sample[a->n - 1].count;

	if (last - count > 1 + (last - a->taken) / 16) {
		arrivals_forget(a);
		return;
	}
	for (unsigned i = 0; i < a->n; i++)
		if (a->sample[i].count > count)
			a->sample[i].count = count;
}

/* Adds the newest sample at the end. */
static void
add(struct arrivals *a, usec_t now, int64_t count)
{
	const struct arrival *s = a->sample;
	unsigned n = a->n;

	if (n >= 2 && (now - s[n - 2].at < SPACING ||
	    (s[n - 2].count == count && s[n - 1].count == count)))
		a->n--;
	else if (n == ARRIVALS_SAMPLES)
		thin(a, now);
	a->sample[a->n++] = (struct arrival){ now, count, 0 };
}

void
arrivals_saw(struct arrivals *a, usec_t now, int64_t taken, int64_t waiting)
{
	int64_t count;

	if (taken < a->taken || taken > COUNT_MAX)
		arrivals_forget(a);
	if (taken < 0 || taken > COUNT_MAX || waiting < 0 || waiting > COUNT_MAX)
		return;
	count = taken + waiting;
	if (a->n > 0 && count < a->sample[a->n - 1].count)
		lower(a, count);
	a->taken = taken;
	add(a, now, count);
	/* Samples before the arrival of the oldest message are no longer needed. */
	while (a->n >= 2 && a->sample[1].count <= taken)
		remove_sample(a, 0);
	if (a->shared && a->n > 0 && a->shared_at < a->sample[0].at)
		a->shared = false;
}

struct latency
arrivals_latency(const struct arrivals *a, usec_t now)
{
	const struct arrival *s = a->sample;
	double number = (double)a->taken + 0.5, part, at;	/* the middle of its step */
	unsigned i = 0;

	if (a->n > 0 && s[a->n - 1].count <= a->taken)
		return (struct latency){ LATENCY_KNOWN, 0 };
	if (a->n == 0 || a->shared)
		return (struct latency){ LATENCY_UNKNOWN, 0 };
	if (s[0].count > a->taken)
		return (struct latency){ LATENCY_LEAST, clock_seconds(now - s[0].at) };
	while (s[i + 1].count <= a->taken)
		i++;
	part = (number - (double)s[i].count) / (double)(s[i + 1].count - s[i].count);
	at = (double)s[i].at + part * (double)(s[i + 1].at - s[i].at);
	return (struct latency){ LATENCY_KNOWN, ((double)now - at) / (double)SEC };
}
