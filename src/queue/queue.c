/*
 * Passes the calls of a queue on to its kind.
 */
#include "queue/queue.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/util.h"
#include "redis/words.h"

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
queue_add_counters(const struct stats *s, struct words *w)
{
	for (int i = 0; i < STAT_MAX; i++) {
		if (s->n[i] == s->sent[i])
			continue;
		words_add(w, stats_name((enum stat)i));
		words_fmt(w, "%" PRIu64, s->n[i] - s->sent[i]);
	}
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
queue_defer_fetch(struct queue *q)
{
	if (q->ops->defer_fetch != NULL)
		q->ops->defer_fetch(q);
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

void
queue_renew(struct queue *q)
{
	if (q->ops->renew != NULL)
		q->ops->renew(q);
}

unsigned
queue_held(const struct queue *q)
{
	return q->ops->held != NULL ? q->ops->held(q) : 0;
}

const struct arrivals *
queue_arrivals(const struct queue *q)
{
	return q->ops->arrivals != NULL ? q->ops->arrivals(q) : NULL;
}

bool
queue_is_up_in_part(const struct queue *q)
{
	return q->ops->is_up != NULL && q->ops->is_up(q);
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
