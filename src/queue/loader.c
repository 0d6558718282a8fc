/*
 * Chooses the payloads to ask for, and handles those that do not come; see loader.h.
 */
#include "queue/loader.h"

#include <stdlib.h>

#include "base/backoff.h"
#include "base/units.h"
#include "loop/timer.h"

#define ATTEMPTS_MAX	3
#define ASIDE_MAX	MINUTE		/* due again after 1 s, 2 s, 4 s, at most this */
#define ASIDE_NEWS	(10 * MINUTE)	/* after this time without one, the next is logged again */

struct loader {
	struct ledger	*ledger;
	struct timer	 again;		/* set: ask for all again */
	unsigned	 failures;	/* in a row */
	unsigned	 asides;	/* messages put aside since a large payload came */
	usec_t		 aside_at;	/* mono: the last one was put aside; 0: none was */
};

void
loader_add(struct loader *l, struct delivery *d)
{
	d->asked = true;
	ledger_move(l->ledger, d, DELIVERY_LOADING);
}

struct delivery *
loader_next(struct loader *l)
{
	struct delivery *d = ledger_first(l->ledger, DELIVERY_LOADING);

	while (d != NULL && d->asked)
		d = ledger_next(d);
	if (d != NULL)
		d->asked = true;
	return d;
}

bool
loader_loaded(struct loader *l, struct delivery *d, char *payload, size_t len,
    void (*free_payload)(char *))
{
	d->asked = false;
	d->msg->payload = payload;
	d->msg->len = len;
	d->msg->free_payload = free_payload;
	l->failures = l->asides = 0;
	ledger_move(l->ledger, d, DELIVERY_FOUND);
	return l->aside_at == 0;
}

static struct aside
loader_put_aside(struct loader *l, struct delivery *d, const char *why)
{
	struct verdict later = {
		.op = VERDICT_RETRY, .reason = REASON_TOO_LARGE,
		.delay = backoff_delay(SEC, ASIDE_MAX, ++l->asides, 1)
	};
	struct result none = { .end = END_NOT_RUN };
	char size[UNITS_TEXT_MAX], again[UNITS_TEXT_MAX];
	usec_t now = clock_mono();
	struct aside aside = {
		.news = l->aside_at != 0 && now - l->aside_at > ASIDE_NEWS,
		.text = xasprintf("the payload of message %s (%s) cannot be fetched: %s; is the "
		    "server's client-output-buffer-limit for class normal below it? Tried again "
		    "in %s", d->msg->id, units_size(d->msg->len, size), why,
		    units_duration(later.delay, again)),
	};

	l->aside_at = now;
	ledger_keep(l->ledger, d, &later, &none);
	return aside;
}

struct aside
loader_failed(struct loader *l, struct delivery *d, bool attempt, const char *why, usec_t most)
{
	d->asked = false;
	if (attempt && ++d->refused == ATTEMPTS_MAX)
		return loader_put_aside(l, d, why);
	if (!timer_is_set(&l->again))
		timer_set(&l->again, backoff_delay(100 * MSEC, most, ++l->failures,
		    random_unit()));
	return (struct aside){ .text = NULL };
}

struct loader *
loader_new(struct loop *loop, struct ledger *ledger, void (*ask)(void *), void *arg)
{
	struct loader *l = NEW(struct loader, .ledger = ledger);

	timer_init(&l->again, loop, ask, arg);
	return l;
}

void
loader_free(struct loader *l)
{
	if (l == NULL)
		return;
	timer_stop(&l->again);
	free(l);
}
