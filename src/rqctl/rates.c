/* Rates of queues; see rates.h.  A log keeps the latest totals of each queue in a ring. */
#include "rqctl/rates.h"

#include <stdlib.h>
#include <string.h>

#include "status/history.h"

#define KEPT	64
#define APART	(HISTORY_RATE_SPAN / 42)	/* between samples that are kept: they are enough */

struct sample {
	usec_t	 at;
	int64_t	 acked, failed;
};

struct totals {
	char		*key;		/* owned */
	struct sample	 sample[KEPT];
	size_t		 n;		/* samples ever kept */
};

/* Takes the queue's totals out of the log, or makes new ones.  The order seldom changes. */
static struct totals *
take(struct rates_log *l, size_t likely, const char *key)
{
	struct totals *t;
	size_t i;

	for (size_t k = 0; k < l->n; k++) {
		i = (likely + k) % l->n;
		t = l->queues[i];
		if (t == NULL || strcmp(t->key, key) != 0)
			continue;
		l->queues[i] = NULL;
		return t;
	}
	t = xcalloc(1, sizeof(*t));
	t->key = xstrdup(key);
	return t;
}

/* The latest one takes the place of the one before, if that is not far from the others. */
static void
keep(struct totals *t, const struct sample *s)
{
	if (t->n >= 2 && s->at - t->sample[(t->n - 2) % KEPT].at < APART)
		t->n--;
	t->sample[t->n++ % KEPT] = *s;
}

void
rates_add(struct rates_log *l, const struct picture *p)
{
	struct totals **queues = xcalloc(p->n + 1, sizeof(queues[0])), *t;
	usec_t now = clock_mono();

	for (size_t i = 0; i < p->n; i++) {
		t = queues[i] = take(l, i, p->targets[i].keys.name[KEY_QUEUE]);
		keep(t, &(struct sample){
			now, p->depths[i].total[STAT_ACKED], p->depths[i].total[STAT_FAILED]
		});
	}
	rates_done(l);
	*l = (struct rates_log){ queues, p->n };
}

static double
rate(int64_t now, int64_t then, usec_t passed)
{
	return now < then || passed < HISTORY_RATE_LEAST ? -1 :
	    (double)(now - then) / ((double)passed / 1e6);
}

struct rates
rates_of(const struct rates_log *l, size_t i)
{
	const struct totals *t = l->queues[i];
	const struct sample *now = &t->sample[(t->n - 1) % KEPT], *then = now, *older;
	size_t back;

	for (back = 1; back < t->n && back < KEPT; back++) {
		older = &t->sample[(t->n - 1 - back) % KEPT];
		if (back > 1 && now->at - older->at > HISTORY_RATE_SPAN)
			break;
		then = older;
	}
	return (struct rates){
		rate(now->acked, then->acked, now->at - then->at),
		rate(now->failed, then->failed, now->at - then->at)
	};
}

void
rates_done(struct rates_log *l)
{
	while (l->n > 0) {
		if (l->queues[--l->n] != NULL)
			free(l->queues[l->n]->key);
		free(l->queues[l->n]);
	}
	free(l->queues);
	*l = (struct rates_log){ NULL, 0 };
}
