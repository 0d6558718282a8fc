/*
 * The deliveries of one queue: their states, results and leases.
 *
 * ledger_move() is the only function that changes the state of a delivery:
 *
 *	LOADING <-> FOUND -> IN_HAND -> KEPT <-> SENT -> DONE
 *	   |          |                  ^        ^|
 *	   '----------'--- given back ---'        |v
 *	                                        REFUSED
 *
 * A stale delivery goes from KEPT to DONE.  When the queue is freed, every delivery
 * goes to DONE.
 *
 * The ledger sends nothing, and its only callback is renew().  It tells the owner which
 * deliveries to renew, and what each answer to a renewal means.  A renewal is due every
 * third of the lease, but at least every 10 s.  So a foreign consumer with a timeout of
 * 30 s does not take a message that rqd works on.
 */
#pragma once

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
 * A delivery: its state, and facts about it.  Once true, a flag stays true, but for
 * `asked` and may_have_acted.
 */
struct delivery {
	TAILQ_ENTRY(delivery)	 entry;		/* on the list of its state; not DONE */
	enum delivery_state	 state;		/* read only: see ledger_move() */
	unsigned		 calls;		/* batches that hold it; the last one frees it */
	struct message		*msg;		/* owned */
	size_t			 taglen;	/* a tag written by hand may hold NUL */
	unsigned		 idlen;		/* of the tag; as QDELIVERY has it */
	size_t			 bytes;		/* its part of ledger_tally.bytes */
	bool			 asked;		/* LOADING: body is on its way */
	/* LOADING: how often Redis gave no payload */
	unsigned		 refused;

	bool			 from_engine;	/* from KEPT on: the engine gave its result */
	/* from IN_HAND on: the engine knows that it is no longer ours */
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

/* Whether it has messages for other queues, which are pushed when it is acked. */
bool		 delivery_hands_over(const struct delivery *);

struct ledger;

struct ledger_tally {
	unsigned	count[DELIVERY_LISTS];	/* deliveries by state */
	unsigned	refused;	/* that keep a slot, because Redis refused their results */
	unsigned	departures;	/* counts deliveries that have left LOADING or FOUND */
	/*
	 * Bytes of the payloads of batches' messages (also LOADING ones), and of the
	 * messages that kept results hand over.  Each payload counts as
	 * CONFIG_RUN_BYTES at most.
	 */
	uint64_t	bytes;
};

/* renew() comes from the loop, when a renewal is due. */
struct ledger	*ledger_new(struct loop *, usec_t lease, void (*renew)(void *), void *arg);
/* Frees every delivery; a delivery that a batch still holds is freed with that batch. */
void		 ledger_free(struct ledger *);
void		 ledger_set_lease(struct ledger *, usec_t);

/* -- deliveries ------------------------------------------------------------- */

/* Takes the message and sets its queue_data.  The new delivery is FOUND. */
struct delivery	*ledger_add(struct ledger *, struct message *, size_t taglen, size_t idlen,
		    boot_t ours_at);
/*
 * The only function that changes the state.  DONE: frees the message and the result,
 * and the delivery unless a batch holds it.
 */
void		 ledger_move(struct ledger *, struct delivery *, enum delivery_state);
/* Copies the verdict, takes what the result owns, and moves to KEPT. */
void		 ledger_keep(struct ledger *, struct delivery *, const struct verdict *,
		    struct result *);
/*
 * Makes all FOUND deliveries KEPT, to be returned uncounted; if loading, LOADING ones
 * too.  Returns false if there was none.
 */
bool		 ledger_give_back(struct ledger *, bool loading);
/* Moves a FOUND delivery to its place among those of its pop, in the order of the pop. */
void		 ledger_sort(struct ledger *, struct delivery *);

struct delivery	*ledger_first(const struct ledger *, enum delivery_state);
struct delivery	*ledger_next(const struct delivery *);	/* of the same state */
const struct ledger_tally *ledger_tally(const struct ledger *);	/* always up to date */
bool		 ledger_is_empty(const struct ledger *);
bool		 ledger_has_token(const struct ledger *, const char *token);
/*
 * The first FOUND delivery whose lease surely holds; NULL: none.  A daemon that was
 * stopped for longer than the lease finds the reply of its pop in the socket.  Another
 * daemon may have finished that message, so it must be renewed before it is handed out.
 */
struct delivery	*ledger_found(const struct ledger *);
/* A FOUND delivery waits for a renewal that was not sent yet. */
bool		 ledger_is_unsure(const struct ledger *);

/* -- batches ---------------------------------------------------------------- */

/* The deliveries that one call is about.  Zero it to start. */
struct delivery_batch {
	struct delivery	**v;
	size_t		  n;
	bool		  retry;	/* settler: Redis has refused these before */
	bool		  over;		/* settler: the daemon has no other deliveries */
};

void		 batch_add(struct delivery_batch *, struct delivery *);
void		 batch_done(struct delivery_batch *);	/* the call is over */

/* -- leases ----------------------------------------------------------------- */

usec_t		 ledger_renew_interval(const struct ledger *);
/* The longest pause after Redis has refused a call: one interval, at least 1 s. */
usec_t		 ledger_patience(const struct ledger *);
/* Sets the time of the next renewal, unless it is set: call it for a pop that is sent. */
void		 ledger_expect(struct ledger *);
/* A renewal failed: the next one comes within a second. */
void		 ledger_renew_soon(struct ledger *);
/* See queue_renew().  Does nothing if no renewal is expected. */
void		 ledger_renew_hint(struct ledger *);
/*
 * Begins a renewal, and sets the time of the next.  Returns false if there is nothing
 * to renew; pops: pops without a reply may have taken messages.
 */
bool		 ledger_begin_renewal(struct ledger *, bool pops);
/* Calls send() for each batch of a renewal; send() calls batch_done(), now or later. */
void		 ledger_renewals(struct ledger *, void (*send)(struct delivery_batch *, void *),
		    void *arg);

/* The action that the caller must take after an answer to a renewal. */
enum lease {
	LEASE_SEEN,		/* none; the state may have changed */
	/* See msg->cancel.  IN_HAND: tell the engine to end its handler; REFUSED: settle it so */
	LEASE_CANCELLED,
	LEASE_LOST,		/* tell the engine that it is no longer ours */
	LEASE_UNCLEAR		/* compare payloads (rescue.lua's check), then ledger_checked() */
};
/* answer: one number of renew.lua's reply; sent_at: when the call was sent. */
enum lease	 ledger_renewed(struct ledger *, struct delivery *, int64_t answer, boot_t sent_at);
/* other: true if another message has the tag, or none has it. */
enum lease	 ledger_checked(struct ledger *, struct delivery *, bool other);
