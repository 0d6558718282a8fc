/* The daemon: starts everything in order, obeys signals, and stops it in order (rqd(8)). */
#pragma once

#include <stdbool.h>

#include "config/load.h"
#include "policy/config.h"

struct daemon_options {
	const struct config_source	*source;	/* read again at SIGHUP; borrowed */
	bool	 until_empty;	/* drain once all queues are empty */
	bool	 ignores_hangup;	/* -q under nohup(1) */
	bool	 debug;	/* -v: level debug whatever the file says */
	const struct config_report	*report;	/* warnings to log at the start; borrowed */
	struct spawner	*spawner;	/* daemon_run() stops it */
};

/*
 * Runs until a drain is over.  Takes its own reference of the configuration.  Returns an
 * exit status.
 */
int	daemon_run(const struct daemon_options *, struct config *) MUSTCHECK;
