/*
 * Renewals.  When the ledger says that one is due, this file renews all deliveries that
 * it names, in calls of 250.  While the reply to a pop is late, it renews the messages
 * of that pop by the number of the call.
 */
#include "queue/leased_private.h"

#include <string.h>

static leased_answer_fn	leased_checked;

static void
leased_leased(struct leased *a, struct delivery *d, enum lease lease)
{
	if (lease == LEASE_LOST)
		a->queue.events->lost(d->msg, a->queue.arg);
	else if (lease == LEASE_CANCELLED && d->state == DELIVERY_REFUSED)
		settler_cancel(a->settler, d);
	else if (lease == LEASE_CANCELLED)
		a->queue.events->cancelled(d->msg, a->queue.arg);
	else if (lease == LEASE_UNCLEAR)
		leased_check(a, d, leased_checked);
}

static void
leased_checked(struct leased *a, struct call *call, enum conn_answer answer,
    const struct redisReply *reply)
{
	struct delivery *d = call->batch.v[0];
	const char *text = reply_str(reply, NULL);

	if (answer != CONN_REPLY)
		return;
	if (text == NULL)
		(void)leased_failed(a, LEASED_RESCUE, reply);
	else
		leased_leased(a, d, ledger_checked(a->ledger, d, strcmp(text, "other") == 0));
	leased_wake(a);
}

/* Returned by renew.lua; then for each a number, or "NUMBER WHO" if WHO cancelled it. */
enum { RENEW_NOW, RENEW_FIELDS };

static void
leased_renewed_one(struct leased *a, struct delivery *d, const struct redisReply *r, boot_t sent_at)
{
	const char *text = reply_str(r, NULL);
	int64_t answer = reply_int(r, 1);

	if (text != NULL && (text[0] == '3' || text[0] == '4') && text[1] == ' ') {
		answer = text[0] - '0';
		xreplace(&d->msg->cancelled_by, text + 2);
	}
	leased_leased(a, d, ledger_renewed(a->ledger, d, answer, sent_at));
}

static void
leased_renewed(struct leased *a, struct call *call, enum conn_answer answer,
    const struct redisReply *reply)
{
	if (answer != CONN_REPLY)
		return;
	if (reply_len(reply) != call->batch.n + RENEW_FIELDS) {
		(void)leased_failed(a, LEASED_RENEW, reply);
		ledger_renew_soon(a->ledger);
		return;
	}
	leased_complain(a, LEASED_RENEW, NULL);
	leased_saw_now(a, reply_at(reply, RENEW_NOW));
	for (size_t i = 0; i < call->batch.n; i++)
		leased_renewed_one(a, call->batch.v[i], reply_at(reply, RENEW_FIELDS + i),
		    call->request.sent_at);
	leased_wake(a);
}

static struct call *
leased_renew_begin(struct leased *a)
{
	struct call *call = leased_call_new(a, LEASED_RENEW, leased_renewed);

	words_fmt(&call->words, "%d", a->cfg->fleet_concurrency);
	leased_words(call);
	return call;
}

static void
leased_renew_batch(struct delivery_batch *batch, void *arg)
{
	struct call *call = leased_renew_begin(arg);

	words_add(&call->words, "0");
	for (size_t i = 0; i < batch->n; i++) {
		words_mem(&call->words, batch->v[i]->msg->tag, batch->v[i]->taglen);
		words_add(&call->words, batch->v[i]->msg->token);
	}
	call->batch = *batch;
	leased_send(call);
}

void
leased_renew_all(struct leased *a)
{
	struct call *call;

	if (!ledger_begin_renewal(a->ledger, !pops_is_idle(a->pops)) ||
	    !leased_is_up(a))
		return;
	if (pops_is_late(a->pops, ledger_renew_interval(a->ledger))) {
		call = leased_renew_begin(a);
		pops_add_late(a->pops, ledger_renew_interval(a->ledger), &call->words);
		leased_send(call);
	}
	ledger_renewals(a->ledger, leased_renew_batch, a);
}

/* Renews, but first returns FOUND messages that the engine no longer wants. */
void
leased_renew(void *arg)
{
	struct leased *a = arg;

	if (!watcher_is_wanted(a->watcher) && a->asked == 0 &&
	    ledger_give_back(a->ledger, a->closing))
		leased_wake(a);
	leased_renew_all(a);
}
