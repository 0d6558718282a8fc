/*
 * Collects messages that wait for a run, and slots of the dispatcher that no run has
 * taken yet.  Embedded in its consumer.
 *
 *	add -> waits for others of its batch -> start	when the batch is full, or batch_wait
 *	                                     		is over, or the message must run alone
 *	    -> no slot for a second, or its lease may have ended -> give_back
 *
 * A message that has failed before (an attempt, or a crash) gets a run of its own, so
 * that it cannot make others fail twice.  While the queue is suspended, every message
 * does.
 *
 * A batch that is not full keeps one slot while it waits.  Its messages may come by
 * several fetches.  When batch_wait is over, it begins at the end of a turn without a
 * fetch, because only then the queue has said that it has no more.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "engine/dispatcher.h"
#include "engine/inflight.h"
#include "engine/suspension.h"
#include "loop/timer.h"

/* They come from the loop, and from the functions below that say so. */
struct collector_events {
	/* Begin a run with these n messages in one of our slots.  Empties the list. */
	void	(*start)(struct held_list *, unsigned n, void *);
	/* The message did not run; its held is freed. */
	void	(*give_back)(struct message *, void *);
	/* Slots or messages have become fewer. */
	void	(*changed)(void *);
};

struct collector {
	/* set by collector_init(): */
	struct loop	*loop;
	struct dispatcher	*dispatcher;
	const struct suspension	*suspension;
	const struct collector_events	*events;
	void	*arg;
	/* set by the owner: */
	const struct queue_config	*cfg;
	bool	 fetching;	/* a fetch is under way: release no slot */
	/* read only: */
	unsigned	 slots;	/* granted, and not taken by a run */
	unsigned	 ntogether, nalone;	/* lengths of the lists */
	/* private: */
	struct held_list	 together;	/* never failed; oldest first */
	struct held_list	 alone;	/* have failed before; oldest first */
	size_t	 bytes;	/* of the payloads on `together` */
	bool	 alone_last;	/* the last run came from `alone`: take turns */
	struct timer	 timer;	/* set: look again then */
	struct defer	 launch;
};

void		 collector_init(struct collector *, struct loop *, struct dispatcher *,
		    const struct suspension *, const struct collector_events *, void *arg);
/* Forgets its messages; makes no callbacks. */
void		 collector_done(struct collector *);

/* May call start(), and give_back() for messages whose leases may have ended. */
void		 collector_grant(struct collector *, unsigned slots);
void		 collector_add(struct collector *, struct message *);
/* At the end of the turn, begins runs that can begin, and gives back messages that must be. */
void		 collector_look(struct collector *);
/* Calls give_back() for each message; releases the slots. */
void		 collector_give_back(struct collector *);
/* Forgets one message. */
void		 collector_remove(struct collector *, struct held *);
/* Releases the slots that its messages do not need. */
void		 collector_release(struct collector *);

unsigned	 collector_count(const struct collector *);
/* About how many runs its messages need. */
unsigned	 collector_runs(const struct collector *);
/*
 * The number of further messages that its slots have room for; one that must run alone
 * takes a slot.
 */
unsigned	 collector_wants(const struct collector *);
/* A batch that is not full has a slot. */
bool		 collector_is_filling(const struct collector *);

/* See consumer_each(). */
void		 collector_each(const struct collector *,
		    void (*)(const struct message *, pid_t, const char *progress, usec_t age,
		    void *), void *);
