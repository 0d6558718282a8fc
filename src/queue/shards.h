/*
 * One queue that is spread over several keys (option shards): a struct queue_ops over one
 * queue of kind "ack" for each key.  The engine sees one queue.
 */
#ifndef RQD_QUEUE_SHARDS_H
#define RQD_QUEUE_SHARDS_H

#include "queue/queue.h"

/* As queue_ops.open, for one of the keys, which is borrowed from the configuration. */
typedef struct queue *shard_open_fn(const struct queue_env *, const char *key, struct config *,
    const struct queue_config *, struct stats *, const struct queue_events *, void *arg);

shard_open_fn	ack_open_shard;		/* ack.c */

/* Tests give another function than ack_open_shard(). */
struct queue	*shards_new(shard_open_fn *, const struct queue_env *, struct config *,
		    const struct queue_config *, struct stats *, const struct queue_events *,
		    void *arg);

#endif
