/*
 * Limits of the connection to Redis that follow from the configured queues.
 */
#ifndef RQD_SERVICE_LIMITS_H
#define RQD_SERVICE_LIMITS_H

#include <stddef.h>

#include "policy/config.h"

/* Bytes; for conn_set_reply_max(). */
size_t	limits_reply(const struct config *);

/* For conn_set_backoff_max(). */
usec_t	limits_backoff(const struct config *);

/* For conn_set_silence_max(). */
usec_t	limits_silence(const struct config *);

#endif
