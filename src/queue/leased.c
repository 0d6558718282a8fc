/*
 * A queue that delivers at least once: its life, its turns, and the calls of its scripts.  See
 * leased.h.
 */
#include "queue/leased.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/rate.h"

static void	leased_turn(void *);

#define LONGEST		(24 * HOUR)	/* the longest time of a timer */

/* The scripts and their KEYS; KEY_MAX ends them. */
static const struct {
	const char	*name;
	bool		 of_source;	/* there is one for each source of messages */
	enum key	 keys[9];
} leased_parts[LEASED_SCRIPTS] = {
	[LEASED_POP] = { "pop", true, { KEY_QUEUE, KEY_BACKUP, KEY_CONTEXT, KEY_RETRY,
	    KEY_DELIVERY, KEY_PAUSED, KEY_RATE, KEY_STATS, KEY_MAX } },
	[LEASED_SETTLE] = { "settle", true, { KEY_BACKUP, KEY_CONTEXT, KEY_RETRY, KEY_DELIVERY,
	    KEY_DEAD, KEY_MAX } },
	[LEASED_RENEW] = { "renew", false, { KEY_BACKUP, KEY_RETRY, KEY_DELIVERY, KEY_MAX } },
	[LEASED_TICK] = { "tick", true, { KEY_QUEUE, KEY_BACKUP, KEY_CONTEXT, KEY_RETRY,
	    KEY_DELIVERY, KEY_DELAYED, KEY_STATS, KEY_DEAD, KEY_MAX } },
	[LEASED_ARM] = { "arm", true, { KEY_PAUSED, KEY_QUEUE, KEY_RETRY, KEY_DELAYED,
	    KEY_MAX } },
	[LEASED_RECLAIM] = { "reclaim", false, { KEY_BACKUP, KEY_RETRY, KEY_DELIVERY,
	    KEY_CONTEXT, KEY_MAX } },
	[LEASED_DUE] = { "due", false, { KEY_RETRY, KEY_MAX } },
	[LEASED_LEAVE] = { "leave", true, { KEY_QUEUE, KEY_MAX } },	/* of a stream alone */
};

void
leased_wake(void *arg)
{
	struct leased *a = arg;

	loop_defer(a->env->loop, &a->turn, leased_turn, a);
}

bool
leased_is_up(const struct leased *a)
{
	return conn_is_ready(a->env->conn);
}

/* -- calls ------------------------------------------------------------------ */

static void
leased_call_free(struct call *call)
{
	struct delivery *d;

	TAILQ_REMOVE(&call->queue->calls, call, entry);
	request_cancel(&call->request);
	for (size_t i = 0; i < call->n; i++) {
		d = call->v[i];
		if (--d->calls == 0 && d->state == DELIVERY_GONE)
			free(d);
	}
	free(call->v);
	free(call);
}

static void
leased_answered(enum conn_answer answer, const struct redisReply *reply, void *arg)
{
	struct call *call = arg;

	/* Events never free the queue: they defer. */
	call->answered(call->queue, call, answer, reply);
	leased_call_free(call);
}

/* Whether its messages belong to groups: then pop, settle and tick are other scripts. */
static bool
leased_has_groups(const struct leased *a, enum leased_script script)
{
	return a->cfg->group_by[0] != '\0' &&
	    (script == LEASED_POP || script == LEASED_SETTLE || script == LEASED_TICK);
}

struct call *
leased_call_new(struct leased *a, enum leased_script script, leased_answer_fn *answered)
{
	struct call *call = NEW(struct call, .queue = a, .script = script, .answered = answered);

	request_init(&call->request, leased_answered, call);
	for (const enum key *key = leased_parts[script].keys; *key != KEY_MAX; key++)
		keys_add(&a->keys, &call->words, *key);
	/* The results of a list's messages need not touch it. */
	if (script == LEASED_SETTLE && a->kind->source[0] != '\0')
		keys_add(&a->keys, &call->words, KEY_QUEUE);
	/* The tick of a list releases what daemons with groups have held. */
	if (leased_has_groups(a, script) ||
	    (script == LEASED_TICK && a->kind->source[0] == '\0')) {
		for (enum key key = KEY_HELD; key <= KEY_ORDER; key++)
			keys_add(&a->keys, &call->words, key);
	}
	TAILQ_INSERT_TAIL(&a->calls, call, entry);
	return call;
}

void
leased_call_add(struct call *call, struct delivery *d)
{
	*APPEND(call->v, call->n) = d;
	d->calls++;
}

void
leased_words(struct call *call)
{
	const struct leased *a = call->queue;
	bool groups = leased_has_groups(a, call->script), list = a->kind->source[0] == '\0';

	if (leased_parts[call->script].of_source && a->kind->words != NULL)
		a->kind->words(call->script, a, &call->words);
	if (list && call->script == LEASED_TICK)
		words_add(&call->words, config_push_command(a->cfg));
	if (list && call->script == LEASED_POP) {
		words_add(&call->words, config_pops_left(a->cfg) ? "left" : "right");
		words_add(&call->words, a->cfg->id);
	}
	if (groups && call->script != LEASED_SETTLE)
		words_add(&call->words, a->cfg->group_by);
	if (groups)
		words_fmt(&call->words, "%d", a->cfg->group_concurrency);
}

void
leased_send(struct call *call)
{
	const struct leased *a = call->queue;
	const struct script *s = a->script[call->script];

	if (call->script == LEASED_ARM)
		watch_request(a->env->watch, &call->request, s, &call->words);
	else
		request_script(&call->request, a->env->conn, s, &call->words);
}

/* -- what replies say ------------------------------------------------------- */

void
leased_complain(struct leased *a, enum leased_script script, const char *text)
{
	/* The error may keep a result from Redis. */
	if (text != NULL && script == LEASED_SETTLE)
		xreplace(&a->cause, text);
	if (text == NULL || a->complained[script]) {
		a->complained[script] = text != NULL;
		return;
	}
	a->complained[script] = true;
	queue_warn(&a->queue, "%s: %s", leased_parts[script].name, text);
}

enum reply_error
leased_failed(struct leased *a, enum leased_script script, const struct redisReply *reply)
{
	enum reply_error e = reply_error(reply);
	char text[REPLY_CAUSE];

	reply_cause(reply, text, sizeof(text));
	if (e == REPLY_ELSEWHERE)
		conn_reset(a->env->conn, text);
	else
		leased_complain(a, script, text);
	return e == REPLY_OK ? REPLY_OTHER : e;
}

double
leased_saw_now(struct leased *a, const struct redisReply *reply)
{
	double now = reply_double(reply, 0);

	conn_saw_time(a->env->conn, now);
	return now;
}

void
leased_saw_list(struct leased *a, const struct redisReply *taken, const struct redisReply *waiting)
{
	int64_t n = reply_int(taken, -1);

	if (n >= 0)
		waited_saw(&a->queue.waited, clock_mono(), n, reply_int(waiting, -1));
}

usec_t
leased_usec(double seconds)
{
	if (!(seconds > 0))
		return 0;
	if (seconds > (double)(LONGEST / SEC))
		return LONGEST;
	return (usec_t)(seconds * (double)SEC);
}

usec_t
leased_until(const struct redisReply *reply, double now)
{
	size_t len;

	if (reply_str(reply, &len) == NULL || len == 0)
		return -1;
	return leased_usec(reply_double(reply, 0) - now);
}

/* -- turns ------------------------------------------------------------------ */

/* Reports that Redis refuses results, and why, or that it accepts them again. */
static void
leased_report_refusals(struct leased *a)
{
	struct tick_report report = {
		.refused = a->cause != NULL ? a->cause : "an unknown error"
	};

	a->refusing = !a->refusing;
	if (!a->refusing) {
		report.warning = "settle: Redis accepts the results again";
		report.refused = "";
		leased_complain(a, LEASED_SETTLE, NULL);
	}
	a->queue.events->ticked(&report, a->queue.arg);
}

#define DUE_MOST	1000	/* messages in one call */
#define DUE_AGAIN	SEC	/* after a refusal, or a lost reply */

static void
leased_made_due(struct leased *a, struct call *call UNUSED, enum conn_answer answer,
    const struct redisReply *reply)
{
	size_t n = a->due_sent;

	a->due_sent = 0;
	leased_wake(a);
	if (answer != CONN_REPLY || reply_error(reply) != REPLY_OK) {
		if (answer == CONN_REPLY)
			(void)leased_failed(a, LEASED_DUE, reply);
		timer_set(&a->due_again, DUE_AGAIN);
		return;
	}
	for (size_t i = 0; i < n; i++)
		free(a->due[i]);
	a->ndue -= n;
	memmove(a->due, a->due + n, a->ndue * sizeof(*a->due));
	if (reply_int(reply, 0) > 0 && leased_saw_retry(a, 0, true))
		leased_saw_work(a);
}

/* Kept results go first: they may be those of these messages. */
static void
leased_make_due(struct leased *a)
{
	struct call *call;

	if (a->ndue == 0 || a->due_sent > 0 || timer_is_set(&a->due_again) || !leased_is_up(a))
		return;
	call = leased_call_new(a, LEASED_DUE, leased_made_due);
	for (; a->due_sent < a->ndue && a->due_sent < DUE_MOST; a->due_sent++)
		words_add(&call->words, a->due[a->due_sent]);
	leased_send(call);
}

static void
leased_has_left(struct leased *a, struct call *call UNUSED, enum conn_answer answer UNUSED,
    const struct redisReply *reply UNUSED)
{
	a->leaving = false;
	a->left = true;
	leased_wake(a);
}

/* At the end: removes the consumer of a stream.  An error only leaves it behind. */
static void
leased_leave(struct leased *a)
{
	struct call *call = leased_call_new(a, LEASED_LEAVE, leased_has_left);

	a->leaving = true;
	leased_words(call);
	leased_send(call);
}

static void
leased_turn(void *arg)
{
	static const struct tick_report nothing = { .warning = NULL };
	struct leased *a = arg;
	bool empty;

	leased_fetch_step(a);
	if (a->closing)
		delivery_give_back(a);
	leased_put_away(a);
	if ((a->refused > 0) != a->refusing)
		leased_report_refusals(a);
	if (!leased_results_wait(a)) {
		leased_flush(a);
		leased_make_due(a);
		leased_look(a);
	}

	/* The engine learns when the queue becomes empty, for --until-empty. */
	empty = leased_is_empty(&a->queue);
	if (empty && !a->was_empty)
		a->queue.events->ticked(&nothing, a->queue.arg);
	a->was_empty = empty;

	if (!a->closing || a->closed || a->asked > 0 || a->pop != NULL ||
	    a->ticking || a->leaving || leased_reclaims(a) || delivery_any(a))
		return;
	if (leased_is_up(a) && stats_has_unsent(a->stats) && a->tick_failures == 0) {
		leased_tick(a, true);
		return;
	}
	if (leased_is_up(a) && a->script[LEASED_LEAVE] != NULL && !a->left) {
		leased_leave(a);
		return;
	}
	a->closed = true;
	a->queue.events->closed(a->queue.arg);
}

/* -- the table's functions -------------------------------------------------- */

static void
leased_configure(struct leased *a, struct config *config, const struct queue_config *cfg)
{
	const char *prefix;
	char name[32];

	config_hold(&a->config, config);
	a->cfg = cfg;
	a->gap = rate_gap(cfg->rate);
	for (enum leased_script i = 0; i < LEASED_SCRIPTS; i++) {
		prefix = "";
		if (leased_has_groups(a, i))
			prefix = "groups_";
		else if (leased_parts[i].of_source)
			prefix = a->kind->source;
		snprintf(name, sizeof(name), "%s%s", prefix,
		    leased_parts[i].name);
		a->script[i] = script_find(name);
	}
	if (a->kind->pop != NULL)
		a->script[LEASED_POP] = script_find(a->kind->pop);
}

struct queue *
leased_new(const struct leased_kind *kind, const struct queue_env *env, const char *key,
    struct config *config, const struct queue_config *cfg, struct stats *stats,
    const struct queue_events *events, void *arg)
{
	struct leased *a = xcalloc(1, kind->size > 0 ? kind->size : sizeof(*a));

	*a = (struct leased){ .kind = kind, .env = env, .stats = stats,
		.queue = { .ops = kind->ops, .events = events, .arg = arg } };
	leased_configure(a, config, cfg);
	keys_init(&a->keys, key);
	keys_set_delayed(&a->keys, cfg->delayed_key);
	TAILQ_INIT(&a->calls);
	for (size_t i = 0; i < DELIVERY_LISTS; i++)
		TAILQ_INIT(&a->list[i]);
	timer_init(&a->due_again, env->loop, leased_wake, a);
	leased_fetch_init(a);
	leased_settle_init(a);
	leased_tend_init(a);
	leased_watch_init(a);
	return &a->queue;
}

void
leased_reconfigure(struct queue *q, struct config *config, const struct queue_config *cfg)
{
	struct leased *a = (struct leased *)q;

	leased_configure(a, config, cfg);
	leased_watch_anew(a);
	/* The lease may be shorter than the time until the next renewal. */
	leased_renew_all(a);
	leased_wake(a);
}

void
leased_conn_up(struct queue *q, const struct conn_server *server UNUSED)
{
	struct leased *a = (struct leased *)q;

	leased_watch_up(a);
	leased_renew_all(a);
	leased_reclaim_anew(a);
	leased_settle_up(a);
	leased_tend_up(a);
	leased_wake(a);
}

void
leased_conn_down(struct queue *q)
{
	struct leased *a = (struct leased *)q;

	leased_watch_down(a);
	leased_wake(a);
}

void
leased_fetch(struct queue *q, unsigned n, enum turn turn)
{
	struct leased *a = (struct leased *)q;

	a->asked = n;
	a->deferred = false;
	a->fetch_turn = turn;
	a->got = 0;
	a->offered = false;
	leased_wake(a);
}

void
leased_defer_fetch(struct queue *q)
{
	((struct leased *)q)->deferred = true;
}

void
leased_due(struct queue *q, const char *tag)
{
	struct leased *a = (struct leased *)q;

	*APPEND(a->due, a->ndue) = xstrdup(tag);
	leased_wake(a);
}

bool
leased_is_empty(const struct queue *q)
{
	const struct leased *a = (const struct leased *)q;

	return a->empty && a->pop == NULL && !delivery_any(a);
}

void
leased_close(struct queue *q)
{
	struct leased *a = (struct leased *)q;

	a->closing = true;
	leased_settle_close(a);
	leased_fetch_close(a);
	a->wanted = a->offered = a->no_room = false;
	leased_watch_down(a);
	timer_stop(&a->tick);
	leased_wake(a);
}

void
leased_free(struct queue *q)
{
	struct leased *a = (struct leased *)q;
	struct call *call;

	while ((call = TAILQ_FIRST(&a->calls)) != NULL)
		leased_call_free(call);
	leased_settle_free(a);
	leased_fetch_free(a);
	timer_stop(&a->renew);
	for (size_t i = 0; i < ARRAY_LEN(a->key); i++)
		watch_remove(a->env->watch, &a->key[i].key);
	leased_watch_down(a);
	timer_stop(&a->tick);
	loop_defer_cancel(a->env->loop, &a->turn);
	keys_done(&a->keys);
	config_unref(a->config);
	timer_stop(&a->due_again);
	for (size_t i = 0; i < a->ndue; i++)
		free(a->due[i]);
	free(a->due);
	free(a->cause);
	free(a->round_ids);
	free(a);
}
