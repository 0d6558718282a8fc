/*
 * A kind of queue for tests: each daemon delivers one message, "hello", once.
 *
 * It is not part of rqd: tests/daemon/19-new-kind.t adds it to a copy of the sources as
 * HACKING.md says ("A kind of queue").  It is as small as a kind can be.
 */
#include "queue/direct.h"

#include <stdlib.h>
#include <string.h>

struct once {
	struct direct	 direct;	/* first */
	bool		 delivered;
};

static void
once_saw(struct direct *base, const struct looked *found)
{
	direct_set_paused(base, found->paused, found->why);
}

static void
once_step(struct direct *base UNUSED)
{
}

static bool
once_has_work(struct direct *base)
{
	return !((struct once *)base)->delivered && !base->paused;
}

static void
once_fetch(struct direct *base)
{
	unsigned got = once_has_work(base);

	((struct once *)base)->delivered = true;
	if (got > 0)
		direct_deliver(base, 1, strdup("hello"), 5, NULL, NULL);
	direct_fetched(base, got, FETCH_OK, NULL);
}

static const struct direct_kind once_kind = {
	.ops = &queue_once, .saw = once_saw, .step = once_step, .fetch = once_fetch,
	.has_work = once_has_work,
};

static struct queue *
once_open(const struct queue_env *env, const char *key UNUSED, struct config *config,
    const struct queue_config *cfg, struct stats *stats, const struct queue_events *events,
    void *arg)
{
	struct once *q = xcalloc(1, sizeof(*q));

	direct_init(&q->direct, &once_kind, env, config, cfg, stats, events, arg);
	return &q->direct.queue;
}

static void
once_conn_up(struct queue *queue, const struct conn_server *server UNUSED)
{
	direct_wake((struct direct *)queue);
}

static bool
once_is_empty(const struct queue *queue)
{
	const struct once *q = (const struct once *)queue;

	return q->delivered && !direct_has_deliveries(&q->direct);
}

static void
once_free(struct queue *queue)
{
	direct_free((struct direct *)queue);
}

const struct queue_ops queue_once = {
	.open = once_open,
	.reconfigure = direct_reconfigure,
	.conn_up = once_conn_up,
	.conn_down = direct_conn_down,
	.want = direct_want,
	.fetch = direct_fetch,
	.settle = direct_settle,
	.tick = direct_tick,
	.is_empty = once_is_empty,
	.close = direct_close,
	.free = once_free,
};
