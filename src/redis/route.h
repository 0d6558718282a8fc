/*
 * Which address to connect to next: a walk through redis.server's list, and
 * through the addresses of each name in it.  One round tries them all.
 */
#ifndef RQD_REDIS_ROUTE_H
#define RQD_REDIS_ROUTE_H

#include "base/buf.h"
#include "redis/addr.h"
#include "redis/redis_options.h"

struct route {
	struct loop	 *loop;
	const struct redis_options *opt;
	void		(*found_fn)(const char *cause, void *);
	void		 *arg;
	size_t		  server;	/* the one being tried: index in opt->servers */
	struct addr	  addr;		/* that server's; empty before route_find() */
	char		  found[ADDR_MAX][INET6_ADDRSTRLEN];
	unsigned	  nfound;	/* addresses of addr.host */
	unsigned	  next;		/* the one being tried */
	struct addr_resolve *resolve;	/* NULL: none is running */
	char		 *cause;	/* the last failure of this server */
	struct buf	  causes;	/* of the servers of this round before it */
};

enum route_find { ROUTE_FOUND, ROUTE_RESOLVING, ROUTE_BAD };

/* found() comes after ROUTE_RESOLVING only: NULL, or why there is no address. */
void	route_init(struct route *, struct loop *, const struct redis_options *,
	    void (*found)(const char *cause, void *), void *arg);
void	route_done(struct route *);

/* Back to the first server. */
void	route_restart(struct route *);

/* Finds the address to try now; ROUTE_BAD sets *cause. */
enum route_find	route_find(struct route *, char **cause);

/* Ends the resolution of a name; found() is not called. */
void	route_cancel(struct route *);

/*
 * The address cannot be used.  Returns true when another one is left in this
 * round.  Otherwise route_causes() says what was wrong with each, until
 * route_restart().
 */
bool	route_failed(struct route *, const char *cause) MUSTCHECK;
const char *route_causes(struct route *);

/* After ROUTE_FOUND or found(NULL): NULL, or the socket's path, or the numeric host. */
const char *route_path(const struct route *);
const char *route_host(const struct route *);
const char *route_server(const struct route *);	/* as configured */

#endif
