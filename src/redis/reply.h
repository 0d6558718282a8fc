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
 * Fields of a script's reply, by name: an enum has their places, and a form says of
 * which type each must be.
 *
 *	enum { LOOK_WAITING, LOOK_WHY, LOOK_FIELDS };
 *	static const char look_form[] = {
 *		[LOOK_WAITING] = FIELD_INT, [LOOK_WHY] = FIELD_STR, [LOOK_FIELDS] = 0
 *	};
 */
enum field {
	FIELD_STR = 's',
	FIELD_INT = 'i',	/* or its digits as a string */
	FIELD_NUMBER = 'n',	/* with or without fraction */
	FIELD_TIME = 't',	/* a number, or "" where there is none */
	FIELD_BODY = 'b'	/* a string, or in its place its length */
};

/*
 * Whether all fields of the form are there, the first at element `at`, and of their
 * types.  More elements may follow.  False for an error reply.
 */
bool		 reply_has(const struct redisReply *, size_t at, const char *form);

/* The fields of a reply that has them. */
const char	*reply_str_at(const struct redisReply *, size_t);
int64_t		 reply_int_at(const struct redisReply *, size_t);
double		 reply_double_at(const struct redisReply *, size_t);

/*
 * Takes a bulk string out of its reply without copying; NULL if it is none.
 * The caller frees it with reply_free_str() (hiredis' allocator).
 */
char		*reply_take(const struct redisReply *, size_t *len);
void		 reply_free_str(char *);

#endif
