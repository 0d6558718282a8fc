/*
 * The deliveries of one queue: their states, the results that it keeps, and
 * their leases.
 *
 * ledger_move() is the only function that changes the state of a delivery:
 *
 *	LOADING <-> FOUND -> IN_HAND -> KEPT <-> SENT -> DONE
 *	   |          |                  ^        ^|
 *	   '----------'--- given back ---'        |v
 *	                                        REFUSED
 *
 * A stale one goes from KEPT to DONE, and every one does when the queue is freed.
 *
 * The ledger sends nothing and calls nobody but renew().  It says which deliveries
 * a renewal holds, and what each answer to it means.  A renewal is due every third
 * of the lease, every 10 s at least, so that a foreign consumer with a timeout of
 * 30 s does not take what rqd works on.
 */
#ifndef RQD_QUEUE_LEDGER_H
#define RQD_QUEUE_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/list.h"
#include "loop/loop.h"
#include "policy/message.h"
#include "policy/outcome.h"

enum delivery_state {
	DELIVERY_FOUND,		/* ours; not handed to the engine yet */
	DELIVERY_LOADING,	/* ours; its payload must be fetched */
	DELIVERY_IN_HAND,	/* the engine has it */
	DELIVERY_KEPT,		/* has a result that must be sent */
	DELIVERY_SENT,		/* the result is on its way */
	DELIVERY_REFUSED,	/* has a result that Redis refused: sent again when due */
	DELIVERY_DONE		/* confirmed or given up: msg is NULL, no list has it */
};
#define DELIVERY_LISTS	DELIVERY_DONE

/*
 * A delivery: its state, and facts about it.  Once set, a fact stays set; only
 * may_have_acted is ever unset.
 */
struct delivery {
	TAILQ_ENTRY(delivery)	 entry;		/* on the list of its state; not DONE */
	enum delivery_state	 state;		/* read only: see ledger_move() */
	unsigned		 calls;		/* batches that hold it; freed with the last one */
	struct message		*msg;		/* owned */
	size_t			 taglen;	/* a tag written by hand may hold NUL */
	unsigned		 idlen;		/* of the tag: as QDELIVERY has it */
	size_t			 bytes;		/* its part of ledger_tally.bytes */
	bool			 asked;		/* LOADING: body is on its way */
	/* LOADING: how often the connection ended instead */
	unsigned		 refused;

	bool			 from_engine;	/* from KEPT on: the engine gave its result */
	/* from IN_HAND on: the engine was told that it is not ours */
	bool			 lost;
	bool			 taken;		/* a renewal said that a foreign consumer took it */
	bool			 usurped;	/* Redis lost it, and another message has its tag */
	bool			 keeps_slot;	/* it was REFUSED, and is not DONE */

	/* From KEPT on: */
	struct verdict		 verdict;
	struct result		 result;	/* owned */
	bool			 rescue;	/* Redis lost it: send rescue, not settle */
	bool			 may_have_acted; /* sent before; the answer was lost, or an error */
	/* number of a rescue that may have acted; 0: none */
	uint64_t		 rescue_call;
	unsigned		 refusals;	/* in a row, of it alone */
	unsigned		 most;		/* results that a call with it may hold; 0: any */
	usec_t			 due;		/* mono: REFUSED: not sent before */
};

/* It has messages for other queues, which are pushed when it is acked. */
bool		 delivery_hands_over(const struct delivery *);

struct ledger;

struct ledger_tally {
	unsigned	count[DELIVERY_LISTS];	/* deliveries by state */
	unsigned	refused;	/* that keep a slot, because Redis refused their results */
	unsigned	departures;	/* rises each time that one stops to be LOADING, or FOUND */
	/*
	 * Of the payloads of batches' messages, those that are LOADING included, and of what
	 * kept results hand over.  A message counts as CONFIG_RUN_BYTES at most.
	 */
	uint64_t	bytes;
};

/* renew() comes from the loop, when a renewal is due. */
struct ledger	*ledger_new(struct loop *, usec_t lease, void (*renew)(void *), void *arg);
/* Frees every delivery; one that a batch still holds, with that batch. */
void		 ledger_free(struct ledger *);
void		 ledger_set_lease(struct ledger *, usec_t);

/* -- deliveries ------------------------------------------------------------- */

/* Takes the message and sets its queue_data.  The new delivery is FOUND. */
struct delivery	*ledger_add(struct ledger *, struct message *, size_t taglen, size_t idlen,
		    boot_t ours_at);
/* To DONE: also frees the message and the result, and the delivery unless a batch holds it. */
void		 ledger_move(struct ledger *, struct delivery *, enum delivery_state);
/* Copies the verdict, takes what the result owns, and moves to KEPT. */
void		 ledger_keep(struct ledger *, struct delivery *, const struct verdict *,
		    struct result *);
/* KEPT: FOUND ones, and LOADING ones if loading, go back as they were.  False: none. */
bool		 ledger_give_back(struct ledger *, bool loading);
/* Moves one that is FOUND among those of its pop, in the order of the pop. */
void		 ledger_sort(struct ledger *, struct delivery *);

struct delivery	*ledger_first(const struct ledger *, enum delivery_state);
struct delivery	*ledger_next(const struct delivery *);	/* of the same state */
const struct ledger_tally *ledger_tally(const struct ledger *);	/* always up to date */
bool		 ledger_is_empty(const struct ledger *);
bool		 ledger_has_token(const struct ledger *, const char *token);
/*
 * The first that is FOUND and whose lease surely holds; NULL: none.  A daemon that was
 * stopped for longer than the lease finds the reply of its pop in the socket, and another
 * daemon may have finished that message: it is renewed before it is handed out.
 */
struct delivery	*ledger_found(const struct ledger *);
/* One that is FOUND waits for a renewal that was not sent yet. */
bool		 ledger_is_unsure(const struct ledger *);

/* -- batches ---------------------------------------------------------------- */

/* The deliveries that one call is about.  Zero it to start. */
struct delivery_batch {
	struct delivery	**v;
	size_t		  n;
	bool		  retry;	/* the settler's: they were refused before */
	bool		  over;		/* the settler's: the daemon has no others */
};

void		 batch_add(struct delivery_batch *, struct delivery *);
void		 batch_done(struct delivery_batch *);	/* the call is over */

/* -- leases ----------------------------------------------------------------- */

usec_t		 ledger_renew_interval(const struct ledger *);
/* The longest pause after Redis has refused something: one interval, at least 1 s. */
usec_t		 ledger_patience(const struct ledger *);
/* Sets the time of a renewal, unless one is set: for a pop whose reply will need it. */
void		 ledger_expect(struct ledger *);
/* A renewal failed: the next one comes within a second. */
void		 ledger_renew_soon(struct ledger *);
/* See queue_renew().  Nothing where no renewal is expected. */
void		 ledger_renew_hint(struct ledger *);
/*
 * Begins a renewal, and sets the time of the next.  Returns false if there is nothing to
 * renew; pops says that pops without a reply may have taken something.
 */
bool		 ledger_begin_renewal(struct ledger *, bool pops);
/* Calls send() for each batch of a renewal; send() calls batch_done(), now or later. */
void		 ledger_renewals(struct ledger *, void (*send)(struct delivery_batch *, void *),
		    void *arg);

/* The action that the caller must take after an answer to a renewal. */
enum lease {
	LEASE_SEEN,		/* nothing; its state may have changed */
	/* See msg->cancel.  IN_HAND: tell the engine to end its handler; REFUSED: settle it so */
	LEASE_CANCELLED,
	LEASE_LOST,		/* tell the engine that it is not ours any more */
	LEASE_UNCLEAR		/* compare the payloads (rescue's check), then ledger_checked() */
};
/* answer: one number of renew.lua's reply; sent_at: when the call was sent. */
enum lease	 ledger_renewed(struct ledger *, struct delivery *, int64_t answer, boot_t sent_at);
/* other: another message has the tag, or none has it. */
enum lease	 ledger_checked(struct ledger *, struct delivery *, bool other);

#endif
