/*
 * Results of messages that Redis has lost: they are written again, from our copy.
 *
 * A rescue has a number, as pops have, and Redis notes it as it does for a pop.  So a
 * rescue whose reply was lost can be sent again: the script sees whether the first one
 * has acted.  For that no other call with a number may come in between; so one rescue
 * is on its way at a time, none while a pop is, and no pop while a rescue is.  After an
 * error reply it gets a new number.
 */
#include "queue/ack_private.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"

bool
ack_can_rescue(const struct delivery *d)
{
	return d->msg->payload != NULL && (d->verdict.op == VERDICT_RETRY ||
	    d->verdict.op == VERDICT_RETURN || d->verdict.op == VERDICT_DEAD);
}

void
ack_check(struct ack *a, struct delivery *d, void (*answered)(struct ack *,
    struct call *, enum conn_answer, const struct redisReply *))
{
	struct call *call = ack_call_new(a, ACK_RESCUE, answered);
	struct args w = { 0 };

	batch_add(&call->batch, d);
	ack_keys(a, call, &w);
	args_str(&w, "check");
	args_mem(&w, d->msg->tag, d->taglen);
	args_str(&w, "");
	args_str(&w, "0");
	args_str(&w, "0");
	args_str(&w, "0");
	args_str(&w, "0");
	args_mem(&w, d->msg->payload, d->msg->len);
	ack_send(a, call, &w);
}

/* Nobody else has the message: it is kept until the script's own words say otherwise. */
static bool
ack_knows_rescued(const char *text)
{
	return text != NULL && (strcmp(text, "ok") == 0 || strcmp(text, "there") == 0 ||
	    strncmp(text, "deferred", 8) == 0);
}

static void
ack_rescued(struct ack *a, struct call *call, enum conn_answer answer,
    const struct redisReply *reply)
{
	struct delivery *d = call->batch.v[0];
	uint64_t number = d->rescue_call;
	const char *text;

	/* It stays the one that is rescued, with its number. */
	if (ack_unanswered(a, call, answer))
		return;
	a->rescuing = NULL;
	d->rescue_call = 0;
	text = reply_str(reply, NULL);
	if (!ack_knows_rescued(text)) {
		ack_refuse(a, d, ack_failed(a, ACK_RESCUE, reply));
		return;
	}
	ack_accepted(a);
	if (ledger_refused(a->ledger) == 0)
		ack_complain(a, ACK_RESCUE, NULL);
	if (strcmp(text, "there") == 0) {
		ack_done(a, d, d->may_have_acted ? SETTLED_OK : SETTLED_STALE);
		return;
	}
	ack_saw_call(a, number);
	ack_done(a, d, strcmp(text, "ok") == 0 ? SETTLED_RESCUED : SETTLED_DEFERRED);
}

static void
ack_send_one(struct ack *a, struct delivery *d)
{
	struct call *call = ack_call_new(a, ACK_RESCUE, ack_rescued);
	const struct message *m = d->msg;
	struct args w = { 0 };

	a->rescuing = d;
	if (d->rescue_call == 0)
		d->rescue_call = ack_next_call();
	batch_add(&call->batch, d);
	ledger_move(a->ledger, d, DELIVERY_SENT);
	ack_keys(a, call, &w);
	args_str(&w, ack_op_name(d->verdict.op));
	args_mem(&w, m->tag, d->taglen);
	args_fmt(&w, "%.*s#%s", (int)d->idlen, m->tag, m->token);
	args_fmt(&w, "%u", d->idlen);
	args_fmt(&w, "%u", m->attempts + (d->verdict.failed ? 1 : 0));
	args_fmt(&w, "%u", m->crashes);
	args_fmt(&w, "%.6f", d->verdict.op == VERDICT_RETRY ?
	    (double)d->verdict.delay / (double)SEC : 0);
	args_mem(&w, m->payload, m->len);
	args_fmt(&w, "%lld", (long long)m->cfg->dead_max);
	args_str(&w, a->env->host);
	args_str(&w, reason_name(d->verdict.reason));
	ack_add_status(&w, &d->result);
	ack_add_error(&w, &d->result);
	args_fmt(&w, "%s.%" PRIu64, a->instance, d->rescue_call);
	args_fmt(&w, "%" PRIu64, a->prev);
	ack_words(a, call, &w);
	ack_send(a, call, &w);
}

/* The one that may have acted goes first. */
static struct delivery *
ack_next_rescue(struct ack *a)
{
	usec_t now = clock_mono();
	struct delivery *d;

	if (a->rescuing != NULL)
		return a->rescuing->state == DELIVERY_KEPT ? a->rescuing : NULL;
	for (d = ledger_first(a->ledger, DELIVERY_KEPT); d != NULL; d = ledger_next(d)) {
		if (d->rescue)
			return d;
	}
	for (d = ledger_first(a->ledger, DELIVERY_REFUSED); d != NULL; d = ledger_next(d)) {
		if (d->rescue && d->due <= now)
			return d;
	}
	return NULL;
}

void
ack_send_rescue(struct ack *a)
{
	struct delivery *d;

	if (a->popping != NULL || (a->rescuing == NULL && ack_in_doubt(a)))
		return;
	if ((d = ack_next_rescue(a)) != NULL)
		ack_send_one(a, d);
}
