/*
 * The watcher of a queue that delivers at least once: it finds out whether there is
 * work.
 *
 * It decides when the owner should fetch, and when it should send the arm script.  It
 * sends nothing itself and knows no connection.  The owner passes the answers of the
 * scripts and the changes of keys to it.  watcher.c draws its states.
 *
 * The owner calls watcher_look() once, at the end of a turn in which something changed.
 * It does so only while a fetch is possible: connected, and no fetch under way.
 */
#pragma once

#include <stdbool.h>

#include "base/clock.h"
#include "loop/loop.h"
#include "queue/keys.h"

struct watcher;

enum watcher_state {
	WATCHER_IDLE,		/* no change will be reported: the next look arms the keys */
	WATCHER_ARMING,		/* the arm script is on its way */
	WATCHER_OUTDATED,	/* the arm script is on its way, and a key has changed since */
	WATCHER_ARMED		/* Redis reports the next change, or the poll timer is set */
};

enum watcher_advice {
	WATCHER_WAIT,		/* nothing to do */
	WATCHER_ARM,		/* send the arm script; watcher_armed() takes its answer */
	WATCHER_FETCH		/* fetch; no more advice until watcher_fetching() */
};

/* All of them come from the loop: from timers, or from watcher_key_changed(). */
struct watcher_events {
	void	(*wake)(void *);	/* look at the end of this turn */
	void	(*promote)(void *);	/* the first delayed message is due: a tick must move it */
	void	(*warn)(const char *, void *);
};

/* The answer of the arm script. */
struct watcher_found {
	bool	tracked;	/* tracking was on when it was sent */
	bool	waiting;	/* the source has messages to deliver */
	bool	full;		/* fleet_concurrency is reached */
	bool	paused;
	usec_t	pause_left;	/* -1: no end is known */
	usec_t	retry_in;	/* until QRETRY's first is due; 0: now; -1: none */
	usec_t	delayed_in;	/* the same for QDELAYED, or for the source */
};

/* The answer to a pop. */
struct watcher_popped {
	bool	any;		/* it has taken messages */
	bool	waiting;	/* the source has more */
	bool	due;		/* QRETRY has more that are due */
	bool	full;		/* fleet_concurrency has held messages back ... */
	usec_t	rate_wait;	/* ... or the rate has, for this long; 0: no */
	bool	late;		/* it came after its deadline and did nothing */
	bool	paused;
};

/*
 * promotes: ticks move delayed messages to where pops find them; false: pops find them
 * by themselves.  fleet: the number of daemons; NULL or 0: unknown.
 */
struct watcher	*watcher_new(struct loop *, const unsigned *fleet, bool promotes,
		    const struct watcher_events *, void *arg);
void		 watcher_free(struct watcher *);

/* Connected: nothing is known, so a pop is worth it.  Disconnected: no key is watched. */
void		 watcher_up(struct watcher *);
void		 watcher_down(struct watcher *);
/* Settings have changed: forgets limits and armed keys. */
void		 watcher_reconfigure(struct watcher *);
/* Every 10 s: arms the keys anew. */
void		 watcher_round(struct watcher *);

/* The engine can run a message from now on, or cannot: call it when that changes. */
void		 watcher_want(struct watcher *, bool);
/* found: a fetch can deliver messages without a pop. */
enum watcher_advice watcher_look(struct watcher *, bool found);
/* The engine fetches, after the advice WATCHER_FETCH. */
void		 watcher_fetching(struct watcher *);

/*
 * A key that the arm script reads has changed.  busy: the share of slots that are
 * taken, 0 to 1.
 */
void		 watcher_key_changed(struct watcher *, enum key, double busy);

/* Takes the answer of the arm script; returns true if a pause has begun or ended. */
bool		 watcher_armed(struct watcher *, const struct watcher_found *);
/* No answer came: the connection was lost. */
void		 watcher_arm_lost(struct watcher *);
/* Redis has refused the arm script; the next try comes after a backoff of at most `most`. */
void		 watcher_arm_refused(struct watcher *, usec_t most);

/* Takes the answer to a pop; returns true if a pause has begun or ended. */
bool		 watcher_popped(struct watcher *, const struct watcher_popped *);
/* Redis has refused the pop: no advice to fetch for a second. */
void		 watcher_pop_refused(struct watcher *);

/*
 * Another script has seen work, or a pop's outcome is unknown: the next look advises a
 * fetch.
 */
void		 watcher_saw_work(struct watcher *);
/*
 * Another script has seen when QRETRY's first is due (as retry_in); returns true if it
 * is due.  ours: this daemon put it there, so other daemons may not know it.
 */
bool		 watcher_saw_retry(struct watcher *, usec_t in, bool ours);
/* The first message in QDELAYED, or in the source, is due after this time. */
void		 watcher_saw_delayed(struct watcher *, usec_t in);

/* Look again in a second at the latest. */
void		 watcher_poll(struct watcher *);
/* Whether messages that are being loaded take all the slots granted to a fetch. */
void		 watcher_set_no_room(struct watcher *, bool);

enum watcher_state watcher_state(const struct watcher *);
bool		 watcher_is_wanted(const struct watcher *);
bool		 watcher_will_fetch(const struct watcher *);	/* wanted, and there may be work */
/* Whether the last look of this connection found nothing. */
bool		 watcher_is_empty(const struct watcher *);
