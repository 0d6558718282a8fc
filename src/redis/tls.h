/*
 * TLS to Redis, if hiredis was built with it.
 */
#pragma once

#include "base/util.h"
#include "redis/redis_options.h"

struct redisContext;

/* What OpenSSL has said of a connection; zero it before tls_start(). */
struct tls_trouble {
	long		 refused;	/* why the server's certificate is not accepted; 0: it is */
	int		 alert;		/* the last one from the server; 0: none */
	bool		 no_tls;	/* the server does not speak TLS */
};

/*
 * Begins TLS on a connection, which may still be connecting.  The server's certificate
 * must be for opt->tls_name; if that is empty, for host, a name or an address.  If host
 * is NULL too (a unix socket), it may be for any name.  The trouble lives as long as the
 * connection.  Returns 0, or -1 with *cause.
 */
int	tls_start(struct redisContext *, const struct redis_options *, const char *host,
	    struct tls_trouble *, char **cause) MUSTCHECK;
/* Why the connection failed, and what to write instead; the caller frees it.  NULL: no reason. */
char	*tls_cause(const struct tls_trouble *, const struct redis_options *, const char *host);
