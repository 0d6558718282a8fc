/*
 * Kind "list": at most once, from a plain Redis list.
 *
 * A pop is for good: what a handler has begun is never delivered again, and a
 * failure is only told.  So there is nothing to write about an acked or failed
 * message.  What never began (the queue is suspended, the daemon is stopped)
 * is pushed back to the end that it came from, the youngest first, so that the
 * order stays.  That is tried until Redis has answered, but never sent twice.
 *
 * A pop whose reply is lost loses what it took: at most as many messages as
 * there were free slots.  Its deadline keeps it from being later than that.
 *
 * Everything ends in plain_wake(); at the end of the turn plain_turn() does
 * what there is to do.
 */
#include "queue/queue.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/count.h"
#include "queue/fresh.h"
#include "queue/keys.h"
#include "queue/look.h"
#include "queue/script_args.h"
#include "redis/reply.h"

#define POP_BYTES	(1024 * 1024)
#define POP_MAX		100
#define BACK_BYTES	(1024 * 1024)	/* per push */

enum item_state {
	ITEM_IN_HAND,		/* the engine has it */
	ITEM_BACK,		/* never began: to be pushed back */
	ITEM_SENT,		/* the push is on its way */
	ITEM_DONE,		/* to be told, and freed */
	ITEM_STATES
};

/* A delivery, on the list of its state; plain_move() is the only one to change it. */
struct item {
	TAILQ_ENTRY(item)	 entry;
	enum item_state		 state;
	uint64_t		 place;		/* in the order of pops */
	enum pop		 from;		/* the end that it came from */
	struct message		*msg;
	struct verdict		 verdict;	/* not IN_HAND: */
	struct result		 result;	/* owned */
	enum settled		 how;		/* DONE */
};
TAILQ_HEAD(item_list, item);

struct plain {
	struct queue		  queue;	/* first */
	const struct queue_env	 *env;
	struct config		 *config;	/* reference; of the next pop */
	const struct queue_config *cfg;
	struct keys		  keys;
	struct look		  look;
	struct count		  count;
	struct defer		  turn;
	struct timer		  hold;		/* set: pushes wait, after an error */
	struct plain_call	 *pop, *push;	/* on their way; NULL: none */
	struct item_list	  items[ITEM_STATES];
	uint64_t		  popped;	/* messages, ever */
	unsigned		  asked;	/* by queue_fetch(); 0: no fetch */
	enum turn		  fetch_turn;
	enum pop		  from;		/* the end that the last pop took from */
	bool			  wanted;
	bool			  told;		/* ready() was called, and no fetch since */
	bool			  known;	/* a pop is worth it */
	bool			  empty;	/* the last look or pop found nothing */
	bool			  paused;	/* as the engine was told */
	bool			  warned;	/* a push was refused, and that still holds */
	bool			  closing;
	bool			  closed;
};

/* A command on its way; lives until it is answered, also beyond its queue. */
struct plain_call {
	struct plain	*queue;		/* NULL: it is gone */
};

static void	plain_turn(void *);

static void
plain_wake(struct plain *q)
{
	loop_defer(q->env->loop, &q->turn, plain_turn, q);
}

static struct plain_call *
plain_call_new(struct plain *q)
{
	struct plain_call *call = xcalloc(1, sizeof(*call));

	call->queue = q;
	return call;
}

static struct plain *
plain_call_end(struct plain_call *call)
{
	struct plain *q = call->queue;

	free(call);
	return q;
}

static void
plain_set_paused(struct plain *q, bool paused, const char *why)
{
	if (q->paused == paused)
		return;
	q->paused = paused;
	q->queue.events->paused(paused, why, q->queue.arg);
}

/* NULL: what was warned of is over. */
static void
plain_warn(struct plain *q, const char *text)
{
	struct tick_report report = { .warning = text };

	if (text != NULL && !q->warned)
		q->queue.events->ticked(&report, q->queue.arg);
	q->warned = text != NULL;
}

/* -- items ------------------------------------------------------------------ */

static void
plain_move(struct plain *q, struct item *it, enum item_state state)
{
	TAILQ_REMOVE(&q->items[it->state], it, entry);
	it->state = state;
	TAILQ_INSERT_TAIL(&q->items[state], it, entry);
}

static void
plain_done(struct plain *q, struct item *it, enum settled how)
{
	it->how = how;
	plain_move(q, it, ITEM_DONE);
	plain_wake(q);
}

static void
plain_free_item(struct plain *q, struct item *it)
{
	TAILQ_REMOVE(&q->items[it->state], it, entry);
	message_free(it->msg);
	result_done(&it->result);
	free(it);
}

static void
plain_tell_done(struct plain *q)
{
	struct item *it;

	while ((it = TAILQ_FIRST(&q->items[ITEM_DONE])) != NULL) {
		q->queue.events->settled(it->msg, &it->verdict, &it->result, it->how,
		    q->queue.arg);
		plain_free_item(q, it);
	}
}

static bool
plain_has_items(const struct plain *q)
{
	size_t i;

	for (i = 0; i < ITEM_STATES; i++) {
		if (!TAILQ_EMPTY(&q->items[i]))
			return true;
	}
	return false;
}

/* -- pops ------------------------------------------------------------------- */

static void
plain_deliver(struct plain *q, const struct redisReply *body)
{
	struct item *it = xcalloc(1, sizeof(*it));

	it->state = ITEM_IN_HAND;
	it->place = ++q->popped;
	it->from = q->from;
	it->msg = fresh_message(q->env, q->config, q->cfg, body);
	it->msg->queue_data = it;
	TAILQ_INSERT_TAIL(&q->items[ITEM_IN_HAND], it, entry);
	q->queue.events->deliver(it->msg, q->queue.arg);
}

static void
plain_finish_fetch(struct plain *q, unsigned got, enum fetch_status status, const char *cause)
{
	struct fetched f = {
		.asked = q->asked, .got = got, .status = status, .cause = cause, .more = q->known
	};

	q->asked = 0;
	plain_wake(q);
	q->queue.events->fetched(&f, q->queue.arg);
}

static void
plain_pop_refused(struct plain *q, const struct redisReply *reply)
{
	char text[REPLY_CAUSE];

	reply_cause(reply, text, sizeof(text));
	q->known = false;
	if (reply_error(reply) == REPLY_ELSEWHERE) {
		conn_reset(q->env->conn, text);
		plain_finish_fetch(q, 0, FETCH_DOWN, NULL);
	} else {
		plain_finish_fetch(q, 0, FETCH_ERROR, text);
	}
}

/* status now waiting, then messages (or, paused: why ttl) */
static void
plain_popped_ok(struct plain *q, const struct redisReply *reply, const char *status)
{
	int64_t waiting = reply_int(reply_at(reply, 2), 0);
	bool paused = strcmp(status, "paused") == 0;
	unsigned got = 0;
	size_t i;

	conn_saw_time(q->env->conn, reply_double(reply_at(reply, 1), 0));
	for (i = 3; !paused && i < reply_len(reply) && got < q->asked; i++, got++)
		plain_deliver(q, reply_at(reply, i));
	q->known = waiting > 0 && !paused;
	q->empty = waiting == 0 && got == 0;
	plain_set_paused(q, paused, paused ? reply_str(reply_at(reply, 3), NULL) : NULL);
	plain_finish_fetch(q, got, paused ? FETCH_PAUSED : FETCH_OK, NULL);
}

static void
plain_popped(enum conn_answer answer, const struct redisReply *reply, void *arg)
{
	struct plain *q = plain_call_end(arg);
	struct tick_report lost = {
		.warning = "the answer to a pop was lost, and with it what it took, if anything"
	};
	const char *status;

	if (q == NULL)
		return;
	q->pop = NULL;
	if (answer != CONN_REPLY) {
		if (answer == CONN_LOST)
			q->queue.events->ticked(&lost, q->queue.arg);
		q->known = true;
		plain_finish_fetch(q, 0, FETCH_DOWN, NULL);
		return;
	}
	status = reply_str(reply_at(reply, 0), NULL);
	if (status == NULL || reply_len(reply) < 3)
		plain_pop_refused(q, reply);
	else
		plain_popped_ok(q, reply, status);
}

static void
plain_pop(struct plain *q)
{
	static const enum key keys[] = { KEY_QUEUE, KEY_PAUSED };
	double now = conn_redis_time(q->env->conn);
	double timeout = (double)q->env->redis->timeout / (double)SEC;
	struct args w = { 0 };
	size_t i;

	q->pop = plain_call_new(q);
	q->from = q->cfg->pop;
	if (q->fetch_turn == TURN_NEWEST)
		q->from = q->from == POP_LEFT ? POP_RIGHT : POP_LEFT;
	for (i = 0; i < ARRAY_LEN(keys); i++)
		args_mem(&w, q->keys.name[keys[i]], q->keys.len[keys[i]]);
	args_str(&w, q->from == POP_LEFT ? "left" : "right");
	args_fmt(&w, "%u", q->asked < POP_MAX ? q->asked : POP_MAX);
	args_fmt(&w, "%d", POP_BYTES);
	args_fmt(&w, "%" PRIu64, q->cfg->message_max);
	args_fmt(&w, "%.6f", now > 0 ? now + timeout : 0);
	conn_script(q->env->conn, script_find("list_pop"), plain_popped, q->pop,
	    ARRAY_LEN(keys), w.n, w.v, w.len);
	args_done(&w);
}

static void
plain_fetch_step(struct plain *q)
{
	if (q->asked == 0 || q->pop != NULL)
		return;
	if (q->closing) {
		plain_finish_fetch(q, 0, FETCH_OK, NULL);
	} else if (conn_is_ready(q->env->conn)) {
		plain_pop(q);
	} else {
		q->known = true;
		plain_finish_fetch(q, 0, FETCH_DOWN, NULL);
	}
}

/* -- pushing back ----------------------------------------------------------- */

/* The push was refused: again later, while there is a later. */
static void
plain_push_refused(struct plain *q, const struct redisReply *reply)
{
	struct item *it;
	char cause[REPLY_CAUSE], *text;

	while ((it = TAILQ_FIRST(&q->items[ITEM_SENT])) != NULL) {
		if (q->closing)
			plain_done(q, it, SETTLED_GAVE_UP);
		else
			plain_move(q, it, ITEM_BACK);
	}
	reply_cause(reply, cause, sizeof(cause));
	if (reply_error(reply) == REPLY_ELSEWHERE) {
		conn_reset(q->env->conn, cause);
		return;
	}
	text = xasprintf("messages cannot be pushed back: %s", cause);
	plain_warn(q, text);
	free(text);
	timer_set(&q->hold, SEC);
}

static void
plain_pushed(enum conn_answer answer, const struct redisReply *reply, void *arg)
{
	struct plain *q = plain_call_end(arg);
	struct item *it;

	if (q == NULL)
		return;
	q->push = NULL;
	plain_wake(q);
	if (answer == CONN_REPLY && reply_error(reply) != REPLY_OK) {
		plain_push_refused(q, reply);
		return;
	}
	if (answer == CONN_REPLY)
		plain_warn(q, NULL);
	while ((it = TAILQ_FIRST(&q->items[ITEM_SENT])) != NULL) {
		if (answer == CONN_NOT_SENT)
			plain_move(q, it, ITEM_BACK);
		else
			plain_done(q, it, answer == CONN_REPLY ? SETTLED_OK : SETTLED_GAVE_UP);
	}
}

/* Of those that wait to be pushed back: the one that was popped last. */
static struct item *
plain_youngest(struct plain *q)
{
	struct item *it, *best = NULL;

	TAILQ_FOREACH(it, &q->items[ITEM_BACK], entry) {
		if (best == NULL || it->place > best->place)
			best = it;
	}
	return best;
}

static void
plain_push_back(struct plain *q)
{
	struct item *it = plain_youngest(q);
	struct args w = { 0 };
	enum pop from;

	if (it == NULL || q->push != NULL || timer_is_set(&q->hold) ||
	    !conn_is_ready(q->env->conn))
		return;
	q->push = plain_call_new(q);
	from = it->from;
	args_str(&w, from == POP_LEFT ? "LPUSH" : "RPUSH");
	args_mem(&w, q->keys.name[KEY_QUEUE], q->keys.len[KEY_QUEUE]);
	while (it != NULL && it->from == from && w.bytes < BACK_BYTES) {
		args_mem(&w, it->msg->payload, it->msg->len);
		plain_move(q, it, ITEM_SENT);
		it = plain_youngest(q);
	}
	conn_command(q->env->conn, plain_pushed, q->push, w.n, w.v, w.len);
	args_done(&w);
}

static void
plain_held_back(void *arg)
{
	plain_wake(arg);
}

/* -- turns ------------------------------------------------------------------ */

/* What a look has found; where it was refused a pop will say why. */
static void
plain_saw(const struct looked *found, void *arg)
{
	struct plain *q = arg;

	struct tick_report report = { .warning = found->warning };

	plain_wake(q);
	if (report.warning != NULL)
		q->queue.events->ticked(&report, q->queue.arg);
	if (found->refused != NULL) {
		q->known = true;
		return;
	}
	plain_set_paused(q, found->paused, found->why);
	q->empty = found->waiting == 0;
	q->known = found->waiting > 0 && !found->paused;
}

static void
plain_watch(struct plain *q)
{
	bool looks = q->wanted && !q->told && q->asked == 0 && !q->closing;

	look_set(&q->look, looks && !q->known);
	if (looks && q->known && conn_is_ready(q->env->conn)) {
		q->told = true;
		q->queue.events->ready(q->queue.arg);
	}
}

static void
plain_finish(struct plain *q)
{
	if (!q->closing || q->closed || q->asked > 0 || plain_has_items(q) ||
	    count_finish(&q->count))
		return;
	q->closed = true;
	q->queue.events->closed(q->queue.arg);
}

static void
plain_turn(void *arg)
{
	struct plain *q = arg;

	plain_tell_done(q);
	plain_push_back(q);
	plain_fetch_step(q);
	plain_watch(q);
	plain_finish(q);
}

static void
plain_counted(void *arg)
{
	plain_wake(arg);
}

/* -- the table's functions -------------------------------------------------- */

static struct queue *
plain_open(const struct queue_env *env, struct config *config, const struct queue_config *cfg,
    struct stats *stats, const struct queue_events *events, void *arg)
{
	struct plain *q = xcalloc(1, sizeof(*q));
	size_t i;

	q->queue.ops = &queue_plain;
	q->queue.events = events;
	q->queue.arg = arg;
	q->env = env;
	q->config = config_ref(config);
	q->cfg = cfg;
	q->known = true;
	keys_init(&q->keys, cfg->key);
	for (i = 0; i < ITEM_STATES; i++)
		TAILQ_INIT(&q->items[i]);
	timer_init(&q->hold, env->loop, plain_held_back, q);
	look_init(&q->look, env, &q->keys, true, plain_saw, q);
	count_init(&q->count, env, &q->keys, stats, plain_counted, q);
	return &q->queue;
}

static void
plain_reconfigure(struct queue *queue, struct config *config, const struct queue_config *cfg)
{
	struct plain *q = (struct plain *)queue;

	config_hold(&q->config, config);
	q->cfg = cfg;
}

static void
plain_conn_up(struct queue *queue, const struct conn_server *server)
{
	struct plain *q = (struct plain *)queue;

	(void)server;
	q->known = true;
	timer_stop(&q->hold);
	plain_wake(q);
}

static void
plain_conn_down(struct queue *queue)
{
	plain_wake((struct plain *)queue);
}

/* Time has passed since the last pop: trying costs less than asking. */
static void
plain_want(struct queue *queue, bool wanted)
{
	struct plain *q = (struct plain *)queue;

	if (q->wanted == wanted || q->closing)
		return;
	q->wanted = wanted;
	q->told = false;
	if (wanted) {
		q->known = true;
		q->empty = false;
	}
	plain_wake(q);
}

static void
plain_fetch(struct queue *queue, unsigned n, enum turn turn)
{
	struct plain *q = (struct plain *)queue;

	q->asked = n;
	q->fetch_turn = turn;
	q->told = false;
	plain_wake(q);
}

/* Only what never had a process may be delivered again. */
static void
plain_settle(struct queue *queue, struct message *msg, const struct verdict *verdict,
    struct result *result)
{
	struct plain *q = (struct plain *)queue;
	struct item *it = msg->queue_data;

	it->verdict = *verdict;
	result_move(&it->result, result);
	if (verdict->op == VERDICT_ACK)
		plain_done(q, it, SETTLED_OK);
	else if (verdict->op == VERDICT_RETURN && it->result.pid <= 0 && msg->payload != NULL)
		plain_move(q, it, ITEM_BACK);
	else
		plain_done(q, it, SETTLED_DROPPED);
	plain_wake(q);
}

/* Also the safety net under the watch. */
static void
plain_tick(struct queue *queue)
{
	struct plain *q = (struct plain *)queue;

	count_send(&q->count);
	look_again(&q->look);
}

static bool
plain_is_empty(const struct queue *queue)
{
	const struct plain *q = (const struct plain *)queue;

	return q->empty && q->pop == NULL && !plain_has_items(q);
}

static void
plain_close(struct queue *queue)
{
	struct plain *q = (struct plain *)queue;

	q->closing = true;
	q->wanted = false;
	timer_stop(&q->hold);
	plain_wake(q);
}

/* What could not be pushed back is lost; the engine takes back nothing in hand. */
static void
plain_give_up(struct plain *q)
{
	struct item *it;
	size_t i;

	while ((it = TAILQ_FIRST(&q->items[ITEM_IN_HAND])) != NULL)
		plain_free_item(q, it);
	for (i = ITEM_BACK; i <= ITEM_SENT; i++) {
		while ((it = TAILQ_FIRST(&q->items[i])) != NULL)
			plain_done(q, it, SETTLED_GAVE_UP);
	}
	plain_tell_done(q);
}

static void
plain_free(struct queue *queue)
{
	struct plain *q = (struct plain *)queue;

	if (q->pop != NULL)
		q->pop->queue = NULL;
	if (q->push != NULL)
		q->push->queue = NULL;
	plain_give_up(q);
	look_done(&q->look);
	count_done(&q->count);
	timer_stop(&q->hold);
	loop_defer_cancel(q->env->loop, &q->turn);
	keys_done(&q->keys);
	config_unref(q->config);
	free(q);
}

const struct queue_ops queue_plain = {
	.name = "list",
	.open = plain_open,
	.reconfigure = plain_reconfigure,
	.conn_up = plain_conn_up,
	.conn_down = plain_conn_down,
	.want = plain_want,
	.fetch = plain_fetch,
	.settle = plain_settle,
	.tick = plain_tick,
	.is_empty = plain_is_empty,
	.close = plain_close,
	.free = plain_free,
};
