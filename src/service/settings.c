/* Settings put into force; see settings.h. */
#include "service/settings.h"

#include <stdlib.h>

#include "base/log.h"

#define RENEW_MAX	(10 * SEC)	/* owners renew as often, or every third of the lease */
#define RENEW_SLACK	(500 * MSEC)	/* for a renewal to arrive */
#define REPLY_SHARE	((size_t)64 * 1024 * 1024)

/* -- the log -------------------------------------------------------------------- */

void
settings_log(const struct log_config *config, bool debug)
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
settings_log_reopen(void)
{
	char *cause = NULL;

	if (log_reopen(&cause) == -1) {
		log_event(LOG_LV_ERROR, "warning", NULL, LF_STR("error", cause),
		    LF_STR("warning", "the log file could not be reopened"));
		free(cause);
	}
}

/* -- limits --------------------------------------------------------------------- */

/*
 * The largest reply: the largest message, and a call's bytes of others.
 *
 * The longest backoff: a third of the shortest lease.  After an outage other daemons wait for
 * two renewal intervals before they take expired leases.  This daemon must have reconnected
 * and renewed by then.
 *
 * The longest silence is how long Redis may have answered no daemon without harm.  A lease
 * that was renewed a third of it before holds for two thirds more, less the time of the next
 * renewal.
 */
void
settings_limits(const struct config *config, struct nodes *nodes)
{
	uint64_t message = 0;
	usec_t third = HOUR, interval;

	for (size_t i = 0; i < config->nqueues; i++) {
		if (config->queues[i]->message_max > message)
			message = config->queues[i]->message_max;
		if (config->queues[i]->lease / 3 < third)
			third = config->queues[i]->lease / 3;
	}
	interval = third < RENEW_MAX ? third : RENEW_MAX;
	nodes_set_limits(nodes, REPLY_SHARE + (size_t)message, third, 2 * interval - RENEW_SLACK);
}
