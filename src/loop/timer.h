/*
 * One-shot timers on the monotonic clock, embedded in their owners.  The loop
 * keeps them in a heap, so ten thousand cost no more per turn than ten.  A timer that
 * is set from a timer's callback never fires in the same run, even with a delay of 0.
 */
#ifndef RQD_LOOP_TIMER_H
#define RQD_LOOP_TIMER_H

#include <stdbool.h>

#include "base/clock.h"
#include "loop/loop.h"

struct timer {
	struct loop	 *loop;
	void		(*fn)(void *);
	void		 *arg;
	usec_t		  at;		/* valid while pos > 0 */
	unsigned	  pos;		/* 1-based place in the heap; 0: not set */
};

void	timer_init(struct timer *, struct loop *, void (*fn)(void *), void *arg);
/* From now; moves one that is set; after < 0 counts as 0. */
void	timer_set(struct timer *, usec_t after);
void	timer_set_at(struct timer *, usec_t mono);
void	timer_stop(struct timer *);			/* also of a zeroed timer */
bool	timer_is_set(const struct timer *);
usec_t	timer_left(const struct timer *);	/* until it fires; 0: overdue, or not set */

/* For loop.c: fires what is due, and says when the next is due (USEC_MAX: never). */
void	timer_run_due(struct loop *);
usec_t	timer_next(struct loop *);

#endif
