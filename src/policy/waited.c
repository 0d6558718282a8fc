/* How long messages of a list have waited; see waited.h. */
#include "policy/waited.h"

#include <string.h>

#define SPACING		SEC	/* from each sample to the next but one, at least */
#define COUNT_MAX	((int64_t)1 << 52)	/* bounds what others may have written to QSTATS */

static void
remove_sample(struct waited *w, unsigned i)
{
	w->n--;
	memmove(&w->sample[i], &w->sample[i + 1], (w->n - i) * sizeof(w->sample[0]));
}

void
waited_saw(struct waited *w, usec_t now, int64_t taken, int64_t waiting)
{
	struct waited_sample *s = w->sample;
	int64_t count, fell;
	unsigned i;

	/* Another Redis, or one that has lost its memory. */
	if (taken < w->taken || taken > COUNT_MAX)
		w->n = 0;
	w->taken = taken;
	if (taken < 0 || taken > COUNT_MAX || waiting < 0 || waiting > COUNT_MAX) {
		w->n = w->taken = 0;
		return;
	}
	/*
	 * Messages have disappeared that no consumer has taken.  A few were cancelled, or probes
	 * took the newest.  If they are many, perhaps the oldest are gone: the times of the rest
	 * are unknown.
	 */
	count = taken + waiting;
	fell = w->n > 0 ? s[w->n - 1].count - count : 0;
	if (fell > 1 + (count + fell - taken) / 16)
		w->n = 0;
	for (i = 0; i < w->n; i++)
		if (s[i].count > count)
			s[i].count = count;
	/* Of the samples before the oldest message arrived, the last one is enough. */
	while (w->n >= 2 && s[1].count <= taken)
		remove_sample(w, 0);
	if (w->n >= 2 && now - s[w->n - 2].at < SPACING)
		w->n--;
	for (i = 1; i + 1 < w->n;)
		if (now - s[i - 1].at <= 2 * (now - s[i + 1].at))
			remove_sample(w, i);
		else
			i++;
	if (w->n == WAITED_SAMPLES)
		remove_sample(w, 0);
	s[w->n++] = (struct waited_sample){ now, count };
}

double
waited_estimate(const struct waited *w, usec_t now)
{
	const struct waited_sample *s = w->sample;
	unsigned i = 0;

	if (w->n > 0 && s[w->n - 1].count <= w->taken)
		return 0;
	if (w->n == 0 || s[0].count > w->taken)
		return -1;
	while (s[i + 1].count <= w->taken)
		i++;
	return clock_seconds(now - (s[i].at + s[i + 1].at) / 2);
}

double
waited_longer(double a, double b)
{
	if (a < 0 || b < 0)
		return -1;
	if (a > b)
		return a;
	return b;
}
