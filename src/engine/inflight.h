/*
 * A run of a handler (struct inflight), and one message that the engine has (struct held).
 *
 *	before the run		the held is on a list of the collector
 *	in the run		it is on inflight.messages
 *	with a result		it is on no list; in a batch it stays until Redis confirms that
 *
 * The queue owns the messages.  inflight_free() frees each held without a result.  In a
 * batch, the consumer frees each of the others when Redis has confirmed its result.
 *
 * A batch may finish single messages before its process ends.  The consumer keeps the batch
 * until Redis has confirmed all results, because one log record then counts the acks.
 */
#pragma once

#include <stdbool.h>

#include "base/list.h"
#include "handler/handler.h"
#include "policy/message.h"
#include "policy/outcome.h"

struct inflight;

/* One message that the engine has; the message's engine_data. */
struct held {
	TAILQ_ENTRY(held)	 entry;	/* of a list of the collector, or of inflight.messages */
	struct message	*msg;
	struct inflight	*flight;	/* NULL: no run has it yet */
	bool	 done;	/* on no list; the run may go on */
	/* in a batch that goes on: why the result of this message does not count */
	enum stop	 stop;
};
TAILQ_HEAD(held_list, held);

struct inflight {
	TAILQ_ENTRY(inflight)	 entry;	/* of its consumer */
	struct run	*run;	/* NULL: over */
	bool	 slot;	/* holds a slot of the dispatcher */
	bool	 probe;	/* begun while the queue was suspended */
	bool	 batch;	/* its messages are framed; also if it has only one */
	struct held_list	 messages;	/* without a result */
	unsigned	 size;	/* messages that it began with */
	unsigned	 live;	/* messages without a result that Redis still expects from us */
	/* A batch: */
	unsigned	 unconfirmed;	/* held that are done */
	unsigned	 acked;	/* confirmed by Redis */
	usec_t		 done_at;	/* mono: all have a result; 0: not all */
	bool		 reported;	/* by inflight_lingers() */
	/* that of its messages' verdicts that tells most about the command */
	struct verdict	 verdict;
	struct result	 result;	/* of the run; it owns nothing; valid if run is NULL */
	struct held	 only;	/* the message if it is no batch */
};
TAILQ_HEAD(inflight_list, inflight);

/* A message that waits for a run; sets its engine_data. */
struct held	*held_new(struct message *);
/* Also for a held that is part of an inflight. */
void		 held_free(struct held *);

/* Begins a run.  A batch takes all messages of the list, and leaves it empty. */
struct inflight	*inflight_start(struct handler *, struct message *);
struct inflight	*inflight_start_batch(struct handler *, struct held_list *, unsigned n);
/* Frees it with all that it has. */
void		 inflight_free(struct inflight *);

/*
 * This daemon may no longer settle the message.  Stops its handler, unless that has
 * other messages: then the run goes on, and the message's result is dropped.
 */
void		 inflight_stop_message(struct held *, enum stop);

/* The message has a result. */
void		 inflight_done(struct held *);
/* Keeps the verdict in inflight.verdict if it says more than the one there. */
void		 inflight_judge(struct inflight *, const struct verdict *);
/*
 * Returns true, once, if all its messages have had results for so long, and its process
 * goes on: it has a slot, but no message shows that.
 */
bool		 inflight_lingers(struct inflight *, usec_t after);
/* The run is over, and Redis has confirmed all its results. */
bool		 inflight_is_complete(const struct inflight *);
