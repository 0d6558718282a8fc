/*
 * What several kinds of queue use.
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

double
queue_waited(const struct queue *q, int64_t *taken)
{
	*taken = q->waited.taken;
	return waited_estimate(&q->waited, clock_mono());
}
