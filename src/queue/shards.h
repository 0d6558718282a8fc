/*
 * One queue that is spread over several keys (option shards).  It has one queue of kind
 * "ack" for each key; the engine sees a single queue.
 */
#pragma once

#include "queue/queue.h"

/* Like queue_ops.open, for one of the keys; the key is borrowed from the configuration. */
typedef struct queue *shard_open_fn(const struct queue_env *, const char *key, struct config *,
    const struct queue_config *, struct stats *, const struct queue_events *, void *arg);

shard_open_fn	ack_open_shard;		/* ack.c */

/* queue_ops.open of such a queue, with ack_open_shard(); tests pass another function. */
struct queue	*shards_new(shard_open_fn *, const struct queue_env *, struct config *,
		    const struct queue_config *, struct stats *, const struct queue_events *,
		    void *arg);
