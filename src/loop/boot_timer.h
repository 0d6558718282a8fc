/*
 * A one-shot timer on CLOCK_BOOTTIME.  If it falls due while the machine sleeps it
 * fires at once on wake-up.  Use it for deadlines that also hold outside of this
 * process, such as the end of a lock in Redis.
 */
#ifndef RQD_LOOP_BOOT_TIMER_H
#define RQD_LOOP_BOOT_TIMER_H

#include "base/clock.h"
#include "loop/io.h"

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

#endif
