/*
 * The table of kinds of queue.  It stands apart from queue.c, which the kinds call.
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

void
queue_check_ops(void)
{
	const struct queue_ops *o;

	for (size_t i = 0; i < ARRAY_LEN(queue_kinds); i++) {
		o = queue_kinds[i];
		if (o == NULL || o->open == NULL || o->reconfigure == NULL ||
		    o->conn_up == NULL || o->conn_down == NULL || o->want == NULL ||
		    o->fetch == NULL || o->settle == NULL || o->tick == NULL ||
		    o->is_empty == NULL || o->close == NULL || o->free == NULL)
			fatalx("queue kind %zu has an empty slot", i);
	}
}
