/*
 * The base of the kinds that deliver at most once; see direct.h.
 */
#include "queue/direct.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/backoff.h"
#include "queue/slot_route.h"
#include "redis/reply.h"

#define POLL_EVERY	SEC		/* if Redis refuses tracking */
#define PAUSE_LONGEST	HOUR		/* the longest wait for the end of a pause */

/* Counts the ids that rqd makes.  They differ also when a queue is opened again. */
static uint64_t	direct_ids;

void
direct_set_paused(struct direct *q, bool paused, const char *why)
{
	if (q->paused == paused)
		return;
	q->paused = paused;
	q->queue.events->paused(paused, paused ? why : NULL, q->queue.arg);
}

/* -- deliveries --------------------------------------------------------------- */

void
direct_move(struct direct *q, struct direct_delivery *d, enum direct_state state)
{
	TAILQ_REMOVE(&q->deliveries[d->state], d, entry);
	d->state = state;
	TAILQ_INSERT_TAIL(&q->deliveries[state], d, entry);
}

void
direct_done(struct direct *q, struct direct_delivery *d, enum settled how)
{
	d->how = how;
	direct_move(q, d, DIRECT_DONE);
	direct_wake(q);
}

bool
direct_has_deliveries(const struct direct *q)
{
	for (int i = 0; i < DIRECT_STATES; i++) {
		if (!TAILQ_EMPTY(&q->deliveries[i]))
			return true;
	}
	return false;
}

struct direct_delivery *
direct_deliver(struct direct *q, uint64_t place, char *payload, size_t len, char *id,
    char *channel)
{
	/* the state is 0: DIRECT_IN_HAND */
	struct direct_delivery *d = NEW(struct direct_delivery, .place = place);
	struct message *m = d->msg = message_new(q->config, q->cfg);
	char found[MESSAGE_ID_MAX + 1];

	m->payload = payload;
	m->len = len;
	m->too_large = payload == NULL;
	if (id == NULL) {
		direct_ids++;
		id = payload != NULL && message_id(q->cfg->id, payload, len, found) == 0 ?
		    xstrdup(found) : xasprintf("~%s.%" PRIu64, q->env->instance, direct_ids);
	}
	m->id = id;
	m->tag = xstrdup(id);	/* it has no name in Redis */
	m->token = xstrdup("");
	m->channel = channel;
	m->queue_data = d;
	TAILQ_INSERT_TAIL(&q->deliveries[DIRECT_IN_HAND], d, entry);
	q->queue.events->deliver(m, q->queue.arg);
	return d;
}

static void
direct_free_delivery(struct direct *q, struct direct_delivery *d)
{
	TAILQ_REMOVE(&q->deliveries[d->state], d, entry);
	message_free(d->msg);
	result_done(&d->result);
	free(d);
}

static void
direct_report_done(struct direct *q)
{
	struct direct_delivery *d;

	while ((d = TAILQ_FIRST(&q->deliveries[DIRECT_DONE])) != NULL) {
		if (q->kind->settling != NULL)
			q->kind->settling(q, d);
		q->queue.events->settled(d->msg, &d->verdict, &d->result, d->how, q->queue.arg);
		direct_free_delivery(q, d);
	}
}

/* -- looks ------------------------------------------------------------------- */

/* Returned by arm.lua. */
enum {
	LOOK_NOW, LOOK_WAITING, LOOK_DUE, LOOK_DELAYED, LOOK_PAUSED, LOOK_WHY, LOOK_TTL,
	LOOK_FULL, LOOK_FIELDS
};
static const char look_form[] = {
	[LOOK_NOW] = FIELD_NUMBER, [LOOK_WAITING] = FIELD_INT, [LOOK_DUE] = FIELD_TIME,
	[LOOK_DELAYED] = FIELD_TIME, [LOOK_PAUSED] = FIELD_INT, [LOOK_WHY] = FIELD_STR,
	[LOOK_TTL] = FIELD_INT, [LOOK_FULL] = FIELD_INT, [LOOK_FIELDS] = 0
};

static void
direct_look(struct direct *q)
{
	struct words w = { 0 };

	if (!q->looking || request_is_sent(&q->look) || !conn_is_ready(q->env->conn))
		return;
	timer_stop(&q->look_again);
	q->changed = false;
	q->armed = watch_is_on(q->env->watch);
	keys_add(&q->keys, &w, KEY_PAUSED);
	if (!q->kind->looks_always)
		keys_add(&q->keys, &w, KEY_QUEUE);
	watch_request(q->env->watch, &q->look, script_find("arm"), &w);
}

static void
direct_looked(enum conn_answer answer, const struct redisReply *reply, void *arg)
{
	struct direct *q = arg;
	struct looked found = { .refused = NULL };
	bool woken = q->armed && !q->evict.on;
	usec_t after = POLL_EVERY;
	char cause[REPLY_CAUSE];
	int64_t ttl;

	if (answer != CONN_REPLY || !q->looking)
		return;
	if (!reply_has(reply, look_form)) {
		found.refused = reply_cause(reply, cause, sizeof(cause));
		if (reply_error(reply) == REPLY_ELSEWHERE) {
			conn_reset(q->env->conn, cause);
			return;
		}
		timer_set(&q->look_again,
		    backoff_delay(SEC, MINUTE, ++q->refusals, random_unit()));
		direct_wake(q);
		q->kind->saw(q, &found);
		return;
	}
	q->refusals = 0;
	found.waiting = reply_int_at(reply, LOOK_WAITING);
	found.paused = reply_int_at(reply, LOOK_PAUSED) != 0;
	found.why = reply_str_at(reply, LOOK_WHY);

	/*
	 * If a key has changed since, the answer may be old.  If no wake-up will come, polls.
	 * Redis reports the end of a TTL late if nobody reads the key.
	 */
	ttl = reply_int_at(reply, LOOK_TTL);
	if (woken && found.paused && ttl >= 0)
		after = ttl < PAUSE_LONGEST / MSEC ? (usec_t)ttl * MSEC + MSEC : PAUSE_LONGEST;
	if (q->changed && !q->evict.on)
		direct_look(q);
	else if (!woken || (found.paused && ttl >= 0))
		timer_set(&q->look_again, after);
	direct_wake(q);
	q->kind->saw(q, &found);
}

void
direct_look_now(void *arg)
{
	struct direct *q = arg;

	q->changed = true;
	direct_look(q);
}

/* Redis reports a change. */
static void
direct_queue_changed(void *arg)
{
	struct direct *q = arg;

	if (!q->evict.on)
		direct_look_now(q);
}

static void
direct_pause_changed(void *arg)
{
	struct direct *q = arg;
	bool evicted = q->evict.on;
	const char *warning = q->paused ? NULL : evict_reported(&q->evict);

	if (warning != NULL)
		queue_warn(&q->queue, "%s", warning);
	/* Also when the polls begin: the first look sets their timer. */
	if (!evicted)
		direct_look_now(q);
}

static void
direct_set_looking(struct direct *q, bool on)
{
	if (q->looking == on)
		return;
	q->looking = on;
	if (on)
		direct_look_now(q);
	else
		timer_stop(&q->look_again);
}

/* -- turns -------------------------------------------------------------------- */

/* After a lost reply the totals count as added: adding them twice would be worse. */
static void
direct_totals_sent(enum conn_answer answer, const struct redisReply *reply, void *arg)
{
	struct direct *q = arg;

	q->totals_refused = answer == CONN_REPLY && reply_str(reply, NULL) == NULL;
	if (answer != CONN_NOT_SENT && !q->totals_refused)
		memcpy(q->stats->sent, q->counted, sizeof(q->counted));
	direct_wake(q);
}

static void
direct_send_totals(struct direct *q)
{
	struct conn *conn = route_conn(q->env, q->keys.name[KEY_STATS]);
	struct words w = { 0 };

	if (request_is_sent(&q->totals) || !stats_has_unsent(q->stats) || !conn_is_ready(conn))
		return;
	memcpy(q->counted, q->stats->n, sizeof(q->counted));
	keys_add(&q->keys, &w, KEY_STATS);
	queue_add_counters(q->stats, &w);
	request_script(&q->totals, conn, script_find("count"), &w);
}

static void
direct_turn(void *arg)
{
	struct direct *q = arg;
	bool fetching = q->asked > 0, idle, work;

	direct_report_done(q);
	q->kind->step(q);
	if (fetching)
		q->kind->fetch(q);

	idle = q->wanted && !q->offered && q->asked == 0 && !q->closing;
	work = idle && q->kind->has_work(q);
	direct_set_looking(q, q->kind->looks_always ? !q->closing : idle && !work);
	if (work && (q->kind->looks_always || conn_is_ready(q->env->conn))) {
		q->offered = true;
		q->queue.events->ready(q->queue.arg);
	}

	/* The end of a fetch wakes the queue again: step() runs once more before closed(). */
	if (fetching || !q->closing || q->closed || q->asked > 0 || direct_has_deliveries(q))
		return;
	/* Before that the totals are sent; once, if Redis refuses them. */
	if (!q->totals_refused)
		direct_send_totals(q);
	if (request_is_sent(&q->totals))
		return;
	q->closed = true;
	q->queue.events->closed(q->queue.arg);
}

void
direct_wake(void *arg)
{
	struct direct *q = arg;

	loop_defer(q->env->loop, &q->turn, direct_turn, q);
}

void
direct_fetched(struct direct *q, unsigned got, enum fetch_status status, const char *cause)
{
	struct fetched f = { .got = got, .status = status, .cause = cause };

	q->asked = 0;
	direct_wake(q);
	q->queue.events->fetched(&f, q->queue.arg);
}

/* -- functions for the kind's table ---------------------------------------------- */

void
direct_reconfigure(struct queue *queue, struct config *config, const struct queue_config *cfg)
{
	struct direct *q = (struct direct *)queue;

	config_hold(&q->config, config);
	q->cfg = cfg;
}

void
direct_conn_down(struct queue *queue)
{
	direct_wake((struct direct *)queue);
}

void
direct_want(struct queue *queue, bool wanted)
{
	struct direct *q = (struct direct *)queue;

	q->wanted = wanted && !q->closing;
	q->offered = false;
	direct_wake(q);
}

void
direct_fetch(struct queue *queue, unsigned n, enum turn turn)
{
	struct direct *q = (struct direct *)queue;

	q->asked = n;
	q->fetch_turn = turn;
	q->offered = false;
	direct_wake(q);
}

void
direct_settle(struct queue *queue, struct message *msg, const struct verdict *verdict,
    struct result *result)
{
	struct direct_delivery *d = msg->queue_data;

	d->verdict = *verdict;
	result_move(&d->result, result);
	d->unbegun = verdict->op == VERDICT_RETURN && d->result.pid <= 0 && msg->payload != NULL;
	direct_done((struct direct *)queue, d,
	    d->unbegun || verdict->op == VERDICT_ACK ? SETTLED_OK : SETTLED_DROPPED);
}

/* Looks again, in case a wake-up was lost. */
void
direct_tick(struct queue *queue)
{
	struct direct *q = (struct direct *)queue;

	direct_send_totals(q);
	evict_round(&q->evict);
	direct_look_now(q);
}

void
direct_close(struct queue *queue)
{
	struct direct *q = (struct direct *)queue;

	q->closing = true;
	q->wanted = false;
	direct_wake(q);
}

void
direct_init(struct direct *q, const struct direct_kind *kind, const struct queue_env *env,
    struct config *config, const struct queue_config *cfg, struct stats *stats,
    const struct queue_events *events, void *arg)
{
	*q = (struct direct){ .kind = kind, .env = env, .config = config_ref(config),
		.cfg = cfg, .stats = stats,
		.queue = { .ops = kind->ops, .events = events, .arg = arg } };
	keys_init(&q->keys, cfg->key);
	for (int i = 0; i < DIRECT_STATES; i++)
		TAILQ_INIT(&q->deliveries[i]);
	request_init(&q->look, direct_looked, q);
	timer_init(&q->look_again, env->loop, direct_look_now, q);
	for (int i = 0; i < (kind->looks_always ? 1 : 2); i++) {
		q->watch[i] = (struct watch_key){ .arg = q,
		    .key = q->keys.name[i == 0 ? KEY_PAUSED : KEY_QUEUE],
		    .len = q->keys.len[i == 0 ? KEY_PAUSED : KEY_QUEUE],
		    .changed = i == 0 ? direct_pause_changed : direct_queue_changed };
		watch_add(env->watch, &q->watch[i]);
	}
	request_init(&q->totals, direct_totals_sent, q);
}

void
direct_free(struct direct *q)
{
	struct direct_delivery *d;

	q->closing = true;
	while ((d = TAILQ_FIRST(&q->deliveries[DIRECT_IN_HAND])) != NULL)
		direct_free_delivery(q, d);
	for (int i = DIRECT_GIVEN_BACK; i <= DIRECT_PUSHING; i++) {
		while ((d = TAILQ_FIRST(&q->deliveries[i])) != NULL)
			direct_done(q, d, SETTLED_GAVE_UP);
	}
	direct_report_done(q);
	request_cancel(&q->look);
	timer_stop(&q->look_again);
	evict_done(&q->evict);
	watch_remove(q->env->watch, &q->watch[0]);
	if (!q->kind->looks_always)
		watch_remove(q->env->watch, &q->watch[1]);
	request_cancel(&q->totals);
	loop_defer_cancel(q->env->loop, &q->turn);
	keys_done(&q->keys);
	config_unref(q->config);
	free(q);
}
