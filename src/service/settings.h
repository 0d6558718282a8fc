/*
 * Settings of a configuration that are put into force at the start and at a reload: the log,
 * and limits of the connections to Redis that follow from the queues.
 */
#pragma once

#include <stdbool.h>

#include "policy/config.h"
#include "redis/nodes.h"

/*
 * The section log { }.  debug: whatever it says, the level is debug.  A target that cannot be
 * opened is logged, and the log stays where it is.
 */
void	settings_log(const struct log_config *, bool debug);
void	settings_log_reopen(void);	/* the file: after a rotation */

/* The largest reply, the longest backoff and the longest silence. */
void	settings_limits(const struct config *, struct nodes *);
