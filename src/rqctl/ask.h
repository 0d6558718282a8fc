/*
 * Redis for the verbs: commands whose failure is reported here, once, with the
 * right exit status.
 *
 * A command is a format: blanks separate its words, and a word may hold the
 * conversions %s, %.*s (bytes), %lld and %f:
 *
 *	ask(c, "ZRANGE %s 0 %lld", key, last)
 */
#pragma once

#include <stddef.h>

#include "redis/reply.h"
#include "redis/words.h"
#include "rqctl/ctl.h"

struct redisReply;

/* ask_format() returns the words of such a format; ask_add() appends them to a command. */
struct words ask_format(const char *fmt, ...) PRINTF(1, 2);
void	ask_add(struct words *, const char *fmt, ...) PRINTF(2, 3);

/*
 * ask(c, fmt, ...) and ask_script(c, name, nkeys, fmt, ...) return the reply, to be freed with
 * reply_free(); NULL after an error was reported, be it a lost connection or an
 * error reply.  ask_any(c, fmt, ...) returns error replies, too.  All connect at first use.
 * A script gets its keys first.  The functions below free the words.
 */
#define ASK(...)		((struct words[]){ ask_format(__VA_ARGS__) })
#define ask(c, ...)		ask_words((c), ASK(__VA_ARGS__))
#define ask_any(c, ...)		ask_any_words((c), ASK(__VA_ARGS__))
#define ask_script(c, name, nkeys, ...) \
	ask_script_words((c), (name), (nkeys), ASK(__VA_ARGS__))
struct redisReply *ask_words(struct ctl *, struct words *);
struct redisReply *ask_any_words(struct ctl *, struct words *);
struct redisReply *ask_script_words(struct ctl *, const char *name, int nkeys, struct words *);

/* Returns a reply that has this form (see reply_has()); else reports and frees it: NULL. */
struct redisReply *ask_check(struct ctl *, struct redisReply *, const char *form);

/* Frees a reply of ask() and returns its integer: -1 for NULL or another type. */
int64_t	ask_number(struct redisReply *);

/*
 * Pipelining: 0, or -1 after an error was reported.  ask_next() returns error
 * replies too (a key of the wrong type concerns one queue only); NULL: the
 * connection is lost, and that was reported.  The pipeline ends then: no other
 * reply is due.
 */
#define ask_append(c, ...)	ask_append_words((c), ASK(__VA_ARGS__))
#define ask_append_words(c, w)	ask_append_script((c), NULL, 0, (w))
/* name NULL: a command.  Frees the words. */
int	ask_append_script(struct ctl *, const char *name, int nkeys, struct words *) MUSTCHECK;
struct redisReply *ask_next(struct ctl *);

/* Reports an error reply and sets the status; returns -1. */
int	ask_refused(struct ctl *, const struct redisReply *);

/* The exit status for an error reply. */
int	ask_status(enum reply_error);

/*
 * Redis' time in seconds since 1970; -1 after an error was reported.  In a cluster each
 * master has a clock of its own.  ask_time() asks the chosen master, ask_time_of() that of
 * the key.
 */
double	ask_time(struct ctl *);
double	ask_time_of(struct ctl *, const char *key);
/* Sets now[] to the times of n keys.  Returns 0, or -1 after an error was reported. */
int	ask_times(struct ctl *, const char *const *keys, size_t n, double *now)
	    MUSTCHECK;

/*
 * ask_masters() returns how many masters the cluster has: 1 without a cluster; 0 after an
 * error was reported.
 *
 * ask_master() chooses the master that gets commands without a key, ask_info() and
 * ask_config(): by its number, from 0.  ask_master_of() chooses the master of a key, or with
 * NULL that of the verb's queue, which is also the first choice.
 */
size_t	ask_masters(struct ctl *);
void	ask_master(struct ctl *, size_t);
void	ask_master_of(struct ctl *, const char *key);

/*
 * Returns how many clients are subscribed to the daemon's control channel.  heard is the reply
 * to PUBLISH.  In a cluster PUBLISH counts the subscribers of one node only: if it says 0,
 * ask_heard() asks each master.
 */
int64_t	ask_heard(struct ctl *, const char *instance, int64_t heard);

/* A field of INFO, or a parameter of CONFIG; "" if Redis denies it.  The caller frees it. */
char	*ask_info(struct ctl *, const char *section, const char *field);
/*
 * Redis' error if it refuses all writes, also those that take no memory; NULL: it does not, or
 * the user may not write.  The caller frees it.
 */
char		*ask_refusal(struct ctl *);
/* A sentence if Redis has no memory left, else NULL: see advice_memory().  The caller frees it. */
char	*ask_memory(struct ctl *);
char	*ask_config(struct ctl *, const char *parameter);
