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

/* Larger than any legitimate reply: the largest message, and a call's bytes of others. */
static size_t
limits_reply(const struct config *config)
{
	uint64_t most = 0;

	for (size_t i = 0; i < config->nqueues; i++) {
		if (config->queues[i]->message_max > most)
			most = config->queues[i]->message_max;
	}
	return REPLY_SHARE + (size_t)most;
}

/*
 * After an outage other daemons wait for two renewal intervals before they take
 * expired leases.  This daemon must have reconnected and renewed by then.
 */
static usec_t
limits_backoff(const struct config *config)
{
	usec_t most = HOUR;

	for (size_t i = 0; i < config->nqueues; i++) {
		if (config->queues[i]->lease / 3 < most)
			most = config->queues[i]->lease / 3;
	}
	return most;
}

/*
 * How long Redis may have answered no daemon without harm.  A lease that was renewed a
 * third of it before holds for two thirds more, less the time of the next renewal.
 */
static usec_t
limits_silence(const struct config *config)
{
	usec_t third = limits_backoff(config);

	return 2 * (third < RENEW_MAX ? third : RENEW_MAX) - RENEW_SLACK;
}

void
settings_limits(const struct config *config, struct nodes *nodes)
{
	nodes_set_limits(nodes, limits_reply(config), limits_backoff(config),
	    limits_silence(config));
}
