/*
 * The messages that one delivery hands over to other queues.  They are collected while
 * its handler runs.  The script that acks the delivery pushes all of them, or none.
 *
 * A struct pushes is made for the first message; most deliveries have none.  It borrows
 * the queues' configurations, so it must be freed before the message's reference to the
 * configuration ends.
 *
 * A message that breaks a limit, or names a queue that `pushes` does not list, is a
 * fault.  A fault drops all messages, and later ones are ignored.  The delivery has
 * then failed, with the reason "pushes".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "policy/config.h"
#include "policy/message.h"
#include "policy/statement.h"

#define PUSHES_BYTES	((size_t)1024 * 1024)	/* of all messages of a delivery */
/* pushes_memory() of a run's messages, or of those that a process has not answered */
#define PUSHES_RUN_BYTES	((size_t)16 * 1024 * 1024)

struct pushes;

/* Messages for one queue, in the order of their pushes. */
struct pushes_target {
	const struct queue_config *queue;	/* borrowed */
	const char *key;	/* borrowed from it: its key, or that of a shard */
	size_t	 count;
};

/*
 * Adds a message of a handler of cfg, which is part of config, for the queue of this
 * name.  Makes *pushes if it is NULL.  A message may be empty.  NULL and 0 is a fault:
 * the line was too long for its reader.
 */
void	pushes_add(struct pushes **pushes, const struct config *config,
	    const struct queue_config *cfg, const char *name, size_t name_len,
	    const void *message, size_t len);
/*
 * The handler has stated "push QUEUE MESSAGE" for its message.  cut: the line is too
 * long.  Adds the memory of the push to *sum, the pushes_memory() of all messages of
 * the run; a sum above PUSHES_RUN_BYTES is a fault of this message.  sum is NULL if the
 * run has only this message.
 */
void	pushes_add_said(struct pushes **, const struct message *, const struct statement *,
	    bool cut, size_t *sum);
/* The longest line with such a statement that handlers of this queue may write. */
size_t	pushes_line_max(const struct queue_config *);
/* Adds a fault: the last message has no end, and a process may still be writing it. */
void	pushes_add_cut(struct pushes **pushes);
/* The longest message that could be added for this queue; 1 more is a fault. */
size_t	pushes_longest(const struct config *config, const char *name);
void	pushes_free(struct pushes *);		/* NULL is fine */

/*
 * The bytes that one process has answered with and Redis has not yet taken: each set of
 * pushes counts from the answer until it is freed.  The debt lives as long as the
 * process or one of the sets.
 */
struct pushes_debt;
/* The message of p was answered: counts it.  Makes *debt if it is NULL; p may be NULL. */
void	pushes_owe(struct pushes *p, struct pushes_debt **debt);
/* PUSHES_RUN_BYTES or more: read no more answers.  NULL: nothing was answered. */
bool	pushes_debt_is_large(const struct pushes_debt *);
void	pushes_debt_unref(struct pushes_debt *);	/* NULL is fine */

/* The fault, a sentence; NULL: none.  NULL is fine. */
const char *pushes_fault(const struct pushes *);
size_t	pushes_count(const struct pushes *);	/* of all messages; NULL: 0 */
size_t	pushes_bytes(const struct pushes *);	/* of all messages; NULL: 0 */
/* pushes_bytes(), plus PUSHES_EACH for each message, because small ones take memory, too. */
size_t	pushes_memory(const struct pushes *);
#define PUSHES_EACH	24

size_t	pushes_targets(const struct pushes *);	/* queues with messages; NULL: 0 */
const struct pushes_target *pushes_target(const struct pushes *, size_t i);
/*
 * The messages for the target i, one after the other: zero *at to start.  Returns NULL
 * after the last one.  Borrowed until the next message is added.
 */
const char *pushes_next(const struct pushes *, size_t i, size_t *at, size_t *len);
