/*
 * Kind "stream": at least once, from a consumer group of a Redis stream.
 *
 * It is built on leased.c; its own scripts read entries instead of list elements.  An
 * entry in flight is in two places: in the group's pending list, for other consumers
 * and for people, and in the keys of doc/keys.md, which decide.  So leases, rescue, and
 * pops of unknown outcome work as in kind "ack".  When an entry fails, expires or
 * becomes a dead letter, the script that moves it also acknowledges it.  From then on
 * it is a message like any other.
 *
 * The consumer's name shows people which daemon has an entry, and separates our
 * deliveries from those of other consumers.  It decides nothing between daemons: two
 * daemons may have one name.
 */
#include "queue/leased.h"

#include <inttypes.h>

static void
stream_group(const struct leased_facts *facts, struct words *w)
{
	words_add(w, facts->cfg->consumer_group);
}

static void
stream_consumer(const struct leased_facts *facts, struct words *w)
{
	stream_group(facts, w);
	words_fmt(w, "%s-%s", facts->host, facts->cfg->name);
}

static void
stream_pop(const struct leased_facts *facts, struct words *w)
{
	stream_consumer(facts, w);
	words_fmt(w, "%" PRIu64, facts->cfg->message_max);
}

static void
stream_scan(const struct leased_facts *facts, struct words *w)
{
	stream_group(facts, w);
	words_add(w, facts->scan);
	words_fmt(w, "%" PRIu64, facts->cfg->message_max);
}

static const struct leased_kind stream_kind = {
	.ops = &queue_stream,
	.role = {
		[LEASED_POP] = LEASED_ROLE("stream_pop", stream_pop, LEASED_KEYS_POP),
		[LEASED_SETTLE] = LEASED_ROLE("stream_settle", stream_consumer, LEASED_KEYS_SETTLE,
		    KEY_QUEUE),
		[LEASED_HAND_OVER] = LEASED_ROLE("stream_hand_over", stream_consumer,
		    LEASED_KEYS_SETTLE, KEY_QUEUE),
		[LEASED_RENEW] = LEASED_ROLE("stream_renew", stream_consumer, LEASED_KEYS_RENEW,
		    KEY_QUEUE),
		[LEASED_TICK] = LEASED_ROLE("stream_tick", stream_scan, LEASED_KEYS_TICK),
		[LEASED_ARM] = LEASED_ROLE("stream_arm", stream_group, LEASED_KEYS_ARM),
		LEASED_ROLES_ANY
	},
	.promotes = true,
};

static struct queue *
stream_open(const struct queue_env *env, struct config *config,
    const struct queue_config *cfg, struct stats *stats,
    const struct queue_events *events, void *arg)
{
	return leased_new(&stream_kind, env, cfg->key, config, cfg, stats, events, arg);
}

const struct queue_ops queue_stream = {
	.open = stream_open,
	LEASED_OPS,
};
