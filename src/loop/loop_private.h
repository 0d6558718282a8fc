/* The inside of a loop, for the files of this folder only. */
#pragma once

#include <signal.h>

#include "loop/io.h"
#include "loop/loop.h"
#include "loop/timer.h"

struct child_table;
struct event;

struct loop_signal {
	struct event	 *event;	/* owned; NULL: not watched */
	void		(*fn)(int, void *);
	void		 *arg;
};

struct loop {
	struct event_base	 *base;		/* NULL: simulated */
	int			  alarm_fd;	/* timerfd: a turn waits until alarm_at at most */
	struct io		  alarm;
	usec_t			  alarm_at;	/* mono; USEC_MAX: not set */
	bool			  stopping;	/* loop_stop() was called */

	struct defer_list	  deferred;
	struct defer_list	  last;		/* run when deferred is empty */
	struct defer_list	  feed;		/* run when both are empty */
	struct loop_signal	  signals[NSIG];	/* by their numbers */

	struct timer		**heap;		/* heap[1 .. timers]; [0] is unused */
	unsigned		  timers;
	unsigned		  heap_cap;
	bool			  firing;	/* timer_run_due() runs, and ... */
	usec_t			  firing_at;	/* ... fires timers due by then */

	struct io		  log_io;	/* watches log_waiting_fd() */
	struct child_table	 *children;	/* NULL but between child_init() and child_done() */
};

/* For loop_free(): stops all timers, and frees the heap. */
void	timer_forget_all(struct loop *);
