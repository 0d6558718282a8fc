/*
 * The base of the kinds that deliver at most once: list, channel, pattern.
 *
 * Redis keeps nothing of a delivered message, so there are no leases, and a result is
 * only reported.  The base does deliveries, fetches, QPAUSED, the totals in QSTATS, and
 * closing.  A kind adds the source of messages.
 *
 * The base also looks at QPAUSED, and at Q if it is a list.  While a look is on, these keys
 * are armed, so that Redis reports changes.  If Redis refuses tracking, it polls.
 *
 * A kind's struct begins with a struct direct.  Every event calls direct_wake().  At
 * the end of that turn of the loop the base calls, in this order:
 *
 *	settled() for each delivery that is done; kind->settling() before it
 *	kind->step()
 *	kind->fetch(), while a fetch is open; the kind ends it by direct_fetched()
 *	ready(), if the engine wants it and kind->has_work() says so
 *	closed(), when the queue is closing and nothing is left to do
 */
#pragma once

#include "base/list.h"
#include "loop/timer.h"
#include "queue/evict.h"
#include "queue/keys.h"
#include "queue/queue.h"

/* The findings of a look; the texts are borrowed for the call. */
struct looked {
	const char	*refused;	/* Redis' error; NULL: the members below are valid */
	int64_t		 waiting;	/* 0 without a list */
	bool		 paused;
	const char	*why;		/* of the pause */
};

/*
 *	IN_HAND -> DONE
 *	IN_HAND -> GIVEN_BACK <-> PUSHING -> DONE	list; the message never began
 */
enum direct_state {
	DIRECT_IN_HAND,		/* the engine has it */
	DIRECT_GIVEN_BACK,	/* it waits to be pushed back to the list */
	DIRECT_PUSHING,		/* the push is in flight */
	DIRECT_DONE,		/* to be reported, then freed */
	DIRECT_STATES
};

/* One delivery, on the list of its state. */
struct direct_delivery {
	TAILQ_ENTRY(direct_delivery) entry;
	enum direct_state	 state;
	uint64_t		 place;		/* order of arrival */
	enum pop		 from;		/* list: the end that it came from */
	struct message		*msg;		/* owned, as is what the result holds */
	struct verdict		 verdict;	/* in all states but IN_HAND: */
	struct result		 result;
	/* no process had it: it may be delivered again */
	bool			 unbegun;
	enum settled		 how;		/* DONE: the outcome */
};
TAILQ_HEAD(direct_deliveries, direct_delivery);

struct direct {
	struct queue		  queue;	/* first */
	const struct direct_kind *kind;
	const struct queue_env	 *env;
	struct config		 *config;	/* reference; of the next messages */
	const struct queue_config *cfg;
	struct stats		 *stats;
	struct keys		  keys;

	struct request		  look;		/* one at a time */
	bool			  looking;	/* looks now, and after each change */
	bool			  armed;	/* tracking was on when it was sent */
	bool			  changed;	/* a key has changed since */
	unsigned		  refusals;	/* of looks, in a row */
	struct evict		  evict;	/* whether Redis keeps the armed keys */
	struct watch_key	  watch[2];	/* QPAUSED and Q */
	struct timer		  look_again;

	struct request		  totals;	/* sends the counters to QSTATS */
	uint64_t		  counted[STAT_MAX];	/* stats->n when they were sent */
	bool			  totals_refused;	/* Redis refused the last ones */
	struct defer		  turn;
	struct direct_deliveries  deliveries[DIRECT_STATES];
	uint64_t		  places;	/* number of messages that have come */
	unsigned		  asked;	/* by queue_fetch(); 0: no fetch is open */
	enum turn		  fetch_turn;
	bool			  wanted;
	bool			  offered;	/* ready() was called, and no fetch since */
	bool			  paused;	/* the last state that the engine heard */
	bool			  closing;
	bool			  closed;
};

struct direct_kind {
	const struct queue_ops	*ops;
	bool	looks_always;	/* true: look at QPAUSED only, always; false: at Q too, when idle */
	void	(*saw)(struct direct *, const struct looked *);
	void	(*settling)(struct direct *, struct direct_delivery *);	/* may be NULL */
	void	(*step)(struct direct *);
	void	(*fetch)(struct direct *);
	bool	(*has_work)(struct direct *);
};

void	direct_init(struct direct *, const struct direct_kind *, const struct queue_env *,
	    struct config *, const struct queue_config *, struct stats *,
	    const struct queue_events *, void *arg);
/* Reports unsettled messages as SETTLED_GAVE_UP, and frees the struct. */
void	direct_free(struct direct *);

void	direct_wake(void *);		/* a struct direct: timers call it, too */
void	direct_look_now(void *);	/* likewise, if looks are on; saw() follows */
void	direct_set_paused(struct direct *, bool, const char *why);

/*
 * Delivers the message that came as number `place`.  Takes the strings.  payload: NULL: it
 * was too large.  id: NULL: taken from the payload, or made up.  channel: may be NULL.
 */
struct direct_delivery *direct_deliver(struct direct *, uint64_t place, char *payload,
	    size_t len, char *id, char *channel);
/* Ends the fetch that is open. */
void	direct_fetched(struct direct *, unsigned got, enum fetch_status, const char *cause);

/*
 * direct_move() alone changes a delivery's state; direct_done() is a short form for
 * DIRECT_DONE.
 */
void	direct_move(struct direct *, struct direct_delivery *, enum direct_state);
void	direct_done(struct direct *, struct direct_delivery *, enum settled);
/* Whether there are deliveries in any state. */
bool	direct_has_deliveries(const struct direct *);

/* Functions for the kind's table. */
void	direct_reconfigure(struct queue *, struct config *, const struct queue_config *);
void	direct_conn_down(struct queue *);
void	direct_want(struct queue *, bool);
void	direct_fetch(struct queue *, unsigned, enum turn);
void	direct_settle(struct queue *, struct message *, const struct verdict *, struct result *);
void	direct_tick(struct queue *);
void	direct_close(struct queue *);
