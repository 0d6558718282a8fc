/*
 * A guard before hiredis' reader: it refuses replies that are larger than the rules
 * allow, of another protocol, or not the reply to any command.
 *
 * hiredis trusts the server: an unexpected reply, or a malformed published message,
 * fails an assertion in it, and a reply may exhaust all memory.  The server, or a
 * proxy before it, may be broken or hostile.  So the guard checks each part of a
 * reply before hiredis makes an object of it, and ends the connection if it is wrong.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct redisReader;
struct redisAsyncContext;
struct reply_rules;

enum push { PUSH_NONE, PUSH_MESSAGE, PUSH_CHANNEL, PUSH_PATTERN, PUSH_SLOT };

struct guard {
	struct redisReader	 *reader;
	const struct redisAsyncContext *ac;	/* NULL: of a blocking connection */
	struct reply_rules	 *rules;

	/* Of the reply that is being read: */
	size_t			  bytes, elements;
	bool			  unasked;
	enum push		  push;		/* of an unasked reply: its first word */
};

/* From now on the reader is guarded; rules->complaint says why a reply was refused. */
void	guard_start(struct guard *, struct redisReader *, const struct redisAsyncContext *,
	    struct reply_rules *);

/* Call this before each read: the reader fails if too much of an object is unfinished. */
void	guard_backlog(struct guard *);
