/*
 * The event loop: libevent's base, signals as events, and deferred calls.
 *
 * Only this floor and status/http.c use libevent.  A turn of the loop handles
 * events, then due timers, then deferred calls until there are none.  Objects with
 * callbacks are freed in deferred calls only, never while a caller uses them.
 *
 * A simulated loop has no descriptors and no signals.  It runs deferred calls and
 * timers; when none is due it moves the fake clock to the next timer.  Tests run an
 * hour of retries in a millisecond.
 */
#pragma once

#include <stdbool.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/util.h"

struct event_base;
struct loop;

/*
 * The stages of the end of a turn.  A call of a later one runs when there is none of an earlier
 * one.
 */
enum loop_stage {
	LOOP_DIGEST,	/* what has come */
	LOOP_ALLOT,	/* slots, among all that want some now */
	LOOP_SEND,	/* to Redis */
	LOOP_FEED,	/* the input of handlers: Redis works meanwhile */
	LOOP_STAGES
};

/* Embedded in the object that it frees or runs; zeroed, but for its stage, to start. */
struct defer {
	TAILQ_ENTRY(defer)	 entry;
	void			(*fn)(void *);
	void			*arg;
	enum loop_stage		 stage;		/* set by the owner */
	bool			 queued;
};

struct loop	*loop_new(void);		/* never NULL: failure is fatal */
struct loop	*loop_new_simulated(void);	/* the fake clock must be on */
void		 loop_free(struct loop *);	/* NULL is fine; first runs deferred calls */

/* Runs until loop_stop(); a simulated loop also until no timer and no call is left. */
void		 loop_run(struct loop *);
void		 loop_stop(struct loop *);	/* after this turn */

/* Simulated: runs until the fake clock has moved by this much. */
void		 loop_run_for(struct loop *, usec_t);

/* One turn, at most this long (0: do not wait).  Tests. */
void		 loop_turn(struct loop *, usec_t max);

/*
 * Calls fn(arg) at the end of this turn.  Does nothing if the defer is already queued.
 * A call deferred from a deferred call runs in the same turn.
 */
void		 loop_defer(struct loop *, struct defer *, void (*fn)(void *), void *arg);
void		 loop_defer_cancel(struct loop *, struct defer *);

/*
 * Sets the one callback of a signal; the loop calls it, never in signal context.  A signal
 * that was blocked is unblocked: one that came before is heard, too.
 * loop_free() leaves the signals ignored that the loop watches.
 */
void		 loop_signal(struct loop *, int signo, void (*fn)(int, void *), void *arg);

/* For evhttp; NULL on a simulated loop. */
struct event_base *loop_base(struct loop *);
