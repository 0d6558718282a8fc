/*
 * TLS to Redis, where hiredis was built with it.
 */
#ifndef RQD_REDIS_TLS_H
#define RQD_REDIS_TLS_H

#include "base/util.h"
#include "redis/redis_options.h"

struct redisContext;

/*
 * Begins TLS on a connection, also one that is still being made.  The server's
 * certificate must be for opt->tls_name, or else for host, a name or an address;
 * host NULL (a unix socket) and no tls_name: for anybody.  0, or -1 with *cause.
 */
int	tls_start(struct redisContext *, const struct redis_options *, const char *host,
	    char **cause) MUSTCHECK;

#endif
