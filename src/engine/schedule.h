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

#include "policy/config.h"
#include "queue/queue.h"

struct schedules;

/* env is borrowed; the configuration is referenced. */
struct schedules *schedules_new(const struct queue_env *, struct config *);
void		 schedules_free(struct schedules *);	/* any time; NULL is fine */

/* Those of another configuration instead. */
void		 schedules_reconfigure(struct schedules *, struct config *);

/* No more pushes. */
void		 schedules_stop(struct schedules *);

void		 schedules_conn_up(struct schedules *);
void		 schedules_conn_down(struct schedules *);

#endif
