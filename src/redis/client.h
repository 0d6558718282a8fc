/*
 * A blocking connection, for rqctl: connect, authenticate, select, run.
 */
#ifndef RQD_REDIS_CLIENT_H
#define RQD_REDIS_CLIENT_H

#include "base/util.h"
#include "redis/redis_options.h"
#include "redis/reply.h"
#include "redis/script.h"

struct client;

/* NULL with *cause where no server of the list can be used as a master. */
struct client	*client_open(const struct redis_options *, const char *name, char **cause);
void		 client_close(struct client *);

/*
 * The reply, which the caller frees with client_reply_free(); NULL with *cause
 * when the connection is lost.  An error reply is a reply.
 */
struct redisReply *client_command(struct client *, char **cause, int argc,
		    const char *const *argv, const size_t *argvlen);
struct redisReply *client_words(struct client *, char **cause, ...)
		    __attribute__((__sentinel__));
struct redisReply *client_script(struct client *, char **cause, const struct script *,
		    int nkeys, int argc, const char *const *argv, const size_t *argvlen);
void		 client_reply_free(struct redisReply *);

/* Pipelining: queue commands, then take their replies in order. */
void		 client_append(struct client *, int argc, const char *const *argv,
		    const size_t *argvlen);
struct redisReply *client_next(struct client *, char **cause);

const char	*client_address(const struct client *);

#endif
