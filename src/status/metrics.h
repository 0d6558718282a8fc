/*
 * /metrics: Prometheus' text format, version 0.0.4.
 *
 * A new metric is a member of struct metrics, filled by metrics_collect(), and a row of the table
 * in metrics.c.  A new counter of queues is a row of base/stats.c only.  Names and labels never
 * change; rqd-metrics(7) lists them, and tests/lint/80-docs.t compares.
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "base/stats.h"
#include "engine/consumer.h"
#include "engine/schedule.h"
#include "queue/depth.h"
#include "status/survey.h"
#include "status/view.h"

#define METRICS_TYPE	"text/plain; version=0.0.4; charset=utf-8"

struct metrics_queue {
	const char		*name;
	const struct stats	*stats;
	enum consumer_block	 block;
	const struct depth	*depth;		/* NULL: not known now */
	double			 running;
	double			 concurrency;
	double			 oldest;	/* seconds in flight; 0: nothing is */
	double			 stalled;	/* seconds; NAN: not known now */
	double			 latency;	/* seconds; NAN: not known */
	double			 cpu;		/* seconds that handlers used */
	double			 maxrss;	/* bytes, of a handler; 0: none has ended lately */
};

/* The kernel's figures of this process; 0 where it does not tell one. */
struct own_usage {
	double		cpu;		/* seconds, user and system; children not counted */
	double		resident;	/* bytes */
	double		virtual;
	double		fds;
	double		max_fds;
};

struct metrics {
	const char		*version;
	const char		*config_hash;
	const char		*state;		/* as in struct view */
	double			 reload_ok;	/* 1: what is in the file is in force */
	double			 redis_up;
	double			 redis_writable;	/* NAN: not known */
	double			 reconnects;
	double			 outstanding;
	double			 handlers;
	double			 max_handlers;
	double			 log_dropped;
	double			 started;	/* seconds since 1970 */
	struct own_usage	 process;
	const struct metrics_queue *queues;
	size_t			 nqueues;
	const struct schedule_state *schedules;
	size_t			 nschedules;
};

/* Appends all of it; survey NULL: Redis does not answer. */
void	metrics_collect(const struct view *, const struct survey_result *,
	    struct buf *);
void	metrics_text(const struct metrics *, struct buf *);

/* The value of a label, without quotes: \, " and newline escaped, always UTF-8. */
void	metrics_label(const char *, struct buf *);
