/*
 * hiredis' asynchronous contexts on our loop, and a guard in front of them.
 *
 * hiredis trusts the server: a reply that nobody asked for, or a published
 * message of a shape that Redis would never send, fails an assertion of its,
 * and a reply may be as large as the memory.  What stands between here and Redis may
 * be confused or hostile, so each part of a reply is looked at before hiredis
 * makes it, and what is wrong ends the connection instead of the program.
 */
#ifndef RQD_REDIS_ATTACH_H
#define RQD_REDIS_ATTACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loop/loop.h"

struct redisAsyncContext;

#define ATTACH_REPLY_MAX	((size_t)576 * 1024 * 1024)	/* Redis' largest string, and some more */
#define ATTACH_PROGRESS_MIN	4096	/* bytes within a timeout that are progress */

/* Owned by the connection, and there as long as it has contexts. */
struct attach_rules {
	size_t		  bytes_max;	/* of a reply, whole */
	const char	 *complaint;	/* why a reply was refused; NULL: none was */
	/* Is this a channel (or pattern) that was subscribed to? */
	bool		(*knows)(bool pattern, const char *name, size_t len, void *);
	/* Bytes have come; called before they are read.  NULL: nobody asks. */
	void		(*came)(void *);
	void		 *arg;
	uint64_t	  read, written;	/* bytes since attach(); to and from the kernel */
};

/* To be called before the connect callback is set; ac frees what is made here. */
void	attach(struct loop *, struct redisAsyncContext *ac, struct attach_rules *);

/* Bytes since attach() that commands have produced, and those that have left this machine's buffers. */
uint64_t attach_produced(const struct redisAsyncContext *ac);
uint64_t attach_sent(const struct redisAsyncContext *ac);

#endif
