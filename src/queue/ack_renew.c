/*
 * Renewals.  When the ledger says that one is due, all that it names is renewed
 * in calls of 250.  While the reply to a pop is late, what it has taken is renewed
 * by the number of the call.
 */
#include "queue/ack_private.h"

#include <string.h>

static ack_answer_fn	ack_checked;

static void
ack_leased(struct ack *a, struct delivery *d, enum lease lease)
{
	if (lease == LEASE_LOST)
		a->queue.events->lost(d->msg, a->queue.arg);
	else if (lease == LEASE_UNCLEAR)
		ack_check(a, d, ack_checked);
}

static void
ack_checked(struct ack *a, struct call *call, enum conn_answer answer,
    const struct redisReply *reply)
{
	struct delivery *d = call->batch.v[0];
	const char *text = reply_str(reply, NULL);

	if (answer != CONN_REPLY)
		return;
	if (text == NULL)
		(void)ack_failed(a, ACK_RESCUE, reply);
	else
		ack_leased(a, d, ledger_checked(a->ledger, d, strcmp(text, "other") == 0));
	ack_wake(a);
}

enum { RENEW_NOW, RENEW_FIRST };	/* a number for each from there */

static void
ack_renewed(struct ack *a, struct call *call, enum conn_answer answer,
    const struct redisReply *reply)
{
	struct delivery *d;
	size_t i;

	if (answer != CONN_REPLY)
		return;
	if (reply_len(reply) != call->batch.n + RENEW_FIRST) {
		(void)ack_failed(a, ACK_RENEW, reply);
		ledger_renew_soon(a->ledger);
		return;
	}
	ack_complain(a, ACK_RENEW, NULL);
	ack_saw_now(a, reply_at(reply, RENEW_NOW));
	for (i = 0; i < call->batch.n; i++) {
		d = call->batch.v[i];
		ack_leased(a, d, ledger_renewed(a->ledger, d,
		    reply_int(reply_at(reply, RENEW_FIRST + i), 1), call->request.sent_at));
	}
	ack_wake(a);
}

static struct call *
ack_renew_begin(struct ack *a, struct words *w)
{
	struct call *call = ack_call_new(a, ACK_RENEW, ack_renewed);

	ack_keys(a, call, w);
	words_fmt(w, "%d", a->cfg->fleet_concurrency);
	ack_words(a, call, w);
	return call;
}

static void
ack_renew_batch(struct delivery_batch *batch, void *arg)
{
	struct ack *a = arg;
	struct words w = { 0 };
	struct call *call = ack_renew_begin(a, &w);
	size_t i;

	words_add(&w, "0");
	for (i = 0; i < batch->n; i++) {
		words_mem(&w, batch->v[i]->msg->tag, batch->v[i]->taglen);
		words_add(&w, batch->v[i]->msg->token);
	}
	call->batch = *batch;
	ack_send(a, call, &w);
}

void
ack_renew_all(struct ack *a)
{
	struct words w = { 0 };
	struct call *call;

	if (!ledger_begin_renewal(a->ledger, !pops_is_idle(a->pops)) ||
	    !ack_is_up(a))
		return;
	if (pops_is_late(a->pops, ledger_renew_interval(a->ledger))) {
		call = ack_renew_begin(a, &w);
		pops_add_late(a->pops, ledger_renew_interval(a->ledger), &w);
		ack_send(a, call, &w);
	}
	ledger_renewals(a->ledger, ack_renew_batch, a);
}

/* What was found and is not wanted goes back, for others to run. */
void
ack_renew(void *arg)
{
	struct ack *a = arg;

	if (!watcher_is_wanted(a->watcher) && a->asked == 0 &&
	    ledger_give_back(a->ledger, a->closing))
		ack_wake(a);
	ack_renew_all(a);
}
