/*
 * Results: which go into one call of the script settle, and what its answers mean.
 *
 * Batches: the results of one turn go into one call.  While handlers are quick, a
 * result also waits for others, for BATCH_TIME at most.  It waits only while the engine
 * has more than twice as many messages as results are kept.  ready() waits with it, so
 * that one pop fills all the slots that became free.  Two scripts for three messages,
 * instead of two for each message, halve the cost of a message in Redis.
 *
 * Unknown outcomes: a result whose answer was lost, or was an error, may have acted.
 * If the next answer is "held", "gone" or "taken", it has acted, or the message was
 * settled elsewhere.  Both count as success.  So does a message that Redis has forgotten
 * since.  Any other result with such an answer is stale: nothing of it is written.
 *
 * Hand-over: acks with pushes have calls of their own.  Their script pushes and acks,
 * or does neither, so an error means that nothing has happened.  One call pushes to one
 * set of queues, since an ACL that denies one of them refuses the whole call.  Results
 * that take more memory than they free have calls of their own: at maxmemory Redis
 * refuses them, and the others drain it.
 *
 * Refusals: a result that Redis refuses keeps its slot, so pops ask for fewer messages
 * meanwhile.  It backs off by itself and delays no other result.  If Redis refuses a
 * whole call, no single result is at fault, since the script answers for each one; but a
 * hand-over may be, since it pushes elsewhere.  While Redis accepts nothing, the queue
 * tries one such call at a time.  A result that was never refused is sent at once.
 */
#include "queue/leased.h"

#include <stdlib.h>
#include <string.h>

#include "base/backoff.h"
#include "base/utf8.h"
#include "queue/pausetext.h"

#define BATCH_TIME	MSEC
#define BATCH_ENOUGH	16		/* a larger batch saves little */
#define PACE_MAX	(10 * MSEC)
#define SAVE_EVERY	(100 * MSEC)	/* of one delivery */
#define HOLD_WHY_MAX	200
#define CALL_MAX	64		/* results */
#define CALL_BYTES	(1024 * 1024)	/* of their tags, answers, error texts and pushes */
#define CALL_PUSHES	1000		/* more only if one result has more */

/* -- results come ------------------------------------------------------------- */

void
leased_settle(struct queue *q, struct message *msg, const struct verdict *verdict,
    struct result *result)
{
	struct leased *a = (struct leased *)q;
	usec_t now = clock_mono(), since = now - a->result_at;

	if (since > PACE_MAX)
		since = PACE_MAX;
	a->pace += (since - a->pace) / 8;
	a->result_at = now;
	a->no_room = false;
	delivery_done(a, msg->queue_data, verdict, result);
}

static void
leased_end(struct leased *a, struct delivery *d, enum settled how)
{
	if (d->from_engine)
		a->queue.events->settled(d->msg, &d->verdict, &d->result, how, a->queue.arg);
	delivery_move(a, d, DELIVERY_GONE);
}

/*
 * rqd writes nothing for a stale result.  But if a foreign consumer took the message, the
 * script must remove the rest of the delivery.
 */
void
leased_put_away(struct leased *a)
{
	struct delivery *d, *next;

	TAILQ_FOREACH_SAFE(d, &a->list[DELIVERY_DONE], entry, next) {
		if (d->verdict.op == VERDICT_STALE && !(d->taken && leased_is_up(a)))
			leased_end(a, d, SETTLED_STALE);
	}
}

/* Waiting helps only quick handlers: at least two results must be expected in the time. */
bool
leased_results_wait(struct leased *a)
{
	unsigned kept = a->count[DELIVERY_DONE];

	if (a->closing || !leased_is_up(a) || kept == 0 || kept >= BATCH_ENOUGH ||
	    2 * kept >= a->count[DELIVERY_RUNNING] || a->pace > BATCH_TIME / 2) {
		timer_stop(&a->batch_timer);
		return false;
	}
	if (!timer_is_set(&a->batch_timer))
		timer_set(&a->batch_timer, BATCH_TIME);
	return true;
}

/* If only one result came, only one slot is quick: the next result of it must not wait. */
static void
leased_batch_due(void *arg)
{
	struct leased *a = arg;

	if (a->count[DELIVERY_DONE] == 1)
		a->pace = PACE_MAX;
	leased_flush(a);
	leased_wake(a);
}

/* Redis has refused the hand-over: drops the pushes, and ends the delivery by this verdict. */
static void
leased_end_hand_over(struct leased *a, struct delivery *d, const struct verdict *verdict)
{
	pushes_free(d->result.pushes);
	d->result.pushes = NULL;
	d->verdict = *verdict;
	d->refusals = 0;
	d->alone = false;
	delivery_move(a, d, DELIVERY_DONE);
}

void
leased_cancel_hand_over(struct leased *a, struct delivery *d)
{
	const struct result stopped = { .end = END_NOT_RUN, .stop = STOP_CANCEL };
	const struct verdict v = outcome_decide(d->msg, &stopped, false, 0);

	leased_end_hand_over(a, d, &v);
}

static const char *const leased_op_names[] = {
	[VERDICT_ACK] = "ack", [VERDICT_RETRY] = "retry", [VERDICT_DEFER] = "defer",
	[VERDICT_DEAD] = "dead", [VERDICT_RETURN] = "return", [VERDICT_STALE] = "stale",
	[VERDICT_DROP] = "ack", [VERDICT_HOLD] = "hold", [VERDICT_HOLD_GROUP] = "keep",
};

/* The result of the delivery comes with a text that its handler has saved. */
static bool
delivery_saves(const struct delivery *d)
{
	return d->saved != NULL && strcmp(leased_op_names[d->verdict.op], "ack") != 0 &&
	    d->verdict.op != VERDICT_STALE;
}

/* -- answers ------------------------------------------------------------------ */

/*
 * Wakes the target queues that are this daemon's, so that they need not wait for Redis
 * to report the push.  answer: to the result.
 */
static void
leased_report_pushed(const struct leased *a, const struct delivery *d, const char *answer)
{
	const char *key = a->cfg->dead_key;

	if (key != NULL && (strncmp(answer, "cancelled dead", 14) == 0 ||
	    (d->verdict.op == VERDICT_DEAD && strcmp(answer, "ok") == 0)))
		watch_note_change(a->env->watch, key, strlen(key));
	for (size_t i = 0; i < pushes_targets(d->result.pushes); i++) {
		key = pushes_target(d->result.pushes, i)->key;
		watch_note_change(a->env->watch, key, strlen(key));
	}
}

static usec_t
leased_delay(const struct leased *a, enum reply_error e, unsigned failures)
{
	bool soon = e == REPLY_TRANSIENT || e == REPLY_REFUSED;

	return backoff_delay(soon ? 100 * MSEC : SEC, leased_patience(a), failures, random_unit());
}

/*
 * While the queue closes, nobody would try a refused hand-over again.  Nothing has
 * happened, so the message is returned, uncounted.  Otherwise its lease would expire,
 * and count as a crash.
 */
static bool
leased_returns(struct leased *a, struct delivery *d)
{
	const struct verdict back = { .op = VERDICT_RETURN, .reason = REASON_DRAIN };

	if (!a->closing || !delivery_hands_over(d))
		return false;
	leased_end_hand_over(a, d, &back);
	return true;
}

static void
leased_put_off(struct leased *a, struct delivery *d, enum reply_error e, usec_t due)
{
	if (!delivery_hands_over(d) && e != REPLY_TRANSIENT && e != REPLY_REFUSED)
		d->doubted = true;
	d->due = due;
	timer_stop(&a->again);
	delivery_move(a, d, DELIVERY_REFUSED);
}

/* Redis has refused this result: it waits by itself. */
static void
leased_refuse(struct leased *a, struct delivery *d, enum reply_error e)
{
	if (!leased_returns(a, d))
		leased_put_off(a, d, e, clock_mono() + leased_delay(a, e, ++d->refusals));
}

/* Redis has refused a whole call. */
static void
leased_refuse_all(struct leased *a, const struct call *call, enum reply_error e)
{
	bool passes = e == REPLY_TRANSIENT || e == REPLY_REFUSED || e == REPLY_ELSEWHERE;
	usec_t now = clock_mono();

	if (!passes && (delivery_hands_over(call->v[0]) ||
	    call->v[0]->verdict.op == VERDICT_HOLD)) {
		/* A target refuses: tries each result alone, so that it delays no other. */
		for (size_t i = 0; i < call->n; i++) {
			call->v[i]->alone = true;
			leased_refuse(a, call->v[i], e);
		}
		return;
	}
	timer_set(&a->hold, leased_delay(a, e, ++a->failures));
	for (size_t i = 0; i < call->n; i++) {
		if (e != REPLY_REFUSED || !leased_returns(a, call->v[i]))
			leased_put_off(a, call->v[i], e, now);
	}
}

/* Complains about the error of one result or text. */
static void
leased_complain_one(struct leased *a, const char *text)
{
	char cause[REPLY_CAUSE];

	if (strncmp(text, "error ", 6) == 0)
		text += 6;
	if (text[0] == '@')
		text = reply_script_cause(a->script[LEASED_SETTLE], text, cause, sizeof(cause));
	leased_complain(a, LEASED_SETTLE, text);
}

/* Takes the answer to one result: returns false if it is an error. */
static bool
leased_answered_one(struct leased *a, struct delivery *d, const char *text)
{
	const char *by;

	if (d->verdict.op == VERDICT_STALE) {
		leased_end(a, d, SETTLED_STALE);
	} else if (strcmp(text, "ok") == 0) {
		leased_end(a, d, SETTLED_OK);
	} else if (strncmp(text, "cancelled", 9) == 0) {
		/* "cancelled" or "cancelled dead", perhaps followed by " by WHO" */
		d->verdict = (struct verdict){ .reason = REASON_CANCELLED,
		    .op = strncmp(text, "cancelled dead", 14) == 0 ? VERDICT_DEAD : VERDICT_DROP };
		if ((by = strstr(text, " by ")) != NULL)
			xreplace(&d->msg->cancelled_by, by + 4);
		leased_end(a, d, SETTLED_OK);
	} else if (strcmp(text, "held") == 0 || strcmp(text, "gone") == 0 ||
	    strcmp(text, "taken") == 0) {
		leased_end(a, d, d->doubted ? SETTLED_OK : SETTLED_STALE);
	} else if (strcmp(text, "again") == 0) {
		delivery_move(a, d, DELIVERY_DONE);
	} else if (strncmp(text, "not paused: ", 12) == 0) {
		leased_complain(a, LEASED_SETTLE, text);
		d->verdict.op = VERDICT_DEFER;
		leased_end(a, d, SETTLED_OK);
	} else if (strncmp(text, "deferred", 8) == 0) {
		leased_complain(a, LEASED_SETTLE, text);
		leased_end(a, d, SETTLED_DEFERRED);
	} else {
		leased_complain_one(a, text);
		leased_refuse(a, d, REPLY_OTHER);
		return false;
	}
	a->failures = 0;
	timer_stop(&a->hold);
	timer_stop(&a->again);
	return true;
}

/* Returned by settle.lua; one answer for each operation follows, as for each result. */
enum { SETTLE_NOW, SETTLE_DUE, SETTLE_FIELDS };

static void
leased_settled(struct leased *a, struct call *call, enum conn_answer answer,
    const struct redisReply *reply)
{
	bool complained = a->complained[LEASED_SETTLE], good = false;
	const char *text;
	size_t n = call->n, at = SETTLE_FIELDS;
	usec_t due_in;
	double now;

	for (size_t i = 0; i < call->n; i++)
		n += delivery_saves(call->v[i]);
	if (call->retry)
		a->retrying = false;
	if (answer != CONN_REPLY) {
		for (size_t i = 0; i < call->n; i++) {
			call->v[i]->doubted |= answer == CONN_LOST;
			delivery_move(a, call->v[i], DELIVERY_DONE);
		}
		return;
	}
	if (reply_len(reply) != n + SETTLE_FIELDS) {
		leased_refuse_all(a, call, leased_failed(a, LEASED_SETTLE, reply));
		return;
	}
	now = leased_saw_now(a, reply_at(reply, SETTLE_NOW));
	due_in = leased_until(reply_at(reply, SETTLE_DUE), now);
	if (leased_saw_retry(a, due_in, true))
		leased_saw_work(a);
	for (size_t i = 0; i < call->n; i++) {
		at += delivery_saves(call->v[i]);
		text = reply_str_at(reply, at++);
		text = text != NULL ? text : "error";
		leased_report_pushed(a, call->v[i], text);
		if (leased_answered_one(a, call->v[i], text))
			good |= strcmp(text, "ok") == 0;
	}
	if (complained && good && a->refused == 0)
		leased_complain(a, LEASED_SETTLE, NULL);
	if (good && a->crowded) {
		a->crowded = false;
		timer_stop(&a->rate);
		leased_saw_work(a);
	}
}

/* -- calls: their words --------------------------------------------------------- */

static void
leased_add_op(struct words *w, const char *op, const struct delivery *d)
{
	words_add(w, op);
	words_mem(w, d->msg->tag, d->taglen);
	words_add(w, d->msg->token);
}

/* For QPAUSED. */
static void
leased_add_hold(struct leased *a, struct words *w, const struct delivery *d)
{
	char *who = xasprintf(PAUSETEXT_HANDLER "%s", a->env->host), *text;
	char why[HOLD_WHY_MAX + 1] = "";

	if (d->result.answer != NULL)
		utf8_copy_visible(why, HOLD_WHY_MAX, d->result.answer, strlen(d->result.answer));
	text = pausetext_make(who, clock_wall(), why);
	words_own(w, text, strlen(text));
	free(who);
}

/* Adds the words of a dead letter, besides the message. */
static void
leased_add_letter(struct words *w, const struct delivery *d)
{
	const struct result *r = &d->result;
	char name[UTIL_SIGNAL_MAX];

	words_add(w, reason_name(d->verdict.reason));
	if (r->end == END_EXIT)
		words_fmt(w, "%d", r->status);
	else if (r->end == END_SIGNAL)
		words_fmt(w, "%s", r->oom ? "oom" : util_signal(r->signo, name));
	else
		words_add(w, "");
	if (r->error_tail != NULL && r->error_len > 0)
		words_mem(w, r->error_tail, r->error_len);
	else if (r->end == END_SIGNAL && r->oom)
		words_add(w, "killed for memory: the run needs more than memory_max");
	else if (r->answer != NULL && !result_has_words(r))
		words_add(w, r->answer);
	else if (r->end == END_NOT_STARTED)
		words_fmt(w, "%s", strerror(r->error));
	else
		words_add(w, "");
	words_add(w, result_has_words(r) ? r->answer : "");
	if (r->usage.maxrss > 0)
		words_fmt(w, "%.6f %lld", clock_seconds(r->usage.cpu),
		    (long long)r->usage.maxrss);
	else
		words_add(w, "");
}

/* The keys of queues that one call pushes to, each once; borrowed. */
struct leased_targets {
	const char	**keys;		/* owned */
	size_t		  n;
};

/* The number of the key among the targets, from 1.  Two configurations may name one key. */
static size_t
leased_target_number(struct leased_targets *t, const char *key)
{
	for (size_t i = 0; i < t->n; i++) {
		if (strcmp(t->keys[i], key) == 0)
			return i + 1;
	}
	*APPEND(t->keys, t->n) = key;
	return t->n;
}

/* Adds the targets' keys to those of a call, which must have no other words yet. */
static void
leased_add_targets(struct call *call, struct leased_targets *t)
{
	for (size_t i = 0; i < call->n; i++) {
		for (size_t k = 0; k < pushes_targets(call->v[i]->result.pushes); k++)
			(void)leased_target_number(t,
			    pushes_target(call->v[i]->result.pushes, k)->key);
	}
	for (size_t i = 0; i < t->n; i++)
		words_key(&call->words, t->keys[i], strlen(t->keys[i]));
}

/* N, then N times TARGET COUNT MESSAGE ... */
static void
leased_add_pushes(const struct pushes *p, struct leased_targets *t, struct words *w)
{
	const struct pushes_target *target;
	const char *message;
	size_t i, at, len;

	words_fmt(w, "%zu", pushes_targets(p));
	for (i = 0; i < pushes_targets(p); i++) {
		target = pushes_target(p, i);
		words_fmt(w, "%s%zu", config_pops_left(target->queue) ? "-" : "",
		    leased_target_number(t, target->key));
		words_fmt(w, "%zu", target->count);
		at = 0;
		while ((message = pushes_next(p, i, &at, &len)) != NULL)
			words_mem(w, message, len);
	}
}

/* Whether these messages take more memory of Redis than the ack frees. */
static bool
delivery_grows(const struct delivery *d)
{
	return pushes_memory(d->result.pushes) > d->msg->len + PUSHES_EACH;
}

/* The results hand over, all of them or none. */
static void
leased_send_settle(struct leased *a, struct call *call)
{
	const char *push = NULL, *op;
	struct leased_targets targets = { 0 };
	struct words *w = &call->words;
	const struct delivery *d;
	const struct verdict *v;

	if (delivery_hands_over(call->v[0])) {
		push = "push";
		if (delivery_grows(call->v[0]))
			push = "grow";
		leased_add_targets(call, &targets);
	}
	if (call->v[0]->verdict.op == VERDICT_HOLD)
		keys_add(&a->keys, w, KEY_PAUSED);
	if (push == NULL && a->cfg->dead_key != NULL)
		words_key(w, a->cfg->dead_key, strlen(a->cfg->dead_key));
	words_fmt(w, "%lld", (long long)a->cfg->dead_max);
	words_add(w, a->env->host);
	words_add(w, push == NULL && a->cfg->dead_key != NULL ? a->cfg->dead_tell : "");
	leased_words(call);
	for (size_t i = 0; i < call->n; i++) {
		d = call->v[i];
		v = &d->verdict;
		if (delivery_saves(d)) {
			leased_add_op(w, "save", d);
			words_add(w, d->saved);
		}
		op = push;
		if (op == NULL && v->op == VERDICT_RETRY && !v->failed)
			op = leased_op_names[VERDICT_DEFER];
		else if (op == NULL)
			op = leased_op_names[v->op];
		leased_add_op(w, op, d);
		if (push != NULL)
			leased_add_pushes(d->result.pushes, &targets, w);
		if (verdict_has_delay(v))
			words_fmt(w, "%.6f", (double)v->delay / (double)SEC);
		if (v->op == VERDICT_HOLD)
			leased_add_hold(a, w, d);
		if (v->op != VERDICT_DEAD)
			continue;
		words_add(w, v->failed ? "1" : "0");
		leased_add_letter(w, d);
	}
	leased_send(call);
	free(targets.keys);
}

/* -- calls: which results ------------------------------------------------------- */

/* Whether every target of p is also a target of other. */
static bool
has_targets(const struct pushes *other, const struct pushes *p)
{
	size_t i, k, n = pushes_targets(other);

	for (i = 0; i < pushes_targets(p); i++) {
		for (k = 0; k < n; k++) {
			if (strcmp(pushes_target(other, k)->key, pushes_target(p, i)->key) == 0)
				break;
		}
		if (k == n)
			return false;
	}
	return true;
}

/*
 * Makes a call with as many results of a list as fit; NULL: there are none.
 * hand_over: only hand-overs, or only others.
 */
static struct call *
leased_take_results(struct leased *a, enum delivery_state from, bool hand_over)
{
	usec_t now = clock_mono();
	size_t bytes = 0, pushes = 0;
	struct delivery *d, *next, *first = NULL;
	struct call *call = NULL;

	TAILQ_FOREACH_SAFE(d, &a->list[from], entry, next) {
		if (delivery_hands_over(d) != hand_over ||
		    (from == DELIVERY_REFUSED && d->due > now))
			continue;
		if (hand_over && first != NULL && (delivery_grows(first) != delivery_grows(d) ||
		    !has_targets(first->result.pushes, d->result.pushes) ||
		    !has_targets(d->result.pushes, first->result.pushes)))
			continue;
		if (first != NULL && (call->n == CALL_MAX || bytes > CALL_BYTES || d->alone ||
		    first->alone))
			break;
		if (pushes > 0 && (pushes + pushes_count(d->result.pushes) > CALL_PUSHES ||
		    bytes + pushes_bytes(d->result.pushes) > CALL_BYTES))
			break;
		if (first == NULL) {
			first = d;
			call = leased_call_new(a, LEASED_SETTLE, leased_settled);
			call->retry = from == DELIVERY_REFUSED;
		}
		leased_call_add(call, d);
		delivery_move(a, d, DELIVERY_SENT);
		bytes += d->taglen + d->result.error_len +
		    (d->result.answer != NULL ? strlen(d->result.answer) : 0) +
		    (d->saved != NULL ? strlen(d->saved) : 0) +
		    pushes_bytes(d->result.pushes);
		pushes += hand_over ? pushes_count(d->result.pushes) : 0;
	}
	return call;
}

/* Sends one call with results of a list; false if there are none. */
static bool
leased_send_results(struct leased *a, enum delivery_state from)
{
	struct call *call = leased_take_results(a, from, false);

	if (call == NULL && a->count[from] > 0)
		call = leased_take_results(a, from, true);
	if (call != NULL)
		leased_send_settle(a, call);
	return call != NULL;
}

void
leased_flush(struct leased *a)
{
	const struct delivery *d;
	usec_t first = USEC_MAX, now;

	if (!leased_is_up(a))
		return;
	while (leased_send_results(a, DELIVERY_DONE))
		continue;

	/* Then one call with results that were refused, or the time of the next one. */
	if (a->count[DELIVERY_REFUSED] == 0 || a->retrying || timer_is_set(&a->hold) ||
	    timer_is_set(&a->again))
		return;
	a->retrying = leased_send_results(a, DELIVERY_REFUSED);
	if (a->retrying)
		return;
	now = clock_mono();
	TAILQ_FOREACH(d, &a->list[DELIVERY_REFUSED], entry) {
		if (d->due < first)
			first = d->due;
	}
	timer_set(&a->again, first > now ? first - now : MSEC);
}

/* -- texts that handlers save ------------------------------------------------------ */

static void
leased_save_later(struct leased *a, const struct delivery *d)
{
	if (!timer_is_set(&a->save) || a->save.at > d->save_at)
		timer_set_at(&a->save, d->save_at);
}

/* The answer to texts.  If a result has come since, it has the text with it. */
static void
leased_saved(struct leased *a, struct call *call, enum conn_answer answer,
    const struct redisReply *reply)
{
	bool fits = answer == CONN_REPLY && reply_len(reply) == call->n + SETTLE_FIELDS;
	const char *text;
	struct delivery *d;

	if (answer == CONN_REPLY && !fits)
		(void)leased_failed(a, LEASED_SETTLE, reply);
	for (size_t i = 0; i < call->n; i++) {
		d = call->v[i];
		d->saving = false;
		d->late |= answer == CONN_LOST;
		text = fits ? reply_str_at(reply, SETTLE_FIELDS + i) : NULL;
		if (d->state != DELIVERY_RUNNING)
			continue;
		if (text == NULL || strncmp(text, "error ", 6) == 0) {
			if (text != NULL)
				leased_complain_one(a, text);
			d->unsent = true;
			d->save_at = clock_mono() + SEC;
		}
		if (d->unsent)
			leased_save_later(a, d);
		else if (!d->late)	/* else the result has it once more */
			xreplace(&d->saved, NULL);
	}
}

/* Sends the texts that are due, or sets the time of the next one. */
static void
leased_send_saves(void *arg)
{
	struct leased *a = arg;
	struct call *call = NULL;
	usec_t now = clock_mono();
	struct delivery *d;

	if (!leased_is_up(a))
		return;
	TAILQ_FOREACH(d, &a->list[DELIVERY_RUNNING], entry) {
		if (!d->unsent || d->saving || d->lost)
			continue;
		if (d->save_at > now || (call != NULL && call->n == CALL_MAX)) {
			leased_save_later(a, d);
			continue;
		}
		if (call == NULL) {
			call = leased_call_new(a, LEASED_SETTLE, leased_saved);
			words_add(&call->words, "0");
			words_add(&call->words, a->env->host);
			words_add(&call->words, "");
			leased_words(call);
		}
		leased_call_add(call, d);
		leased_add_op(&call->words, "save", d);
		words_add(&call->words, d->saved);
		d->unsent = false;
		d->saving = true;
		d->save_at = now + SAVE_EVERY;
	}
	if (call != NULL)
		leased_send(call);
}

void
leased_save(struct queue *q, struct message *msg, const char *text, size_t len)
{
	struct leased *a = (struct leased *)q;
	struct delivery *d = msg->queue_data;

	free(d->saved);
	d->saved = xstrndup(text, len);
	d->unsent = true;
	leased_save_later(a, d);
}

/* -- life --------------------------------------------------------------------- */

void
leased_settle_init(struct leased *a)
{
	a->pace = PACE_MAX;
	timer_init(&a->batch_timer, a->env->loop, leased_batch_due, a);
	timer_init(&a->save, a->env->loop, leased_send_saves, a);
	timer_init(&a->hold, a->env->loop, leased_wake, a);
	timer_init(&a->again, a->env->loop, leased_wake, a);
}

void
leased_settle_up(struct leased *a)
{
	struct delivery *d;

	a->failures = 0;
	timer_stop(&a->hold);
	timer_stop(&a->again);
	timer_set(&a->save, 0);
	TAILQ_FOREACH(d, &a->list[DELIVERY_REFUSED], entry)
		d->due = 0;
	leased_flush(a);
}

/* A hand-over that Redis has refused, or refuses from now on, is not tried again. */
void
leased_settle_close(struct leased *a)
{
	struct delivery *d, *next;

	TAILQ_FOREACH_SAFE(d, &a->list[DELIVERY_REFUSED], entry, next)
		(void)leased_returns(a, d);
}

void
leased_settle_free(struct leased *a)
{
	enum delivery_state state;
	struct delivery *d;

	for (state = DELIVERY_FETCHED; state < DELIVERY_GONE; state++) {
		while ((d = TAILQ_FIRST(&a->list[state])) != NULL)
			leased_end(a, d, SETTLED_GAVE_UP);
	}
	timer_stop(&a->batch_timer);
	timer_stop(&a->save);
	timer_stop(&a->hold);
	timer_stop(&a->again);
}
