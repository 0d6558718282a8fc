/*
 * Server addresses: "host:port", "[v6]:port", "unix:/path".  Syntax here is
 * what redis.server accepts; a port may be left out (6379).
 */
#pragma once

#include <stdbool.h>

#include "base/util.h"

/*
 * Room for any of them as text: a host name of 253 bytes, a colon, a port.  A socket's path has at
 * most 107.
 */
#define ADDR_TEXT_MAX	(253 + sizeof(":65535"))

struct addr {
	char	 *host;		/* NULL for a unix socket; without brackets */
	char	 *path;		/* NULL for TCP */
	int	  port;
};

/* Returns 0, or -1 with *cause: what is wrong and what to write instead. */
int	addr_parse(const char *, struct addr *, char **cause) MUSTCHECK;
void	addr_done(struct addr *);
bool	addr_is_numeric(const struct addr *);		/* needs no resolving */
