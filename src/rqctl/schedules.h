/*
 * The runs of a schedule.  The configuration has the schedule; Redis has its last tick, in
 * QSCHEDULE, and whether it ran then.  rqctl computes the rest, with Redis' time.
 */
#ifndef RQD_RQCTL_SCHEDULES_H
#define RQD_RQCTL_SCHEDULES_H

#include <stdint.h>

#include "policy/tick.h"
#include "rqctl/ctl.h"

struct ticks {
	int64_t	 last;		/* the last run; TICK_NEVER: it has not run */
	bool	 seen;		/* a daemon has seen the schedule */
	int64_t	 next;
	int64_t	 missed;	/* the latest tick, if no daemon ran it; else TICK_NEVER */
	char	*error;		/* why some of that is not known, or NULL; the caller frees it */
};

/* 0, or -1 after an error was reported. */
int	schedules_ticks(struct ctl *, const struct schedule_config *, double now, struct ticks *)
	    MUSTCHECK;

#endif
