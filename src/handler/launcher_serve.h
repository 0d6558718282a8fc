/*
 * The launcher's own process, which has the privileges; launcher.h describes its
 * purpose.
 */
#pragma once

#include "base/util.h"
#include "handler/launch_wire.h"
#include "handler/launcher.h"

/*
 * Obeys the orders from the two sockets (launch_wire.h) until the main process has
 * ended.  The slots are shared with the main process.
 */
void	launcher_serve(int orders, int files, struct launch_slot *, const struct launcher_ops *,
	    void *arg) NORETURN;
