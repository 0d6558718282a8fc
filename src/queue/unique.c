/*
 * Kind "unique": at least once, one at a time per id, from a zset of ids scored by the
 * time when each is due.
 *
 * It is built on leased.c; only its scripts are different, see lua/part/unique.lua.
 * The zset holds waiting and delayed messages.  So there is no QDELAYED, and the tick
 * has nothing to promote.
 */
#include "queue/leased.h"

static const struct leased_kind unique_kind = {
	.ops = &queue_unique,
	.role = {
		[LEASED_POP] = LEASED_ROLE("unique_pop", NULL, LEASED_KEYS_POP),
		[LEASED_SETTLE] = LEASED_ROLE("unique_settle", NULL, LEASED_KEYS_SETTLE, KEY_QUEUE),
		[LEASED_HAND_OVER] = LEASED_ROLE("unique_hand_over", NULL, LEASED_KEYS_SETTLE,
		    KEY_QUEUE),
		[LEASED_RENEW] = LEASED_ROLE("renew", NULL, LEASED_KEYS_RENEW),
		[LEASED_TICK] = LEASED_ROLE("unique_tick", NULL, KEY_QUEUE, KEY_BACKUP, KEY_CONTEXT,
		    KEY_RETRY, KEY_DELIVERY, KEY_STATS),
		[LEASED_ARM] = LEASED_ROLE("unique_arm", NULL, KEY_QUEUE, KEY_RETRY, KEY_PAUSED),
		LEASED_ROLES_ANY
	},
};

static struct queue *
unique_open(const struct queue_env *env, struct config *config,
    const struct queue_config *cfg, struct stats *stats,
    const struct queue_events *events, void *arg)
{
	return leased_new(&unique_kind, env, cfg->key, config, cfg, stats, events, arg);
}

const struct queue_ops queue_unique = {
	.open = unique_open,
	LEASED_OPS,
};
