/*
 * Kind "stream": at least once, from a consumer group of a Redis stream.
 *
 * The machine is that of kind "ack"; scripts of its own read entries instead of
 * list elements.  An entry in hand stands twice: in the group's pending list,
 * for other consumers and for people, and in section 2's keys (contract), which
 * decide.  So the fence, the leases, rescue and what becomes of a pop whose reply
 * was lost are those of "ack".  An entry that fails, expires or dies is
 * acknowledged in the script that gives it its new place; from there it is a
 * message as any other.
 *
 * The consumer's name says who has it, to people, and tells our deliveries from
 * those of other consumers.  It decides nothing between daemons: two with one
 * name do not disturb each other.
 */
#include "queue/ack_private.h"

#include <inttypes.h>

static void
stream_group(const struct ack *a, struct words *w)
{
	words_add(w, a->cfg->consumer_group);
}

static void
stream_consumer(const struct ack *a, struct words *w)
{
	stream_group(a, w);
	words_fmt(w, "%s-%s", a->env->host, a->cfg->name);
}

static void
stream_pop(const struct ack *a, struct words *w)
{
	stream_consumer(a, w);
	words_fmt(w, "%" PRIu64, a->cfg->message_max);
}

static void
stream_scan(const struct ack *a, struct words *w)
{
	stream_group(a, w);
	words_add(w, ticker_scan(a->ticker));
	words_fmt(w, "%" PRIu64, a->cfg->message_max);
}

static const struct ack_kind stream_kind = {
	.ops = &queue_stream,
	.role = {
		[ACK_POP] = ACK_ROLE("stream_pop", stream_pop, ACK_KEYS_POP),
		[ACK_SETTLE] = ACK_ROLE("stream_settle", stream_consumer, ACK_KEYS_SETTLE,
		    KEY_QUEUE),
		[ACK_RENEW] = ACK_ROLE("stream_renew", stream_consumer, ACK_KEYS_RENEW,
		    KEY_QUEUE),
		[ACK_TICK] = ACK_ROLE("stream_tick", stream_scan, ACK_KEYS_TICK),
		[ACK_ARM] = ACK_ROLE("stream_arm", stream_group, ACK_KEYS_ARM),
		ACK_ROLES_ANY
	},
	.promotes = true,
};

static struct queue *
stream_open(const struct queue_env *env, struct config *config,
    const struct queue_config *cfg, struct stats *stats,
    const struct queue_events *events, void *arg)
{
	return ack_new(&stream_kind, env, config, cfg, stats, events, arg);
}

const struct queue_ops queue_stream = {
	.open = stream_open,
	ACK_OPS,
};
