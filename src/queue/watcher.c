/*
 * Finds out whether there is work.  While the queue is wanted and no work is known, the
 * watcher arms the keys that the arm script reads: Redis reports their next change.  If
 * Redis refuses tracking, the watcher polls.
 *
 *	            look                   answer
 *	  IDLE ---------------> ARMING ----------------> ARMED
 *	  ^  ^                  |    |                    |
 *	  |  |       lost       |    | change             |
 *	  |  '------------------'    v                    |
 *	  |     answer, lost     OUTDATED                 |
 *	  |<-------------------------'                    |
 *	  '-----------------------------------------------'
 *	      change, timer, round, connection, settings
 *
 * Two facts do not depend on the state.  `work` says that a pop may find messages: a
 * queue that is wanted again sends a pop while its keys stay armed.  The timers say
 * when there will be work.
 *
 *	event			effect
 *	look			work: fetch.  IDLE: arm, unless a timer is set
 *	QUEUE changed		change; work, now or after a backoff
 *	QRETRY changed		change, now or after a delay
 *	QDELAYED changed	change, if this daemon is prompt
 *	QPAUSED changed		change
 *	QBACKUP changed		change and work, if the fleet was full
 *	retry, rate timer	work; ARMED: IDLE
 *	delayed timer		promote, or as the retry timer
 *	backoff timer		as the retry timer; after many misses only a look
 *	poll, retry_look timer	ARMED: IDLE
 *	arm refused		ARMED, with the poll timer
 *	pop refused		IDLE: ARMED, with the poll timer
 *
 * While the queue is paused, only changes of QPAUSED count; while the fleet is full,
 * only those of QPAUSED and QBACKUP.  A change while the arm script is on its way may
 * be later than its answer.
 *
 * In a fleet a change reaches every daemon without work, but mostly one of them is
 * enough:
 *
 * - QRETRY and QDELAYED mostly change because a message was put there for later.
 *   About three daemons of the fleet are prompt: they look at once.  Every 10 s they
 *   are drawn anew.  The others look at QRETRY later, so that enough daemons come when
 *   many messages have fallen due.  They ignore QDELAYED: the daemon that promotes a
 *   message wakes all of them by the push.  When a message falls due, the prompt
 *   daemons go first too, and the others see that it was taken.
 * - After a push, a daemon whose last pops found nothing backs off.  With N daemons it
 *   skips the backoff one time in N, so that the first one is not always the same.  A
 *   daemon with messages in flight waits a little, so that idle ones go first.
 *
 * A daemon that is alone does not wait.
 */
#include "queue/watcher.h"

#include <stdlib.h>

#include "base/backoff.h"
#include "base/util.h"
#include "loop/timer.h"
#include "queue/evict.h"

#define POLL_EVERY	SEC		/* if Redis refuses tracking */
#define BACKOFF_EACH	(25 * MSEC)	/* for each daemon of the fleet */
#define BACKOFF_MAX	(2 * SEC)
#define FLEET_UNKNOWN	4
#define PROMPT		3		/* daemons of a fleet, on average */
#define PROMPT_SPREAD	(10 * MSEC)	/* between them */
#define LATER_EACH	(100 * MSEC)	/* for each daemon of the fleet: those not prompt */
#define LATER_MAX	(2 * SEC)
#define BUSY_MAX	(2 * MSEC)	/* wait of a daemon whose slots are all taken */
#define MISSES_OFTEN	3		/* from then on, arm before a pop */
#define MISSES_MAX	11
#define RATE_PAUSE	(10 * MSEC)	/* within RATE_SLACK: the rate stays the same */
#define RATE_LONGEST	MINUTE		/* then pop again: the rate may have changed */

struct watcher {
	const unsigned		*fleet;
	const struct watcher_events *events;
	void			*arg;
	bool			 promotes;

	enum watcher_state	 state;
	bool			 wanted;
	bool			 advised;	/* to fetch; the engine has not fetched yet */
	bool			 work;		/* a pop may find messages */
	bool			 empty;		/* the last look found nothing waiting or due */
	bool			 paused;	/* by the last answer of Redis */
	bool			 full;		/* likewise: fleet_concurrency is reached */
	bool			 no_room;	/* see watcher_set_no_room() */
	bool			 woken;		/* by a push, and no pop since */
	unsigned		 misses;	/* wake-ups in a row whose pop found nothing */
	usec_t			 skip_after;	/* mono: from then on it may skip the backoff */
	bool			 prompt;	/* looks at once at changes for later */
	unsigned		 refusals;	/* of the arm script, in a row */
	struct evict		 evict;		/* whether Redis keeps the armed keys */
	struct timer		 retry;		/* QRETRY's first */
	usec_t			 retry_at;	/* mono: due; the timer may be set for later */
	struct timer		 delayed;	/* the first in QDELAYED, or in the source */
	usec_t			 delayed_at;	/* as retry_at */
	struct timer		 retry_look;	/* set: a change of QRETRY waits for a look */
	struct timer		 rate;		/* set: the rate allows no message before */
	struct timer		 backoff;	/* set: a push waits for other daemons */
	struct timer		 poll;		/* polling, the end of a pause, after errors */
};

/* Changes the state.  ARMING stops the timers whose state the arm script reads. */
static void
watcher_set_state(struct watcher *w, enum watcher_state state)
{
	w->state = state;
	if (state == WATCHER_ARMING) {
		timer_stop(&w->retry_look);
		timer_stop(&w->poll);
	}
}

static void
watcher_disarm(struct watcher *w)
{
	if (w->state == WATCHER_ARMED)
		watcher_set_state(w, WATCHER_IDLE);
}

static bool
watcher_is_arming(const struct watcher *w)
{
	return w->state == WATCHER_ARMING || w->state == WATCHER_OUTDATED;
}

/* Something has changed: the arm script's answer may be out of date when it comes. */
static void
watcher_outdate(struct watcher *w)
{
	if (watcher_is_arming(w))
		watcher_set_state(w, WATCHER_OUTDATED);
	else
		watcher_set_state(w, WATCHER_IDLE);
}

/* -- the fleet -------------------------------------------------------------- */

/* The number of daemons; 0: unknown. */
static unsigned
watcher_fleet(const struct watcher *w)
{
	return w->fleet != NULL ? *w->fleet : 0;
}

/* A random time, at most `each` for every daemon, and at most max. */
static usec_t
watcher_spread(unsigned fleet, usec_t each, usec_t max)
{
	usec_t most = fleet * each;

	return (usec_t)(random_unit() * (double)(most < max ? most : max));
}

/* How long other daemons may go first with a message that is, or was, for later. */
static usec_t
watcher_later_delay(const struct watcher *w, bool prompt)
{
	unsigned fleet = watcher_fleet(w);

	if (fleet <= 1)
		return 0;
	return prompt ? watcher_spread(1, PROMPT_SPREAD, PROMPT_SPREAD) :
	    watcher_spread(fleet, LATER_EACH, LATER_MAX);
}

/*
 * The delay grows with the fleet, so that all daemons together send Redis at most some
 * 80 empty pops a second.  Still, one of the waiting daemons wakes some 25 ms after the
 * others have all they can take.
 */
static usec_t
watcher_backoff_delay(const struct watcher *w)
{
	unsigned fleet = watcher_fleet(w);
	usec_t most = MSEC << w->misses;

	/* Never 0, which would be no backoff. */
	return 1 + watcher_spread(fleet > 0 ? fleet : FLEET_UNKNOWN, BACKOFF_EACH,
	    most < BACKOFF_MAX ? most : BACKOFF_MAX);
}

/*
 * Returns true once in N calls, with N daemons.  Returns it less often if the empty
 * pops of all of them would otherwise come faster than watcher_backoff_delay() allows.
 */
static bool
watcher_skips_backoff(struct watcher *w)
{
	unsigned fleet = watcher_fleet(w);
	usec_t now = clock_mono();

	if (fleet == 0 || now < w->skip_after || random_unit() * fleet >= 1)
		return false;
	w->skip_after = now + fleet * BACKOFF_EACH;
	return true;
}

/* How long to wait after a push. */
static usec_t
watcher_push_delay(struct watcher *w, double busy)
{
	if (w->misses > 0 && !watcher_skips_backoff(w))
		return watcher_backoff_delay(w);
	return watcher_fleet(w) > 1 ? (usec_t)((double)BUSY_MAX * busy) : 0;
}

/* The first look since a push.  missed: other daemons took all of it. */
static void
watcher_count_miss(struct watcher *w, bool missed)
{
	if (w->woken && missed && w->misses < MISSES_MAX)
		w->misses++;
	w->woken = false;
}

/* -- looking ---------------------------------------------------------------- */

enum watcher_advice
watcher_look(struct watcher *w, bool found)
{
	if (!w->wanted || w->advised)
		return WATCHER_WAIT;
	if (!found && (timer_is_set(&w->rate) || w->no_room))
		return WATCHER_WAIT;
	if (w->work || found) {
		w->advised = true;
		return WATCHER_FETCH;
	}
	if (w->state != WATCHER_IDLE || timer_is_set(&w->backoff))
		return WATCHER_WAIT;
	watcher_set_state(w, WATCHER_ARMING);
	return WATCHER_ARM;
}

void
watcher_fetching(struct watcher *w)
{
	w->advised = false;
}

void
watcher_want(struct watcher *w, bool wanted)
{
	w->wanted = wanted;
	w->advised = w->no_room = false;
	if (wanted) {
		/* Time has passed since the last pop: a pop costs less than the arm script. */
		w->work = true;
		w->empty = false;
	}
}

void
watcher_saw_work(struct watcher *w)
{
	w->work = true;
	w->empty = false;
}

bool
watcher_saw_retry(struct watcher *w, usec_t in, bool ours)
{
	timer_stop(&w->retry);
	if (in > 0) {
		w->retry_at = clock_mono() + in + MSEC;
		timer_set_at(&w->retry, w->retry_at + watcher_later_delay(w, w->prompt || ours));
	}
	return in == 0;
}

void
watcher_saw_delayed(struct watcher *w, usec_t in)
{
	w->delayed_at = clock_mono() + in + MSEC;
	timer_set_at(&w->delayed, w->delayed_at + watcher_later_delay(w, w->prompt));
}

void
watcher_poll(struct watcher *w)
{
	timer_set(&w->poll, SEC);
}

/* No event tells that a fetch would be granted more slots: tries again by the timer. */
void
watcher_set_no_room(struct watcher *w, bool no_room)
{
	w->no_room = no_room;
	if (!no_room)
		return;
	w->work = true;
	if (!timer_is_set(&w->poll))
		watcher_poll(w);
}

/* -- answers ---------------------------------------------------------------- */

static bool
watcher_set_paused(struct watcher *w, bool paused)
{
	bool changed = w->paused != paused;

	w->paused = paused;
	return changed;
}

/*
 * The arm script has answered.  The answer is out of date if a key has changed since.
 * It counts all the same while Redis evicts keys, because then it reports changes that
 * were none.
 */
static void
watcher_arm_done(struct watcher *w, bool tracked)
{
	if (w->state == WATCHER_OUTDATED && !w->evict.on) {
		watcher_set_state(w, WATCHER_IDLE);
		return;
	}
	watcher_set_state(w, WATCHER_ARMED);
	if (!tracked || w->evict.on)
		timer_set(&w->poll, POLL_EVERY);
}

bool
watcher_armed(struct watcher *w, const struct watcher_found *f)
{
	bool due = watcher_saw_retry(w, f->retry_in, false);

	w->refusals = 0;
	timer_stop(&w->delayed);
	if (f->delayed_in > 0 || (f->delayed_in == 0 && w->promotes))
		watcher_saw_delayed(w, f->delayed_in);
	w->full = f->full;
	w->empty = !due && !f->waiting;
	if (w->misses >= MISSES_OFTEN)
		watcher_count_miss(w, w->empty);
	watcher_arm_done(w, f->tracked);
	if (!f->paused && !f->full && !w->empty)
		w->work = true;
	if (f->paused && f->pause_left >= 0 && f->tracked)
		timer_set(&w->poll, f->pause_left + MSEC);
	return watcher_set_paused(w, f->paused);
}

void
watcher_arm_lost(struct watcher *w)
{
	watcher_set_state(w, WATCHER_IDLE);
}

void
watcher_arm_refused(struct watcher *w, usec_t most)
{
	watcher_set_state(w, WATCHER_ARMED);
	timer_set(&w->poll, backoff_delay(SEC, most, ++w->refusals, random_unit()));
}

static void
watcher_limit_rate(struct watcher *w, usec_t wait)
{
	if (wait < RATE_PAUSE)
		wait = RATE_PAUSE;
	timer_set(&w->rate, wait < RATE_LONGEST ? wait : RATE_LONGEST);
}

bool
watcher_popped(struct watcher *w, const struct watcher_popped *p)
{
	bool more = p->waiting || p->due, limited = p->full || p->rate_wait > 0;

	w->empty = !p->any && !more;
	/* The watcher ignored changes that did not count then: their keys are not armed. */
	if (w->full != p->full)
		watcher_disarm(w);
	w->full = p->full;
	if (p->rate_wait > 0)
		watcher_limit_rate(w, p->rate_wait);
	w->work = p->late || (more && !limited && !p->paused);
	if (p->any)
		w->misses = 0;
	watcher_count_miss(w, !p->any && (!p->waiting || limited));
	return !p->late && watcher_set_paused(w, p->paused);
}

void
watcher_pop_refused(struct watcher *w)
{
	w->work = false;
	if (w->state == WATCHER_IDLE)
		watcher_set_state(w, WATCHER_ARMED);
	watcher_poll(w);
}

/* -- timers ----------------------------------------------------------------- */

/* There may be work: a message is due, or the rate allows one. */
static void
watcher_has_become_due(void *arg)
{
	struct watcher *w = arg;

	w->work = true;
	watcher_disarm(w);
	w->events->wake(w->arg);
}

static void
watcher_delayed_due(void *arg)
{
	struct watcher *w = arg;

	if (w->promotes)
		w->events->promote(w->arg);
	else
		watcher_has_become_due(w);
}

static void
watcher_backoff_over(void *arg)
{
	struct watcher *w = arg;

	if (w->misses < MISSES_OFTEN)
		watcher_has_become_due(w);
	else
		w->events->wake(w->arg);
}

static void
watcher_look_at_retry(void *arg)
{
	struct watcher *w = arg;

	watcher_disarm(w);
	w->events->wake(w->arg);
}

/* After Redis refused the arm script, a pop shows what is wrong with the keys that both use. */
static void
watcher_poll_due(void *arg)
{
	struct watcher *w = arg;

	w->no_room = false;
	if (w->refusals > 0)
		w->work = true;
	watcher_disarm(w);
	w->events->wake(w->arg);
}

/* -- changes ---------------------------------------------------------------- */

static bool
watcher_minds_changes(const struct watcher *w)
{
	return (!w->paused && !w->full) || watcher_is_arming(w);
}

static void
watcher_change(struct watcher *w)
{
	if (w->evict.on)
		return;
	watcher_outdate(w);
	w->events->wake(w->arg);
}

/* Another daemon took the overdue message: stops the timer. */
static void
watcher_stop_overdue(struct timer *t, usec_t at)
{
	if (timer_is_set(t) && clock_mono() >= at)
		timer_stop(t);
}

/*
 * There may be messages to pop.  If the source also holds messages for later, the arm
 * script looks before a pop is sent.
 */
static void
watcher_work_soon(struct watcher *w, double busy)
{
	usec_t wait;

	if (!w->wanted || w->work || w->paused)
		return;
	w->woken = true;
	if (timer_is_set(&w->backoff))
		return;
	wait = watcher_push_delay(w, busy);
	if (wait > 0)
		timer_set(&w->backoff, wait);
	else
		w->work = w->promotes || w->full;
}

static void
watcher_pushed(struct watcher *w, double busy)
{
	if (watcher_minds_changes(w))
		watcher_change(w);
	w->empty = false;
	if (!w->full)
		watcher_work_soon(w, busy);
	w->events->wake(w->arg);
}

static void
watcher_retry_changed(struct watcher *w)
{
	watcher_stop_overdue(&w->retry, w->retry_at);
	if (!watcher_minds_changes(w))
		return;
	if (w->prompt)
		watcher_change(w);
	else if (!timer_is_set(&w->retry_look) && !w->evict.on)
		timer_set(&w->retry_look, watcher_later_delay(w, false));
}

static void
watcher_delayed_changed(struct watcher *w)
{
	watcher_stop_overdue(&w->delayed, w->delayed_at);
	if (w->prompt && watcher_minds_changes(w))
		watcher_change(w);
}

static void
watcher_pause_changed(struct watcher *w)
{
	const char *warning = w->paused ? NULL : evict_reported(&w->evict);

	if (warning != NULL)
		w->events->warn(warning, w->arg);
	watcher_change(w);
}

/* A message was settled, or a lease was only renewed: the fleet may no longer be full. */
static void
watcher_backup_changed(struct watcher *w, double busy)
{
	if (watcher_is_arming(w) || w->full)
		watcher_change(w);
	if (w->full)
		watcher_work_soon(w, busy);
}

void
watcher_key_changed(struct watcher *w, enum key key, double busy)
{
	if (key == KEY_QUEUE)
		watcher_pushed(w, busy);
	else if (key == KEY_RETRY)
		watcher_retry_changed(w);
	else if (key == KEY_DELAYED)
		watcher_delayed_changed(w);
	else if (key == KEY_PAUSED)
		watcher_pause_changed(w);
	else if (key == KEY_BACKUP)
		watcher_backup_changed(w, busy);
}

/* -- life ------------------------------------------------------------------- */

void
watcher_up(struct watcher *w)
{
	w->work = true;
	w->no_room = false;
	w->refusals = 0;
	watcher_disarm(w);
}

void
watcher_down(struct watcher *w)
{
	watcher_disarm(w);
	w->empty = false;	/* until the next look */
	evict_done(&w->evict);
	timer_stop(&w->retry);
	timer_stop(&w->delayed);
	timer_stop(&w->retry_look);
	timer_stop(&w->rate);
	timer_stop(&w->backoff);
	timer_stop(&w->poll);
}

void
watcher_reconfigure(struct watcher *w)
{
	timer_stop(&w->rate);
	w->full = false;
	watcher_outdate(w);
}

void
watcher_round(struct watcher *w)
{
	w->prompt = random_unit() * watcher_fleet(w) < PROMPT;
	watcher_disarm(w);
	timer_stop(&w->retry_look);
	evict_round(&w->evict);
}

struct watcher *
watcher_new(struct loop *loop, const unsigned *fleet, bool promotes,
    const struct watcher_events *events, void *arg)
{
	struct watcher *w = NEW(struct watcher, .fleet = fleet, .promotes = promotes,
	    .events = events, .arg = arg);

	w->work = w->prompt = true;
	timer_init(&w->retry, loop, watcher_has_become_due, w);
	timer_init(&w->delayed, loop, watcher_delayed_due, w);
	timer_init(&w->retry_look, loop, watcher_look_at_retry, w);
	timer_init(&w->rate, loop, watcher_has_become_due, w);
	timer_init(&w->backoff, loop, watcher_backoff_over, w);
	timer_init(&w->poll, loop, watcher_poll_due, w);
	return w;
}

void
watcher_free(struct watcher *w)
{
	if (w == NULL)
		return;
	watcher_down(w);
	free(w);
}

enum watcher_state
watcher_state(const struct watcher *w)
{
	return w->state;
}

bool
watcher_is_wanted(const struct watcher *w)
{
	return w->wanted;
}

bool
watcher_will_fetch(const struct watcher *w)
{
	return w->wanted && w->work;
}

bool
watcher_is_empty(const struct watcher *w)
{
	return w->empty;
}
