/*
 * Deliveries and their leases.
 *
 * One timer renews all that is in hand or kept, in calls of 250.  It goes off
 * every third of the lease, every 10 s at least, so a foreign consumer with a
 * timeout of 30 s does not take what rqd works on.
 *
 * "held", "gone" and "taken" end the handler: the message is settled elsewhere, or
 * another delivery has begun.  After "lost" it runs on: Redis has forgotten the
 * delivery, and nobody else has it.  If another delivery holds the tag and Redis
 * has forgotten ours, that may be another message with the same id: rescue.lua's
 * "check" compares the payloads first.
 *
 * While the reply to a pop is late, what it has taken is renewed by the number of the
 * call.
 */
#include "queue/ack_private.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum renewed {
	RENEWED_YES = 1, RENEWED_BACK = 2, RENEWED_HELD = 0, RENEWED_LOST = -1,
	RENEWED_TAKEN = -2, RENEWED_GONE = -3, RENEWED_HELD_LOST = -4
};

static const struct verdict	ack_verdict_stale = { .op = VERDICT_STALE };

/* -- deliveries ------------------------------------------------------------- */

struct delivery *
ack_delivery_new(struct ack *a, struct message *m)
{
	struct delivery *d = xcalloc(1, sizeof(*d));

	d->msg = m;
	d->state = DELIVERY_FOUND;
	TAILQ_INSERT_TAIL(&a->deliveries[DELIVERY_FOUND], d, entry);
	a->count[DELIVERY_FOUND]++;
	m->queue_data = d;
	if (!timer_is_set(&a->renew))
		timer_set(&a->renew, ack_renew_interval(a));
	return d;
}

/* DONE frees the message, and the delivery unless a call still points to it. */
void
ack_delivery_move(struct ack *a, struct delivery *d, enum delivery_state state)
{
	TAILQ_REMOVE(&a->deliveries[d->state], d, entry);
	a->count[d->state]--;
	if (d->state == DELIVERY_LOADING || d->state == DELIVERY_FOUND)
		a->crowded = false;
	d->state = state;
	if (state != DELIVERY_DONE) {
		a->count[state]++;
		TAILQ_INSERT_TAIL(&a->deliveries[state], d, entry);
		return;
	}
	if (d->keeps_slot)
		a->refused--;
	if (a->rescuing == d)
		a->rescuing = NULL;
	message_free(d->msg);
	d->msg = NULL;
	result_done(&d->result);
	if (d->calls == 0)
		free(d);
}

void
ack_delivery_unref(struct delivery *d)
{
	if (--d->calls == 0 && d->state == DELIVERY_DONE)
		free(d);
}

bool
ack_is_sure(const struct delivery *d)
{
	return clock_boot() - d->ours_at < d->msg->cfg->lease / 4 * 3;
}

struct delivery *
ack_found(const struct ack *a)
{
	struct delivery *d;

	TAILQ_FOREACH(d, &a->deliveries[DELIVERY_FOUND], entry) {
		if (ack_is_sure(d))
			return d;
	}
	return NULL;
}

bool
ack_has_deliveries(const struct ack *a)
{
	size_t i;

	for (i = 0; i < DELIVERY_LISTS; i++) {
		if (!TAILQ_EMPTY(&a->deliveries[i]))
			return true;
	}
	return false;
}

/* -- lost ones -------------------------------------------------------------- */

/* What nobody has begun yet is put away silently. */
static void
ack_lose(struct ack *a, struct delivery *d)
{
	struct result none = { .end = END_NOT_RUN };

	if (d->state == DELIVERY_FOUND || d->state == DELIVERY_LOADING) {
		d->internal = true;
		ack_keep(a, d, &ack_verdict_stale, &none);
	} else if (d->state == DELIVERY_IN_HAND && !d->lost) {
		d->lost = true;
		a->queue.events->lost(d->msg, a->queue.arg);
	}
}

/*
 * Redis has forgotten it, and no lease can be renewed.  A handler runs on; if it fails, the
 * message is rescued.  What waits for a handler is rescued now, for it is never sure again.
 */
static void
ack_forgotten(struct ack *a, struct delivery *d)
{
	if (d->state == DELIVERY_FOUND)
		ack_give_back(a, d);
	else if (d->state == DELIVERY_LOADING)
		ack_lose(a, d);
}

static void
ack_checked(struct ack *a, struct call *call, enum conn_answer answer,
    const struct redisReply *reply)
{
	struct delivery *d = call->deliveries[0];
	const char *text;

	if (answer != CONN_REPLY)
		return;
	text = reply_str(reply, NULL);
	if (text == NULL) {
		(void)ack_failed(a, ACK_RESCUE, reply);
	} else if (strcmp(text, "other") == 0) {
		d->usurped = true;
		ack_forgotten(a, d);
	} else {
		ack_lose(a, d);
	}
}

/* -- renewal ---------------------------------------------------------------- */

usec_t
ack_renew_interval(const struct ack *a)
{
	return a->cfg->lease / 3 < 10 * SEC ? a->cfg->lease / 3 : 10 * SEC;
}

/*
 * The longest that Redis is left alone after it has refused something: a queue
 * must be at work again within a lease from when it is let, and leases are
 * renewed as often.
 */
usec_t
ack_patience(const struct ack *a)
{
	usec_t interval = ack_renew_interval(a);

	return interval > SEC ? interval : SEC;
}

static void
ack_renewed_one(struct ack *a, struct delivery *d, enum renewed how, boot_t sent_at)
{
	switch (how) {
	case RENEWED_YES:
	case RENEWED_BACK:
		d->ours_at = sent_at;
		break;
	case RENEWED_LOST:
		ack_forgotten(a, d);
		break;
	case RENEWED_TAKEN:
		d->taken = true;
		ack_lose(a, d);
		break;
	case RENEWED_HELD:
	case RENEWED_GONE:
		ack_lose(a, d);
		break;
	case RENEWED_HELD_LOST:
		if (d->msg->payload != NULL)
			ack_check(a, d, ack_checked);
		else
			ack_lose(a, d);
		break;
	}
}

/* now, then a number for each */
static void
ack_renewed(struct ack *a, struct call *call, enum conn_answer answer,
    const struct redisReply *reply)
{
	struct delivery *d;
	size_t i;

	if (answer != CONN_REPLY)
		return;
	if (reply_len(reply) != call->n + 1) {
		(void)ack_failed(a, ACK_RENEW, reply);
		if (timer_left(&a->renew) > SEC)
			timer_set(&a->renew, SEC);
		return;
	}
	ack_complain(a, ACK_RENEW, NULL);
	ack_saw_now(a, reply_at(reply, 0));
	for (i = 0; i < call->n; i++) {
		d = call->deliveries[i];
		if (d->state <= DELIVERY_IN_HAND)
			ack_renewed_one(a, d, (enum renewed)reply_int(reply_at(reply, i + 1), 1),
			    call->sent_at);
	}
	ack_wake(a);
}

static struct call *
ack_renew_begin(struct ack *a, struct args *w, bool unanswered)
{
	struct call *call = ack_call_new(a, ACK_RENEW, ack_renewed);

	ack_keys(a, call, w);
	args_fmt(w, "%d", a->cfg->fleet_concurrency);
	ack_words(a, call, w);
	if (unanswered)
		ack_add_unanswered(a, w);
	else
		args_str(w, "0");
	return call;
}

static void
ack_renew_list(struct ack *a, const struct delivery_list *list)
{
	struct call *call = NULL;
	struct args w = { 0 };
	struct delivery *d;

	TAILQ_FOREACH(d, list, entry) {
		if (d->lost || d->usurped || d->rescue)
			continue;
		if (call == NULL)
			call = ack_renew_begin(a, &w, false);
		ack_call_add(call, d);
		args_mem(&w, d->msg->tag, d->taglen);
		args_str(&w, d->msg->token);
		if (call->n == ACK_RENEW_MAX) {
			ack_send(a, call, &w);
			call = NULL;
		}
	}
	if (call != NULL)
		ack_send(a, call, &w);
}

void
ack_renew_all(struct ack *a)
{
	static const enum delivery_state states[] = {
		DELIVERY_LOADING, DELIVERY_FOUND, DELIVERY_IN_HAND, DELIVERY_KEPT,
		DELIVERY_REFUSED
	};
	struct args w = { 0 };
	struct call *call;
	size_t i;

	if (!ack_has_deliveries(a) && a->popping == NULL && TAILQ_EMPTY(&a->doubts)) {
		timer_stop(&a->renew);
		return;
	}
	timer_set(&a->renew, (usec_t)((double)ack_renew_interval(a) * (0.8 + 0.2 * random_unit())));
	if (!ack_is_up(a))
		return;
	if (ack_is_late(a)) {
		call = ack_renew_begin(a, &w, true);
		ack_send(a, call, &w);
	}
	for (i = 0; i < ARRAY_LEN(states); i++)
		ack_renew_list(a, &a->deliveries[states[i]]);
}

/* What was found and is not wanted goes back, for others to run. */
void
ack_renew(void *arg)
{
	struct ack *a = arg;

	if (!a->wanted && a->asked == 0)
		ack_return_found(a);
	ack_renew_all(a);
}
