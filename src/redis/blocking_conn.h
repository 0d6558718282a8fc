/*
 * A blocking connection, for rqctl: connect, authenticate, select, run.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>

#include "redis/redis_options.h"
#include "redis/reply.h"
#include "redis/script.h"
#include "redis/words.h"

struct blocking_conn;

/*
 * Returns NULL with *cause if no server of the list can be used as a master.  The options
 * are borrowed.  This process ignores SIGPIPE from now on.
 */
struct blocking_conn	*blocking_open(const struct redis_options *, const char *name,
			    char **cause);
void		 blocking_close(struct blocking_conn *);

/*
 * Returns the reply, which the caller frees with blocking_reply_free(), or NULL with
 * *cause when the connection is lost or too slow; it stays closed then.  An error reply is
 * a reply.
 */
struct redisReply *blocking_command(struct blocking_conn *, char **cause, const struct words *);
struct redisReply *blocking_script(struct blocking_conn *, char **cause, const struct script *,
		    const struct words *);
void		 blocking_reply_free(struct redisReply *);

/* Pipelining: queue commands, then take their replies in order. */
void		 blocking_append(struct blocking_conn *, const struct words *);
struct redisReply *blocking_next(struct blocking_conn *, char **cause);
/*
 * Sends as much as it can without waiting; blocking_next() sends the rest, and reports
 * errors.
 */
void		 blocking_flush(struct blocking_conn *);

/*
 * From now on, on all connections of the process, a waiting command fails when a signal
 * handler has set *flag.  NULL ends this.
 */
void		 blocking_interrupt(const volatile sig_atomic_t *flag);
bool		 blocking_is_interrupted(void);

const char	*blocking_address(const struct blocking_conn *);
