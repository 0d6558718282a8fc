/*
 * Server addresses: "host:port", "[v6]:port", "unix:/path".  Syntax here is
 * what redis.server accepts; a port may be left out (6379).
 */
#pragma once

#include <stdbool.h>

#include "base/util.h"

struct addr {
	char	 *host;		/* NULL for a unix socket; without brackets */
	char	 *path;		/* NULL for TCP */
	int	  port;
};

/* Returns 0, or -1 with *cause: what is wrong and what to write instead. */
int	addr_parse(const char *, struct addr *, char **cause) MUSTCHECK;
void	addr_done(struct addr *);
bool	addr_is_numeric(const struct addr *);		/* needs no resolving */
