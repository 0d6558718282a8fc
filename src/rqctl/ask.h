/*
 * Redis for the verbs: commands whose failure is said here, once, with the
 * right status.
 */
#ifndef RQD_RQCTL_ASK_H
#define RQD_RQCTL_ASK_H

#include <stddef.h>

#include "redis/reply.h"
#include "redis/words.h"
#include "rqctl/ctl.h"

struct redisReply;

/*
 * The reply, to be freed with client_reply_free(); NULL after the error was
 * said, be it a lost connection or an error reply.  Connects at first use.
 */
struct redisReply *ask(struct ctl *, const char *, ...) __attribute__((__sentinel__));
struct redisReply *ask_words(struct ctl *, const struct words *);
struct redisReply *ask_script(struct ctl *, const char *name, int nkeys, const struct words *);

/*
 * Pipelining.  ask_next() gives error replies as they are (a key of the wrong type
 * concerns one queue only); NULL: the connection is lost, and it was said.
 */
int	ask_append(struct ctl *, const char *, ...) __attribute__((__sentinel__)) MUSTCHECK;
int	ask_append_words(struct ctl *, const struct words *) MUSTCHECK;
struct redisReply *ask_next(struct ctl *);

/* Says what an error reply means and sets the status; returns -1. */
int	ask_refused(struct ctl *, const struct redisReply *);

/* The exit status that fits an error reply. */
int	ask_status(enum reply_error);

/* Redis' time in seconds since 1970; -1 after the error was said. */
double	ask_time(struct ctl *);

#endif
