/*
 * /metrics: Prometheus' text format, version 0.0.4.
 *
 * Plain numbers in, text out: who gathers them is monitor.c.  Names and labels are
 * for ever; rqd(8), Metrics, lists them, and tests/lint/80-docs.t compares.
 */
#ifndef RQD_STATUS_METRICS_H
#define RQD_STATUS_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/stats.h"
#include "engine/consumer.h"
#include "engine/schedule.h"
#include "queue/depth.h"
#include "status/own_usage.h"

#define METRICS_TYPE	"text/plain; version=0.0.4; charset=utf-8"

struct metrics_queue {
	const char		*name;
	const struct stats	*stats;
	enum consumer_block	 block;
	unsigned		 running;
	int			 concurrency;
	double			 oldest;	/* seconds in hand; 0: nothing is */
	const struct depth	*depth;		/* NULL: not known now */
	double			 stalled;	/* seconds; valid where depth is known */
};

struct metrics {
	const char		*version;
	const char		*config_hash;
	const char		*state;		/* as in struct view */
	bool			 reload_failed;
	bool			 redis_up;
	uint64_t		 reconnects;
	unsigned		 outstanding;
	unsigned		 handlers;
	int			 max_handlers;
	uint64_t		 log_dropped;
	wall_t			 started;
	struct own_usage		 process;
	const struct metrics_queue *queues;
	size_t			 nqueues;
	const struct schedule_state *schedules;
	size_t			 nschedules;
};

void	metrics_text(const struct metrics *, struct buf *);

/* The value of a label, without quotes: \, " and newline escaped, always UTF-8. */
void	metrics_label(const char *, struct buf *);

#endif
