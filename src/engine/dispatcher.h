/*
 * Hands out the daemon's handler slots (max_handlers) to queues that have
 * work.  It never touches messages.
 *
 * Members with work are in a ring.  The head gets one slot and goes to the tail; a
 * member that can take no more leaves; without a free slot the ring waits.  Members of
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
	TAILQ_ENTRY(dispatcher_member)	 entry;
	bool	 queued;	/* in the ring */
	int	 priority;	/* changes only while not queued */
	unsigned	 credit;	/* given in this round, not yet granted */
	TAILQ_ENTRY(dispatcher_member)	 granted;	/* valid while credit > 0 */
	/* The number of slots that it could use now, beyond those that it holds. */
	unsigned	(*room)(void *);
	/* The member gets n slots, n >= 1; it has left the ring. */
	void	(*grant)(unsigned, void *);
	void	*arg;
};

struct dispatcher	*dispatcher_new(struct loop *, unsigned slots);
void			 dispatcher_free(struct dispatcher *);	/* NULL is fine */
void			 dispatcher_set_slots(struct dispatcher *, unsigned);

/*
 * Enters the member at the tail of its priority; no-op while it is in the ring.  Grants
 * come from the loop, at the end of this turn.
 */
void			 dispatcher_enter(struct dispatcher *, struct dispatcher_member *);
void			 dispatcher_leave(struct dispatcher *, struct dispatcher_member *);
void			 dispatcher_release(struct dispatcher *, unsigned n);

unsigned		 dispatcher_taken(const struct dispatcher *);
