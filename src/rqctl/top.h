/* rqctl status -w: the table of queues, again and again. */
#pragma once

#include "base/clock.h"
#include "rqctl/ctl.h"

/*
 * On a terminal, shows a full screen with keys, until q.  Elsewhere, prints a table each time.
 * An error that was reported ends it only before the first table.
 */
void	top_run(struct ctl *, usec_t interval);
