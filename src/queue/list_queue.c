/*
 * Kind "list": at most once, from a plain Redis list.
 *
 * A pop removes the message from the list.  A message that a handler has begun is never
 * delivered again; a failure is only reported.  A message that never began (the queue
 * is suspended, the daemon stops) is pushed back to the end of the list that it came
 * from.  The newest goes first, so that the order stays.  A push that Redis refused, or
 * that was not sent, is repeated.  A push whose reply was lost may have acted, so it is
 * not repeated.
 *
 * If the reply to a pop is lost, the popped messages are lost: at most as many as there
 * were free slots.  list_pop.lua takes nothing after the pop's deadline.
 */
#include "queue/direct.h"

#include <inttypes.h>
#include <string.h>

#include "redis/request.h"

#define POP_BYTES	(1024 * 1024)
#define POP_MAX		100
#define PUSH_BYTES	(1024 * 1024)

struct list {
	struct direct		  direct;	/* first */
	struct timer		  push_delay;	/* set: pushes wait, after an error */
	struct request		  pop, push, count;
	enum pop		  from;		/* the end that the last pop took messages from */
	bool			  known;	/* a pop may find messages */
	bool			  empty;	/* the last look or pop found nothing */
	bool			  refused;	/* Redis refused a push, and that was logged */
};

/* Returned by list_pop.lua; messages follow. */
enum { POP_STATUS, POP_NOW, POP_WAITING, POP_TAKEN, POP_FIELDS };
static const char pop_form[] = {
	[POP_STATUS] = FIELD_STR, [POP_NOW] = FIELD_NUMBER, [POP_WAITING] = FIELD_INT,
	[POP_TAKEN] = FIELD_INT, [POP_FIELDS] = 0
};

/* -- latency ---------------------------------------------------------------- */

static void
list_saw_count(struct list *q, int64_t taken, int64_t waiting)
{
	if (taken >= 0)
		waited_saw(&q->direct.queue.waited, clock_mono(), taken, waiting);
}

static void
list_counted(enum conn_answer answer, const struct redisReply *reply, void *arg)
{
	if (answer == CONN_REPLY && reply_has(reply, pop_form))
		list_saw_count(arg, reply_int_at(reply, POP_TAKEN),
		    reply_int_at(reply, POP_WAITING));
}

static void
list_tick(struct queue *queue)
{
	struct list *q = (struct list *)queue;
	const struct direct *base = &q->direct;
	struct words w = { 0 };

	direct_tick(queue);
	if (request_is_sent(&q->count) || !conn_is_ready(base->env->conn))
		return;
	keys_add(&base->keys, &w, KEY_QUEUE);
	keys_add(&base->keys, &w, KEY_PAUSED);
	keys_add(&base->keys, &w, KEY_STATS);
	words_add(&w, "right");
	words_add(&w, "0");
	request_script(&q->count, base->env->conn, script_find("list_pop"), &w);
}

/* -- pops ------------------------------------------------------------------- */

static void
list_popped(enum conn_answer answer, const struct redisReply *reply, void *arg)
{
	struct list *q = arg;
	struct direct *base = &q->direct;
	const struct redisReply *body;
	char text[REPLY_CAUSE], *payload;
	unsigned got = 0;
	int64_t waiting;
	bool paused;
	size_t len;

	if (answer != CONN_REPLY) {
		if (answer == CONN_LOST)
			queue_warn(&base->queue, "the reply to a pop was lost, and with it any "
			    "messages that it took");
		q->known = true;
		direct_fetched(base, 0, FETCH_DOWN, NULL);
		return;
	}
	if (!reply_has(reply, pop_form)) {
		reply_cause(reply, text, sizeof(text));
		q->known = false;
		if (reply_error(reply) == REPLY_ELSEWHERE) {
			conn_reset(base->env->conn, text);
			direct_fetched(base, 0, FETCH_DOWN, NULL);
		} else {
			direct_fetched(base, 0, FETCH_ERROR, text);
		}
		return;
	}

	waiting = reply_int_at(reply, POP_WAITING);
	paused = strcmp(reply_str_at(reply, POP_STATUS), "paused") == 0;
	conn_saw_time(base->env->conn, reply_double_at(reply, POP_NOW));
	list_saw_count(q, reply_int_at(reply, POP_TAKEN), waiting);
	for (size_t i = POP_FIELDS; !paused && i < reply_len(reply) && got < base->asked;
	    i++, got++) {
		body = reply_at(reply, i);	/* or the length of one that is too large */
		payload = NULL;
		if (reply_str(body, &len) == NULL)
			len = (size_t)reply_int(body, 0);
		else if (len <= base->cfg->message_max)
			payload = reply_take(body, &len);
		direct_deliver(base, ++base->places, payload, len, NULL, NULL)->from = q->from;
	}
	q->known = waiting > 0 && !paused;
	q->empty = waiting == 0 && got == 0;
	/* If the queue is paused, the reason stands where the messages would. */
	direct_set_paused(base, paused, reply_str_at(reply, POP_FIELDS));
	direct_fetched(base, got, paused ? FETCH_PAUSED : FETCH_OK, NULL);
}

static void
list_pop(struct list *q)
{
	const struct direct *base = &q->direct;
	double now = conn_redis_time(base->env->conn);
	double timeout = (double)base->env->redis->timeout / (double)SEC;
	struct words w = { 0 };

	q->from = base->cfg->pop;
	if (base->fetch_turn == TURN_NEWEST)
		q->from = q->from == POP_LEFT ? POP_RIGHT : POP_LEFT;
	keys_add(&base->keys, &w, KEY_QUEUE);
	keys_add(&base->keys, &w, KEY_PAUSED);
	keys_add(&base->keys, &w, KEY_STATS);
	words_add(&w, q->from == POP_LEFT ? "left" : "right");
	words_fmt(&w, "%u", base->asked < POP_MAX ? base->asked : POP_MAX);
	words_fmt(&w, "%d", POP_BYTES);
	words_fmt(&w, "%" PRIu64, base->cfg->message_max);
	words_fmt(&w, "%.6f", now > 0 ? now + timeout : 0);
	words_add(&w, base->fetch_turn == TURN_NEWEST ? "newest" : "oldest");
	request_script(&q->pop, base->env->conn, script_find("list_pop"), &w);
}

static void
list_fetch(struct direct *base)
{
	struct list *q = (struct list *)base;

	if (request_is_sent(&q->pop))
		return;
	if (base->closing) {
		direct_fetched(base, 0, FETCH_OK, NULL);
	} else if (conn_is_ready(base->env->conn)) {
		list_pop(q);
	} else {
		q->known = true;
		direct_fetched(base, 0, FETCH_DOWN, NULL);
	}
}

/* -- pushing back ----------------------------------------------------------- */

static void
list_pushed(enum conn_answer answer, const struct redisReply *reply, void *arg)
{
	struct list *q = arg;
	struct direct *base = &q->direct;
	bool refused = answer == CONN_REPLY && reply_error(reply) != REPLY_OK;
	struct direct_delivery *d;
	char cause[REPLY_CAUSE];

	direct_wake(base);
	while ((d = TAILQ_FIRST(&base->deliveries[DIRECT_PUSHING])) != NULL) {
		if (answer == CONN_NOT_SENT || (refused && !base->closing))
			direct_move(base, d, DIRECT_GIVEN_BACK);
		else
			direct_done(base, d, answer == CONN_REPLY && !refused ? SETTLED_OK :
			    SETTLED_GAVE_UP);
	}
	if (answer == CONN_REPLY && !refused)
		q->refused = false;
	if (!refused)
		return;
	reply_cause(reply, cause, sizeof(cause));
	if (reply_error(reply) == REPLY_ELSEWHERE) {
		conn_reset(base->env->conn, cause);
		return;
	}
	if (!q->refused)
		queue_warn(&base->queue, "messages cannot be pushed back: %s", cause);
	q->refused = true;
	timer_set(&q->push_delay, SEC);
}

/* The message that was popped last, of those that were given back. */
static struct direct_delivery *
list_newest(struct list *q)
{
	struct direct_delivery *d, *best = NULL;

	TAILQ_FOREACH(d, &q->direct.deliveries[DIRECT_GIVEN_BACK], entry) {
		if (best == NULL || d->place > best->place)
			best = d;
	}
	return best;
}

/* Pushes messages to the end that the newest one came from, as many as fit into a command. */
static void
list_push_back(struct direct *base)
{
	struct list *q = (struct list *)base;
	struct direct_delivery *d = list_newest(q);
	struct words w = { 0 };
	enum pop from;

	if (d == NULL || request_is_sent(&q->push) || timer_is_set(&q->push_delay) ||
	    !conn_is_ready(base->env->conn))
		return;
	from = d->from;
	words_add(&w, from == POP_LEFT ? "LPUSH" : "RPUSH");
	words_mem(&w, base->keys.name[KEY_QUEUE], base->keys.len[KEY_QUEUE]);
	while (d != NULL && d->from == from && w.bytes < PUSH_BYTES) {
		words_mem(&w, d->msg->payload, d->msg->len);
		direct_move(base, d, DIRECT_PUSHING);
		d = list_newest(q);
	}
	request_command(&q->push, base->env->conn, &w);
}

/* -- looking ---------------------------------------------------------------- */

/* After a refused look a pop will show the error. */
static void
list_saw(struct direct *base, const struct looked *found)
{
	static const struct tick_report nothing = { .warning = NULL };
	struct list *q = (struct list *)base;
	bool was_empty = q->empty;

	if (found->refused != NULL) {
		q->known = true;
		return;
	}
	direct_set_paused(base, found->paused, found->why);
	q->empty = found->waiting == 0;
	q->known = found->waiting > 0 && !found->paused;
	if (q->empty && !was_empty)
		base->queue.events->ticked(&nothing, base->queue.arg);
}

static bool
list_has_work(struct direct *base)
{
	return ((struct list *)base)->known;
}

/* -- the table's functions -------------------------------------------------- */

static const struct direct_kind list_kind = {
	.ops = &queue_list,
	.saw = list_saw,
	.step = list_push_back,
	.fetch = list_fetch,
	.has_work = list_has_work,
};

static struct queue *
list_open(const struct queue_env *env, const char *key UNUSED, struct config *config,
    const struct queue_config *cfg, struct stats *stats, const struct queue_events *events,
    void *arg)
{
	struct list *q = xcalloc(1, sizeof(*q));

	direct_init(&q->direct, &list_kind, env, config, cfg, stats, events, arg);
	q->known = true;
	request_init(&q->pop, list_popped, q);
	request_init(&q->push, list_pushed, q);
	request_init(&q->count, list_counted, q);
	timer_init(&q->push_delay, env->loop, direct_wake, q);
	return &q->direct.queue;
}

static void
list_conn_up(struct queue *queue, const struct conn_server *server UNUSED)
{
	struct list *q = (struct list *)queue;

	q->known = true;
	q->empty = false;	/* until the next look or pop */
	timer_stop(&q->push_delay);
	direct_wake(&q->direct);
}

/*
 * When wanted again, tries a pop: time has passed since the last one, and a pop costs
 * less than a look.
 */
static void
list_want(struct queue *queue, bool wanted)
{
	struct list *q = (struct list *)queue;

	if (wanted) {
		q->known = true;
		q->empty = false;
	}
	direct_want(queue, wanted);
}

static void
list_settle(struct queue *queue, struct message *msg, const struct verdict *verdict,
    struct result *result)
{
	struct direct_delivery *d = msg->queue_data;

	direct_settle(queue, msg, verdict, result);
	if (d->unbegun)
		direct_move((struct direct *)queue, d, DIRECT_GIVEN_BACK);
}

static bool
list_is_empty(const struct queue *queue)
{
	const struct list *q = (const struct list *)queue;

	return q->empty && !request_is_sent(&q->pop) && !direct_has_deliveries(&q->direct);
}

static void
list_close(struct queue *queue)
{
	timer_stop(&((struct list *)queue)->push_delay);
	direct_close(queue);
}

static void
list_free(struct queue *queue)
{
	struct list *q = (struct list *)queue;

	request_cancel(&q->pop);
	request_cancel(&q->push);
	request_cancel(&q->count);
	timer_stop(&q->push_delay);
	direct_free(&q->direct);
}

const struct queue_ops queue_list = {
	.open = list_open,
	.reconfigure = direct_reconfigure,
	.conn_up = list_conn_up,
	.conn_down = direct_conn_down,
	.want = list_want,
	.fetch = direct_fetch,
	.settle = list_settle,
	.tick = list_tick,
	.is_empty = list_is_empty,
	.close = list_close,
	.free = list_free,
};
