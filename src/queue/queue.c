/*
 * The table of kinds, and the calls that go to the kind of a queue.
 */
#include "queue/queue.h"

#include <stdarg.h>
#include <stdlib.h>

#include "base/util.h"

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
	size_t i;

	for (i = 0; i < ARRAY_LEN(queue_kinds); i++) {
		o = queue_kinds[i];
		if (o == NULL || o->open == NULL || o->reconfigure == NULL ||
		    o->conn_up == NULL || o->conn_down == NULL || o->want == NULL ||
		    o->fetch == NULL || o->settle == NULL || o->tick == NULL ||
		    o->is_empty == NULL || o->close == NULL || o->free == NULL)
			fatalx("queue kind %zu has an empty slot", i);
	}
}

void
queue_warn(struct queue *q, const char *fmt, ...)
{
	struct tick_report report = { .warning = NULL };
	char *text;
	va_list ap;

	va_start(ap, fmt);
	report.warning = text = xvasprintf(fmt, ap);
	va_end(ap);
	q->events->ticked(&report, q->arg);
	free(text);
}

void
queue_reconfigure(struct queue *q, struct config *config, const struct queue_config *cfg)
{
	q->ops->reconfigure(q, config, cfg);
}

void
queue_conn_up(struct queue *q, const struct conn_server *server)
{
	q->ops->conn_up(q, server);
}

void
queue_conn_down(struct queue *q)
{
	q->ops->conn_down(q);
}

void
queue_want(struct queue *q, bool wanted)
{
	q->ops->want(q, wanted);
}

void
queue_fetch(struct queue *q, unsigned n, enum turn turn)
{
	q->ops->fetch(q, n, turn);
}

void
queue_settle(struct queue *q, struct message *msg, const struct verdict *verdict,
    struct result *result)
{
	q->ops->settle(q, msg, verdict, result);
}

void
queue_tick(struct queue *q)
{
	q->ops->tick(q);
}

bool
queue_is_empty(const struct queue *q)
{
	return q->ops->is_empty(q);
}

void
queue_close(struct queue *q)
{
	q->ops->close(q);
}

void
queue_free(struct queue *q)
{
	if (q != NULL)
		q->ops->free(q);
}
