/*
 * TLS to Redis, if hiredis was built with it.
 */
#pragma once

#include "base/util.h"
#include "redis/redis_options.h"

struct redisContext;

/*
 * Begins TLS on a connection, which may still be connecting.  The server's certificate
 * must be for opt->tls_name; if that is empty, for host, a name or an address.  If host
 * is NULL too (a unix socket), it may be for any name.  Returns 0, or -1 with *cause.
 */
int	tls_start(struct redisContext *, const struct redis_options *, const char *host,
	    char **cause) MUSTCHECK;
