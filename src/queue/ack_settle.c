/*
 * Results.  Those of one turn go to Redis in one call, and are kept until it
 * has answered for each; nothing that a handler has achieved is forgotten
 * because a connection was lost.
 *
 * Where handlers are quick, a result waits for company: as long as more than
 * twice as many messages are still in hand as results are kept, for COMPANY_TIME
 * at most.  ready() waits with it, so that one pop fills all the slots that became
 * free.  Two scripts for three messages instead of for each one are worth
 * half of what a message costs Redis.
 *
 * A result whose answer was lost is in doubt: it may have acted, and the second
 * answer is then that of a stranger ("held", "unknown", "taken"), which counts
 * as success.  But "unknown" after Redis may have lost its memory, or without
 * doubt, means that the message is nowhere: an ack is done then, anything else
 * is rescued, which is to write the message again from our copy.  "held" by
 * another message, with our tag, is the same.
 */
#include "queue/ack_private.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "policy/backoff.h"

#define COMPANY_TIME	MSEC
#define COMPANY_MAX	16	/* more make a message hardly cheaper */

void
ack_keep(struct ack *a, struct delivery *d, const struct verdict *verdict,
    struct result *result)
{
	d->verdict = *verdict;
	result_move(&d->result, result);
	ack_delivery_move(a, d, DELIVERY_KEPT);
	ack_wake(a);
}

/* What the engine has never seen goes back as it was. */
void
ack_return_found(struct ack *a)
{
	static const struct verdict back = { .op = VERDICT_RETURN, .reason = REASON_DRAIN };
	struct result none = { .end = END_NOT_RUN };
	struct delivery *d;

	while ((d = TAILQ_FIRST(&a->deliveries[DELIVERY_FOUND])) != NULL ||
	    (a->closing && (d = TAILQ_FIRST(&a->deliveries[DELIVERY_LOADING])) != NULL)) {
		d->internal = true;
		ack_keep(a, d, &back, &none);
	}
}

/* -- the end of a delivery -------------------------------------------------- */

static void
ack_done(struct ack *a, struct delivery *d, enum settled how)
{
	if (!d->internal)
		a->queue.events->settled(d->msg, &d->verdict, &d->result, how,
		    a->queue.arg);
	ack_delivery_move(a, d, DELIVERY_DONE);
	ack_wake(a);
}

/* Sends it again, later where timed. */
static void
ack_keep_on(struct ack *a, struct delivery *d)
{
	ack_delivery_move(a, d, DELIVERY_KEPT);
	ack_wake(a);
}

/* The queue is freed: what is not confirmed is left to its lease. */
void
ack_give_up(struct ack *a)
{
	struct delivery *d;
	size_t i;

	for (i = 0; i < DELIVERY_LISTS; i++) {
		while ((d = TAILQ_FIRST(&a->deliveries[i])) != NULL) {
			if (i <= DELIVERY_IN_HAND)
				d->internal = true;
			ack_done(a, d, SETTLED_GAVE_UP);
		}
	}
}

/* No results for a while: Redis refused them. */
static void
ack_hold(struct ack *a, enum reply_error e)
{
	bool soon = e == REPLY_TRANSIENT || e == REPLY_REFUSED;

	timer_set(&a->hold, backoff_delay(soon ? 100 * MSEC : SEC, ack_patience(a),
	    ++a->settle_failures, random_unit()));
}

/* -- what the letters say --------------------------------------------------- */

static void
ack_add_status(struct args *w, const struct result *r)
{
	char name[UTIL_SIGNAL_MAX];

	switch (r->end) {
	case END_EXIT:
		args_fmt(w, "%d", r->status);
		return;
	case END_SIGNAL:
		args_fmt(w, "%s", util_signal(r->signo, name));
		return;
	case END_NOT_STARTED:
	case END_NOT_RUN:
	case END_ANSWER_OK:
	case END_ANSWER_RETRY:
	case END_ANSWER_DEAD:
	case END_UNFRAMEABLE:
	case END_PROTOCOL:
		break;
	}
	args_str(w, "");
}

static void
ack_add_error(struct args *w, const struct result *r)
{
	if (r->error_tail != NULL && r->error_len > 0)
		args_mem(w, r->error_tail, r->error_len);
	else if (r->reason != NULL)
		args_str(w, r->reason);
	else if (r->end == END_NOT_STARTED)
		args_str(w, strerror(r->error));
	else
		args_str(w, "");
}

/* -- rescue ----------------------------------------------------------------- */

static bool
ack_can_rescue(const struct delivery *d)
{
	return d->msg->payload != NULL && (d->verdict.op == VERDICT_RETRY ||
	    d->verdict.op == VERDICT_RETURN || d->verdict.op == VERDICT_DEAD);
}

static const char *
ack_op_name(enum verdict_op op)
{
	static const char *const names[] = {
		[VERDICT_ACK] = "ack", [VERDICT_RETRY] = "retry", [VERDICT_DEAD] = "dead",
		[VERDICT_RETURN] = "return", [VERDICT_STALE] = "stale",
	};

	return names[op];
}

/* Puts results back that were sent in a call without an answer to each. */
static bool
ack_unanswered(struct ack *a, struct call *call, enum conn_answer answer)
{
	size_t i;

	if (answer == CONN_REPLY)
		return false;
	for (i = 0; i < call->n; i++) {
		if (answer == CONN_LOST)
			call->deliveries[i]->in_doubt = true;
		ack_keep_on(a, call->deliveries[i]);
	}
	return true;
}

static void
ack_rescued(struct ack *a, struct call *call, enum conn_answer answer,
    const struct redisReply *reply)
{
	struct delivery *d = call->deliveries[0];
	const char *text;
	enum reply_error e;

	if (ack_unanswered(a, call, answer))
		return;
	text = reply_str(reply, NULL);
	if (text == NULL) {
		e = ack_failed(a, ACK_RESCUE, reply);
		ack_keep_on(a, d);
		if (e != REPLY_ELSEWHERE)
			ack_hold(a, e);
		return;
	}
	a->settle_failures = 0;
	ack_complain(a, ACK_RESCUE, NULL);
	if (strcmp(text, "ok") == 0)
		ack_done(a, d, SETTLED_RESCUED);
	else if (strcmp(text, "there") == 0)
		ack_done(a, d, d->in_doubt ? SETTLED_OK : SETTLED_STALE);
	else
		ack_done(a, d, SETTLED_DEFERRED);
}

static void
ack_send_rescue(struct ack *a, struct delivery *d)
{
	struct call *call = ack_call_new(a, ACK_RESCUE, ack_rescued);
	const struct message *m = d->msg;
	struct args w = { 0 };

	ack_call_add(call, d);
	ack_delivery_move(a, d, DELIVERY_SENT);
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
	ack_words(a, call, &w);
	ack_send(a, call, &w);
}

/* -- answers ---------------------------------------------------------------- */

/* The tag is nowhere. */
static void
ack_settled_unknown(struct ack *a, struct delivery *d)
{
	bool forgotten = d->epoch != a->epoch;

	if (ack_can_rescue(d) && (!d->in_doubt || forgotten)) {
		d->rescue = true;
		d->in_doubt = false;
		ack_keep_on(a, d);
	} else if (d->in_doubt || (forgotten && d->verdict.op == VERDICT_ACK)) {
		ack_done(a, d, SETTLED_OK);
	} else {
		ack_done(a, d, SETTLED_STALE);
	}
}

/*
 * Another delivery has it, or it waits for one.  Or Redis has lost it, and
 * another message has its tag: rescue compares the payloads.
 */
static void
ack_settled_held(struct ack *a, struct delivery *d)
{
	if (ack_can_rescue(d) && (!d->in_doubt || d->epoch != a->epoch)) {
		d->rescue = true;
		ack_keep_on(a, d);
	} else {
		ack_done(a, d, d->in_doubt || (d->usurped && d->verdict.op == VERDICT_ACK) ?
		    SETTLED_OK : SETTLED_STALE);
	}
}

/* One answer; false where it was an error. */
static bool
ack_settled_one(struct ack *a, struct delivery *d, const char *text)
{
	if (d->verdict.op == VERDICT_STALE) {
		ack_done(a, d, SETTLED_STALE);
	} else if (strcmp(text, "ok") == 0) {
		ack_done(a, d, SETTLED_OK);
	} else if (strcmp(text, "unknown") == 0) {
		ack_settled_unknown(a, d);
	} else if (strcmp(text, "held") == 0) {
		ack_settled_held(a, d);
	} else if (strcmp(text, "taken") == 0) {
		ack_done(a, d, d->in_doubt || d->failed ? SETTLED_OK : SETTLED_STALE);
	} else if (strcmp(text, "again") == 0) {
		ack_keep_on(a, d);
	} else if (strncmp(text, "deferred", 8) == 0) {
		ack_complain(a, ACK_SETTLE, text);
		ack_done(a, d, SETTLED_DEFERRED);
	} else {
		ack_complain(a, ACK_SETTLE, text);
		d->failed = true;
		ack_keep_on(a, d);
		return false;
	}
	return true;
}

static void
ack_settle_failed(struct ack *a, struct call *call, const struct redisReply *reply)
{
	enum reply_error e = ack_failed(a, ACK_SETTLE, reply);
	size_t i;

	for (i = 0; i < call->n; i++) {
		call->deliveries[i]->failed = true;
		ack_keep_on(a, call->deliveries[i]);
	}
	if (e != REPLY_ELSEWHERE)
		ack_hold(a, e);
}

/* now due, then an answer for each */
static void
ack_settled(struct ack *a, struct call *call, enum conn_answer answer,
    const struct redisReply *reply)
{
	bool complained = a->complained[ACK_SETTLE], ok = true;
	size_t i, good = 0;
	const char *text;
	double now;

	if (ack_unanswered(a, call, answer))
		return;
	if (reply_len(reply) != call->n + 2) {
		ack_settle_failed(a, call, reply);
		return;
	}
	now = ack_saw_now(a, reply_at(reply, 0));
	if (ack_saw_due(a, now, reply_at(reply, 1), true))
		a->known = true;
	for (i = 0; i < call->n; i++) {
		text = reply_str(reply_at(reply, i + 2), NULL);
		if (!ack_settled_one(a, call->deliveries[i], text != NULL ? text : "error"))
			ok = false;
		else if (text != NULL && strcmp(text, "ok") == 0)
			good++;
	}
	if (!ok) {
		ack_hold(a, REPLY_OTHER);
		return;
	}
	a->settle_failures = 0;
	if (complained && good > 0)
		ack_complain(a, ACK_SETTLE, NULL);
}

/* -- sending ---------------------------------------------------------------- */

static void
ack_add_result(struct args *w, const struct delivery *d)
{
	const struct verdict *v = &d->verdict;

	args_str(w, v->op == VERDICT_RETRY && !v->failed ? "defer" : ack_op_name(v->op));
	args_mem(w, d->msg->tag, d->taglen);
	args_str(w, d->msg->token);
	if (v->op == VERDICT_RETRY)
		args_fmt(w, "%.6f", (double)v->delay / (double)SEC);
	if (v->op != VERDICT_DEAD)
		return;
	args_str(w, v->failed ? "1" : "0");
	args_str(w, reason_name(v->reason));
	ack_add_status(w, &d->result);
	ack_add_error(w, &d->result);
}

/* As many of the kept ones as go into a call. */
static void
ack_send_settle(struct ack *a)
{
	struct call *call = ack_call_new(a, ACK_SETTLE, ack_settled);
	struct delivery *d, *next;
	struct args w = { 0 };

	ack_keys(a, call, &w);
	args_fmt(&w, "%lld", (long long)a->cfg->dead_max);
	args_str(&w, a->env->host);
	ack_words(a, call, &w);
	TAILQ_FOREACH_SAFE(d, &a->deliveries[DELIVERY_KEPT], entry, next) {
		if (d->rescue)
			continue;
		ack_call_add(call, d);
		ack_add_result(&w, d);
		ack_delivery_move(a, d, DELIVERY_SENT);
		if (call->n == ACK_SETTLE_MAX || w.bytes > ACK_BYTES)
			break;
	}
	ack_send(a, call, &w);
}

/* Nothing is written about what is not ours any more; but see lua/settle.lua, "stale". */
void
ack_put_away(struct ack *a)
{
	struct delivery *d, *next;

	TAILQ_FOREACH_SAFE(d, &a->deliveries[DELIVERY_KEPT], entry, next) {
		if (d->verdict.op == VERDICT_STALE && !(d->taken && ack_is_up(a)))
			ack_done(a, d, SETTLED_STALE);
	}
}

void
ack_saw_result(struct ack *a)
{
	usec_t now = clock_mono(), since = now - a->result_at;

	if (since > ACK_PACE_MAX)
		since = ACK_PACE_MAX;
	a->pace += (since - a->pace) / 8;
	a->result_at = now;
}

/* Slow handlers gain nothing: two results are expected in the time. */
bool
ack_expects_company(struct ack *a)
{
	unsigned kept = a->count[DELIVERY_KEPT];

	if (kept == 0 || kept >= COMPANY_MAX || 2 * kept >= a->count[DELIVERY_IN_HAND] ||
	    a->pace > COMPANY_TIME / 2 || a->closing || !ack_is_up(a) ||
	    timer_is_set(&a->hold)) {
		timer_stop(&a->company);
		return false;
	}
	if (!timer_is_set(&a->company))
		timer_set(&a->company, COMPANY_TIME);
	return true;
}

/* Where nobody came only one slot is quick: it must not wait each time. */
void
ack_company_over(void *arg)
{
	struct ack *a = arg;

	if (a->count[DELIVERY_KEPT] == 1)
		a->pace = ACK_PACE_MAX;
	ack_flush(a);
	ack_wake(a);
}

void
ack_flush(struct ack *a)
{
	struct delivery *d, *next;

	if (!ack_is_up(a) || timer_is_set(&a->hold))
		return;
	TAILQ_FOREACH_SAFE(d, &a->deliveries[DELIVERY_KEPT], entry, next) {
		if (d->rescue)
			ack_send_rescue(a, d);
	}
	while (!TAILQ_EMPTY(&a->deliveries[DELIVERY_KEPT]))
		ack_send_settle(a);
}
