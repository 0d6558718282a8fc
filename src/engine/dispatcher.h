/*
 * Hands out the daemon's handler slots (max_handlers) to queues that have
 * work.  It never touches messages.
 *
 * Members that want slots are in a ring.  The head gets one slot and goes to the tail; a
 * member that wants no more leaves; without a free slot the ring waits.  Members of
 * higher priority come before all lower ones.  Between members of one priority none
 * waits for more than one turn of the others.
 *
 * A slot is taken when it is granted, before the message has come, and comes back by
 * dispatcher_release().  So queues that ask Redis at the same time never exceed the
 * limit together.
 */
#pragma once

#include <stdbool.h>

#include "base/list.h"
#include "loop/loop.h"

struct dispatcher;

/* Embedded in its consumer. */
struct dispatcher_member {
	TAILQ_ENTRY(dispatcher_member)	 entry;	/* of the ring, while wants > 0 */
	unsigned	 wants;	/* slots, beyond those that it has */
	int	 priority;	/* changes only while wants is 0 */
	unsigned	 credit;	/* given in this round, not yet granted */
	TAILQ_ENTRY(dispatcher_member)	 granted;	/* valid while credit > 0 */
	/* The member gets n slots, n >= 1; it has left the ring. */
	void	(*grant)(unsigned n, void *);
	void	*arg;
};

struct dispatcher	*dispatcher_new(struct loop *, unsigned slots);
void			 dispatcher_free(struct dispatcher *);	/* NULL is fine */
void			 dispatcher_set_slots(struct dispatcher *, unsigned);

/*
 * The member wants so many slots, 0: none.  It enters the ring at the tail of its priority, or
 * keeps its place there.  Grants come from the loop, at the end of this turn.
 */
void			 dispatcher_want(struct dispatcher *, struct dispatcher_member *, unsigned);
void			 dispatcher_release(struct dispatcher *, unsigned n);

unsigned		 dispatcher_taken(const struct dispatcher *);
