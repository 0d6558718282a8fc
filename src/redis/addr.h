/*
 * Server addresses: "host:port", "[v6]:port", "unix:/path".  Syntax here is
 * what redis.server accepts; a port may be left out (6379).
 *
 * A short-lived child process resolves a name, at every connect: getaddrinfo(3)
 * blocks, and must see changes of resolv.conf.  A numeric host needs none.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>

#include "base/util.h"
#include "loop/loop.h"

struct addr {
	char	 *host;		/* NULL for a unix socket; without brackets */
	char	 *path;		/* NULL for TCP */
	int	  port;
};

/* Returns 0, or -1 with *cause: what is wrong and what to write instead. */
int	addr_parse(const char *, struct addr *, char **cause) MUSTCHECK;
void	addr_done(struct addr *);
bool	addr_is_numeric(const struct addr *);		/* needs no resolving */

/*
 * Finds the host's numeric addresses.  fn gets up to ADDR_MAX of them as text,
 * or n = 0 and a cause, never from inside addr_resolve().  addr_resolve_cancel()
 * ends it without a callback.
 */
#define ADDR_MAX	8
/*
 * Like addr_resolve(), but blocks: returns the number of addresses, or 0 with *cause
 * (static).
 */
unsigned addr_lookup(const char *host, char (*)[INET6_ADDRSTRLEN], const char **cause);

struct addr_resolve;
struct addr_resolve *addr_resolve(struct loop *, const char *host,
	    void (*fn)(char (*)[INET6_ADDRSTRLEN], unsigned n, const char *cause, void *),
	    void *arg);
void	addr_resolve_cancel(struct addr_resolve *);
