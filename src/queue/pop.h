/*
 * The pops of a queue that delivers at least once, and those whose outcome is
 * unknown: the reply was lost, or was an error that may have come after the first
 * write.
 *
 * As soon as Redis is back, and before the next pop, the script mine asks what such a
 * pop has taken.  A server may read the old connection's pop after the new one's
 * question.  So mine asks once more when the pop's deadline has passed, after which the
 * pop does nothing.
 *
 * This module sends nothing.  It gives the words of pop and mine, and is told what
 * they have answered.  pop.c draws the states of a pop.
 */
#ifndef RQD_QUEUE_POP_H
#define RQD_QUEUE_POP_H

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
	/* 0: no batches; else a message that has failed before takes so much of the room */
	unsigned	batch;
	unsigned	room;		/* messages that the free runs can take */
	uint64_t	inline_max;	/* of a larger payload only the length is sent */
	int		fleet_concurrency;
	double		gap;		/* seconds between two messages of the rate; 0: none */
	usec_t		timeout;	/* after it the pop does nothing */
	double		redis_now;	/* seconds; 0: unknown */
};

/* One page of what mine has answered. */
struct mine_page {
	const char	*from;		/* the next page begins there; "": this is the last */
	int64_t		 offset;
	bool		 found;		/* messages of the pop are on it */
	bool		 took;		/* Redis notes that the pop has taken something */
};

/*
 * instance is unique in the fleet and per start.  The first due_first messages of
 * TURN_SHARE prefer due retries.  ask() comes from the loop: call pops_to_ask().
 */
struct pops	*pops_new(struct loop *, const char *instance, unsigned due_first,
		    void (*ask)(void *), void *arg);
void		 pops_free(struct pops *);
void		 pops_up(struct pops *);	/* connected: all questions begin anew */

/* -- a pop, one at a time --------------------------------------------------- */

void		 pops_begin(struct pops *, const struct pop_terms *, struct words *);
bool		 pops_is_sent(const struct pops *);
/*
 * Its end: a reply (took: with messages), no reply (acted: it may have), or an error
 * (text, for pops_error(); NULL: that stays as it is).
 */
void		 pops_replied(struct pops *, bool took);
void		 pops_lost(struct pops *, bool acted);
void		 pops_refused(struct pops *, enum reply_error, const char *text);
/* The error of the last pop, until a pop or mine has answered; NULL: none. */
const char	*pops_error(const struct pops *);

/* -- unknown outcomes ------------------------------------------------------- */

/* The next pop that mine must ask about now; NULL: none. */
struct pop_call	*pops_to_ask(struct pops *);
/* Words of mine about it: its answer comes to one of the next three. */
void		 pops_add_question(struct pops *, struct pop_call *, uint64_t inline_max,
		    struct words *);
void		 pops_mine_lost(struct pops *, struct pop_call *);
/* Asked again after a backoff of at most `most`. */
void		 pops_mine_refused(struct pops *, struct pop_call *, usec_t most);
/* May free the pop, or make it one of pops_to_ask(). */
void		 pops_mine_page(struct pops *, struct pop_call *, const struct mine_page *);

/* An outcome is unknown, and mine has not answered: no pop may be sent. */
bool		 pops_is_unsure(const struct pops *);
bool		 pops_is_idle(const struct pops *);	/* none is sent, none is unknown */

/*
 * A renewal holds what pops without a reply may have taken.  Late: there is one, or
 * the reply should be here by now.  The words: how many, then CALL FROM ...
 */
bool		 pops_is_late(const struct pops *, usec_t renew_interval);
void		 pops_add_late(const struct pops *, usec_t renew_interval, struct words *);

/* -- numbers ---------------------------------------------------------------- */

/* Pops and rescues have numbers, which rise; none comes twice in a process. */

/* The words of a rescue: its name and the last number; *number: its own; 0: it gets one. */
void		 pops_add_rescue(const struct pops *, uint64_t *number, struct words *);
/* The call of this number has taken something, and Redis has a note of it. */
void		 pops_saw_number(struct pops *, uint64_t);
/* The name, INSTANCE.NUMBER, of the last one that has taken something. */
void		 pops_add_last(const struct pops *, struct words *);
/* Redis may have a note of our pops; false after it was told to remove it. */
bool		 pops_is_noted(const struct pops *);
void		 pops_set_noted(struct pops *, bool);

#endif
