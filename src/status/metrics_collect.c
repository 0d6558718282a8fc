/*
 * The numbers of /metrics: from the daemon, and from a survey of Redis.
 */
#include "status/metrics_collect.h"

#include <math.h>
#include <stdlib.h>

#include <config.h>

#include "base/log.h"
#include "base/util.h"
#include "status/metrics.h"
#include "status/queue_state.h"

static void
older(const struct message *msg, pid_t pid UNUSED, const char *progress UNUSED, usec_t age,
    void *arg)
{
	usec_t *oldest = arg;

	if (msg != NULL && age > *oldest)
		*oldest = age;
}

static struct metrics_queue
queue_metrics(struct stalls *stalls, const struct consumer *c, const struct survey_result *r)
{
	const struct queue_config *cfg = consumer_config(c);
	const struct survey_queue *q = r != NULL ? survey_find(r, cfg->key) : NULL;
	struct latency l = { LATENCY_UNKNOWN, 0 };
	usec_t oldest = 0;

	if (consumer_arrivals(c) != NULL)
		l = arrivals_latency(consumer_arrivals(c), clock_mono());
	if (q != NULL)
		l = state_latency_with(cfg->kind, &q->depth, l);
	consumer_each(c, older, &oldest);
	return (struct metrics_queue){
		.name = cfg->name, .stats = consumer_stats(c), .block = consumer_block(c),
		.depth = q != NULL ? &q->depth : NULL, .running = consumer_in_flight(c),
		.concurrency = config_most(cfg), .oldest = clock_seconds(oldest),
		.stalled = q == NULL ? NAN :
		    clock_seconds(stall_length(stalls_get(stalls, cfg->key), clock_mono())),
		.latency = q != NULL && l.how == LATENCY_KNOWN ? l.seconds : NAN,
		.latency_least = q != NULL && l.how == LATENCY_LEAST ? l.seconds : NAN,
	};
}

/*
 * Whether another consumer has replaced this one: after a change of its key a queue has
 * two, until the old one is drained.
 */
static bool
is_replaced(const struct view *v, const struct consumer *c)
{
	const struct queue_config *cfg = consumer_config(c);
	const struct queue_config *now = config_queue(v->config, cfg->name);

	return now != NULL && now != cfg;
}

void
metrics_collect(const struct view *v, struct stalls *stalls, const struct survey_result *r,
    struct buf *out)
{
	struct metrics_queue *queues = xcalloc(v->nconsumers + 1, sizeof(*queues));
	size_t i, nschedules = schedules_count(v->schedules);
	struct schedule_state *schedules = xcalloc(nschedules + 1, sizeof(*schedules));
	struct metrics all = {
		.version = PACKAGE_VERSION, .config_hash = v->config->hash, .state = v->state,
		.reload_ok = v->reload_error[0] == '\0', .redis_up = nodes_are_ready(v->nodes),
		.reconnects = (double)nodes_reconnects(v->nodes),
		.outstanding = nodes_outstanding(v->nodes),
		.handlers = dispatcher_taken(v->dispatcher),
		.max_handlers = v->config->max_handlers, .log_dropped = (double)log_dropped(),
		.started = clock_seconds(v->started), .queues = queues,
		.schedules = schedules, .nschedules = nschedules,
	};

	metrics_usage(&all.process);
	for (i = 0; i < v->nconsumers; i++) {
		if (!is_replaced(v, v->consumers[i]))
			queues[all.nqueues++] = queue_metrics(stalls, v->consumers[i], r);
	}
	for (i = 0; i < nschedules; i++)
		schedules[i] = schedules_get(v->schedules, i);
	metrics_text(&all, out);
	free(schedules);
	free(queues);
}
