/*
 * Kind "expired": the names of keys that have expired.
 *
 * Two halves.  The first listens to __keyevent@DB__:expired, which every daemon
 * of the fleet hears; expired_push.lua lets one of them push the name to the
 * list Q, and shuts the others out for `skew` by a lock that is never renewed.
 * The second is the machine behind kind "ack" on that list: from there a name is
 * a message as any other, and has retries.
 *
 * Locks expire, too, and must never count as events, nor must what rqd keeps for
 * itself.
 *
 * A push whose answer is lost, or that could not be sent, is sent again only as
 * long as the lock must still be there if it did act: half of skew.  Older news
 * is dropped, and that is told.
 */
#include "queue/ack_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/glob.h"
#include "queue/subscription.h"

#define PUSH_MAX	250		/* names per call ... */
#define PUSH_BYTES	65536		/* ... or so many bytes of them */
#define PUSHES		8		/* on their way at once */
#define NEWS_MAX	100000		/* names that wait, all in all ... */
#define NEWS_BYTES	(16 << 20)	/* ... and how large they are */
#define SETTING		"notify-keyspace-events"

/* A key has expired. */
struct news {
	TAILQ_ENTRY(news)	 entry;
	usec_t			 heard;		/* mono */
	size_t			 len;
	char			 name[];
};
TAILQ_HEAD(news_list, news);

struct expired {
	struct queue		  queue;	/* first */
	struct queue		 *ack;		/* the second half; owned */
	const struct queue_env	 *env;
	struct config		 *config;	/* reference */
	const struct queue_config *cfg;
	struct stats		 *stats;
	struct keys		  keys;
	struct subscription	  subscription;
	struct defer		  turn;
	struct timer		  again;	/* set: pushes wait, after an error */
	struct news_list	  waiting;
	unsigned		  nwaiting;
	size_t			  bytes;	/* of waiting */
	TAILQ_HEAD(, expired_call) pushes;	/* on their way */
	unsigned		  npushes;
	struct expired_call	 *check;	/* on its way; NULL: none */
	char			  why[REPLY_CAUSE];	/* the last push was refused; "": it was not */
	bool			  unchecked;	/* CONFIG is refused, and that was told */
	uint64_t		  dropped;	/* since that was told; 0: nothing is */
	bool			  pushed;	/* something, since the last was dropped */
	bool			  closing;
};

/* A command on its way; lives until it is answered, also beyond its queue. */
struct expired_call {
	TAILQ_ENTRY(expired_call) entry;	/* of a push; while its queue is there */
	struct expired	 *queue;	/* NULL: it is gone */
	struct news_list  news;		/* a push: what it tells; owned */
	char		 *flags;	/* CONFIG SET: what was set; owned */
};

static struct expired_call *
expired_call_new(struct expired *q)
{
	struct expired_call *call = xcalloc(1, sizeof(*call));

	call->queue = q;
	TAILQ_INIT(&call->news);
	return call;
}

static void
expired_free_news(struct news_list *list)
{
	struct news *n;

	while ((n = TAILQ_FIRST(list)) != NULL) {
		TAILQ_REMOVE(list, n, entry);
		free(n);
	}
}

static void
expired_call_free(struct expired_call *call)
{
	expired_free_news(&call->news);
	free(call->flags);
	free(call);
}

static void	expired_turn(void *);

static void
expired_wake(struct expired *q)
{
	loop_defer(q->env->loop, &q->turn, expired_turn, q);
}

/* -- news ------------------------------------------------------------------- */

static void
expired_add(struct expired *q, struct news *n)
{
	TAILQ_INSERT_TAIL(&q->waiting, n, entry);
	q->nwaiting++;
	q->bytes += n->len;
}

static void
expired_remove(struct expired *q, struct news *n)
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

/* Locks, heartbeats, and the keys of queues: QPAUSED and QRATE may have a TTL. */
static bool
expired_is_ours(const struct expired *q, const char *name, size_t len)
{
	size_t i;

	if (begins_with(name, len, KEYS_LOCK_PREFIX) || begins_with(name, len, KEYS_DAEMON_PREFIX))
		return true;
	for (i = 0; i < q->config->nqueues; i++) {
		if (keys_is_one(q->config->queues[i]->key, name, len))
			return true;
	}
	return false;
}

static bool
expired_matches(const struct expired *q, const char *name, size_t len)
{
	size_t i;

	for (i = 0; q->cfg->match[i] != NULL; i++) {
		if (glob_match(q->cfg->match[i], name, len))
			return true;
	}
	return false;
}

/* Not told one by one: the counter has them, and the end says how many. */
static void
expired_drop(struct expired *q)
{
	q->stats->n[STAT_DROPPED]++;
	q->pushed = false;
	if (q->dropped++ == 0)
		queue_warn(&q->queue, "expired keys are dropped: %s", q->why[0] != '\0' ? q->why :
		    "Redis could not be told in time");
}

static void
expired_end_drops(struct expired *q)
{
	if (q->dropped == 0 || !q->pushed || q->npushes > 0 || q->nwaiting > 0)
		return;
	queue_warn(&q->queue, "expired keys are pushed again: %" PRIu64 " were dropped", q->dropped);
	q->dropped = 0;
}

/* From the subscriber. */
static void
expired_heard(const char *channel, size_t channel_len, const struct redisReply *r, void *arg)
{
	struct expired *q = arg;
	const char *name;
	struct news *n;
	size_t len;

	(void)channel;
	(void)channel_len;
	if (q->closing || (name = reply_str(r, &len)) == NULL ||
	    expired_is_ours(q, name, len) || !expired_matches(q, name, len))
		return;
	if (q->nwaiting >= NEWS_MAX || q->bytes + len > NEWS_BYTES) {
		expired_drop(q);
		return;
	}
	n = xmalloc(sizeof(*n) + len);
	n->heard = clock_mono();
	n->len = len;
	memcpy(n->name, name, len);
	expired_add(q, n);
	expired_wake(q);
}

/* -- pushing ---------------------------------------------------------------- */

/* A lock may be over by now: pushed again it could be the second time. */
static void
expired_drop_late(struct expired *q)
{
	usec_t now = clock_mono();
	struct news *n;

	while ((n = TAILQ_FIRST(&q->waiting)) != NULL && now - n->heard > q->cfg->skew / 2) {
		expired_remove(q, n);
		free(n);
		expired_drop(q);
	}
}

/* Those of the call, which may or may not have acted, wait again. */
static void
expired_unsend(struct expired *q, struct expired_call *call)
{
	struct news *n;

	while ((n = TAILQ_LAST(&call->news, news_list)) != NULL) {
		TAILQ_REMOVE(&call->news, n, entry);
		TAILQ_INSERT_HEAD(&q->waiting, n, entry);
		q->nwaiting++;
		q->bytes += n->len;
	}
}

static void
expired_refused(struct expired *q, const struct redisReply *reply)
{
	reply_cause(reply, q->why, sizeof(q->why));
	if (reply_error(reply) == REPLY_ELSEWHERE)
		conn_reset(q->env->conn, q->why);
	else
		timer_set(&q->again, 100 * MSEC);
}

static void
expired_pushed(enum conn_answer answer, const struct redisReply *reply, void *arg)
{
	struct expired_call *call = arg;
	struct expired *q = call->queue;

	if (q == NULL) {
		expired_call_free(call);
		return;
	}
	TAILQ_REMOVE(&q->pushes, call, entry);
	q->npushes--;
	if (answer == CONN_REPLY && reply_error(reply) == REPLY_OK) {
		q->why[0] = '\0';
		q->pushed = true;
	} else {
		expired_unsend(q, call);
		if (answer == CONN_REPLY)
			expired_refused(q, reply);
	}
	expired_call_free(call);
	expired_wake(q);
}

/* Lock:Q:NAME; a name may hold any bytes. */
static void
expired_add_lock(const struct expired *q, struct args *w, const struct news *n)
{
	char *key = xasprintf("%s%s:", KEYS_LOCK_PREFIX, q->keys.name[KEY_QUEUE]);
	size_t len = strlen(key);

	key = xrealloc(key, len + n->len + 1);
	memcpy(key + len, n->name, n->len);
	args_own(w, key, len + n->len);
}

/* Moves as many as go into a call; their lock keys, then their names. */
static int
expired_take(struct expired *q, struct expired_call *call, struct args *w)
{
	struct news *n;
	size_t bytes = 0;
	int count = 0;

	while (count < PUSH_MAX && bytes < PUSH_BYTES && (n = TAILQ_FIRST(&q->waiting)) != NULL) {
		expired_remove(q, n);
		TAILQ_INSERT_TAIL(&call->news, n, entry);
		bytes += n->len;
		count++;
	}
	TAILQ_FOREACH(n, &call->news, entry)
		expired_add_lock(q, w, n);
	args_fmt(w, "%" PRId64, (int64_t)(q->cfg->skew / MSEC));
	args_str(w, q->env->instance);
	TAILQ_FOREACH(n, &call->news, entry)
		args_mem(w, n->name, n->len);
	return count;
}

static void
expired_send_one(struct expired *q)
{
	struct expired_call *call = expired_call_new(q);
	struct args w = { 0 };
	int count;

	TAILQ_INSERT_TAIL(&q->pushes, call, entry);
	q->npushes++;
	args_mem(&w, q->keys.name[KEY_QUEUE], q->keys.len[KEY_QUEUE]);
	args_mem(&w, q->keys.name[KEY_BACKUP], q->keys.len[KEY_BACKUP]);
	count = expired_take(q, call, &w);
	conn_script(q->env->conn, script_find("expired_push"), expired_pushed, call, 2 + count,
	    w.n, w.v, w.len);
	args_done(&w);
}

static void
expired_send(struct expired *q)
{
	while (!TAILQ_EMPTY(&q->waiting) && q->npushes < PUSHES && !timer_is_set(&q->again) &&
	    conn_is_ready(q->env->conn))
		expired_send_one(q);
}

/* What was heard is pushed, or too late, before the other half says its last word. */
static void
expired_finish(struct expired *q)
{
	if (TAILQ_EMPTY(&q->waiting) && q->npushes == 0)
		ack_close(q->ack);
	else if (!conn_is_ready(q->env->conn) && !timer_is_set(&q->again))
		timer_set(&q->again, 100 * MSEC);
}

static void
expired_turn(void *arg)
{
	struct expired *q = arg;

	expired_drop_late(q);
	expired_send(q);
	expired_end_drops(q);
	if (q->closing)
		expired_finish(q);
}

static void
expired_again(void *arg)
{
	expired_wake(arg);
}

/* -- does Redis tell of expired keys? ----------------------------------------- */

/* What is set, and what is missing; NULL: nothing is.  The caller frees it. */
static char *
expired_flags(const char *set)
{
	bool events = strchr(set, 'E') != NULL;
	bool expired = strpbrk(set, "xA") != NULL;

	if (events && expired)
		return NULL;
	return xasprintf("%s%s%s", set, events ? "" : "E", expired ? "" : "x");
}

/* The command that an operator must give. */
static void
expired_demand(struct expired *q, const char *flags, const char *refused)
{
	char *why = xasprintf("Redis does not tell of expired keys%s%.100s; do: redis-cli CONFIG SET "
	    SETTING " '%s'", refused[0] != '\0' ? ", and setting that was refused: " : "",
	    refused, flags);

	subscription_set_obstacle(&q->subscription, why);
	free(why);
}

static void
expired_set(enum conn_answer answer, const struct redisReply *reply, void *arg)
{
	struct expired_call *call = arg;
	struct expired *q = call->queue;

	if (q != NULL) {
		q->check = NULL;
		if (answer == CONN_REPLY && reply_error(reply) != REPLY_OK) {
			expired_demand(q, call->flags, reply_text(reply));
		} else if (answer == CONN_REPLY) {
			queue_warn(&q->queue, SETTING " of Redis was set to '%s'", call->flags);
			subscription_set_obstacle(&q->subscription, NULL);
		}
	}
	expired_call_free(call);
}

static void
expired_checked(enum conn_answer answer, const struct redisReply *reply, void *arg)
{
	struct expired_call *call = arg;
	struct expired *q = call->queue;
	const char *set = answer == CONN_REPLY ? reply_str(reply_at(reply, 1), NULL) : NULL;

	if (q != NULL)
		q->check = NULL;
	if (q == NULL || answer != CONN_REPLY) {
		expired_call_free(call);
		return;
	}
	if (set == NULL) {
		if (!q->unchecked)
			queue_warn(&q->queue, "it cannot be checked whether Redis tells of expired keys "
			    "(%.100s): " SETTING " must have E and x", reply_text(reply));
		q->unchecked = true;
		expired_call_free(call);
		return;
	}
	q->unchecked = false;
	call->flags = expired_flags(set);
	if (call->flags != NULL && q->cfg->notifications == NOTIFICATIONS_SET) {
		q->check = call;
		conn_words(q->env->conn, expired_set, call, "CONFIG", "SET", SETTING, call->flags,
		    NULL);
		return;
	}
	if (call->flags != NULL)
		expired_demand(q, call->flags, "");
	else
		subscription_set_obstacle(&q->subscription, NULL);
	expired_call_free(call);
}

static void
expired_check(struct expired *q)
{
	if (q->check != NULL || q->closing || !conn_is_ready(q->env->conn))
		return;
	q->check = expired_call_new(q);
	conn_words(q->env->conn, expired_checked, q->check, "CONFIG", "GET", SETTING, NULL);
}

/* -- the table's functions -------------------------------------------------- */

static const struct ack_kind expired_kind = {
	.ops = &queue_expired,
	.role = { ACK_ROLES_LIST("expired_pop") },
	.promotes = true,
};

static struct queue *
expired_open(const struct queue_env *env, struct config *config,
    const struct queue_config *cfg, struct stats *stats,
    const struct queue_events *events, void *arg)
{
	struct expired *q = xcalloc(1, sizeof(*q));
	char channel[64];

	q->queue.ops = &queue_expired;
	q->queue.events = events;
	q->queue.arg = arg;
	q->env = env;
	q->config = config_ref(config);
	q->cfg = cfg;
	q->stats = stats;
	keys_init(&q->keys, cfg->key);
	TAILQ_INIT(&q->waiting);
	TAILQ_INIT(&q->pushes);
	timer_init(&q->again, env->loop, expired_again, q);
	subscription_init(&q->subscription, env, "expired", &q->queue);
	snprintf(channel, sizeof(channel), "__keyevent@%d__:expired", cfg->database);
	subscription_add(&q->subscription, false, channel, expired_heard, q);
	q->ack = ack_new(&expired_kind, env, config, cfg, stats, events, arg);
	return &q->queue;
}

static void
expired_reconfigure(struct queue *queue, struct config *config, const struct queue_config *cfg)
{
	struct expired *q = (struct expired *)queue;

	config_hold(&q->config, config);
	q->cfg = cfg;
	ack_reconfigure(q->ack, config, cfg);
	expired_check(q);
}

static void
expired_conn_up(struct queue *queue, const struct conn_server *server)
{
	struct expired *q = (struct expired *)queue;

	timer_stop(&q->again);
	ack_conn_up(q->ack, server);
	expired_check(q);
	if (!q->closing)
		subscription_conn_up(&q->subscription);
	expired_wake(q);
}

static void
expired_conn_down(struct queue *queue)
{
	struct expired *q = (struct expired *)queue;

	subscription_conn_down(&q->subscription);
	ack_conn_down(q->ack);
}

static void
expired_want(struct queue *queue, bool wanted)
{
	ack_want(((struct expired *)queue)->ack, wanted);
}

static void
expired_fetch(struct queue *queue, unsigned n, enum turn turn)
{
	ack_fetch(((struct expired *)queue)->ack, n, turn);
}

static void
expired_settle(struct queue *queue, struct message *msg, const struct verdict *verdict,
    struct result *result)
{
	ack_settle(((struct expired *)queue)->ack, msg, verdict, result);
}

/* Somebody else may have replaced the setting: it is looked at now and then. */
static void
expired_tick(struct queue *queue)
{
	struct expired *q = (struct expired *)queue;

	ack_tick_round(q->ack);
	subscription_probe(&q->subscription);
	expired_check(q);
}

static bool
expired_is_empty(const struct queue *queue)
{
	const struct expired *q = (const struct expired *)queue;

	return TAILQ_EMPTY(&q->waiting) && q->npushes == 0 && ack_is_empty(q->ack);
}

static void
expired_close(struct queue *queue)
{
	struct expired *q = (struct expired *)queue;

	q->closing = true;
	ack_want(q->ack, false);
	expired_wake(q);
}

static void
expired_free(struct queue *queue)
{
	struct expired *q = (struct expired *)queue;
	struct expired_call *call;

	while ((call = TAILQ_FIRST(&q->pushes)) != NULL) {
		TAILQ_REMOVE(&q->pushes, call, entry);
		call->queue = NULL;
	}
	if (q->check != NULL)
		q->check->queue = NULL;
	ack_free(q->ack);
	subscription_done(&q->subscription);
	timer_stop(&q->again);
	loop_defer_cancel(q->env->loop, &q->turn);
	expired_free_news(&q->waiting);
	keys_done(&q->keys);
	config_unref(q->config);
	free(q);
}

const struct queue_ops queue_expired = {
	.name = "expired",
	.open = expired_open,
	.reconfigure = expired_reconfigure,
	.conn_up = expired_conn_up,
	.conn_down = expired_conn_down,
	.want = expired_want,
	.fetch = expired_fetch,
	.settle = expired_settle,
	.tick = expired_tick,
	.is_empty = expired_is_empty,
	.close = expired_close,
	.free = expired_free,
};
