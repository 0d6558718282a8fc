/*
 * Kinds "channel" and "pattern": every daemon runs the handler for every
 * message that it hears; at most once.
 *
 * What is heard waits in a backlog, bounded by number and by bytes; beyond
 * that it is dropped and counted, and the log says so when that begins and when
 * it has ended, which is when half of the backlog is free again.
 *
 * Nothing of this is in Redis but QPAUSED, which is looked at all the time (that
 * costs nothing while it does not change), and QSTATS.  While Redis is away what
 * was heard before is still worked on.
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
#include "queue/subscription.h"
#include "redis/reply.h"

#define CHANNEL_MAX	((size_t)64 * 1024)	/* of a name: an environment takes 128 KiB */

/* In the backlog.  There may be many: what a delivery needs besides is made for it. */
struct waiting {
	TAILQ_ENTRY(waiting)	 entry;		/* in order of place */
	uint64_t		 place;		/* in the order in which they were heard */
	char			*channel;	/* owned, as are payload and id */
	size_t			 channel_len;
	char			*payload;	/* hiredis'; NULL: it was too large */
	size_t			 len;		/* also of one that was */
	char			*id;		/* of one that was in hand before; NULL */
};
TAILQ_HEAD(waiting_list, waiting);

enum heard_state {
	HEARD_IN_HAND,		/* the engine has it */
	HEARD_DONE,		/* to be told, and freed */
	HEARD_STATES
};

/* A delivery, on the list of its state. */
struct heard {
	TAILQ_ENTRY(heard)	 entry;
	enum heard_state	 state;
	uint64_t		 place;		/* that it had in the backlog */
	struct message		*msg;
	bool			 again;		/* DONE: goes back into the backlog, not away */
	struct verdict		 verdict;	/* DONE: */
	struct result		 result;	/* owned */
	enum settled		 how;
};
TAILQ_HEAD(heard_list, heard);

struct pubsub {
	struct queue		  queue;	/* first */
	const struct queue_env	 *env;
	struct config		 *config;	/* reference; of what is heard from now on */
	const struct queue_config *cfg;
	struct stats		 *stats;
	struct keys		  keys;
	struct listener		  listener;
	struct look		  look;
	struct count		  count;
	struct defer		  turn;
	struct waiting_list	  backlog;
	struct heard_list	  list[HEARD_STATES];
	uint64_t		  places;
	unsigned		  waiting;	/* in the backlog ... */
	uint64_t		  bytes;	/* ... and how large they are */
	uint64_t		  dropped;	/* since it became full; 0: it is not */
	unsigned		  asked;	/* by queue_fetch(); 0: no fetch */
	enum turn		  fetch_turn;
	bool			  wanted;
	bool			  told;		/* ready() was called, and no fetch since */
	bool			  looked;	/* it is known whether it is paused */
	bool			  paused;	/* as the engine was told */
	bool			  refused;	/* a channel's name was, and that was said */
	bool			  warned;	/* that QPAUSED cannot be read */
	bool			  closing;
	bool			  closed;
};

static void	pubsub_turn(void *);

static void
pubsub_wake(struct pubsub *q)
{
	loop_defer(q->env->loop, &q->turn, pubsub_turn, q);
}

static void
pubsub_warn(struct pubsub *q, const char *text)
{
	struct tick_report report = { .warning = text };

	q->queue.events->ticked(&report, q->queue.arg);
}

/* -- the backlog ------------------------------------------------------------ */

static void
heard_free(struct heard *h)
{
	message_free(h->msg);
	result_done(&h->result);
	free(h);
}

static void
pubsub_move(struct pubsub *q, struct heard *h, enum heard_state state)
{
	TAILQ_REMOVE(&q->list[h->state], h, entry);
	h->state = state;
	TAILQ_INSERT_TAIL(&q->list[state], h, entry);
}

static uint64_t
waiting_bytes(const struct waiting *w)
{
	return w->channel_len + (w->payload != NULL ? w->len : 0);
}

/* Into the backlog, where its place is: at the end, mostly. */
static void
pubsub_enqueue(struct pubsub *q, struct waiting *w)
{
	struct waiting *at = TAILQ_LAST(&q->backlog, waiting_list);

	while (at != NULL && at->place > w->place)
		at = TAILQ_PREV(at, waiting_list, entry);
	if (at != NULL)
		TAILQ_INSERT_AFTER(&q->backlog, at, w, entry);
	else
		TAILQ_INSERT_HEAD(&q->backlog, w, entry);
	q->waiting++;
	q->bytes += waiting_bytes(w);
}

static void
pubsub_dequeue(struct pubsub *q, struct waiting *w)
{
	TAILQ_REMOVE(&q->backlog, w, entry);
	q->waiting--;
	q->bytes -= waiting_bytes(w);
}

static void
waiting_free(struct waiting *w)
{
	if (w->payload != NULL)
		reply_free_str(w->payload);
	free(w->channel);
	free(w->id);
	free(w);
}

/* A delivery of w, which is gone after it. */
static struct heard *
pubsub_begin(struct pubsub *q, struct waiting *w)
{
	struct heard *h = xcalloc(1, sizeof(*h));

	h->msg = fresh_of(q->env, q->config, q->cfg, w->payload, w->len, w->id);
	h->msg->channel = w->channel;
	h->msg->queue_data = h;
	h->msg->delivered = clock_mono();
	h->place = w->place;
	h->state = HEARD_IN_HAND;
	TAILQ_INSERT_TAIL(&q->list[HEARD_IN_HAND], h, entry);
	free(w);
	return h;
}

static bool
pubsub_has_room(const struct pubsub *q, size_t len)
{
	return q->waiting == 0 || (q->waiting < (unsigned)q->cfg->backlog &&
	    q->bytes + len <= q->cfg->backlog_bytes);
}

/* Not told one by one: the counter has them, and the end says how many. */
static void
pubsub_drop(struct pubsub *q)
{
	char text[96];

	q->stats->n[STAT_DROPPED]++;
	if (q->dropped++ > 0)
		return;
	snprintf(text, sizeof(text), "the backlog is full (%u messages, %" PRIu64
	    " bytes): what is heard now is dropped", q->waiting, q->bytes);
	pubsub_warn(q, text);
}

static void
pubsub_end_drops(struct pubsub *q)
{
	char text[96];

	if (q->dropped == 0 || q->waiting > (unsigned)q->cfg->backlog / 2 ||
	    q->bytes > q->cfg->backlog_bytes / 2)
		return;
	snprintf(text, sizeof(text), "the backlog has room again: %" PRIu64
	    " messages were dropped", q->dropped);
	q->dropped = 0;
	pubsub_warn(q, text);
}

/* Whether a channel's name fits into a handler's environment. */
static bool
pubsub_can_name(const char *channel, size_t len)
{
	return len <= CHANNEL_MAX && memchr(channel, '\0', len) == NULL;
}

/* Counted each time, said once. */
static void
pubsub_refuse(struct pubsub *q, size_t len)
{
	char text[128];

	q->stats->n[STAT_DROPPED]++;
	if (q->refused)
		return;
	q->refused = true;
	snprintf(text, sizeof(text), "messages are dropped: a channel's name has %zu bytes, and may "
	    "have %zu and no NUL", len, CHANNEL_MAX);
	pubsub_warn(q, text);
}

/* From the subscriber. */
static void
pubsub_heard(const char *channel, size_t len, const struct redisReply *payload, void *arg)
{
	struct pubsub *q = arg;
	struct waiting *w;
	size_t size = 0;

	if (q->closing || reply_str(payload, &size) == NULL)
		return;
	if (!pubsub_can_name(channel, len)) {
		pubsub_refuse(q, len);
		return;
	}
	if (!pubsub_has_room(q, len + (size > q->cfg->message_max ? 0 : size))) {
		pubsub_drop(q);
		return;
	}
	w = xcalloc(1, sizeof(*w));
	w->len = size;
	if (size <= q->cfg->message_max)
		w->payload = reply_take(payload, &w->len);
	w->channel = xstrndup(channel, len);
	w->channel_len = len;
	w->place = ++q->places;
	pubsub_enqueue(q, w);
	pubsub_wake(q);
}

/* -- results ---------------------------------------------------------------- */

/* What never began is heard again; its message is a new one, as settled() frees. */
static void
pubsub_hear_again(struct pubsub *q, struct heard *h)
{
	struct waiting *w = xcalloc(1, sizeof(*w));

	w->place = h->place;
	w->payload = h->msg->payload;
	w->len = h->msg->len;
	h->msg->payload = NULL;
	w->id = xstrdup(h->msg->id);
	w->channel = xstrdup(h->msg->channel);
	w->channel_len = strlen(w->channel);
	pubsub_enqueue(q, w);
}

static void
pubsub_tell_done(struct pubsub *q)
{
	struct heard *h;

	while ((h = TAILQ_FIRST(&q->list[HEARD_DONE])) != NULL) {
		TAILQ_REMOVE(&q->list[HEARD_DONE], h, entry);
		if (h->again && !q->closing)
			pubsub_hear_again(q, h);
		else if (h->again)
			h->how = SETTLED_DROPPED;
		q->queue.events->settled(h->msg, &h->verdict, &h->result, h->how,
		    q->queue.arg);
		heard_free(h);
	}
}

/* -- fetching --------------------------------------------------------------- */

static struct waiting *
pubsub_next(struct pubsub *q)
{
	return q->fetch_turn == TURN_NEWEST ? TAILQ_LAST(&q->backlog, waiting_list) :
	    TAILQ_FIRST(&q->backlog);
}

static void
pubsub_fetch_step(struct pubsub *q)
{
	struct fetched f = { .asked = q->asked, .status = FETCH_OK };
	struct waiting *w;

	if (q->asked == 0)
		return;
	if (q->paused)
		f.status = FETCH_PAUSED;
	while (f.status == FETCH_OK && !q->closing && f.got < f.asked &&
	    (w = pubsub_next(q)) != NULL) {
		pubsub_dequeue(q, w);
		f.got++;
		q->queue.events->deliver(pubsub_begin(q, w)->msg, q->queue.arg);
	}
	pubsub_end_drops(q);
	f.more = q->waiting > 0 && !q->paused;
	q->asked = 0;
	q->queue.events->fetched(&f, q->queue.arg);
}

static void
pubsub_watch(struct pubsub *q)
{
	if (!q->wanted || q->told || q->asked > 0 || q->closing || q->paused || !q->looked ||
	    q->waiting == 0)
		return;
	q->told = true;
	q->queue.events->ready(q->queue.arg);
}

static void
pubsub_saw(const struct looked *found, void *arg)
{
	struct pubsub *q = arg;
	char text[256];
	bool paused = found->refused == NULL && found->paused;

	q->looked = true;
	pubsub_wake(q);
	if (found->warning != NULL)
		pubsub_warn(q, found->warning);
	if (found->refused != NULL && !q->warned) {
		snprintf(text, sizeof(text), "it cannot be known whether the queue is paused: "
		    "%.150s", found->refused);
		pubsub_warn(q, text);
	}
	q->warned = found->refused != NULL;
	if (q->paused == paused)
		return;
	q->paused = paused;
	q->queue.events->paused(paused, paused ? found->why : NULL, q->queue.arg);
}

/* -- turns ------------------------------------------------------------------ */

static void
pubsub_free_backlog(struct pubsub *q)
{
	struct waiting *w;

	while ((w = TAILQ_FIRST(&q->backlog)) != NULL) {
		pubsub_dequeue(q, w);
		waiting_free(w);
	}
}

/* The end: what waits is not worth anything to anybody else. */
static void
pubsub_drop_backlog(struct pubsub *q)
{
	struct tick_report report = { .dropped = q->waiting };

	pubsub_free_backlog(q);
	if (report.dropped > 0)
		q->queue.events->ticked(&report, q->queue.arg);
}

static void
pubsub_finish(struct pubsub *q)
{
	if (!q->closing || q->closed || q->asked > 0 ||
	    !TAILQ_EMPTY(&q->list[HEARD_IN_HAND]) || !TAILQ_EMPTY(&q->list[HEARD_DONE]))
		return;
	pubsub_drop_backlog(q);
	if (count_finish(&q->count))
		return;
	q->closed = true;
	q->queue.events->closed(q->queue.arg);
}

static void
pubsub_turn(void *arg)
{
	struct pubsub *q = arg;

	pubsub_tell_done(q);
	pubsub_fetch_step(q);
	pubsub_watch(q);
	pubsub_finish(q);
}

static void
pubsub_counted(void *arg)
{
	pubsub_wake(arg);
}

/* -- the table's functions -------------------------------------------------- */

static struct queue *
pubsub_open(const struct queue_env *env, struct config *config, const struct queue_config *cfg,
    struct stats *stats, const struct queue_events *events, void *arg)
{
	struct pubsub *q = xcalloc(1, sizeof(*q));
	size_t i;

	q->queue.ops = &queue_pubsub;
	q->queue.events = events;
	q->queue.arg = arg;
	q->env = env;
	q->config = config_ref(config);
	q->cfg = cfg;
	q->stats = stats;
	keys_init(&q->keys, cfg->key);
	TAILQ_INIT(&q->backlog);
	for (i = 0; i < HEARD_STATES; i++)
		TAILQ_INIT(&q->list[i]);
	look_init(&q->look, env, &q->keys, false, pubsub_saw, q);
	count_init(&q->count, env, &q->keys, stats, pubsub_counted, q);
	listener_init(&q->listener, env, kind_name(cfg->kind), events, arg);
	for (i = 0; cfg->keys[i] != NULL; i++)
		listener_add(&q->listener, kind_source(cfg->kind) == SOURCE_PATTERN, cfg->keys[i],
		    pubsub_heard, q);
	look_set(&q->look, true);
	return &q->queue;
}

static void
pubsub_reconfigure(struct queue *queue, struct config *config, const struct queue_config *cfg)
{
	struct pubsub *q = (struct pubsub *)queue;

	config_hold(&q->config, config);
	q->cfg = cfg;
}

static void
pubsub_conn_up(struct queue *queue, const struct conn_server *server)
{
	struct pubsub *q = (struct pubsub *)queue;

	(void)server;
	if (q->closing)
		return;
	listener_conn_up(&q->listener);
	look_again(&q->look);
	pubsub_wake(q);
}

static void
pubsub_conn_down(struct queue *queue)
{
	struct pubsub *q = (struct pubsub *)queue;

	listener_conn_down(&q->listener);
	pubsub_wake(q);
}

static void
pubsub_want(struct queue *queue, bool wanted)
{
	struct pubsub *q = (struct pubsub *)queue;

	q->wanted = wanted && !q->closing;
	q->told = false;
	pubsub_wake(q);
}

static void
pubsub_fetch(struct queue *queue, unsigned n, enum turn turn)
{
	struct pubsub *q = (struct pubsub *)queue;

	q->asked = n;
	q->fetch_turn = turn;
	q->told = false;
	pubsub_wake(q);
}

/* Only what never had a process may be delivered again. */
static void
pubsub_settle(struct queue *queue, struct message *msg, const struct verdict *verdict,
    struct result *result)
{
	struct pubsub *q = (struct pubsub *)queue;
	struct heard *h = msg->queue_data;

	h->verdict = *verdict;
	result_move(&h->result, result);
	h->again = verdict->op == VERDICT_RETURN && h->result.pid <= 0 && msg->payload != NULL;
	h->how = h->again || verdict->op == VERDICT_ACK ? SETTLED_OK : SETTLED_DROPPED;
	pubsub_move(q, h, HEARD_DONE);
	pubsub_wake(q);
}

static void
pubsub_tick(struct queue *queue)
{
	struct pubsub *q = (struct pubsub *)queue;

	count_send(&q->count);
	look_again(&q->look);
	listener_probe(&q->listener);
}

static bool
pubsub_is_empty(const struct queue *queue)
{
	const struct pubsub *q = (const struct pubsub *)queue;

	return q->waiting == 0 && TAILQ_EMPTY(&q->list[HEARD_IN_HAND]) &&
	    TAILQ_EMPTY(&q->list[HEARD_DONE]);
}

static void
pubsub_close(struct queue *queue)
{
	struct pubsub *q = (struct pubsub *)queue;

	q->closing = true;
	q->wanted = false;
	look_set(&q->look, false);
	pubsub_wake(q);
}

static void
pubsub_free(struct queue *queue)
{
	struct pubsub *q = (struct pubsub *)queue;
	struct heard *h;
	size_t i;

	q->closing = true;
	pubsub_tell_done(q);
	pubsub_free_backlog(q);
	for (i = 0; i < HEARD_STATES; i++) {
		while ((h = TAILQ_FIRST(&q->list[i])) != NULL) {
			TAILQ_REMOVE(&q->list[i], h, entry);
			heard_free(h);
		}
	}
	listener_done(&q->listener);
	look_done(&q->look);
	count_done(&q->count);
	loop_defer_cancel(q->env->loop, &q->turn);
	keys_done(&q->keys);
	config_unref(q->config);
	free(q);
}

const struct queue_ops queue_pubsub = {
	.name = "channel",
	.open = pubsub_open,
	.reconfigure = pubsub_reconfigure,
	.conn_up = pubsub_conn_up,
	.conn_down = pubsub_conn_down,
	.want = pubsub_want,
	.fetch = pubsub_fetch,
	.settle = pubsub_settle,
	.tick = pubsub_tick,
	.is_empty = pubsub_is_empty,
	.close = pubsub_close,
	.free = pubsub_free,
};
