/*
 * Chooses the address to connect to next.  It walks through the list of redis.server,
 * and through the addresses of each name in it; one round tries them all.  With
 * Sentinels the list is the one server that they name; each round asks them again.
 */
#pragma once

#include "base/buf.h"
#include "redis/addr.h"
#include "redis/redis_options.h"
#include "redis/sentinel.h"

struct address_walk {
	struct loop	 *loop;
	const struct redis_options *opt;
	void		(*found_fn)(const char *cause, void *);
	/* With Sentinels: they name a master that is not walk_server(). */
	void		(*switched_fn)(const char *master, void *);
	void		 *arg;
	struct sentinel_client client;	/* with Sentinels only */
	char		 *master;	/* the master that they named; NULL: none yet */
	size_t		  server;	/* the one being tried: index in opt->servers */
	struct addr	  addr;		/* that server's; empty before walk_find() */
	char		  found[ADDR_MAX][INET6_ADDRSTRLEN];	/* unless addr has a path */
	unsigned	  nfound;	/* addresses of addr.host */
	unsigned	  next;		/* the one being tried */
	struct addr_resolve *resolve;	/* NULL: none is running */
	char		 *cause;	/* the last failure of this server */
	struct buf	  causes;	/* of the earlier servers in this round */
};

enum walk_find { WALK_FOUND, WALK_RESOLVING, WALK_BAD };

/* found() comes after WALK_RESOLVING only: NULL, or why there is no address. */
void	walk_init(struct address_walk *, struct loop *, const struct redis_options *,
	    void (*found)(const char *cause, void *),
	    void (*switched)(const char *master, void *), void *arg);
void	walk_done(struct address_walk *);

/* Uses the Sentinels no more, so that they may be freed; only walk_done() may follow. */
void	walk_leave(struct address_walk *);

/* Back to the first server. */
void	walk_restart(struct address_walk *);

/* Finds the address to try now; WALK_BAD sets *cause. */
enum walk_find	walk_find(struct address_walk *, char **cause);

/* Ends the resolution of a name; found() is not called. */
void	walk_cancel(struct address_walk *);

/*
 * The address cannot be used.  Returns true if another one is left in this round.
 * Otherwise `causes` has the failure of each server, until walk_restart().
 */
bool	walk_failed(struct address_walk *, const char *cause) MUSTCHECK;

/* The server as configured, or as named; NULL: the Sentinels have named none. */
const char *walk_server(const struct address_walk *);
