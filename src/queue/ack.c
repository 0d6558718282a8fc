/*
 * Kind "ack": at least once, from a Redis list (doc/keys.md).
 */
#include "queue/leased.h"

static const struct leased_kind ack_kind = {
	.ops = &queue_ack,
	.source = "",
	.promotes = true,
};

static struct queue *
ack_open(const struct queue_env *env, const char *key, struct config *config,
    const struct queue_config *cfg, struct stats *stats,
    const struct queue_events *events, void *arg)
{
	return leased_new(&ack_kind, env, key, config, cfg, stats, events, arg);
}

const struct queue_ops queue_ack = {
	.open = ack_open,
	LEASED_OPS,
};
