/*
 * The daemons that live (service/fleet.h), in two round trips.
 */
#ifndef RQD_RQCTL_FLEET_H
#define RQD_RQCTL_FLEET_H

#include "rqctl/ctl.h"
#include "service/fleet.h"

/* 0, or -1 after an error was said. */
int	fleet_read(struct ctl *, struct fleet *) MUSTCHECK;

#endif
