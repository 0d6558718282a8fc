/*
 * Limits of the connections to Redis that follow from the configured queues.
 */
#ifndef RQD_SERVICE_LIMITS_H
#define RQD_SERVICE_LIMITS_H

#include "policy/config.h"
#include "redis/bulk.h"
#include "redis/conn.h"

/* The largest reply, the longest backoff and the longest silence; at start and reload. */
void	limits_apply(const struct config *, struct conn *, struct bulk *);

#endif
