/*
 * What is known of queues at one moment: three round trips (index of
 * heartbeats, heartbeats, depths), whatever the number of queues and messages.
 */
#ifndef RQD_RQCTL_PICTURE_H
#define RQD_RQCTL_PICTURE_H

#include "base/clock.h"
#include "rqctl/ask_depth.h"
#include "rqctl/ask_fleet.h"
#include "rqctl/ctl.h"

struct picture {
	struct fleet	 fleet;
	struct target	*targets;	/* n of each */
	struct depth	*depths;
	struct service	*services;
	size_t		 n;
	wall_t		 taken;
};

/*
 * The queues that are the verb's arguments, or all of the configuration; those
 * that daemons serve where there is neither.  0, or -1 after an error was said.
 */
int	picture_take(struct ctl *, struct picture *) MUSTCHECK;
void	picture_done(struct picture *);

#endif
