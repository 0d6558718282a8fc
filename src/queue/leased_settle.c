/*
 * The calls of the settler: words and replies of the settle and rescue scripts.
 */
#include "queue/leased_private.h"

#include <stdlib.h>
#include <string.h>

/* -- what the scripts are told ---------------------------------------------- */

static const char *
leased_op_name(enum verdict_op op)
{
	static const char *const names[] = {
		[VERDICT_ACK] = "ack", [VERDICT_RETRY] = "retry", [VERDICT_DEFER] = "defer",
		[VERDICT_DEAD] = "dead", [VERDICT_RETURN] = "return", [VERDICT_STALE] = "stale",
		[VERDICT_DROP] = "ack",
	};

	return names[op];
}

static void
leased_add_status(struct words *w, const struct result *r)
{
	char name[UTIL_SIGNAL_MAX];

	if (r->end == END_EXIT)
		words_fmt(w, "%d", r->status);
	else if (r->end == END_SIGNAL)
		words_fmt(w, "%s", util_signal(r->signo, name));
	else
		words_add(w, "");
}

static void
leased_add_error(struct words *w, const struct result *r)
{
	if (r->error_tail != NULL && r->error_len > 0)
		words_mem(w, r->error_tail, r->error_len);
	else if (r->answer != NULL && !result_has_words(r))
		words_add(w, r->answer);
	else if (r->end == END_NOT_STARTED)
		words_fmt(w, "%s", strerror(r->error));
	else
		words_add(w, "");
}

/* Adds the words of a dead letter, besides the message. */
static void
leased_add_letter(struct words *w, const struct delivery *d)
{
	const struct result *r = &d->result;

	words_add(w, reason_name(d->verdict.reason));
	leased_add_status(w, r);
	leased_add_error(w, r);
	words_add(w, result_has_words(r) ? r->answer : "");
}

static bool
leased_is_later(const struct verdict *v)
{
	return v->op == VERDICT_RETRY || v->op == VERDICT_DEFER;
}

static void
leased_add_result(struct words *w, const struct delivery *d)
{
	const struct verdict *v = &d->verdict;

	words_add(w, v->op == VERDICT_RETRY && !v->failed ? "defer" : leased_op_name(v->op));
	words_mem(w, d->msg->tag, d->taglen);
	words_add(w, d->msg->token);
	if (leased_is_later(v))
		words_fmt(w, "%.6f", (double)v->delay / (double)SEC);
	if (v->op != VERDICT_DEAD)
		return;
	words_add(w, v->failed ? "1" : "0");
	leased_add_letter(w, d);
}

/* -- what is handed over ------------------------------------------------------ */

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
leased_add_targets(const struct delivery_batch *b, struct leased_targets *t, struct words *w)
{
	for (size_t i = 0; i < b->n; i++) {
		for (size_t k = 0; k < pushes_targets(b->v[i]->result.pushes); k++)
			(void)leased_target_number(t,
			    pushes_target(b->v[i]->result.pushes, k)->key);
	}
	for (size_t i = 0; i < t->n; i++)
		words_key(w, t->keys[i], strlen(t->keys[i]));
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
		words_fmt(w, "%zu", leased_target_number(t, target->key));
		words_fmt(w, "%zu", target->count);
		at = 0;
		while ((message = pushes_next(p, i, &at, &len)) != NULL)
			words_mem(w, message, len);
	}
}

/*
 * Wakes the target queues that are this daemon's, so that they need not wait for Redis
 * to report the push.
 */
static void
leased_report_pushed(const struct leased *a, const struct delivery *d)
{
	const char *key;

	for (size_t i = 0; i < pushes_targets(d->result.pushes); i++) {
		key = pushes_target(d->result.pushes, i)->key;
		watch_note_change(a->env->watch, key, strlen(key));
	}
}

/* -- settle ----------------------------------------------------------------- */

/* Returned by settle.lua and hand_over.lua; one answer for each result follows. */
enum { SETTLE_NOW, SETTLE_DUE, SETTLE_FIELDS };

static void
leased_settled(struct leased *a, struct call *call, enum conn_answer answer,
    const struct redisReply *reply)
{
	bool complained = a->complained[call->script];
	size_t i, good = 0, refused = 0;
	const char *text;
	usec_t due_in;
	double now;

	if (answer != CONN_REPLY) {
		settler_returned(a->settler, &call->batch, answer == CONN_LOST);
		return;
	}
	if (reply_len(reply) != call->batch.n + SETTLE_FIELDS) {
		settler_refused(a->settler, &call->batch, leased_failed(a, call->script, reply));
		return;
	}
	now = leased_saw_now(a, reply_at(reply, SETTLE_NOW));
	due_in = leased_until(reply_at(reply, SETTLE_DUE), now);
	if (watcher_saw_retry(a->watcher, due_in, true))
		watcher_saw_work(a->watcher);
	for (i = 0; i < call->batch.n; i++) {
		text = reply_str(reply_at(reply, SETTLE_FIELDS + i), NULL);
		if (call->script == LEASED_HAND_OVER)
			leased_report_pushed(a, call->batch.v[i]);
		if (!settler_answer(a->settler, &call->batch, i, text != NULL ? text : "error"))
			refused++;
		else if (text != NULL && strcmp(text, "ok") == 0)
			good++;
	}
	if (call->batch.over && refused == 0)
		pops_set_noted(a->pops, false);
	if (complained && good > 0 && ledger_tally(a->ledger)->refused == 0)
		leased_complain(a, call->script, NULL);
}

/* Adds the arguments that come before the results in both settling scripts. */
static void
leased_add_common(const struct leased *a, struct call *call)
{
	struct words *w = &call->words;

	words_fmt(w, "%lld", (long long)a->cfg->dead_max);
	words_add(w, a->env->host);
	if (call->batch.over)
		pops_add_last(a->pops, w);
	else
		words_add(w, "");
	leased_words(call);
}

static void
leased_send_settle(struct leased *a, const struct delivery_batch *b, leased_answer_fn *answered)
{
	struct call *call = leased_call_new(a, LEASED_SETTLE, answered);

	call->batch = *b;
	leased_add_common(a, call);
	for (size_t i = 0; i < b->n; i++)
		leased_add_result(&call->words, b->v[i]);
	leased_send(call);
}

static void
leased_send_hand_over(struct leased *a, const struct delivery_batch *b)
{
	struct call *call = leased_call_new(a, LEASED_HAND_OVER, leased_settled);
	struct leased_targets targets = { 0 };
	struct words *w = &call->words;

	call->batch = *b;
	leased_add_targets(b, &targets, w);
	leased_add_common(a, call);
	for (size_t i = 0; i < b->n; i++) {
		words_mem(w, b->v[i]->msg->tag, b->v[i]->taglen);
		words_add(w, b->v[i]->msg->token);
		leased_add_pushes(b->v[i]->result.pushes, &targets, w);
	}
	leased_send(call);
	free(targets.keys);
}

/* -- leaving ---------------------------------------------------------------- */

/* Whether Redis may forget our pops as soon as their deliveries are settled. */
static bool
leased_may_end(const struct leased *a)
{
	return pops_is_noted(a->pops) && a->asked == 0 && pops_is_idle(a->pops);
}

static void
leased_left(struct leased *a, struct call *call UNUSED, enum conn_answer answer,
    const struct redisReply *reply UNUSED)
{
	a->leaving = false;
	pops_set_noted(a->pops, answer != CONN_REPLY);
	leased_wake(a);
}

void
leased_leave(struct leased *a)
{
	struct delivery_batch none = { .over = true };

	if (!leased_is_up(a) || a->leaving || watcher_will_fetch(a->watcher) || !leased_may_end(a))
		return;
	a->leaving = true;
	leased_send_settle(a, &none, leased_left);
}

/* -- rescue ----------------------------------------------------------------- */

static void
leased_rescued(struct leased *a, struct call *call, enum conn_answer answer,
    const struct redisReply *reply)
{
	struct delivery *d = call->batch.v[0];
	uint64_t number = d->rescue_call;
	const char *text = reply_str(reply, NULL);

	if (answer != CONN_REPLY) {
		settler_returned(a->settler, &call->batch, answer == CONN_LOST);
		return;
	}
	if (call->script == LEASED_HAND_OVER_LOST)
		leased_report_pushed(a, d);
	if (!settler_rescued(a->settler, d, text)) {
		settler_refuse(a->settler, d, leased_failed(a, call->script, reply));
		return;
	}
	if (ledger_tally(a->ledger)->refused == 0)
		leased_complain(a, call->script, NULL);
	if (strcmp(text, "there") != 0)
		pops_saw_number(a->pops, number);
}

static void
leased_send_hand_over_lost(struct leased *a, const struct delivery_batch *b)
{
	struct call *call = leased_call_new(a, LEASED_HAND_OVER_LOST, leased_rescued);
	struct delivery *d = b->v[0];
	struct leased_targets targets = { 0 };
	struct words *w = &call->words;

	call->batch = *b;
	leased_add_targets(b, &targets, w);
	words_mem(w, d->msg->tag, d->taglen);
	if (d->msg->payload != NULL)
		words_mem(w, d->msg->payload, d->msg->len);
	else
		words_add(w, "");
	pops_add_rescue(a->pops, &d->rescue_call, w);
	leased_add_pushes(d->result.pushes, &targets, w);
	leased_send(call);
	free(targets.keys);
}

static void
leased_send_rescue(struct leased *a, const struct delivery_batch *b)
{
	struct call *call = leased_call_new(a, LEASED_RESCUE, leased_rescued);
	struct delivery *d = b->v[0];
	const struct message *m = d->msg;
	struct words *w = &call->words;

	call->batch = *b;
	words_add(w, leased_is_later(&d->verdict) ? "retry" : leased_op_name(d->verdict.op));
	words_mem(w, m->tag, d->taglen);
	words_fmt(w, "%.*s#%s", (int)d->idlen, m->tag, m->token);
	words_fmt(w, "%u", d->idlen);
	words_fmt(w, "%u", m->attempts + (d->verdict.failed ? 1 : 0));
	words_fmt(w, "%u", m->crashes);
	words_fmt(w, "%.6f", leased_is_later(&d->verdict) ?
	    (double)d->verdict.delay / (double)SEC : 0);
	words_mem(w, m->payload, m->len);
	words_fmt(w, "%lld", (long long)m->cfg->dead_max);
	words_add(w, a->env->host);
	leased_add_letter(w, d);
	pops_add_rescue(a->pops, &d->rescue_call, w);
	leased_words(call);
	leased_send(call);
}

void
leased_check(struct leased *a, struct delivery *d, leased_answer_fn *answered)
{
	struct call *call = leased_call_new(a, LEASED_RESCUE, answered);
	struct words *w = &call->words;

	batch_add(&call->batch, d);
	words_add(w, "check");
	words_mem(w, d->msg->tag, d->taglen);
	words_add(w, "");
	for (int i = 0; i < 4; i++)	/* idlen attempts crashes delay */
		words_add(w, "0");
	words_mem(w, d->msg->payload, d->msg->len);
	leased_send(call);
}

/* -- the settler's events --------------------------------------------------- */

static void
leased_letter_checked(struct leased *a, struct call *call, enum conn_answer answer,
    const struct redisReply *reply)
{
	const char *text = reply_str(reply, NULL);

	if (answer != CONN_REPLY)
		settler_returned(a->settler, &call->batch, answer == CONN_LOST);
	else if (text == NULL)
		settler_refuse(a->settler, call->batch.v[0],
		    leased_failed(a, LEASED_RESCUE, reply));
	else
		settler_checked(a->settler, call->batch.v[0], text);
}

static void
leased_check_letter(struct delivery *d, void *arg)
{
	leased_check(arg, d, leased_letter_checked);
}

static void
leased_settler_done(struct delivery *d, enum settled how, void *arg)
{
	struct leased *a = arg;

	a->queue.events->settled(d->msg, &d->verdict, &d->result, how, a->queue.arg);
}

/* "error TEXT", an answer of the script */
static void
leased_settler_warn(const char *text, void *arg)
{
	leased_complain(arg, LEASED_SETTLE, strncmp(text, "error ", 6) == 0 ? text + 6 : text);
}

static void
leased_batch_due(void *arg)
{
	leased_flush(arg);
	leased_wake(arg);
}

void
leased_settler_init(struct leased *a)
{
	static const struct settler_events events = {
		.settled = leased_settler_done, .check = leased_check_letter,
		.warn = leased_settler_warn, .wake = leased_wake,
		.batch_due = leased_batch_due,
	};

	a->settler = settler_new(a->env->loop, a->ledger, &events, a);
}

bool
leased_is_unsure(const struct leased *a)
{
	return settler_is_rescuing(a->settler) || pops_is_unsure(a->pops);
}

void
leased_flush(struct leased *a)
{
	bool may_rescue = !pops_is_sent(a->pops) &&
	    (settler_is_rescuing(a->settler) || !leased_is_unsure(a));
	enum settler_call what;
	struct delivery_batch b;

	if (!leased_is_up(a))
		return;
	while ((what = settler_next(a->settler, may_rescue, leased_may_end(a), &b)) !=
	    SETTLER_NOTHING) {
		if (what == SETTLER_RESCUE && delivery_hands_over(b.v[0]))
			leased_send_hand_over_lost(a, &b);
		else if (what == SETTLER_RESCUE)
			leased_send_rescue(a, &b);
		else if (what == SETTLER_HAND_OVER)
			leased_send_hand_over(a, &b);
		else
			leased_send_settle(a, &b, leased_settled);
	}
}
