/*
 * The base of the kinds that deliver at most once; see direct.h.
 */
#include "queue/direct.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "queue/slot_route.h"
#include "redis/reply.h"

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

static char *
direct_id(const struct direct *q, const char *payload, size_t len)
{
	char id[MESSAGE_ID_MAX + 1];

	direct_ids++;
	if (payload != NULL && message_id(payload, len, id) == 0)
		return xstrdup(id);
	return xasprintf("~%s.%" PRIu64, q->env->instance, direct_ids);
}

/* Makes a message.  It has no name in Redis, so its tag is its id. */
static struct message *
direct_message(struct direct *q, char *payload, size_t len, char *id)
{
	struct message *m = message_new(q->config, q->cfg);

	m->payload = payload;
	m->free_payload = payload != NULL ? reply_free_str : NULL;
	m->len = len;
	m->too_large = payload == NULL;
	m->id = id != NULL ? id : direct_id(q, payload, len);
	m->tag = xstrdup(m->id);
	m->token = xstrdup("");
	return m;
}

struct direct_delivery *
direct_deliver(struct direct *q, uint64_t place, char *payload, size_t len, char *id,
    char *channel)
{
	/* the state is 0: DIRECT_IN_HAND */
	struct direct_delivery *d = NEW(struct direct_delivery, .place = place,
	    .msg = direct_message(q, payload, len, id));

	d->msg->channel = channel;
	d->msg->queue_data = d;
	TAILQ_INSERT_TAIL(&q->deliveries[DIRECT_IN_HAND], d, entry);
	q->queue.events->deliver(d->msg, q->queue.arg);
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

/* -- turns -------------------------------------------------------------------- */

static void
direct_saw(const struct looked *found, void *arg)
{
	struct direct *q = arg;

	direct_wake(q);
	if (found->warning != NULL)
		queue_warn(&q->queue, "%s", found->warning);
	q->kind->saw(q, found);
}

/* Calls ready(), or looks for work. */
static void
direct_offer(struct direct *q)
{
	bool idle = q->wanted && !q->offered && q->asked == 0 && !q->closing;
	bool work = idle && q->kind->has_work(q);

	look_set(&q->look, q->kind->looks_always ? !q->closing : idle && !work);
	if (!work || (!q->kind->looks_always && !conn_is_ready(q->env->conn)))
		return;
	q->offered = true;
	q->queue.events->ready(q->queue.arg);
}

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

/*
 * Closes the queue when nothing is left, and sends the totals before that; once, if
 * Redis refuses them.
 */
static void
direct_finish(struct direct *q)
{
	if (!q->closing || q->closed || q->asked > 0 || direct_has_deliveries(q))
		return;
	if (!q->totals_refused)
		direct_send_totals(q);
	if (request_is_sent(&q->totals))
		return;
	q->closed = true;
	q->queue.events->closed(q->queue.arg);
}

static void
direct_turn(void *arg)
{
	struct direct *q = arg;
	bool fetching = q->asked > 0;

	direct_report_done(q);
	q->kind->step(q);
	if (fetching)
		q->kind->fetch(q);
	direct_offer(q);
	/*
	 * The end of a fetch wakes the queue again, so that kind->step() runs once more
	 * before closed().
	 */
	if (!fetching)
		direct_finish(q);
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
	look_again(&q->look);
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
	look_init(&q->look, env, &q->keys, !kind->looks_always, direct_saw, q);
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
	look_done(&q->look);
	request_cancel(&q->totals);
	loop_defer_cancel(q->env->loop, &q->turn);
	keys_done(&q->keys);
	config_unref(q->config);
	free(q);
}
