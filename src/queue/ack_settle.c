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
 * A result whose answer was lost, or was an error, may have acted.  If the next
 * answer is "held", "gone" or "taken" it has, or the message was settled elsewhere: both
 * count as success.  "lost" means that Redis has forgotten the delivery: an ack is done
 * then, anything else is rescued (ack_rescue.c).
 *
 * A result that Redis refuses keeps its slot: pops ask for fewer messages meanwhile.  It
 * has a backoff of its own, so that it holds up no other one.  If Redis refuses a whole
 * call, each of its results goes into a call of half the size the next time, until the
 * one that is to blame is alone; while nothing is accepted, one such call at a time is
 * tried.  A result that was never refused is sent at once.
 */
#include "queue/ack_private.h"

#include <inttypes.h>
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
	ledger_keep(a->ledger, d, verdict, result);
	ack_wake(a);
}

void
ack_return_found(struct ack *a)
{
	if (ledger_give_back(a->ledger, a->closing))
		ack_wake(a);
}

/* -- the end of a delivery -------------------------------------------------- */

void
ack_done(struct ack *a, struct delivery *d, enum settled how)
{
	if (d->from_engine)
		a->queue.events->settled(d->msg, &d->verdict, &d->result, how,
		    a->queue.arg);
	ledger_move(a->ledger, d, DELIVERY_DONE);
	ack_wake(a);
}

void
ack_keep_on(struct ack *a, struct delivery *d)
{
	ledger_move(a->ledger, d, DELIVERY_KEPT);
	ack_wake(a);
}

/* The queue is freed: what is not confirmed is left to its lease. */
void
ack_give_up(struct ack *a)
{
	struct delivery *d;
	size_t i;

	for (i = 0; i < DELIVERY_LISTS; i++) {
		while ((d = ledger_first(a->ledger, i)) != NULL)
			ack_done(a, d, SETTLED_GAVE_UP);
	}
}

/* -- refused results -------------------------------------------------------- */

static usec_t
ack_refusal_delay(const struct ack *a, enum reply_error e, unsigned failures)
{
	bool soon = e == REPLY_TRANSIENT || e == REPLY_REFUSED;

	return backoff_delay(soon ? 100 * MSEC : SEC, ledger_patience(a->ledger), failures, random_unit());
}

static void
ack_put_off(struct ack *a, struct delivery *d, usec_t due)
{
	d->may_have_acted = true;
	d->due = due;
	ledger_move(a->ledger, d, DELIVERY_REFUSED);
	ack_wake(a);
}

void
ack_refuse(struct ack *a, struct delivery *d, enum reply_error e)
{
	ack_put_off(a, d, clock_mono() + ack_refusal_delay(a, e, ++d->refusals));
}

/* Which of them is to blame is not known. */
static void
ack_refuse_all(struct ack *a, struct call *call, enum reply_error e)
{
	bool passes = e == REPLY_TRANSIENT || e == REPLY_REFUSED || e == REPLY_ELSEWHERE;
	usec_t now = clock_mono();
	size_t i;

	timer_set(&a->hold, ack_refusal_delay(a, e, ++a->settle_failures));
	for (i = 0; i < call->batch.n; i++) {
		if (!passes && call->batch.n == 1)
			ack_refuse(a, call->batch.v[i], e);
		else
			ack_put_off(a, call->batch.v[i], now);
		if (!passes)
			call->batch.v[i]->most = call->batch.n > 1 ? (unsigned)call->batch.n / 2 : 1;
	}
}

void
ack_accepted(struct ack *a)
{
	a->settle_failures = 0;
	timer_stop(&a->hold);
}

/* -- what the letters say --------------------------------------------------- */

void
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

void
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

/* -- answers ---------------------------------------------------------------- */

const char *
ack_op_name(enum verdict_op op)
{
	static const char *const names[] = {
		[VERDICT_ACK] = "ack", [VERDICT_RETRY] = "retry", [VERDICT_DEAD] = "dead",
		[VERDICT_RETURN] = "return", [VERDICT_STALE] = "stale",
	};

	return names[op];
}

/* Puts results back that were sent in a call without an answer to each. */
bool
ack_unanswered(struct ack *a, struct call *call, enum conn_answer answer)
{
	size_t i;

	if (answer == CONN_REPLY)
		return false;
	for (i = 0; i < call->batch.n; i++) {
		if (answer == CONN_LOST)
			call->batch.v[i]->may_have_acted = true;
		ack_keep_on(a, call->batch.v[i]);
	}
	return true;
}

/* Redis has forgotten the delivery, and the tag is nowhere. */
static void
ack_settled_lost(struct ack *a, struct delivery *d)
{
	if (ack_can_rescue(d)) {
		d->rescue = true;
		d->may_have_acted = false;
		d->refusals = d->most = 0;
		ack_keep_on(a, d);
	} else {
		ack_done(a, d, d->verdict.op == VERDICT_ACK ? SETTLED_OK : SETTLED_STALE);
	}
}

static void
ack_letter_checked(struct ack *a, struct call *call, enum conn_answer answer,
    const struct redisReply *reply)
{
	struct delivery *d = call->batch.v[0];
	const char *text;

	if (ack_unanswered(a, call, answer))
		return;
	text = reply_str(reply, NULL);
	if (text == NULL)
		ack_refuse(a, d, ack_failed(a, ACK_RESCUE, reply));
	else
		ack_done(a, d, strcmp(text, "other") == 0 ? SETTLED_OK : SETTLED_DEFERRED);
}

/*
 * Another delivery has it, or it waits for one.  A dead letter that may have been
 * written was not if the message still lives: it was deferred.
 */
static void
ack_settled_held(struct ack *a, struct delivery *d)
{
	if (!d->may_have_acted)
		ack_done(a, d, SETTLED_STALE);
	else if (d->verdict.op == VERDICT_DEAD && d->msg->payload != NULL)
		ack_check(a, d, ack_letter_checked);
	else
		ack_done(a, d, SETTLED_OK);
}

/* As held, but Redis has forgotten our delivery: rescue compares the payloads. */
static void
ack_settled_held_lost(struct ack *a, struct delivery *d)
{
	if (ack_can_rescue(d)) {
		d->rescue = true;
		ack_keep_on(a, d);
	} else {
		ack_done(a, d, d->may_have_acted ||
		    (d->usurped && d->verdict.op == VERDICT_ACK) ? SETTLED_OK : SETTLED_STALE);
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
	} else if (strcmp(text, "lost") == 0) {
		ack_settled_lost(a, d);
	} else if (strcmp(text, "held") == 0) {
		ack_settled_held(a, d);
	} else if (strcmp(text, "held lost") == 0) {
		ack_settled_held_lost(a, d);
	} else if (strcmp(text, "gone") == 0 || strcmp(text, "taken") == 0) {
		ack_done(a, d, d->may_have_acted ? SETTLED_OK : SETTLED_STALE);
	} else if (strcmp(text, "again") == 0) {
		ack_keep_on(a, d);
	} else if (strncmp(text, "deferred", 8) == 0) {
		ack_complain(a, ACK_SETTLE, text);
		ack_done(a, d, SETTLED_DEFERRED);
	} else {
		ack_complain(a, ACK_SETTLE, text);
		ack_refuse(a, d, REPLY_OTHER);
		return false;
	}
	return true;
}

/* now due, then an answer for each */
static void
ack_settled(struct ack *a, struct call *call, enum conn_answer answer,
    const struct redisReply *reply)
{
	bool complained = a->complained[ACK_SETTLE];
	size_t i, good = 0, refused = 0;
	const char *text;
	double now;

	if (call->retry)
		a->retrying = false;
	if (call->batch.n == 0) {
		a->leaving = false;
		a->noted = answer != CONN_REPLY;
		ack_wake(a);
		return;
	}
	if (ack_unanswered(a, call, answer))
		return;
	if (reply_len(reply) != call->batch.n + 2) {
		ack_refuse_all(a, call, ack_failed(a, ACK_SETTLE, reply));
		return;
	}
	now = ack_saw_now(a, reply_at(reply, 0));
	if (ack_saw_due(a, now, reply_at(reply, 1), true))
		watcher_saw_work(a->watcher);
	for (i = 0; i < call->batch.n; i++) {
		text = reply_str(reply_at(reply, i + 2), NULL);
		if (!ack_settled_one(a, call->batch.v[i], text != NULL ? text : "error"))
			refused++;
		else if (text != NULL && strcmp(text, "ok") == 0)
			good++;
	}
	if (call->over && refused == 0)
		a->noted = false;
	if (refused < call->batch.n)
		ack_accepted(a);
	if (complained && good > 0 && ledger_refused(a->ledger) == 0)
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

/*
 * Whether nothing is in hand but what this list has, all of it acks that go into one
 * call.  What Redis knows of our pops is not needed after it.
 */
static bool
ack_is_over(const struct ack *a, enum delivery_state from)
{
	const struct delivery *d;
	usec_t now = clock_mono();
	size_t i;

	if (!a->noted || a->asked > 0 || a->popping != NULL || !TAILQ_EMPTY(&a->doubts) ||
	    ledger_count(a->ledger, from) > ACK_SETTLE_MAX)
		return false;
	for (i = 0; i < DELIVERY_LISTS; i++) {
		if (i != from && ledger_count(a->ledger, i) > 0)
			return false;
	}
	for (d = ledger_first(a->ledger, from); d != NULL; d = ledger_next(d)) {
		if (d->verdict.op != VERDICT_ACK || d->most > 0 || d->due > now)
			return false;
	}
	return true;
}

static struct call *
ack_settle_begin(struct ack *a, enum delivery_state from, struct args *w)
{
	struct call *call = ack_call_new(a, ACK_SETTLE, ack_settled);

	call->over = ack_is_over(a, from);
	ack_keys(a, call, w);
	args_fmt(w, "%lld", (long long)a->cfg->dead_max);
	args_str(w, a->env->host);
	if (call->over)
		args_fmt(w, "%s.%" PRIu64, a->instance, a->prev);
	else
		args_str(w, "");
	ack_words(a, call, w);
	return call;
}

/* As many of a list as go into a call; false if there are none. */
static bool
ack_send_settle(struct ack *a, enum delivery_state from)
{
	usec_t now = clock_mono();
	struct delivery *d, *next;
	struct call *call = NULL;
	size_t most = ACK_SETTLE_MAX;
	struct args w = { 0 };

	for (d = ledger_first(a->ledger, from); d != NULL; d = next) {
		next = ledger_next(d);
		if (d->rescue || (from == DELIVERY_REFUSED && d->due > now))
			continue;
		if (call == NULL)
			call = ack_settle_begin(a, from, &w);
		if (d->most > 0 && d->most < most)
			most = d->most > call->batch.n ? d->most : call->batch.n;
		if (call->batch.n == most)
			break;
		batch_add(&call->batch, d);
		ack_add_result(&w, d);
		ledger_move(a->ledger, d, DELIVERY_SENT);
		if (w.bytes > ACK_BYTES)
			break;
	}
	if (call == NULL)
		return false;
	call->retry = from == DELIVERY_REFUSED;
	ack_send(a, call, &w);
	return true;
}

/* Nothing is in hand any more: Redis need not remember our pops. */
void
ack_leave(struct ack *a)
{
	struct args w = { 0 };

	if (!ack_is_up(a) || a->leaving || ledger_count(a->ledger, DELIVERY_KEPT) > 0)
		return;
	if (!watcher_will_fetch(a->watcher) && ack_is_over(a, DELIVERY_KEPT)) {
		a->leaving = true;
		ack_send(a, ack_settle_begin(a, DELIVERY_KEPT, &w), &w);
	}
}

/* Nothing is written about what is not ours any more; but see lua/settle.lua, "stale". */
void
ack_put_away(struct ack *a)
{
	struct delivery *d, *next;

	for (d = ledger_first(a->ledger, DELIVERY_KEPT); d != NULL; d = next) {
		next = ledger_next(d);
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
	unsigned kept = ledger_count(a->ledger, DELIVERY_KEPT);

	if (kept == 0 || kept >= COMPANY_MAX || 2 * kept >= ledger_count(a->ledger, DELIVERY_IN_HAND) ||
	    a->pace > COMPANY_TIME / 2 || a->closing || !ack_is_up(a)) {
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

	if (ledger_count(a->ledger, DELIVERY_KEPT) == 1)
		a->pace = ACK_PACE_MAX;
	ack_flush(a);
	ack_wake(a);
}

/* One call with results that were refused, or the time of the next one. */
static void
ack_retry(struct ack *a)
{
	bool no_rescue = a->popping != NULL || ack_in_doubt(a);	/* their ends wake us */
	const struct delivery *d;
	usec_t first = USEC_MAX, now = clock_mono();

	if (a->retrying || timer_is_set(&a->hold))
		return;
	a->retrying = ack_send_settle(a, DELIVERY_REFUSED);
	for (d = ledger_first(a->ledger, DELIVERY_REFUSED); d != NULL; d = ledger_next(d)) {
		if (d->due < first && !(d->rescue && no_rescue))
			first = d->due;
	}
	if (!a->retrying && first != USEC_MAX)
		timer_set(&a->hold, first > now ? first - now : MSEC);
}

void
ack_flush(struct ack *a)
{
	if (!ack_is_up(a))
		return;
	ack_send_rescue(a);
	while (ack_send_settle(a, DELIVERY_KEPT))
		;
	ack_retry(a);
}
