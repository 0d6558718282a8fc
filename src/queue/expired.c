/*
 * Kind "expired": the names of keys that have expired.
 *
 * It has two halves.  The first subscribes to __keyevent@DB__:expired, which every
 * daemon of the fleet hears.  expired_push.lua lets one of them push the name to the
 * list Q.  A lock, which is never renewed, stops the others for `skew`.  The second
 * half is a queue like kind "ack" on that list: there a name is a message like any
 * other, and has retries.
 *
 * Locks and rqd's own keys expire, too.  rqd ignores their names.
 *
 * rqd repeats a push that was not sent, or whose reply was lost.  The lost one may have
 * acted, so rqd repeats it only while its lock must still exist in that case: for half
 * of skew.  It drops names that it heard earlier than that, and logs it.
 */
#include "queue/leased.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/glob.h"
#include "queue/subscription.h"
#include "redis/request.h"

#define PUSH_MAX	250		/* names per call ... */
#define PUSH_BYTES	65536		/* ... or so many bytes of them */
#define PUSHES		8		/* on their way at once */
#define NAMES_MAX	100000		/* that may wait ... */
#define NAMES_BYTES	(16 << 20)	/* ... and their bytes */
#define SETTING		"notify-keyspace-events"

/* The name of a key that has expired. */
struct expired_name {
	TAILQ_ENTRY(expired_name) entry;
	usec_t			 heard;		/* mono */
	size_t			 len;
	char			 name[];
};
TAILQ_HEAD(expired_names, expired_name);

/* A call of expired_push.lua on its way; it owns its names. */
struct expired_push {
	TAILQ_ENTRY(expired_push) entry;
	struct request		 request;
	struct expired		*queue;
	struct expired_names	 names;
};

struct expired {
	struct leased		  base;		/* first: the second half */
	struct subscription	  subscription;
	struct defer		  turn;
	struct timer		  push_delay;	/* set: pushes wait, after an error */
	struct expired_names	  waiting;
	unsigned		  nwaiting;
	size_t			  bytes;	/* of waiting */
	TAILQ_HEAD(, expired_push) pushes;	/* in flight */
	unsigned		  npushes;
	struct request		  get, set;	/* CONFIG */
	size_t			  checked;	/* the server to ask; see route_master() */
	struct timer		  check_again;	/* set: a master of a cluster could not be asked */
	char			 *flags;	/* that are set, plus the missing ones; owned */
	/* why Redis refused the last push; "": it did not */
	char			  why[REPLY_CAUSE];
	bool			  unchecked;	/* Redis refused CONFIG, and that was logged */
	uint64_t		  dropped;	/* since the log said so; 0: none */
	bool			  pushed;	/* a name was pushed since the last drop */
	bool			  closing;
};

static void
expired_free_names(struct expired_names *list)
{
	struct expired_name *n;

	while ((n = TAILQ_TAKE(list, entry)) != NULL)
		free(n);
}

static void
expired_free_push(struct expired_push *p)
{
	TAILQ_REMOVE(&p->queue->pushes, p, entry);
	p->queue->npushes--;
	request_cancel(&p->request);
	expired_free_names(&p->names);
	free(p);
}

static void	expired_turn(void *);

static void
expired_wake(void *arg)
{
	struct expired *q = arg;

	loop_defer(q->base.env->loop, &q->turn, expired_turn, q);
}

/* -- names ------------------------------------------------------------------ */

static void
expired_remove(struct expired *q, struct expired_name *n)
{
	TAILQ_REMOVE(&q->waiting, n, entry);
	q->nwaiting--;
	q->bytes -= n->len;
}

static bool
begins_with(const char *s, size_t len, const char *prefix)
{
	return len >= strlen(prefix) && memcmp(s, prefix, strlen(prefix)) == 0;
}

/*
 * Whether it is a lock, a heartbeat, or the key of a queue: QPAUSED and QRATE may have
 * a TTL.
 */
static bool
expired_is_ours(const struct expired *q, const char *name, size_t len)
{
	const struct config *c = q->base.config;

	if (begins_with(name, len, KEYS_LOCK_PREFIX) || begins_with(name, len, KEYS_DAEMON_PREFIX))
		return true;
	for (size_t i = 0; i < c->nqueues; i++) {
		for (size_t k = 0; k < config_key_count(c->queues[i]); k++) {
			if (keys_is_one(config_key_at(c->queues[i], k), name, len))
				return true;
		}
	}
	return false;
}

/* Logs the first drop only; expired_turn() logs the number. */
static void
expired_drop(struct expired *q)
{
	q->base.stats->n[STAT_DROPPED]++;
	q->pushed = false;
	if (q->dropped++ == 0)
		queue_warn(&q->base.queue, "expired keys are dropped: %s", q->why[0] != '\0' ?
		    q->why : "Redis could not be reached in time");
}

/* The subscription's callback for a name. */
static void
expired_heard(const char *channel UNUSED, size_t channel_len UNUSED, const struct redisReply *r,
    void *arg)
{
	struct expired *q = arg;
	char **match = q->base.cfg->match;
	const char *name;
	struct expired_name *n;
	size_t len;

	if (q->closing || (name = reply_str(r, &len)) == NULL || expired_is_ours(q, name, len))
		return;
	while (*match != NULL && !glob_match(*match, name, len))
		match++;
	if (*match == NULL)
		return;
	if (q->nwaiting >= NAMES_MAX || q->bytes + len > NAMES_BYTES) {
		expired_drop(q);
		return;
	}
	n = xmalloc(sizeof(*n) + len);
	n->heard = clock_mono();
	n->len = len;
	memcpy(n->name, name, len);
	TAILQ_INSERT_TAIL(&q->waiting, n, entry);
	q->nwaiting++;
	q->bytes += len;
	expired_wake(q);
}

/* -- pushing ---------------------------------------------------------------- */

static void
expired_pushed(enum conn_answer answer, const struct redisReply *reply, void *arg)
{
	struct expired_push *p = arg;
	struct expired *q = p->queue;
	struct expired_name *n;

	if (answer == CONN_REPLY && reply_error(reply) == REPLY_OK) {
		q->why[0] = '\0';
		q->pushed = true;
		expired_free_push(p);
		expired_wake(q);
		return;
	}

	/* The names go back to the head: the push failed, or may have acted. */
	TAILQ_FOREACH(n, &p->names, entry) {
		q->nwaiting++;
		q->bytes += n->len;
	}
	TAILQ_CONCAT(&p->names, &q->waiting, entry);
	TAILQ_CONCAT(&q->waiting, &p->names, entry);
	if (answer == CONN_REPLY) {
		reply_cause(reply, q->why, sizeof(q->why));
		if (reply_error(reply) == REPLY_ELSEWHERE)
			conn_reset(q->base.env->conn, q->why);
		else
			timer_set(&q->push_delay, 100 * MSEC);
	}
	expired_free_push(p);
	expired_wake(q);
}

/* Sends as many waiting names as fit into a call. */
static void
expired_push(struct expired *q)
{
	struct expired_push *p = xcalloc(1, sizeof(*p));
	struct words w = { 0 };
	struct expired_name *n;
	size_t bytes = 0, len;
	char *key;

	p->queue = q;
	TAILQ_INIT(&p->names);
	request_init(&p->request, expired_pushed, p);
	TAILQ_INSERT_TAIL(&q->pushes, p, entry);
	q->npushes++;
	for (int i = 0; i < PUSH_MAX && bytes < PUSH_BYTES; i++) {
		if ((n = TAILQ_FIRST(&q->waiting)) == NULL)
			break;
		expired_remove(q, n);
		TAILQ_INSERT_TAIL(&p->names, n, entry);
		bytes += n->len;
	}
	keys_add(&q->base.keys, &w, KEY_QUEUE);
	keys_add(&q->base.keys, &w, KEY_BACKUP);
	/* The word Lock:Q:NAME for each; a name may hold any bytes. */
	TAILQ_FOREACH(n, &p->names, entry) {
		key = xasprintf("%s%s:", KEYS_LOCK_PREFIX, q->base.keys.name[KEY_QUEUE]);
		len = strlen(key);
		key = xrealloc(key, len + n->len + 1);
		memcpy(key + len, n->name, n->len);
		words_own(&w, key, len + n->len);
		w.nkeys++;
	}
	words_fmt(&w, "%" PRId64, (int64_t)(q->base.cfg->skew / MSEC));
	words_add(&w, q->base.env->instance);
	TAILQ_FOREACH(n, &p->names, entry)
		words_mem(&w, n->name, n->len);
	request_script(&p->request, q->base.env->conn, script_find("expired_push"), &w);
}

static void
expired_turn(void *arg)
{
	struct expired *q = arg;
	struct conn *conn = q->base.env->conn;
	usec_t now = clock_mono();
	struct expired_name *n;

	/* Their lock may have expired: a repeated push might add them a second time. */
	while ((n = TAILQ_FIRST(&q->waiting)) != NULL && now - n->heard > q->base.cfg->skew / 2) {
		expired_remove(q, n);
		free(n);
		expired_drop(q);
	}

	/* While Redis refuses pushes, only one at a time is sent. */
	while (!TAILQ_EMPTY(&q->waiting) && q->npushes < (q->why[0] != '\0' ? 1 : PUSHES) &&
	    !timer_is_set(&q->push_delay) && conn_is_ready(conn))
		expired_push(q);
	if (q->dropped > 0 && q->pushed && q->npushes == 0 && q->nwaiting == 0) {
		queue_warn(&q->base.queue,
		    "expired keys are pushed again: %" PRIu64 " were dropped", q->dropped);
		q->dropped = 0;
	}

	/* The second half closes when all names are pushed, or are too late for that. */
	if (q->closing && q->nwaiting + q->npushes == 0)
		leased_close(&q->base.queue);
	else if (q->closing && !conn_is_ready(conn) && !timer_is_set(&q->push_delay))
		timer_set(&q->push_delay, 100 * MSEC);
}

/* -- notify-keyspace-events --------------------------------------------------- */

/* Reports the command that the operator must type. */
static void
expired_demand(struct expired *q, const char *flags, const char *refused)
{
	char *why = xasprintf("Redis sends no events of expired keys%s%.100s; do: "
	    "redis-cli CONFIG SET " SETTING " '%s'",
	    refused[0] != '\0' ? ", and setting that was refused: " : "", refused, flags);

	subscription_set_obstacle(&q->subscription, why);
	free(why);
}

static void
expired_check_soon(struct expired *q)
{
	if (q->base.env->routes != NULL)
		timer_set(&q->check_again, SEC);
}

/* This server sends events: asks the next one, until all servers do. */
static void
expired_check_next(struct expired *q)
{
	struct conn *conn = route_master_conn(q->base.env, ++q->checked);

	if (conn == NULL)
		subscription_set_obstacle(&q->subscription, NULL);
	else
		request_words(&q->get, conn, "CONFIG", "GET", SETTING, NULL);
}

static void
expired_set(enum conn_answer answer, const struct redisReply *reply, void *arg)
{
	struct expired *q = arg;

	if (answer != CONN_REPLY)
		return;
	if (reply_error(reply) != REPLY_OK) {
		expired_demand(q, q->flags, reply_text(reply));
		return;
	}
	queue_warn(&q->base.queue, SETTING " of Redis was set to '%s'", q->flags);
	expired_check_next(q);
}

static void
expired_checked(enum conn_answer answer, const struct redisReply *reply, void *arg)
{
	struct expired *q = arg;
	const char *set = reply_str(reply_at(reply, 1), NULL);
	struct conn *conn = route_master_conn(q->base.env, q->checked);
	bool events, expired;

	if (answer != CONN_REPLY) {
		expired_check_soon(q);
		return;
	}
	if (set == NULL && !q->unchecked)
		queue_warn(&q->base.queue, "cannot check whether Redis sends events of expired "
		    "keys (%.100s): " SETTING " must have E and x", reply_text(reply));
	q->unchecked = set == NULL;
	if (set == NULL)
		return;
	events = strchr(set, 'E') != NULL;
	expired = strpbrk(set, "xA") != NULL;
	if (events && expired) {
		expired_check_next(q);
		return;
	}
	free(q->flags);
	q->flags = xasprintf("%s%s%s", set, events ? "" : "E", expired ? "" : "x");
	if (q->base.cfg->notifications == NOTIFICATIONS_SET && conn != NULL)
		request_words(&q->set, conn, "CONFIG", "SET", SETTING, q->flags, NULL);
	else
		expired_demand(q, q->flags, "");
}

static void
expired_check(void *arg)
{
	struct expired *q = arg;
	struct conn *first = route_master_conn(q->base.env, 0);

	if (request_is_sent(&q->get) || request_is_sent(&q->set) || q->closing)
		return;
	if (first == NULL || !conn_is_ready(first)) {
		expired_check_soon(q);
		return;
	}
	q->checked = 0;
	request_words(&q->get, first, "CONFIG", "GET", SETTING, NULL);
}

/* -- the table's functions -------------------------------------------------- */

static const struct leased_kind expired_kind = {
	.ops = &queue_expired,
	.size = sizeof(struct expired),
	.source = "", .pop = "expired_pop",
	.promotes = true,
};

static struct queue *
expired_open(const struct queue_env *env, const char *key, struct config *config,
    const struct queue_config *cfg, struct stats *stats,
    const struct queue_events *events, void *arg)
{
	struct expired *q = (struct expired *)leased_new(&expired_kind, env, key, config,
	    cfg, stats, events, arg);
	char channel[64];

	TAILQ_INIT(&q->waiting);
	TAILQ_INIT(&q->pushes);
	request_init(&q->get, expired_checked, q);
	request_init(&q->set, expired_set, q);
	timer_init(&q->push_delay, env->loop, expired_wake, q);
	timer_init(&q->check_again, env->loop, expired_check, q);
	subscription_init(&q->subscription, env, "expired", &q->base.queue);
	snprintf(channel, sizeof(channel), "__keyevent@%d__:expired", cfg->database);
	subscription_add_everywhere(&q->subscription, channel, expired_heard, q);
	return &q->base.queue;
}

static void
expired_reconfigure(struct queue *queue, struct config *config, const struct queue_config *cfg)
{
	struct expired *q = (struct expired *)queue;

	leased_reconfigure(queue, config, cfg);
	expired_check(q);
}

static void
expired_conn_up(struct queue *queue, const struct conn_server *server)
{
	struct expired *q = (struct expired *)queue;

	timer_stop(&q->push_delay);
	leased_conn_up(queue, server);
	expired_check(q);
	if (!q->closing)
		subscription_conn_up(&q->subscription);
	expired_wake(q);
}

/* Also checks the setting, which an operator may have changed. */
static void
expired_tick(struct queue *queue)
{
	struct expired *q = (struct expired *)queue;

	leased_tick_round(queue);
	subscription_probe(&q->subscription);
	expired_check(q);
}

static bool
expired_is_empty(const struct queue *queue)
{
	const struct expired *q = (const struct expired *)queue;

	return q->nwaiting + q->npushes == 0 && leased_is_empty(queue);
}

static void
expired_close(struct queue *queue)
{
	struct expired *q = (struct expired *)queue;

	q->closing = true;
	leased_want(queue, false);
	expired_wake(q);
}

static void
expired_free(struct queue *queue)
{
	struct expired *q = (struct expired *)queue;
	struct expired_push *p;

	while ((p = TAILQ_FIRST(&q->pushes)) != NULL)
		expired_free_push(p);
	request_cancel(&q->get);
	request_cancel(&q->set);
	timer_stop(&q->check_again);
	free(q->flags);
	subscription_done(&q->subscription);
	timer_stop(&q->push_delay);
	loop_defer_cancel(q->base.env->loop, &q->turn);
	expired_free_names(&q->waiting);
	leased_free(queue);
}

const struct queue_ops queue_expired = {
	LEASED_MESSAGE_OPS,
	.open = expired_open,
	.reconfigure = expired_reconfigure,
	.conn_up = expired_conn_up,
	.tick = expired_tick,
	.is_empty = expired_is_empty,
	.close = expired_close,
	.free = expired_free,
};
