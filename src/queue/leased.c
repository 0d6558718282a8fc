/*
 * A queue that delivers at least once.  It is composed of six objects; each of them
 * knows no other but the ledger.  Calls from the engine, answers of scripts and timers
 * change their states and end in leased_wake().  At the end of the turn leased_turn()
 * sends what can be sent.
 *
 *	what happens		who learns of it		what may follow
 *
 *	engine wants		watcher				arm, or ready()
 *	engine fetches		watcher				pop, or FOUND ones
 *	engine settles		settler -> ledger		settle, rescue
 *	a key changes		watcher				arm, or ready()
 *	connection is up	all of them			renew, mine, settle, tick
 *
 *	arm answers		watcher				ready()
 *	pop answers		pops, ledger, loader, watcher	deliver(), body
 *	mine answers		pops, ledger, loader		renew, body, mine
 *	body answers		loader -> ledger		ready(): it is FOUND
 *	settle answers		settler -> ledger, watcher	settled(), rescue
 *	rescue answers		settler -> ledger, pops		settled()
 *	renew answers		ledger				lost(), check
 *	tick answers		ticker, watcher			tick, ready()
 *
 *	timers of		watcher: arm, ready(), tick	ticker: tick
 *				pops: mine			loader: body
 *				ledger: renew			settler: settle
 */
#include "queue/leased.h"

#include <stdlib.h>

#include "policy/rate.h"
#include "queue/leased_private.h"

/* -- ticks ------------------------------------------------------------------ */

/*
 * A tick judges leases only after an unbroken window of timely replies.  After an
 * outage all leases look expired, and their owners must have had time to renew them.
 */
static struct ticker_terms
leased_tick_terms(const struct leased *a)
{
	usec_t answers = conn_timely_since(a->env->conn);
	usec_t since = answers != 0 && answers < a->env->since ? a->env->since : answers;
	struct ticker_terms t = {
		.lease = a->cfg->lease, .foreign_timeout = a->cfg->foreign_timeout,
		.judge_at = USEC_MAX, .redis_now = conn_redis_time(a->env->conn),
	};

	if (!a->closing && since != 0 && t.redis_now > 0)
		t.judge_at = since + 2 * ledger_renew_interval(a->ledger);
	return t;
}

/* Returned by tick.lua and by the ticks of other kinds. */
enum {
	TICK_NOW, TICK_MORE, TICK_REQUEUED, TICK_PROMOTED, TICK_DROPPED, TICK_WAITING,
	TICK_EXPIRES, TICK_DUE, TICK_DELAYED, TICK_RANK, TICK_CURSOR, TICK_WARNING,
	TICK_SCAN, TICK_TAKEN, TICK_OTHERS, TICK_FIELDS
};
static const char leased_tick_form[] = {
	[TICK_NOW] = FIELD_NUMBER, [TICK_MORE] = FIELD_INT, [TICK_REQUEUED] = FIELD_INT,
	[TICK_PROMOTED] = FIELD_INT, [TICK_DROPPED] = FIELD_INT, [TICK_WAITING] = FIELD_INT,
	[TICK_EXPIRES] = FIELD_TIME, [TICK_DUE] = FIELD_TIME, [TICK_DELAYED] = FIELD_TIME,
	[TICK_RANK] = FIELD_INT, [TICK_CURSOR] = FIELD_STR, [TICK_WARNING] = FIELD_STR,
	[TICK_SCAN] = FIELD_STR, [TICK_TAKEN] = FIELD_INT, [TICK_OTHERS] = FIELD_INT,
	[TICK_FIELDS] = 0
};

/* Returns true if the round goes on. */
static bool
leased_ticked_ok(struct leased *a, const struct redisReply *reply)
{
	double now = leased_saw_now(a, reply_at(reply, TICK_NOW));
	const char *warning = reply_str_at(reply, TICK_WARNING);
	usec_t due_in = leased_until(reply_at(reply, TICK_DUE), now);
	usec_t delayed_in = leased_until(reply_at(reply, TICK_DELAYED), now);
	const struct ticker_terms terms = leased_tick_terms(a);
	const struct ticker_answer answer = {
		.more = reply_int_at(reply, TICK_MORE) != 0,
		.requeued = (unsigned)reply_int_at(reply, TICK_REQUEUED),
		.promoted = (unsigned)reply_int_at(reply, TICK_PROMOTED),
		.dropped = (unsigned)reply_int_at(reply, TICK_DROPPED),
		.expires_in = leased_until(reply_at(reply, TICK_EXPIRES), now),
		.rank = reply_int_at(reply, TICK_RANK),
		.cursor = reply_str_at(reply, TICK_CURSOR),
		.scan = reply_str_at(reply, TICK_SCAN),
	};

	leased_complain(a, LEASED_TICK, warning[0] != '\0' ? warning : NULL);
	leased_saw_list(a, reply_at(reply, TICK_TAKEN), reply_at(reply, TICK_WAITING));
	if (a->arrivals != NULL && reply_int_at(reply, TICK_OTHERS) != 0)
		arrivals_saw_others(a->arrivals, clock_mono());
	if (watcher_saw_retry(a->watcher, due_in, false) ||
	    answer.requeued + answer.promoted > 0 || reply_int_at(reply, TICK_WAITING) > 0)
		watcher_saw_work(a->watcher);
	if (ticker_answered(a->ticker, &answer, &terms))
		return true;
	if (!a->closing && delayed_in >= 0)
		watcher_saw_delayed(a->watcher, delayed_in);
	return false;
}

static void	leased_tick(struct leased *, bool at_once);

static void
leased_ticked(struct leased *a, struct call *call, enum conn_answer answer,
    const struct redisReply *reply)
{
	struct tick_report report;

	(void)call;
	leased_wake(a);
	if (answer != CONN_REPLY) {
		ticker_ended(a->ticker, answer == CONN_LOST);
	} else if (!reply_has(reply, leased_tick_form)) {
		(void)leased_failed(a, LEASED_TICK, reply);
		ticker_refused(a->ticker, ledger_patience(a->ledger));
	} else if (leased_ticked_ok(a, reply)) {
		leased_tick(a, true);
		return;
	}
	if (ticker_report(a->ticker, &report))
		a->queue.events->ticked(&report, a->queue.arg);
}

static void
leased_tick(struct leased *a, bool at_once)
{
	const struct ticker_terms terms = leased_tick_terms(a);
	struct call *call;

	if (!leased_is_up(a) || !ticker_begin(a->ticker, at_once))
		return;
	call = leased_call_new(a, LEASED_TICK, leased_ticked);
	ticker_add_words(a->ticker, &terms, &call->words);
	leased_words(call);
	ticker_add_counters(a->ticker, &call->words);
	leased_send(call);
}

static void
leased_tick_due(void *arg)
{
	leased_tick(arg, false);
}

/* -- looking for work ------------------------------------------------------- */

/* Returned by arm.lua. */
enum {
	ARM_NOW, ARM_WAITING, ARM_DUE, ARM_DELAYED, ARM_PAUSED, ARM_WHY, ARM_TTL, ARM_FULL,
	ARM_FIELDS
};
static const char leased_arm_form[] = {
	[ARM_NOW] = FIELD_NUMBER, [ARM_WAITING] = FIELD_INT, [ARM_DUE] = FIELD_TIME,
	[ARM_DELAYED] = FIELD_TIME, [ARM_PAUSED] = FIELD_INT, [ARM_WHY] = FIELD_STR,
	[ARM_TTL] = FIELD_INT, [ARM_FULL] = FIELD_INT, [ARM_FIELDS] = 0
};

static void
leased_armed(struct leased *a, struct call *call, enum conn_answer answer,
    const struct redisReply *reply)
{
	struct watcher_found f = { .tracked = call->armed };
	int64_t ttl;

	if (answer != CONN_REPLY) {
		watcher_arm_lost(a->watcher);
		return;
	}
	leased_wake(a);
	if (!reply_has(reply, leased_arm_form)) {
		if (leased_failed(a, LEASED_ARM, reply) == REPLY_ELSEWHERE)
			watcher_arm_lost(a->watcher);
		else
			watcher_arm_refused(a->watcher, ledger_patience(a->ledger));
		return;
	}
	leased_complain(a, LEASED_ARM, NULL);
	leased_saw_now(a, reply_at(reply, ARM_NOW));
	f.waiting = reply_int_at(reply, ARM_WAITING) != 0;
	f.retry_in = leased_until(reply_at(reply, ARM_DUE), 0);
	f.delayed_in = a->closing ? -1 : leased_until(reply_at(reply, ARM_DELAYED), 0);
	f.paused = reply_int_at(reply, ARM_PAUSED) != 0;
	ttl = reply_int_at(reply, ARM_TTL);
	f.pause_left = ttl >= 0 ? leased_usec((double)ttl / 1e3) : -1;
	f.full = reply_int_at(reply, ARM_FULL) != 0;
	if (watcher_armed(a->watcher, &f))
		a->queue.events->paused(f.paused, reply_str_at(reply, ARM_WHY), a->queue.arg);
}

static void
leased_arm(struct leased *a)
{
	struct call *call = leased_call_new(a, LEASED_ARM, leased_armed);

	call->armed = watch_is_on(a->env->watch);
	if (a->cfg->fleet_concurrency > 0)
		keys_add(&a->keys, &call->words, KEY_BACKUP);
	words_fmt(&call->words, "%d", a->cfg->fleet_concurrency);
	leased_words(call);
	leased_send(call);
}

static void
leased_look(struct leased *a)
{
	bool found = ledger_found(a->ledger) != NULL;

	if (!leased_may_fetch(a, found))
		return;
	if (a->no_room_at != ledger_tally(a->ledger)->departures)
		watcher_set_no_room(a->watcher, false);
	switch (watcher_look(a->watcher, found)) {
	case WATCHER_FETCH:
		a->queue.events->ready(a->queue.arg);
		break;
	case WATCHER_ARM:
		leased_arm(a);
		break;
	case WATCHER_WAIT:
		break;
	}
}

static void
leased_key_changed(void *arg)
{
	const struct leased_key *k = arg;
	double taken = ledger_tally(k->ack->ledger)->count[DELIVERY_IN_HAND];
	double most = config_most(k->ack->cfg);

	watcher_key_changed(k->ack->watcher, k->which, taken < most ? taken / most : 1);
}

static void
leased_warn(const char *text, void *arg)
{
	struct leased *a = arg;

	queue_warn(&a->queue, "%s", text);
}

static void
leased_watch(struct leased *a)
{
	static const enum key of[ARRAY_LEN(a->watch)] = {
		KEY_QUEUE, KEY_RETRY, KEY_DELAYED, KEY_PAUSED, KEY_BACKUP
	};
	static const struct watcher_events events = {
		.wake = leased_wake, .promote = leased_tick_due, .warn = leased_warn,
	};
	struct leased_key *k;

	a->watcher = watcher_new(a->env->loop, a->env->fleet, a->kind->promotes, &events, a);
	for (size_t i = 0; i < ARRAY_LEN(of); i++) {
		k = &a->watch[i];
		*k = (struct leased_key){
			.key = { .key = a->keys.name[of[i]], .len = a->keys.len[of[i]],
			    .changed = leased_key_changed, .arg = k },
			.ack = a, .which = of[i],
		};
		watch_add(a->env->watch, &k->key);
	}
}

/* -- turns ------------------------------------------------------------------ */

static void
leased_finish(struct leased *a)
{
	if (!pops_is_sent(a->pops) && ledger_is_empty(a->ledger))
		leased_leave(a);
	if (!a->closing || a->closed || a->asked > 0 || pops_is_sent(a->pops) ||
	    ticker_is_sent(a->ticker) || a->leaving || leased_is_unsure(a) ||
	    !ledger_is_empty(a->ledger))
		return;
	if (leased_is_up(a) && ticker_has_counters(a->ticker)) {
		leased_tick(a, true);
		return;
	}
	a->closed = true;
	a->queue.events->closed(a->queue.arg);
}

/* Reports that Redis refuses results, and why, or that it accepts them again. */
static void
leased_report_refusals(struct leased *a)
{
	struct tick_report report = {
		.refused = a->cause != NULL ? a->cause : "an unknown error"
	};
	bool refusing = ledger_tally(a->ledger)->refused > 0;

	if (refusing == a->refusing)
		return;
	a->refusing = refusing;
	if (!refusing) {
		report.warning = "settle: Redis accepts the results again";
		report.refused = "";
		leased_complain(a, LEASED_SETTLE, NULL);
		leased_complain(a, LEASED_RESCUE, NULL);
		leased_complain(a, LEASED_HAND_OVER, NULL);
		leased_complain(a, LEASED_HAND_OVER_LOST, NULL);
	}
	a->queue.events->ticked(&report, a->queue.arg);
}

/* Tells the engine when the queue becomes empty, for --until-empty. */
static void
leased_report_empty(struct leased *a)
{
	static const struct tick_report nothing = { .warning = NULL };
	bool empty = leased_is_empty(&a->queue);

	if (empty && !a->was_empty)
		a->queue.events->ticked(&nothing, a->queue.arg);
	a->was_empty = empty;
}

static void
leased_turn(void *arg)
{
	struct leased *a = arg;

	leased_fetch_step(a);
	if (a->closing && ledger_give_back(a->ledger, true))
		leased_wake(a);
	settler_put_away(a->settler, leased_is_up(a));
	leased_report_refusals(a);
	if (!settler_waits(a->settler, !a->closing && leased_is_up(a))) {
		leased_flush(a);
		leased_look(a);
	}
	leased_report_empty(a);
	leased_finish(a);
}

/* -- the table's functions -------------------------------------------------- */

static void
leased_configure(struct leased *a, struct config *config, const struct queue_config *cfg)
{
	config_hold(&a->config, config);
	a->cfg = cfg;
	a->gap = rate_gap(cfg->rate);
	ledger_set_lease(a->ledger, cfg->lease);
}

struct queue *
leased_new(const struct leased_kind *kind, const struct queue_env *env, const char *key,
    struct config *config, const struct queue_config *cfg, struct stats *stats,
    const struct queue_events *events, void *arg)
{
	struct leased *a = xcalloc(1, kind->size > 0 ? kind->size : sizeof(*a));

	*a = (struct leased){ .kind = kind, .env = env, .on_turn = leased_turn,
		.queue = { .ops = kind->ops, .events = events, .arg = arg } };
	a->ledger = ledger_new(env->loop, cfg->lease, leased_renew, a);
	leased_configure(a, config, cfg);
	keys_init(&a->keys, key);
	for (int i = 0; i < LEASED_SCRIPTS; i++)
		a->script[i] = script_find(kind->role[i].script);
	TAILQ_INIT(&a->calls);
	a->pops = pops_new(env->loop, env->instance, (unsigned)config_most(cfg), leased_ask, a);
	leased_settler_init(a);
	a->loader = loader_new(env->loop, a->ledger, leased_load, a);
	a->ticker = ticker_new(env->loop, stats, leased_tick_due, a);
	if (kind_source(cfg->kind) == SOURCE_LIST)
		a->arrivals = xcalloc(1, sizeof(*a->arrivals));
	leased_watch(a);
	return &a->queue;
}

void
leased_reconfigure(struct queue *q, struct config *config, const struct queue_config *cfg)
{
	struct leased *a = (struct leased *)q;

	leased_configure(a, config, cfg);
	watcher_reconfigure(a->watcher);
	/* The lease may be shorter than the time until the next renewal. */
	leased_renew_all(a);
	leased_wake(a);
}

void
leased_conn_up(struct queue *q, const struct conn_server *server)
{
	struct leased *a = (struct leased *)q;

	(void)server;
	watcher_up(a->watcher);
	pops_up(a->pops);
	settler_up(a->settler);
	leased_renew_all(a);
	leased_ask(a);
	leased_flush(a);
	ticker_up(a->ticker);
	leased_wake(a);
}

void
leased_conn_down(struct queue *q)
{
	struct leased *a = (struct leased *)q;

	watcher_down(a->watcher);
	leased_wake(a);
}

void
leased_want(struct queue *q, bool wanted)
{
	struct leased *a = (struct leased *)q;

	if (a->closing || watcher_is_wanted(a->watcher) == wanted)
		return;
	watcher_want(a->watcher, wanted);
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
	watcher_fetching(a->watcher);
	leased_wake(a);
}

void
leased_defer_fetch(struct queue *q)
{
	((struct leased *)q)->deferred = true;
}

void
leased_settle(struct queue *q, struct message *msg, const struct verdict *verdict,
    struct result *result)
{
	struct leased *a = (struct leased *)q;

	watcher_set_no_room(a->watcher, false);
	settler_keep(a->settler, msg->queue_data, verdict, result);
}

/* Also arms the keys anew, in case a wake-up was lost. */
void
leased_tick_round(struct queue *q)
{
	struct leased *a = (struct leased *)q;

	watcher_round(a->watcher);
	leased_tick(a, false);
	leased_wake(a);
}

void
leased_renew_hint(struct queue *q)
{
	const struct leased *a = (struct leased *)q;

	ledger_renew_hint(a->ledger);
}

bool
leased_is_empty(const struct queue *q)
{
	const struct leased *a = (const struct leased *)q;

	return watcher_is_empty(a->watcher) && !pops_is_sent(a->pops) &&
	    ledger_is_empty(a->ledger);
}

const struct arrivals *
leased_arrivals(const struct queue *q)
{
	return ((const struct leased *)q)->arrivals;
}

void
leased_close(struct queue *q)
{
	struct leased *a = (struct leased *)q;

	a->closing = true;
	settler_close(a->settler);
	watcher_want(a->watcher, false);
	watcher_down(a->watcher);
	ticker_close(a->ticker);
	leased_wake(a);
}

void
leased_free(struct queue *q)
{
	struct leased *a = (struct leased *)q;

	leased_cancel_calls(a);
	settler_free(a->settler);
	loader_free(a->loader);
	ledger_free(a->ledger);
	pops_free(a->pops);
	for (size_t i = 0; i < ARRAY_LEN(a->watch); i++)
		watch_remove(a->env->watch, &a->watch[i].key);
	watcher_free(a->watcher);
	ticker_free(a->ticker);
	free(a->arrivals);
	loop_defer_cancel(a->env->loop, &a->turn);
	keys_done(&a->keys);
	config_unref(a->config);
	free(a->cause);
	free(a);
}
