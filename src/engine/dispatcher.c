/*
 * The ring of queues with work; see dispatcher.h.
 *
 * A round runs when all that a turn of the loop has brought is digested, so that all members
 * that became ready take part.  Otherwise a queue whose handler has just ended could
 * lose the slot to a lower priority, only because it asks for more a moment later.
 * Credits are collected during the round and granted after it, in one grant a member,
 * so that one pop fills all of its slots.
 */
#include "engine/dispatcher.h"

#include <stdlib.h>

#include "base/util.h"

TAILQ_HEAD(member_list, dispatcher_member);

struct dispatcher {
	struct loop	*loop;
	unsigned	 slots;
	unsigned	 taken;	/* exceeds slots after a reload lowered them */
	struct member_list	 ring;	/* by priority, highest first */
	struct defer	 round;
};

struct dispatcher *
dispatcher_new(struct loop *loop, unsigned slots)
{
	struct dispatcher *d = NEW(struct dispatcher, .loop = loop, .slots = slots,
	    .round.stage = LOOP_ALLOT);

	TAILQ_INIT(&d->ring);
	return d;
}

void
dispatcher_free(struct dispatcher *d)
{
	if (d == NULL)
		return;
	loop_defer_cancel(d->loop, &d->round);
	free(d);
}

unsigned
dispatcher_taken(const struct dispatcher *d)
{
	return d->taken;
}

/* Inserts m after all members of its priority or a higher one. */
static void
dispatcher_insert(struct dispatcher *d, struct dispatcher_member *m)
{
	struct dispatcher_member *at;

	TAILQ_FOREACH_REVERSE(at, &d->ring, member_list, entry) {
		if (at->priority >= m->priority)
			break;
	}
	if (at == NULL)
		TAILQ_INSERT_HEAD(&d->ring, m, entry);
	else
		TAILQ_INSERT_AFTER(&d->ring, at, m, entry);
}

/* Gives one credit to one head after the other, then grants the credits. */
static void
dispatcher_round(void *arg)
{
	struct dispatcher *d = arg;
	struct dispatcher_member *m;
	struct member_list given = TAILQ_HEAD_INITIALIZER(given);
	unsigned n;

	while ((m = TAILQ_FIRST(&d->ring)) != NULL && d->taken < d->slots) {
		TAILQ_REMOVE(&d->ring, m, entry);
		if (m->credit++ == 0)
			TAILQ_INSERT_TAIL(&given, m, granted);
		d->taken++;
		if (--m->wants > 0)
			dispatcher_insert(d, m);
	}
	while ((m = TAILQ_TAKE(&given, granted)) != NULL) {
		dispatcher_want(d, m, 0);
		n = m->credit;
		m->credit = 0;
		m->grant(n, m->arg);
	}
}

static void
dispatcher_wake(struct dispatcher *d)
{
	if (!TAILQ_EMPTY(&d->ring) && d->taken < d->slots)
		loop_defer(d->loop, &d->round, dispatcher_round, d);
}

void
dispatcher_set_slots(struct dispatcher *d, unsigned slots)
{
	d->slots = slots;
	dispatcher_wake(d);
}

void
dispatcher_want(struct dispatcher *d, struct dispatcher_member *m, unsigned n)
{
	if (m->wants == 0 && n > 0)
		dispatcher_insert(d, m);
	else if (m->wants > 0 && n == 0)
		TAILQ_REMOVE(&d->ring, m, entry);
	m->wants = n;
	dispatcher_wake(d);
}

void
dispatcher_release(struct dispatcher *d, unsigned n)
{
	d->taken -= n;
	dispatcher_wake(d);
}
