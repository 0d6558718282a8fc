/*
 * The pops of a queue that delivers at least once.  A pop's outcome is unknown if its
 * reply was lost, or was an error that may have come after the first write.
 *
 * As soon as Redis is back, and before the next pop, the script mine asks what such a
 * pop has taken.  A server may read the old connection's pop after the new one's
 * question.  So mine asks once more when the pop's deadline has passed, after which the
 * pop does nothing.
 *
 * This module sends nothing.  It gives its owner the words of pop and mine, and the
 * owner tells it their answers.  pop.c draws the states of a pop.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "loop/loop.h"
#include "policy/turn.h"
#include "redis/reply.h"
#include "redis/words.h"

struct pops;
struct pop_call;

/* The parameters of a pop. */
struct pop_terms {
	unsigned	n;		/* messages at most */
	enum turn	turn;
	/* the room that a message takes which has failed before; 0: no batches */
	unsigned	batch;
	unsigned	room;		/* messages that the free runs can take */
	uint64_t	inline_max;	/* a larger payload comes as its length only */
	int		fleet_concurrency;
	double		gap;		/* seconds between two messages of the rate; 0: none */
	usec_t		timeout;	/* the pop does nothing if it runs later */
	double		redis_now;	/* seconds; 0: unknown */
};

/* One page of mine's answer. */
struct mine_page {
	const char	*from;		/* where the next page begins; "": this is the last */
	int64_t		 offset;
	bool		 found;		/* the page has messages of the pop */
	bool		 took;		/* by Redis' note, the pop has taken messages */
};

/*
 * instance is unique in the fleet and per start.  The first due_first messages of
 * TURN_SHARE prefer due retries.  ask() comes from the loop: call pops_to_ask().
 */
struct pops	*pops_new(struct loop *, const char *instance, unsigned due_first,
		    void (*ask)(void *), void *arg);
void		 pops_free(struct pops *);
void		 pops_up(struct pops *);	/* connected: all questions are asked anew */

/* -- a pop, one at a time --------------------------------------------------- */

void		 pops_begin(struct pops *, const struct pop_terms *, struct words *);
bool		 pops_is_sent(const struct pops *);
/*
 * The pop has ended: with a reply (took: it had messages), without a reply (unknown:
 * it may have run), or with an error.  text becomes pops_error(); NULL leaves that as it
 * is.
 */
void		 pops_replied(struct pops *, bool took);
void		 pops_ended(struct pops *, bool unknown);
void		 pops_refused(struct pops *, enum reply_error, const char *text);
/* The error of the last pop; NULL: none, or a later pop or mine was answered. */
const char	*pops_error(const struct pops *);

/* -- unknown outcomes ------------------------------------------------------- */

/* The next pop that mine must ask about now; NULL: none. */
struct pop_call	*pops_to_ask(struct pops *);
/*
 * Adds the words of mine about this pop.  Its answer goes to one of the three functions
 * below.
 */
void		 pops_add_question(struct pops *, struct pop_call *, uint64_t inline_max,
		    struct words *);
void		 pops_mine_lost(struct pop_call *);
/* mine was refused: pops_to_ask() has the pop again after a backoff of at most `most`. */
void		 pops_mine_refused(struct pops *, struct pop_call *, usec_t most);
/* Takes one page of the answer.  It may free the pop, or make it due in pops_to_ask(). */
void		 pops_mine_page(struct pops *, struct pop_call *, const struct mine_page *);

/* An outcome is unknown, and mine has not answered yet: no pop may be sent. */
bool		 pops_is_unsure(const struct pops *);
bool		 pops_is_idle(const struct pops *);	/* none is on its way or unknown */

/*
 * A renewal includes the messages that pops without a reply may have taken.
 * pops_is_late(): a pop is of unknown outcome, or its reply should be here by now.
 * pops_add_late() adds the number of such pops, then CALL FROM for each.
 */
bool		 pops_is_late(const struct pops *, usec_t renew_interval);
void		 pops_add_late(const struct pops *, usec_t renew_interval, struct words *);

/* -- numbers ---------------------------------------------------------------- */

/* Pops and rescues have rising numbers, each of them once in a process. */

/*
 * Adds the words of a rescue: its name and the last number.  *number: the rescue's; 0:
 * it gets one.
 */
void		 pops_add_rescue(const struct pops *, uint64_t *number, struct words *);
/* The call of this number has taken messages, and Redis has a note of it. */
void		 pops_saw_number(struct pops *, uint64_t);
/* Adds the name, INSTANCE.NUMBER, of the last call that has taken messages. */
void		 pops_add_last(const struct pops *, struct words *);
/* Redis may have a note of our pops; false after it was told to remove it. */
bool		 pops_is_noted(const struct pops *);
void		 pops_set_noted(struct pops *, bool);
