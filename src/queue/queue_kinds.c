/*
 * The table of the kinds of queue.  It is not in queue.c, because the kinds call that
 * file.
 */
#include <stdlib.h>

#include "base/util.h"
#include "queue/queue.h"

static const struct queue_ops *const queue_kinds[] = {
	[KIND_ACK] = &queue_ack,
	[KIND_UNIQUE] = &queue_unique,
	[KIND_STREAM] = &queue_stream,
	[KIND_LIST] = &queue_list,
	[KIND_CHANNEL] = &queue_channel,
	[KIND_PATTERN] = &queue_channel,
	[KIND_EXPIRED] = &queue_expired,
};

const struct queue_ops *
queue_ops(enum kind kind)
{
	return queue_kinds[kind];
}

const struct queue_ops *
queue_ops_of(const struct queue_config *cfg)
{
	return config_is_sharded(cfg) ? &queue_shards : queue_ops(cfg->kind);
}

static bool
is_complete(const struct queue_ops *o)
{
	return o != NULL && o->open != NULL && o->reconfigure != NULL && o->conn_up != NULL &&
	    o->conn_down != NULL && o->want != NULL && o->fetch != NULL && o->settle != NULL &&
	    o->tick != NULL && o->is_empty != NULL && o->close != NULL && o->free != NULL;
}

void
queue_check_ops(void)
{
	for (size_t i = 0; i < ARRAY_LEN(queue_kinds); i++) {
		if (!is_complete(queue_kinds[i]))
			fatalx("queue kind %zu has an empty slot", i);
	}
	if (!is_complete(&queue_shards))
		fatalx("the queue of shards has an empty slot");
}
