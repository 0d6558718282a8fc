/*
 * Says when a slot leaves a node of a cluster, also where nothing is sent to that slot.
 *
 * A subscriber's connection to the node subscribes to one channel in each slot (SSUBSCRIBE).
 * When the slot leaves the node, Redis ends the subscription and says so.  Nobody publishes
 * to these channels.
 *
 * Redis before 7.0 has no SSUBSCRIBE, and an ACL may deny the channels.  Then left() does not
 * come, and the owner must notice by itself that a slot has moved.
 */
#pragma once

#include <stdbool.h>

#include "base/list.h"
#include "redis/conn.h"
#include "redis/request.h"

struct slot_watch;

enum slot_state { SLOT_OUT, SLOT_WAITING, SLOT_ASKED, SLOT_HELD, SLOT_LEFT, SLOT_REFUSED };

/* A slot of interest, embedded in its owner.  Zero it to start. */
struct watched_slot {
	char			*channel;	/* the owner's; in the slot */
	unsigned		 slot;
	/* private: */
	TAILQ_ENTRY(watched_slot) entry, waiting;
	enum slot_state		 state;
	struct slot_watch	*watch;		/* NULL: SLOT_OUT */
	struct request		 request;	/* SLOT_ASKED */
};

/* Both from the loop. */
struct slot_watch_events {
	/* A slot is no longer the node's.  If it is not removed, a probe asks again. */
	void	(*left)(void *);
	/* Redis refuses SSUBSCRIBE: it is asked again with the next connection. */
	void	(*refused)(const char *error, bool denied, void *);
};

/* The connection is a CONN_SUBSCRIBER with a subscription; borrowed. */
struct slot_watch *slot_watch_new(struct conn *, const struct slot_watch_events *, void *arg);
void		 slot_watch_free(struct slot_watch *);	/* NULL is fine, and so in all below */
void		 slot_watch_up(struct slot_watch *);	/* the connection is READY again */
/* Every 10 s: asks once more for the slots that the node did not have. */
void		 slot_watch_probe(struct slot_watch *);
/* A slot has left, and was not removed yet. */
bool		 slot_watch_is_behind(const struct slot_watch *);

/*
 * Takes it from the node that had it.  A slot that is there already is not asked for again,
 * unless it has left: one that stays half moved is added every second.
 */
void		 slot_watch_add(struct slot_watch *, struct watched_slot *);
/* unsubscribe: the node has the slot still, and nobody wants to know. */
void		 slot_watch_remove(struct watched_slot *, bool unsubscribe);
