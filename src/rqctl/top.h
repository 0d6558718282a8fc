/* rqctl status -w: the table of queues, again and again. */
#pragma once

#include "base/clock.h"
#include "rqctl/ctl.h"

/*
 * On a terminal, shows a full screen with keys, until q.  Elsewhere, prints a table at each
 * interval.  Reports an error and returns if it cannot connect at first; later it shows errors
 * and tries again.
 */
void	top_run(struct ctl *, usec_t interval);
