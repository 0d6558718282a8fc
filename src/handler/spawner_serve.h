/* The spawner's own process; spawner.h describes its purpose. */
#pragma once

#include "base/util.h"
#include "handler/spawner.h"

/*
 * Obeys the orders from the two sockets (spawner_wire.h) until the main process, our parent,
 * has ended.
 */
void	spawner_serve(pid_t main, int orders, int files, spawner_loader *, void *arg)
	    NORETURN;
