/*
 * Kind "unique": at least once, one at a time per id, from a zset of ids scored by the
 * time when each is due.
 *
 * It is built on leased.c; its source is a zset, see lua/part/unique.lua.
 * The zset holds waiting and delayed messages.  So there is no QDELAYED, and the tick
 * has nothing to promote.
 */
#include "queue/leased.h"

static const struct leased_kind unique_kind = {
	.ops = &queue_unique,
	.source = "unique_",
};

static struct queue *
unique_open(const struct queue_env *env, const char *key, struct config *config,
    const struct queue_config *cfg, struct stats *stats,
    const struct queue_events *events, void *arg)
{
	return leased_new(&unique_kind, env, key, config, cfg, stats, events, arg);
}

const struct queue_ops queue_unique = {
	.open = unique_open,
	LEASED_OPS,
};
