/*
 * A blocking connection, for rqctl: connect, authenticate, select, run.
 */
#ifndef RQD_REDIS_CLIENT_H
#define RQD_REDIS_CLIENT_H

#include "base/util.h"
#include "redis/redis_options.h"
#include "redis/reply.h"
#include "redis/script.h"
#include "redis/words.h"

struct client;

/*
 * Returns NULL with *cause if no server of the list can be used as a master.  The options
 * are borrowed.  This process ignores SIGPIPE from now on.
 */
struct client	*client_open(const struct redis_options *, const char *name, char **cause);
void		 client_close(struct client *);

/*
 * Returns the reply, which the caller frees with client_reply_free(), or NULL with
 * *cause when the connection is lost or too slow; it stays closed then.  An error reply is
 * a reply.
 */
struct redisReply *client_command(struct client *, char **cause, const struct words *);
struct redisReply *client_script(struct client *, char **cause, const struct script *,
		    const struct words *);
void		 client_reply_free(struct redisReply *);

/* Pipelining: queue commands, then take their replies in order. */
void		 client_append(struct client *, const struct words *);
struct redisReply *client_next(struct client *, char **cause);

const char	*client_address(const struct client *);

#endif
