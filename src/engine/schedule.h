/*
 * Schedules: each tick pushes one message, once in the whole fleet.
 *
 * There is no leader.  Every daemon has a timer for every schedule, and calls the
 * script schedule.lua, which pushes for the first caller only.  The script and, after
 * the first reply, the daemon judge ticks by Redis' time: a daemon whose clock is wrong
 * does no harm.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "policy/config.h"
#include "policy/tick.h"
#include "queue/queue.h"

struct schedules;

/* env is borrowed; the configuration is referenced. */
struct schedules *schedules_new(const struct queue_env *, struct config *);
void		 schedules_free(struct schedules *);	/* any time; NULL is fine */

/* Takes the schedules of another configuration; equal names keep their number of runs. */
void		 schedules_reconfigure(struct schedules *, struct config *);

/* The state of one schedule, for metrics and the page. */
struct schedule_state {
	const struct schedule_config *cfg;	/* borrowed until the next reconfiguration */
	int64_t		 last;		/* the latest that ran; TICK_NEVER: none, or unknown */
	int64_t		 next;		/* the tick waited for, or tried; TICK_NEVER: none */
	/* 1: no daemon ran the latest settled tick in time; -1: not known. */
	int		 missed;
	int64_t		 missed_at;	/* that tick, if missed is 1 */
	uint64_t	 runs;		/* pushed by this daemon */
};
size_t		 schedules_count(const struct schedules *);
struct schedule_state	schedules_get(const struct schedules *, size_t);

/* Sends no more requests; one that was sent may still push. */
void		 schedules_stop(struct schedules *);

void		 schedules_conn_up(struct schedules *);
void		 schedules_conn_down(struct schedules *);
