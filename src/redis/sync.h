/*
 * Redis for a program that waits: rqctl.  Requests go to the nodes (nodes.h) of one
 * server, of the master that Sentinels name, or of a cluster, and the loop turns until
 * they are answered.
 *
 * In a cluster each command goes to the master of its key.  While a slot moves, or has no
 * master that answers, a command that did not run is sent again for SYNC_RETRY.  A command
 * whose connection is lost may have run: it is not sent again.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "redis/redis_options.h"
#include "redis/reply.h"
#include "redis/script.h"
#include "redis/words.h"

#define SYNC_RETRY	(5 * SEC)

struct sync;

/*
 * Connects; NULL with *cause if no server can be used as a master.  The options are
 * borrowed, and so is the name, for CLIENT SETNAME.
 */
struct sync	*sync_open(const struct redis_options *, const char *name, char **cause);
void		 sync_close(struct sync *);	/* NULL is fine */

/*
 * sync_append() sends a command, or the call of a script if that is not NULL.  sync_next()
 * returns the replies in the order of the calls: to be freed with reply_free(), or NULL with
 * *cause when the command is lost.  An error reply is a reply.
 */
void		 sync_append(struct sync *, const struct script *, const struct words *);
struct redisReply *sync_next(struct sync *, char **cause);
/* Gives up all calls whose replies sync_next() has not returned. */
void		 sync_drop(struct sync *);

/*
 * Commands without a key, such as TIME, go to the chosen master: by its number below
 * sync_masters(), or by a key; at first that of slot 0.
 */
size_t		 sync_masters(const struct sync *);
void		 sync_choose(struct sync *, size_t);
void		 sync_choose_key(struct sync *, const char *key);
const char	*sync_chosen(const struct sync *);	/* its address */

/* The server or cluster, for people: an address, or "cluster://..." */
const char	*sync_name(const struct sync *);
/* The address of the server whose reply came last, or did not come. */
const char	*sync_last(const struct sync *);
