/*
 * Schedules: each tick pushes one message, once in the whole fleet.
 *
 * There is no leader: every daemon has a timer for every schedule, and asks
 * Redis by a script (schedule.lua) in which the first one wins.  Ticks are
 * judged by Redis' time, here as well as there, so that a daemon whose clock is
 * wrong works as any other.
 */
#ifndef RQD_ENGINE_SCHEDULE_H
#define RQD_ENGINE_SCHEDULE_H

#include <stddef.h>
#include <stdint.h>

#include "policy/config.h"
#include "policy/tick.h"
#include "queue/queue.h"

struct schedules;

/* env is borrowed; the configuration is referenced. */
struct schedules *schedules_new(const struct queue_env *, struct config *);
void		 schedules_free(struct schedules *);	/* any time; NULL is fine */

/* Those of another configuration instead; of equal names the number of runs is kept. */
void		 schedules_reconfigure(struct schedules *, struct config *);

/* The state of one schedule, for metrics. */
struct schedule_state {
	const struct schedule_config *cfg;	/* borrowed until the next reconfiguration */
	int64_t		 last;		/* the last tick in QSCHEDULE; TICK_NEVER: not known */
	int64_t		 next;		/* the tick waited for, or tried; TICK_NEVER: none */
	/* 1: the last tick has passed, and no daemon ran it in time; -1: not known. */
	int		 missed;
	uint64_t	 runs;		/* pushed by this daemon */
};
size_t		 schedules_count(const struct schedules *);
struct schedule_state	schedules_get(const struct schedules *, size_t);

/* No more pushes. */
void		 schedules_stop(struct schedules *);

void		 schedules_conn_up(struct schedules *);
void		 schedules_conn_down(struct schedules *);

#endif
