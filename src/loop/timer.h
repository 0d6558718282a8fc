/*
 * One-shot timers on the monotonic clock, embedded in their owners.  The loop
 * keeps them in a heap, so ten thousand cost no more per turn than ten.  A timer that
 * is set from a timer's callback never fires in the same run, even with a delay of 0.
 */
#pragma once

#include <stdbool.h>

#include "base/clock.h"
#include "loop/io.h"
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

/*
 * A one-shot timer on CLOCK_BOOTTIME.  If it falls due while the machine sleeps it
 * fires at once on wake-up.  Use it for deadlines that also hold outside of this
 * process, such as the end of a lock in Redis.
 */
struct boot_timer {
	struct io	 io;
	int		 fd;		/* timerfd; owned */
	void		(*fn)(void *);
	void		*arg;
};

void	boot_timer_init(struct boot_timer *, struct loop *, void (*fn)(void *), void *arg);
void	boot_timer_set_at(struct boot_timer *, boot_t);		/* moves one that is set */
void	boot_timer_stop(struct boot_timer *);
void	boot_timer_done(struct boot_timer *);

/* A part of a turn: fires due timers; the time of the next one (USEC_MAX: never). */
void	timer_run_due(struct loop *);
usec_t	timer_next(const struct loop *);
