/*
 * Looks at the keys of kinds without leases: QPAUSED, and Q if it is a list.  While a
 * look is on, it keeps these keys armed, so that Redis reports changes.  If Redis
 * refuses tracking, it polls.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "loop/timer.h"
#include "queue/evict.h"
#include "queue/keys.h"
#include "queue/queue.h"

/* The findings of a look; the texts are borrowed for the call. */
struct looked {
	const char	*warning;	/* about looking; NULL: none */
	const char	*refused;	/* Redis' error; NULL: the members below are valid */
	int64_t		 waiting;	/* 0 without a list */
	bool		 paused;
	const char	*why;		/* of the pause */
};

struct look {
	const struct queue_env	*env;
	const struct keys	*keys;
	bool			 list;		/* look at Q, too: it is a list */
	bool			 on;
	bool			 dirty;		/* a key has changed since the script was sent */
	bool			 paused;	/* the last look saw a pause */
	struct evict		 evict;		/* whether Redis keeps the armed keys */
	const char		*warning;	/* for the next saw() */
	unsigned		 failures;	/* in a row */
	struct request		 request;
	bool			 armed;		/* the request: tracking was on */
	struct watch_key	 watch[2];
	struct timer		 again;
	void			(*saw)(const struct looked *, void *);
	void			 *arg;
};

/*
 * saw() comes from the loop after every look.  A look that Redis refused is repeated
 * after a backoff.  keys are borrowed.
 */
void	look_init(struct look *, const struct queue_env *, const struct keys *, bool list,
	    void (*saw)(const struct looked *, void *), void *arg);
void	look_done(struct look *);

/* On: looks now, and after each change.  Off: does not look.  No-op if nothing changes. */
void	look_set(struct look *, bool on);

/* Looks again if it is on.  The tick calls it, in case a wake-up was lost. */
void	look_again(struct look *);
