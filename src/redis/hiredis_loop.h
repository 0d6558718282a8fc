/*
 * Connects hiredis' asynchronous contexts to our loop, rejects replies that hiredis cannot
 * take, and counts what moves: deadline.c judges by that whether a reply is late.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loop/loop.h"

struct redisAsyncContext;

/* Redis' largest string, and some more. */
#define REPLY_BYTES_MAX	((size_t)576 * 1024 * 1024)

/* Owned by the connection; outlives its contexts. */
struct reply_rules {
	size_t		  bytes_max;	/* of a reply, whole */
	const char	 *complaint;	/* why a reply was refused; NULL: none was */
	/* Whether the connection has subscribed to this channel (or pattern). */
	bool		(*knows)(bool pattern, const char *name, size_t len, void *);
	/* Called before bytes are read; may be NULL. */
	void		(*came)(void *);
	void		 *arg;
	/* Since hiredis_loop_attach(): reads, and bytes given to the kernel. */
	uint64_t	  reads, written;
	/* The first bytes that came: hiredis forgets what is no reply. */
	char		  first[8];
	size_t		  nfirst;
};

/* Call this before setting the connect callback; ac frees what is made here. */
void	hiredis_loop_attach(struct loop *, struct redisAsyncContext *ac, struct reply_rules *);

/*
 * Bytes of commands since hiredis_loop_attach(): all, and those that have left this
 * machine's buffers.
 */
uint64_t hiredis_loop_produced(const struct redisAsyncContext *ac);
uint64_t hiredis_loop_sent(const struct redisAsyncContext *ac);
