/*
 * Limits of the connection; see limits.h.
 */
#include "service/limits.h"

#define REPLY_SHARE	((size_t)64 * 1024 * 1024)

/* Larger than any legitimate reply: the largest message, and a call's bytes of others. */
size_t
limits_reply(const struct config *config)
{
	uint64_t most = 0;
	size_t i;

	for (i = 0; i < config->nqueues; i++) {
		if (config->queues[i]->message_max > most)
			most = config->queues[i]->message_max;
	}
	return REPLY_SHARE + (size_t)most;
}

/*
 * After an outage other daemons wait for two renewal intervals before they take
 * expired leases.  This daemon must have reconnected and renewed by then.
 */
usec_t
limits_backoff(const struct config *config)
{
	usec_t most = HOUR;
	size_t i;

	for (i = 0; i < config->nqueues; i++) {
		if (config->queues[i]->lease / 3 < most)
			most = config->queues[i]->lease / 3;
	}
	return most;
}
