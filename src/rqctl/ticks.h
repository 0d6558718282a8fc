/*
 * What became of the ticks of a schedule.  Schedules stand in the configuration;
 * Redis has only the last tick of each, in QSCHEDULE, and whether it ran then.  The
 * rest is computed, with
 * Redis' time.
 */
#ifndef RQD_RQCTL_TICKS_H
#define RQD_RQCTL_TICKS_H

#include <stdint.h>

#include "policy/tick.h"
#include "rqctl/ctl.h"

struct ticks {
	int64_t	 last;		/* the last run; TICK_NEVER: it has not run */
	bool	 seen;		/* a daemon knows the schedule */
	int64_t	 next;
	int64_t	 missed;	/* the latest tick, which nobody ran; TICK_NEVER: none */
	char	*error;		/* why some of that is not known; NULL: it is; owned */
};

/* Asks; 0, or -1 when the connection is lost, which was said. */
int	ticks_ask(struct ctl *, const struct schedule_config *, double now, struct ticks *) MUSTCHECK;
void	ticks_done(struct ticks *);

#endif
