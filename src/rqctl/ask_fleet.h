/*
 * The daemons that live (status/fleet.h), in two round trips.
 */
#ifndef RQD_RQCTL_ASK_FLEET_H
#define RQD_RQCTL_ASK_FLEET_H

#include "rqctl/ctl.h"
#include "status/fleet.h"

/* 0, or -1 after an error was said. */
int	fleet_read(struct ctl *, struct fleet *) MUSTCHECK;

#endif
