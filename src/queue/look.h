/*
 * Looking at what kinds without leases have in Redis: QPAUSED, and the list Q
 * where there is one.  While it is on it keeps those keys armed, so that Redis
 * says when one changes; where tracking is refused it polls.
 */
#ifndef RQD_QUEUE_LOOK_H
#define RQD_QUEUE_LOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "loop/timer.h"
#include "queue/evict.h"
#include "queue/keys.h"
#include "queue/queue.h"

/* What a look has found. */
struct looked {
	const char	*warning;	/* about looking; NULL: none */
	const char	*refused;	/* why Redis did not let it look; NULL: the rest is true */
	int64_t		 waiting;	/* 0 without a list */
	bool		 paused;
	const char	*why;		/* of the pause; texts are borrowed for the call */
};

struct look {
	const struct queue_env	*env;
	const struct keys	*keys;
	bool			 list;		/* Q is a list to be looked at */
	bool			 on;
	bool			 dirty;		/* something changed since the script was sent */
	bool			 paused;	/* the last look saw a pause */
	struct evict		 evict;		/* whether Redis keeps the armed keys */
	const char		*warning;	/* for the next saw() */
	unsigned		 failures;	/* in a row */
	struct look_call	*call;		/* on its way; NULL: none */
	struct watch_key	 watch[2];
	struct timer		 again;
	void			(*saw)(const struct looked *, void *);
	void			 *arg;
};

/*
 * saw() comes from the loop after every look; one that was refused is tried again
 * after a backoff.  keys are borrowed.
 */
void	look_init(struct look *, const struct queue_env *, const struct keys *, bool list,
	    void (*saw)(const struct looked *, void *), void *arg);
void	look_done(struct look *);

/* On: looks now, and whenever something changes; off: not at all.  Either again is no-op. */
void	look_set(struct look *, bool on);

/* Looks again if it is on: every 10 s, for safety. */
void	look_again(struct look *);

#endif
