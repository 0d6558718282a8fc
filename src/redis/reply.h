/*
 * Typed access to replies, and the meaning of errors.  Nothing here trusts the
 * server: an access of the wrong type or beyond the end returns the default.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct redisReply;
struct script;

/* The way to handle an error reply, by its first word. */
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

/* Also finds an error among the elements of an array. */
enum reply_error reply_error(const struct redisReply *);
enum reply_error reply_error_of_text(const char *);	/* by its first word */
/*
 * A node of a cluster did not run the command: MOVED, ASK, TRYAGAIN, CLUSTERDOWN.  An error
 * of a script that ran is none of these.
 */
bool		 reply_is_redirection(const struct redisReply *);
/* The text of an error or a status; "" otherwise. */
const char	*reply_text(const struct redisReply *);
/*
 * Describes an error reply for people: the error text without the script's location, or
 * "an unexpected reply".  If the Redis user may not run a command of a script, the text
 * begins with the command.  Where an option or the ACL is at fault, it ends
 * with what to write.  Returns buf; REPLY_CAUSE is large enough.
 */
#define REPLY_CAUSE	256
const char	*reply_cause(const struct redisReply *, char *buf, size_t);
/* The same of an error's text that this script returned, or NULL: no script. */
const char	*reply_script_cause(const struct script *, const char *, char *buf, size_t);

/* Advice for the operator on such a cause; NULL: none. */
const char	*reply_hint(const char *cause);

bool		 reply_is_array(const struct redisReply *);
size_t		 reply_len(const struct redisReply *);		/* elements; 0 if no array */
/* An element; NULL beyond the end. */
const struct redisReply *reply_at(const struct redisReply *, size_t);
bool		 reply_is_nil(const struct redisReply *);	/* also NULL */
/* NULL, and *len 0, if it is no string; len may be NULL. */
const char	*reply_str(const struct redisReply *, size_t *len);
/*
 * Of an integer, or a string of its digits.  One beyond REPLY_INT_MAX is as good as none, so
 * that callers can add some ten thousand of them.
 */
#define REPLY_INT_MAX	(INT64_C(1) << 48)
int64_t		 reply_int(const struct redisReply *, int64_t otherwise);
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
	FIELD_TIME = 't'	/* a number, or "" if there is none */
};

/*
 * Whether all fields of the form are there, and of their types.  More elements may
 * follow.  False for an error reply.
 */
bool		 reply_has(const struct redisReply *, const char *form);

/* The fields of a reply that has them. */
const char	*reply_str_at(const struct redisReply *, size_t);
int64_t		 reply_int_at(const struct redisReply *, size_t);
double		 reply_double_at(const struct redisReply *, size_t);

/* A field of an answer to INFO; "": it is not there, or this is no such answer.  The caller
 * frees it. */
char		*reply_info(const struct redisReply *, const char *field);

/*
 * Takes a bulk string out of its reply without copying; NULL if it is none.
 * The caller frees it: hiredis' allocator is the C library's.
 */
char		*reply_take(const struct redisReply *, size_t *len);

/*
 * Takes the whole reply out of a callback's: that one is empty then.  The caller frees it with
 * reply_free().
 */
struct redisReply *reply_steal(const struct redisReply *);
void		 reply_free(struct redisReply *);	/* NULL is fine */
