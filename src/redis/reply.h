/*
 * Typed access to replies, and what an error means.  Nothing here trusts the
 * server: an access of the wrong type or beyond the end gives the default.
 */
#ifndef RQD_REDIS_REPLY_H
#define RQD_REDIS_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct redisReply;

/* What to do about an error reply, by its first word. */
enum reply_error {
	REPLY_OK,		/* not an error */
	REPLY_NOSCRIPT,		/* load and send again */
	REPLY_TRANSIENT,	/* LOADING BUSY TRYAGAIN: the same server, later */
	REPLY_ELSEWHERE,	/* READONLY MASTERDOWN MOVED CLUSTERDOWN: reconnect, resolve anew */
	REPLY_REFUSED,		/* OOM MISCONF NOREPLICAS: writes refused for now */
	REPLY_DENIED,		/* NOAUTH WRONGPASS NOPERM, max clients: needs an operator */
	REPLY_WRONGTYPE,	/* this queue's key is not what it should be */
	REPLY_OTHER
};

enum reply_error reply_error(const struct redisReply *);	/* also of an error inside EXEC or a script */
const char	*reply_text(const struct redisReply *);		/* error or status text; "" otherwise */
/*
 * What is wrong with a reply, for people: an error without where in which script it
 * was, or that it is none that was expected.  Where the user may not run a command of a
 * script, the command stands first.  Returns buf; REPLY_CAUSE is large enough.
 */
#define REPLY_CAUSE	256
const char	*reply_cause(const struct redisReply *, char *buf, size_t);

/* Advice on a cause why Redis cannot be used; NULL: there is none. */
const char	*reply_hint(const char *cause);

bool		 reply_is_array(const struct redisReply *);
size_t		 reply_len(const struct redisReply *);		/* elements; 0 if no array */
const struct redisReply *reply_at(const struct redisReply *, size_t);	/* NULL beyond the end */
bool		 reply_is_nil(const struct redisReply *);	/* also NULL */
const char	*reply_str(const struct redisReply *, size_t *len);	/* NULL if no string; len may be NULL */
int64_t		 reply_int(const struct redisReply *, int64_t otherwise);	/* integer, or a decimal string */
double		 reply_double(const struct redisReply *, double otherwise);

/*
 * Takes a bulk string out of its reply without copying; NULL if it is none.
 * The caller frees it with reply_free_str() (hiredis' allocator).
 */
char		*reply_take(const struct redisReply *, size_t *len);
void		 reply_free_str(char *);

#endif
