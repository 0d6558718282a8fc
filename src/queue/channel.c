/*
 * Kinds "channel" and "pattern": every daemon runs the handler for every message that
 * it hears, at most once.
 *
 * A message waits in a backlog, which is bounded by number and by bytes.  When the
 * backlog is full, rqd drops new messages and counts them.  The log reports when that begins,
 * and when it ends: half of the backlog is free again.  At the close rqd drops what is left.
 *
 * Redis holds only QPAUSED and QSTATS.  rqd watches QPAUSED all the time: with client tracking
 * that costs nothing while it does not change; if Redis refuses tracking, rqd polls.  While
 * Redis is away, rqd still delivers the messages in the backlog.
 */
#include "queue/direct.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "queue/subscription.h"
#include "redis/reply.h"

#define CHANNEL_MAX	((size_t)64 * 1024)	/* of a name: execve(2) takes words of 128 KiB */

/* A message in the backlog.  There may be many, so its delivery is made later. */
struct backlogged {
	TAILQ_ENTRY(backlogged)	 entry;		/* in order of place */
	uint64_t		 place;		/* order of arrival */
	char			*channel;	/* owned, as are payload and id */
	size_t			 channel_len;
	char			*payload;	/* from hiredis; NULL: it was too large */
	size_t			 len;		/* even if payload is NULL */
	char			*id;		/* of a message that was given back; else NULL */
};
TAILQ_HEAD(backlog, backlogged);

struct channel {
	struct direct		  direct;	/* first */
	struct subscription	  subscription;
	struct backlog		  backlog;
	unsigned		  waiting;	/* number of messages in the backlog ... */
	uint64_t		  bytes;	/* ... and their size */
	uint64_t		  dropped;	/* since it became full; 0: it is not full */
	bool			  looked;	/* paused or not: it is known */
	bool			  name_refused;	/* a channel's name was too long; logged */
	bool			  look_refused;	/* Redis refused to read QPAUSED; that was logged */
};

/* -- the backlog ------------------------------------------------------------ */

static uint64_t
channel_bytes(const struct backlogged *b)
{
	return b->channel_len + (b->payload != NULL ? b->len : 0);
}

/* Inserts b in order of place, which is mostly the end. */
static void
channel_enqueue(struct channel *q, struct backlogged *b)
{
	struct backlogged *at = TAILQ_LAST(&q->backlog, backlog);

	while (at != NULL && at->place > b->place)
		at = TAILQ_PREV(at, backlog, entry);
	if (at != NULL)
		TAILQ_INSERT_AFTER(&q->backlog, at, b, entry);
	else
		TAILQ_INSERT_HEAD(&q->backlog, b, entry);
	q->waiting++;
	q->bytes += channel_bytes(b);
}

static void
channel_dequeue(struct channel *q, struct backlogged *b)
{
	TAILQ_REMOVE(&q->backlog, b, entry);
	q->waiting--;
	q->bytes -= channel_bytes(b);
}

static void
channel_free_backlog(struct channel *q)
{
	struct backlogged *b;

	while ((b = TAILQ_FIRST(&q->backlog)) != NULL) {
		channel_dequeue(q, b);
		if (b->payload != NULL)
			free(b->payload);
		free(b->channel);
		free(b->id);
		free(b);
	}
}

/* The subscription's callback for a message. */
static void
channel_heard(const char *channel, size_t len, const struct redisReply *payload, void *arg)
{
	struct channel *q = arg;
	const struct queue_config *cfg = q->direct.cfg;
	uint64_t max = cfg->message_max;
	struct backlogged *b;
	size_t size = 0;

	if (q->direct.closing || reply_str(payload, &size) == NULL)
		return;
	/* The channel's name must fit into a handler's environment. */
	if (len > CHANNEL_MAX || memchr(channel, '\0', len) != NULL) {
		q->direct.stats->n[STAT_DROPPED]++;
		if (!q->name_refused)
			queue_warn(&q->direct.queue, "messages are dropped: a channel's name has "
			    "%zu bytes, and may have %zu and no NUL", len, CHANNEL_MAX);
		q->name_refused = true;
		return;
	}
	if (q->waiting > 0 && (q->waiting >= (unsigned)cfg->backlog ||
	    q->bytes + len + (size > max ? 0 : size) > cfg->backlog_bytes)) {
		q->direct.stats->n[STAT_DROPPED]++;
		if (q->dropped++ == 0)
			queue_warn(&q->direct.queue, "the backlog is full (%u messages, %" PRIu64
			    " bytes): new messages are dropped", q->waiting, q->bytes);
		return;
	}
	b = NEW(struct backlogged, .len = size, .channel = xstrndup(channel, len),
	    .channel_len = len, .place = ++q->direct.places);
	if (size <= max)
		b->payload = reply_take(payload, &b->len);
	channel_enqueue(q, b);
	direct_wake(&q->direct);
}

/* -- deliveries ------------------------------------------------------------- */

/* A message that never began goes back to the backlog; settled() frees the old one. */
static void
channel_settling(struct direct *base, struct direct_delivery *d)
{
	struct backlogged *b;

	if (!d->unbegun)
		return;
	if (base->closing) {
		d->how = SETTLED_DROPPED;
		return;
	}
	b = NEW(struct backlogged, .place = d->place, .payload = d->msg->payload,
	    .len = d->msg->len, .id = xstrdup(d->msg->id), .channel = xstrdup(d->msg->channel),
	    .channel_len = strlen(d->msg->channel));
	d->msg->payload = NULL;
	channel_enqueue((struct channel *)base, b);
}

static void
channel_fetch(struct direct *base)
{
	struct channel *q = (struct channel *)base;
	bool newest = base->fetch_turn == TURN_NEWEST;
	struct backlogged *b;
	unsigned got = 0;

	while (!base->paused && !base->closing && got < base->asked &&
	    !TAILQ_EMPTY(&q->backlog)) {
		b = newest ? TAILQ_LAST(&q->backlog, backlog) : TAILQ_FIRST(&q->backlog);
		channel_dequeue(q, b);
		got++;
		direct_deliver(base, b->place, b->payload, b->len, b->id, b->channel);
		free(b);
	}
	if (q->dropped > 0 && q->waiting <= (unsigned)base->cfg->backlog / 2 &&
	    q->bytes <= base->cfg->backlog_bytes / 2) {
		queue_warn(&base->queue, "the backlog has room again: %" PRIu64
		    " messages were dropped", q->dropped);
		q->dropped = 0;
	}
	direct_fetched(base, got, base->paused ? FETCH_PAUSED : FETCH_OK, NULL);
}

static void
channel_saw(struct direct *base, const struct looked *found)
{
	struct channel *q = (struct channel *)base;

	q->looked = true;
	if (found->refused != NULL && !q->look_refused)
		queue_warn(&base->queue, "cannot find out whether the queue is paused: "
		    "%.150s", found->refused);
	q->look_refused = found->refused != NULL;
	direct_set_paused(base, found->refused == NULL && found->paused, found->why);
}

static bool
channel_has_work(struct direct *base)
{
	const struct channel *q = (const struct channel *)base;

	return q->looked && !base->paused && q->waiting > 0;
}

/* When the queue closes, drops the backlog: no other daemon needs it. */
static void
channel_step(struct direct *base)
{
	struct channel *q = (struct channel *)base;
	struct tick_report report = { .dropped = q->waiting };

	if (!base->closing || base->asked > 0 || direct_has_deliveries(base))
		return;
	channel_free_backlog(q);
	if (report.dropped > 0)
		base->queue.events->ticked(&report, base->queue.arg);
}

/* -- the table's functions -------------------------------------------------- */

static const struct direct_kind channel_kind = {
	.ops = &queue_channel,
	.looks_always = true,
	.saw = channel_saw,
	.settling = channel_settling,
	.step = channel_step,
	.fetch = channel_fetch,
	.has_work = channel_has_work,
};

static struct queue *
channel_open(const struct queue_env *env, const char *key UNUSED, struct config *config,
    const struct queue_config *cfg, struct stats *stats, const struct queue_events *events,
    void *arg)
{
	struct channel *q = xcalloc(1, sizeof(*q));
	bool pattern = kind_source(cfg->kind) == SOURCE_PATTERN;

	direct_init(&q->direct, &channel_kind, env, config, cfg, stats, events, arg);
	TAILQ_INIT(&q->backlog);
	subscription_init(&q->subscription, env, kind_name(cfg->kind), &q->direct.queue);
	for (size_t i = 0; cfg->keys[i] != NULL; i++)
		subscription_add(&q->subscription, pattern, cfg->keys[i], channel_heard, q);
	return &q->direct.queue;
}

static void
channel_conn_up(struct queue *queue, const struct conn_server *server UNUSED)
{
	struct channel *q = (struct channel *)queue;

	if (q->direct.closing)
		return;
	subscription_conn_up(&q->subscription);
	direct_look_now(&q->direct);
	direct_wake(&q->direct);
}

static void
channel_tick(struct queue *queue)
{
	direct_tick(queue);
	subscription_probe(&((struct channel *)queue)->subscription);
}

static bool
channel_is_empty(const struct queue *queue)
{
	const struct channel *q = (const struct channel *)queue;

	return q->waiting == 0 && !direct_has_deliveries(&q->direct);
}

static void
channel_free(struct queue *queue)
{
	struct channel *q = (struct channel *)queue;

	channel_free_backlog(q);
	subscription_done(&q->subscription);
	direct_free(&q->direct);
}

const struct queue_ops queue_channel = {
	.open = channel_open,
	.reconfigure = direct_reconfigure,
	.conn_up = channel_conn_up,
	.conn_down = direct_conn_down,
	.want = direct_want,
	.fetch = direct_fetch,
	.settle = direct_settle,
	.tick = channel_tick,
	.is_empty = channel_is_empty,
	.close = direct_close,
	.free = channel_free,
};
