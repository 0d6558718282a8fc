/*
 * Redis for the verbs: commands whose failure is reported here, once, with the
 * right exit status.
 *
 * A command is a format: blanks separate its words, and a word may hold the
 * conversions %s, %.*s (bytes), %lld and %f:
 *
 *	ask(c, "ZRANGE %s 0 %lld", key, last)
 */
#ifndef RQD_RQCTL_ASK_H
#define RQD_RQCTL_ASK_H

#include <stddef.h>

#include "redis/reply.h"
#include "redis/words.h"
#include "rqctl/ctl.h"

struct redisReply;

/* Appends the words of such a format to a command. */
void	ask_add(struct words *, const char *fmt, ...) PRINTF(2, 3);
/* Appends every step-th element of a list; borrowed. */
void	ask_add_list(struct words *, const struct redisReply *, size_t step);

/*
 * The reply, to be freed with blocking_reply_free(); NULL after an error was
 * reported, be it a lost connection or an error reply.  Connects at first use.
 * A script gets its keys first; ask_words() and ask_script_words() free the words.
 */
struct redisReply *ask(struct ctl *, const char *fmt, ...) PRINTF(2, 3);
struct redisReply *ask_words(struct ctl *, struct words *);
struct redisReply *ask_script(struct ctl *, const char *name, int nkeys, const char *fmt, ...)
		    PRINTF(4, 5);
struct redisReply *ask_script_words(struct ctl *, const char *name, int nkeys, struct words *);

/* Frees a reply of ask() and returns its integer: -1 for NULL or another type. */
int64_t	ask_number(struct redisReply *);

/*
 * Pipelining: 0, or -1 after an error was reported.  ask_next() returns error replies too
 * (a key of the wrong type concerns one queue only); NULL: the connection is lost, and
 * that was reported.
 */
int	ask_append(struct ctl *, const char *fmt, ...) PRINTF(2, 3) MUSTCHECK;
int	ask_append_words(struct ctl *, struct words *) MUSTCHECK;	/* frees the words */
struct redisReply *ask_next(struct ctl *);

/* Reports an error reply and sets the status; returns -1. */
int	ask_refused(struct ctl *, const struct redisReply *);

/* The exit status for an error reply. */
int	ask_status(enum reply_error);

/* Redis' time in seconds since 1970; -1 after an error was reported. */
double	ask_time(struct ctl *);

/* A field of INFO, or a parameter of CONFIG; "" where Redis denies it.  The caller frees it. */
char	*ask_info(struct ctl *, const char *section, const char *field);
char	*ask_config(struct ctl *, const char *parameter);

#endif
