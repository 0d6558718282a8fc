/*
 * The section log { } put into force.
 */
#ifndef RQD_SERVICE_LOG_CONFIG_H
#define RQD_SERVICE_LOG_CONFIG_H

#include <stdbool.h>

#include "policy/config.h"

/* debug: whatever the section says, the level is debug.  Failures are logged. */
void	log_config_apply(const struct log_config *, bool debug);

void	log_config_reopen(void);	/* the file: after a rotation */

#endif
