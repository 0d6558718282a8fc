/*
 * The log, as configured.  Where its target cannot be opened it stays where it is.
 */
#include "service/log_config.h"

#include <stdlib.h>

#include "base/log.h"

void
log_config_apply(const struct log_config *config, bool debug)
{
	char *cause = NULL;

	log_set_format(config->format);
	log_set_level(debug ? LOG_LV_DEBUG : config->level);
	if (log_open(config->target, &cause) == -1) {
		log_event(LOG_LV_ERROR, "warning", NULL,
		    LF_STR("target", config->target), LF_STR("error", cause),
		    LF_STR("warning", "rqd keeps the old log target"));
		free(cause);
	}
}

void
log_config_reopen(void)
{
	char *cause = NULL;

	if (log_reopen(&cause) == -1) {
		log_event(LOG_LV_ERROR, "warning", NULL, LF_STR("error", cause),
		    LF_STR("warning", "the log file could not be reopened"));
		free(cause);
	}
}
