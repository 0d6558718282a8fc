/*
 * The table of the kinds of queue.  It is not in queue.c, because the kinds call that
 * file.
 */
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
