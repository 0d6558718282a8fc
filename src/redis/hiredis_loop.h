/*
 * Connects hiredis' asynchronous contexts to our loop, with a guard (guard.h), and
 * counts the bytes that they move: deadline.c judges by them whether a reply is late.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loop/loop.h"

struct redisAsyncContext;

/* Redis' largest string, and some more. */
#define REPLY_BYTES_MAX	((size_t)576 * 1024 * 1024)
#define PROGRESS_BYTES_MIN	4096	/* bytes within a timeout that are progress */

/* Owned by the connection; outlives its contexts. */
struct reply_rules {
	size_t		  bytes_max;	/* of a reply, whole */
	const char	 *complaint;	/* why a reply was refused; NULL: none was */
	/* Whether the connection has subscribed to this channel (or pattern). */
	bool		(*knows)(bool pattern, const char *name, size_t len, void *);
	/* Whether an unasked error is the answer to SSUBSCRIBE or SUNSUBSCRIBE. */
	bool		(*may_refuse)(void *);
	/* A subscription of the connection; NULL: it has none to channels of slots. */
	char		*slots_as;
	unsigned	 slot;		/* of the channel in the last reply on one */
	/* Called before bytes are read; may be NULL. */
	void		(*came)(void *);
	void		 *arg;
	/* Bytes from and to the kernel since hiredis_loop_attach(). */
	uint64_t	  read, written;
};

/* Call this before setting the connect callback; ac frees what is made here. */
void	hiredis_loop_attach(struct loop *, struct redisAsyncContext *ac, struct reply_rules *);

/*
 * Bytes of commands since hiredis_loop_attach(): all, and those that have left this
 * machine's buffers.
 */
uint64_t hiredis_loop_produced(const struct redisAsyncContext *ac);
uint64_t hiredis_loop_sent(const struct redisAsyncContext *ac);
