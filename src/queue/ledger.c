/*
 * Deliveries and their leases: see ledger.h.
 *
 * After "held", "gone" and "taken" the engine ends the handler: the message is settled
 * elsewhere, or another delivery has begun.  After "lost" the handler runs on: Redis
 * has forgotten the delivery, and no other daemon has it.  If Redis has forgotten ours
 * and another delivery holds the tag, that may be another message with the same id: the
 * owner compares the payloads first.
 */
#include "queue/ledger.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "loop/timer.h"

#define RENEW_MOST	250		/* deliveries in one call */
#define HINT_EVERY	(100 * MSEC)	/* at most one renewal by hints in this time */
#define HINT_AGAIN	(400 * MSEC)	/* the second one: a reply that was on its way is here */

/* The answers of renew.lua, one for each delivery. */
enum renewed {
	RENEWED_YES = 1, RENEWED_BACK = 2, RENEWED_HELD = 0, RENEWED_LOST = -1,
	RENEWED_DROP = 3, RENEWED_DEAD = 4,	/* ours, and cancelled */
	RENEWED_TAKEN = -2, RENEWED_GONE = -3, RENEWED_HELD_LOST = -4
};

TAILQ_HEAD(delivery_list, delivery);

struct ledger {
	struct delivery_list	lists[DELIVERY_LISTS];
	struct ledger_tally	tally;
	usec_t			lease;
	struct timer		renew;
	usec_t			renewed_at;	/* mono: the last renewal began */
	bool			again;		/* after a hint: once more, soon */
};

bool
delivery_hands_over(const struct delivery *d)
{
	return d->result.pushes != NULL && d->verdict.op == VERDICT_ACK;
}

struct ledger *
ledger_new(struct loop *loop, usec_t lease, void (*renew)(void *), void *arg)
{
	struct ledger *l = xcalloc(1, sizeof(*l));

	for (size_t i = 0; i < DELIVERY_LISTS; i++)
		TAILQ_INIT(&l->lists[i]);
	l->lease = lease;
	timer_init(&l->renew, loop, renew, arg);
	return l;
}

void
ledger_free(struct ledger *l)
{
	struct delivery *d;

	for (size_t i = 0; i < DELIVERY_LISTS; i++) {
		while ((d = TAILQ_FIRST(&l->lists[i])) != NULL)
			ledger_move(l, d, DELIVERY_DONE);
	}
	timer_stop(&l->renew);
	free(l);
}

void
ledger_set_lease(struct ledger *l, usec_t lease)
{
	l->lease = lease;
}

/* -- deliveries ------------------------------------------------------------- */

/*
 * The bytes that a message takes of a batch's run; 0 without batches.  A message larger
 * than a run runs alone, so it counts as one full run.
 */
static size_t
message_bytes(const struct message *m)
{
	if (!config_has_batches(m->cfg) || m->too_large)
		return 0;
	return m->len < CONFIG_RUN_BYTES ? m->len : CONFIG_RUN_BYTES;
}

static void
ledger_count_bytes(struct ledger *l, struct delivery *d, size_t bytes)
{
	d->bytes += bytes;
	l->tally.bytes += bytes;
}

/* Puts it on the list of its state. */
static void
ledger_put(struct ledger *l, struct delivery *d)
{
	l->tally.count[d->state]++;
	TAILQ_INSERT_TAIL(&l->lists[d->state], d, entry);
}

struct delivery *
ledger_add(struct ledger *l, struct message *m, size_t taglen, size_t idlen, boot_t ours_at)
{
	struct delivery *d = NEW(struct delivery, .msg = m, .taglen = taglen,
	    .idlen = (unsigned)(idlen <= taglen ? idlen : taglen));

	m->ours_at = ours_at;
	m->queue_data = d;
	ledger_count_bytes(l, d, message_bytes(m));
	ledger_put(l, d);	/* FOUND */
	ledger_expect(l);
	return d;
}

static void
ledger_end(struct ledger *l, struct delivery *d)
{
	if (d->keeps_slot)
		l->tally.refused--;
	l->tally.bytes -= d->bytes;
	message_free(d->msg);
	d->msg = NULL;
	result_done(&d->result);
	if (d->calls == 0)
		free(d);
}

void
ledger_move(struct ledger *l, struct delivery *d, enum delivery_state state)
{
	TAILQ_REMOVE(&l->lists[d->state], d, entry);
	l->tally.count[d->state]--;
	if (d->state < DELIVERY_IN_HAND)
		l->tally.departures++;
	if (d->state == DELIVERY_IN_HAND && state == DELIVERY_KEPT)
		d->from_engine = true;
	if (state == DELIVERY_REFUSED && !d->keeps_slot) {
		d->keeps_slot = true;
		l->tally.refused++;
	}
	d->state = state;
	if (state == DELIVERY_DONE)
		ledger_end(l, d);
	else
		ledger_put(l, d);
}

void
ledger_keep(struct ledger *l, struct delivery *d, const struct verdict *verdict,
    struct result *result)
{
	d->verdict = *verdict;
	result_move(&d->result, result);
	ledger_count_bytes(l, d, pushes_memory(d->result.pushes));
	ledger_move(l, d, DELIVERY_KEPT);
}

/* Keeps a result of a delivery that the engine has never seen. */
static void
ledger_keep_unrun(struct ledger *l, struct delivery *d, enum verdict_op op, enum reason reason)
{
	struct verdict verdict = { .op = op, .reason = reason };
	struct result none = { .end = END_NOT_RUN };

	ledger_keep(l, d, &verdict, &none);
}

bool
ledger_give_back(struct ledger *l, bool loading)
{
	unsigned before = l->tally.count[DELIVERY_KEPT];
	struct delivery *d;

	while ((d = TAILQ_FIRST(&l->lists[DELIVERY_FOUND])) != NULL ||
	    (loading && (d = TAILQ_FIRST(&l->lists[DELIVERY_LOADING])) != NULL))
		ledger_keep_unrun(l, d, VERDICT_RETURN, REASON_DRAIN);
	return l->tally.count[DELIVERY_KEPT] > before;
}

/* A token ends in the message's place in the pop: CALL.1 CALL.2 ... */
void
ledger_sort(struct ledger *l, struct delivery *d)
{
	struct delivery_list *found = &l->lists[DELIVERY_FOUND];
	const char *dot = strrchr(d->msg->token, '.');
	size_t prefix = dot != NULL ? (size_t)(dot - d->msg->token) + 1 : 0;
	struct delivery *at;

	if (d->state != DELIVERY_FOUND)
		return;
	TAILQ_FOREACH(at, found, entry) {
		if (strncmp(at->msg->token, d->msg->token, prefix) == 0 &&
		    atoi(at->msg->token + prefix) > atoi(d->msg->token + prefix))
			break;
	}
	if (at == NULL)
		return;
	TAILQ_REMOVE(found, d, entry);
	TAILQ_INSERT_BEFORE(at, d, entry);
}

struct delivery *
ledger_first(const struct ledger *l, enum delivery_state state)
{
	return TAILQ_FIRST(&l->lists[state]);
}

struct delivery *
ledger_next(const struct delivery *d)
{
	return TAILQ_NEXT(d, entry);
}

const struct ledger_tally *
ledger_tally(const struct ledger *l)
{
	return &l->tally;
}

bool
ledger_is_empty(const struct ledger *l)
{
	for (size_t i = 0; i < DELIVERY_LISTS; i++) {
		if (l->tally.count[i] > 0)
			return false;
	}
	return true;
}

bool
ledger_has_token(const struct ledger *l, const char *token)
{
	const struct delivery *d;

	for (size_t i = 0; i < DELIVERY_LISTS; i++) {
		TAILQ_FOREACH(d, &l->lists[i], entry) {
			if (strcmp(d->msg->token, token) == 0)
				return true;
		}
	}
	return false;
}

struct delivery *
ledger_found(const struct ledger *l)
{
	struct delivery *d;

	TAILQ_FOREACH(d, &l->lists[DELIVERY_FOUND], entry) {
		if (message_is_sure(d->msg))
			return d;
	}
	return NULL;
}

bool
ledger_is_unsure(const struct ledger *l)
{
	const struct delivery *d = TAILQ_FIRST(&l->lists[DELIVERY_FOUND]);

	return d != NULL && !message_is_sure(d->msg) && d->calls == 0;
}

/* -- batches ---------------------------------------------------------------- */

void
batch_add(struct delivery_batch *b, struct delivery *d)
{
	*APPEND(b->v, b->n) = d;
	d->calls++;
}

void
batch_done(struct delivery_batch *b)
{
	for (size_t i = 0; i < b->n; i++) {
		if (--b->v[i]->calls == 0 && b->v[i]->state == DELIVERY_DONE)
			free(b->v[i]);
	}
	free(b->v);
	*b = (struct delivery_batch){ 0 };
}

/* -- leases ----------------------------------------------------------------- */

usec_t
ledger_renew_interval(const struct ledger *l)
{
	return l->lease / 3 < 10 * SEC ? l->lease / 3 : 10 * SEC;
}

/* The longest retry delay: a queue resumes within one lease after Redis accepts commands. */
usec_t
ledger_patience(const struct ledger *l)
{
	usec_t interval = ledger_renew_interval(l);

	return interval > SEC ? interval : SEC;
}

void
ledger_expect(struct ledger *l)
{
	if (!timer_is_set(&l->renew))
		timer_set(&l->renew, ledger_renew_interval(l));
}

static void
ledger_renew_within(struct ledger *l, usec_t within)
{
	if (timer_left(&l->renew) > within)
		timer_set(&l->renew, within);
}

void
ledger_renew_soon(struct ledger *l)
{
	ledger_renew_within(l, SEC);
}

void
ledger_renew_hint(struct ledger *l)
{
	usec_t since = clock_mono() - l->renewed_at;

	if (!timer_is_set(&l->renew))
		return;
	l->again = true;
	ledger_renew_within(l, since < HINT_EVERY ? HINT_EVERY - since : 0);
}

bool
ledger_begin_renewal(struct ledger *l, bool pops)
{
	double part = 0.8 + 0.2 * random_unit();

	if (ledger_is_empty(l) && !pops) {
		timer_stop(&l->renew);
		return false;
	}
	l->renewed_at = clock_mono();
	timer_set(&l->renew, (usec_t)((double)ledger_renew_interval(l) * part));
	if (l->again)
		ledger_renew_within(l, HINT_AGAIN);
	l->again = false;
	return true;
}

static void
ledger_renew_list(const struct delivery_list *list, void (*send)(struct delivery_batch *, void *),
    void *arg)
{
	struct delivery_batch batch = { 0 };
	struct delivery *d;

	TAILQ_FOREACH(d, list, entry) {
		if (d->lost || d->usurped || d->rescue)
			continue;
		batch_add(&batch, d);
		if (batch.n < RENEW_MOST)
			continue;
		send(&batch, arg);
		batch = (struct delivery_batch){ 0 };
	}
	if (batch.n > 0)
		send(&batch, arg);
}

void
ledger_renewals(struct ledger *l, void (*send)(struct delivery_batch *, void *), void *arg)
{
	for (size_t i = 0; i < DELIVERY_LISTS; i++) {
		if (i != DELIVERY_SENT)
			ledger_renew_list(&l->lists[i], send, arg);
	}
}

/*
 * The delivery is no longer ours.  If the engine has it, the caller tells the engine;
 * otherwise it ends silently.
 */
static enum lease
ledger_lose(struct ledger *l, struct delivery *d)
{
	if (d->state < DELIVERY_IN_HAND)
		ledger_keep_unrun(l, d, VERDICT_STALE, REASON_NONE);
	else if (d->state == DELIVERY_IN_HAND && !d->lost) {
		d->lost = true;
		return LEASE_LOST;
	}
	return LEASE_SEEN;
}

/*
 * Redis has forgotten the delivery, so its lease can never be renewed again.  A handler
 * runs on; if it fails, the message is rescued.  A message that waits for a handler is
 * returned now, and the answer to that leads to a rescue.
 */
static enum lease
ledger_forgotten(struct ledger *l, struct delivery *d)
{
	if (d->state == DELIVERY_FOUND)
		ledger_keep_unrun(l, d, VERDICT_RETURN, REASON_DRAIN);
	else if (d->state == DELIVERY_LOADING)
		return ledger_lose(l, d);
	return LEASE_SEEN;
}

static bool
is_held_hand_over(const struct delivery *d)
{
	return d->state == DELIVERY_REFUSED && delivery_hands_over(d) && !d->rescue;
}

/*
 * A cancelled message stays in flight, and is renewed, until its handler has ended.
 * But a hand-over that Redis refuses has no handler, and would wait for ever: settle it
 * now.
 */
static enum lease
ledger_cancel(struct delivery *d, enum cancel cancel)
{
	bool news = d->state == DELIVERY_REFUSED ||
	    (d->msg->cancel == CANCEL_NONE && d->state == DELIVERY_IN_HAND);

	d->msg->cancel = cancel;
	return news ? LEASE_CANCELLED : LEASE_SEEN;
}

enum lease
ledger_renewed(struct ledger *l, struct delivery *d, int64_t answer, boot_t sent_at)
{
	bool cancelled = answer == RENEWED_DROP || answer == RENEWED_DEAD;

	if (d->state > DELIVERY_IN_HAND && !(cancelled && is_held_hand_over(d)))
		return LEASE_SEEN;
	switch ((enum renewed)answer) {
	case RENEWED_YES:
	case RENEWED_BACK:
		d->msg->ours_at = sent_at;
		return LEASE_SEEN;
	case RENEWED_DROP:
	case RENEWED_DEAD:
		d->msg->ours_at = sent_at;
		return ledger_cancel(d, answer == RENEWED_DROP ? CANCEL_DROP : CANCEL_DEAD);
	case RENEWED_LOST:
		return ledger_forgotten(l, d);
	case RENEWED_TAKEN:
		d->taken = true;
		return ledger_lose(l, d);
	case RENEWED_HELD:
	case RENEWED_GONE:
		return ledger_lose(l, d);
	case RENEWED_HELD_LOST:
		return d->msg->payload != NULL ? LEASE_UNCLEAR : ledger_lose(l, d);
	}
	return LEASE_SEEN;
}

enum lease
ledger_checked(struct ledger *l, struct delivery *d, bool other)
{
	if (!other)
		return ledger_lose(l, d);
	d->usurped = true;
	return ledger_forgotten(l, d);
}
