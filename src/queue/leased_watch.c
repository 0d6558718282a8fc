/*
 * Finds out whether there is work.  While the queue is wanted and no work is known, it
 * arms the keys that the arm script reads: Redis reports their next change.  If
 * Redis refuses tracking, it polls.
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
 *	QRETRY, QDELAYED	change, now or, in a fleet, after a delay
 *	QPAUSED changed		change
 *	QBACKUP changed		change and work, if the fleet was full
 *	retry, rate timer	work; ARMED: IDLE
 *	delayed timer		a tick promotes, or as the retry timer
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
 * enough.  So each waits for a random time, which grows with the fleet:
 *
 * - QRETRY and QDELAYED mostly change because a message was put there for later: the
 *   daemons look one after the other.  When a message falls due, they go one after the
 *   other, too, and the others see that it was taken (policy/stagger.h).
 * - After a push, a daemon whose last pops found nothing backs off.  With N daemons it
 *   skips the backoff one time in N, so that the first one is not always the same.  A
 *   daemon with messages in flight waits a little, so that idle ones go first.
 *
 * A daemon that is alone does not wait, and one of three hardly.
 */
#include "queue/leased.h"

#include "base/backoff.h"

#define POLL_EVERY	SEC		/* if Redis refuses tracking */
#define BACKOFF_EACH	(25 * MSEC)	/* for each daemon of the fleet, as all _EACH */
#define BACKOFF_MAX	(2 * SEC)
#define FLEET_UNKNOWN	4
#define FEW		3		/* daemons: all of them may look at once */
#define LOOK_EACH	(100 * MSEC)	/* looks at what is for later */
#define LATER_MAX	(2 * SEC)
#define DUE_SOON	(10 * MSEC)	/* of few daemons, and of the one that put it there */
#define BUSY_MAX	(2 * MSEC)	/* wait of a daemon whose slots are all taken */
#define MISSES_OFTEN	3		/* from then on, arm before a pop */
#define MISSES_MAX	11

/* Changes the state.  ARMING stops the timers whose state the arm script reads. */
static void
leased_set_watch(struct leased *a, enum leased_watch state)
{
	a->watch = state;
	if (state == WATCH_ARMING) {
		timer_stop(&a->retry_look);
		timer_stop(&a->poll);
	}
}

void
leased_disarm(struct leased *a)
{
	if (a->watch == WATCH_ARMED)
		leased_set_watch(a, WATCH_IDLE);
}

static bool
leased_is_arming(const struct leased *a)
{
	return a->watch == WATCH_ARMING || a->watch == WATCH_OUTDATED;
}

/* The number of daemons; 0: unknown. */
static unsigned
leased_fleet(const struct leased *a)
{
	return a->env->fleet != NULL ? *a->env->fleet : 0;
}

/* A random time, at most `each` for every daemon, and at most max. */
static usec_t
leased_spread(unsigned fleet, usec_t each, usec_t max)
{
	usec_t most = fleet * each;

	return (usec_t)(random_unit() * (double)(most < max ? most : max));
}

/* How long other daemons may go first with a message that has fallen due. */
static usec_t
leased_due_delay(const struct leased *a, bool ours)
{
	unsigned fleet = leased_fleet(a);

	if (fleet <= 1)
		return 0;
	if (fleet <= FEW || ours)
		return leased_spread(1, DUE_SOON, DUE_SOON);
	return (usec_t)(random_unit() * (double)stagger_span(&a->stagger, fleet));
}

/*
 * The timer of what is due has fired.  While Redis reports changes, that says that no other
 * daemon was there before: see leased_later_changed().
 */
static void
leased_was_left(struct leased *a, usec_t due_at)
{
	if (a->wanted && a->watch == WATCH_ARMED && watch_is_on(a->env->watch) && !a->evict.on)
		stagger_saw_left(&a->stagger, leased_fleet(a), clock_mono() - due_at);
}

void
leased_count_miss(struct leased *a, bool missed)
{
	if (a->woken && missed && a->misses < MISSES_MAX)
		a->misses++;
	a->woken = false;
}

/* -- what others have seen -------------------------------------------------- */

void
leased_saw_work(struct leased *a)
{
	a->work = true;
	a->empty = false;
}

bool
leased_saw_retry(struct leased *a, usec_t in, bool ours)
{
	timer_stop(&a->retry);
	if (in > 0) {
		a->retry_at = clock_mono() + in + MSEC;
		timer_set_at(&a->retry, a->retry_at + leased_due_delay(a, ours));
	}
	return in == 0;
}

void
leased_saw_delayed(struct leased *a, usec_t in)
{
	/* The look that found one due has waited for the others already. */
	a->delayed_at = clock_mono() + in + MSEC;
	timer_set_at(&a->delayed, a->delayed_at + (in > 0 ? leased_due_delay(a, false) : 0));
}

void
leased_poll(struct leased *a)
{
	timer_set(&a->poll, SEC);
}

void
leased_set_paused(struct leased *a, bool paused, const char *why)
{
	if (a->paused == paused)
		return;
	a->paused = paused;
	a->queue.events->paused(paused, why, a->queue.arg);
}

void
leased_watch_pop_refused(struct leased *a)
{
	a->work = false;
	if (a->watch == WATCH_IDLE)
		leased_set_watch(a, WATCH_ARMED);
	leased_poll(a);
}

/* -- looking ---------------------------------------------------------------- */

/* Returned by arm.lua. */
enum {
	ARM_NOW, ARM_WAITING, ARM_DUE, ARM_DELAYED, ARM_PAUSED, ARM_WHY, ARM_TTL, ARM_FULL,
	ARM_FIELDS
};
static const char leased_arm_form[] = {
	[ARM_NOW] = FIELD_NUMBER, [ARM_WAITING] = FIELD_INT, [ARM_DUE] = FIELD_TIME,
	[ARM_DELAYED] = FIELD_TIME, [ARM_PAUSED] = FIELD_INT, [ARM_WHY] = FIELD_STR,
	[ARM_TTL] = FIELD_INT, [ARM_FULL] = FIELD_INT, [ARM_FIELDS] = 0
};

static void
leased_armed(struct leased *a, struct call *call, enum conn_answer answer,
    const struct redisReply *reply)
{
	bool due, paused;
	usec_t delayed_in;
	int64_t ttl;

	if (answer != CONN_REPLY) {
		leased_set_watch(a, WATCH_IDLE);
		return;
	}
	leased_wake(a);
	if (!reply_has(reply, leased_arm_form)) {
		if (leased_failed(a, LEASED_ARM, reply) == REPLY_ELSEWHERE) {
			leased_set_watch(a, WATCH_IDLE);
			return;
		}
		leased_set_watch(a, WATCH_ARMED);
		timer_set(&a->poll, backoff_delay(SEC, leased_patience(a), ++a->arm_refusals,
		    random_unit()));
		return;
	}
	leased_complain(a, LEASED_ARM, NULL);
	leased_saw_now(a, reply_at(reply, ARM_NOW));
	a->arm_refusals = 0;
	due = leased_saw_retry(a, leased_until(reply_at(reply, ARM_DUE), 0), false);
	delayed_in = a->closing ? -1 : leased_until(reply_at(reply, ARM_DELAYED), 0);
	if (a->overdue > 0 && (due || delayed_in == 0))
		stagger_saw_left(&a->stagger, leased_fleet(a), clock_mono() - a->overdue);
	else if (a->overdue > 0)
		stagger_saw_taken(&a->stagger);
	a->overdue = 0;
	timer_stop(&a->delayed);
	if (delayed_in > 0 || (delayed_in == 0 && a->kind->promotes))
		leased_saw_delayed(a, delayed_in);
	a->full = reply_int_at(reply, ARM_FULL) != 0;
	a->empty = !due && reply_int_at(reply, ARM_WAITING) == 0;
	if (a->misses >= MISSES_OFTEN)
		leased_count_miss(a, a->empty);

	/*
	 * The answer is out of date if a key has changed since.  It counts all the same while
	 * Redis evicts keys, because then it reports changes that were none.
	 */
	if (a->watch == WATCH_OUTDATED && !a->evict.on) {
		leased_set_watch(a, WATCH_IDLE);
	} else {
		leased_set_watch(a, WATCH_ARMED);
		if (!call->armed || a->evict.on)
			timer_set(&a->poll, POLL_EVERY);
	}
	paused = reply_int_at(reply, ARM_PAUSED) != 0;
	ttl = reply_int_at(reply, ARM_TTL);
	if (!paused && !a->full && !a->empty)
		a->work = true;
	if (paused && ttl >= 0 && call->armed)
		timer_set(&a->poll, leased_usec((double)ttl / 1e3) + MSEC);
	leased_set_paused(a, paused, reply_str_at(reply, ARM_WHY));
}

void
leased_look(struct leased *a)
{
	bool found = leased_fetched(a) != NULL;
	struct call *call;

	if (!a->wanted || a->offered || !leased_may_fetch(a, found))
		return;
	if (!found && (timer_is_set(&a->rate) || a->no_room))
		return;
	if (a->work || found) {
		a->offered = true;
		a->queue.events->ready(a->queue.arg);
		return;
	}
	if (a->watch != WATCH_IDLE || timer_is_set(&a->backoff))
		return;
	leased_set_watch(a, WATCH_ARMING);
	call = leased_call_new(a, LEASED_ARM, leased_armed);
	call->armed = watch_is_on(a->env->watch);
	if (a->cfg->fleet_concurrency > 0)
		keys_add(&a->keys, &call->words, KEY_BACKUP);
	words_fmt(&call->words, "%d", a->cfg->fleet_concurrency);
	leased_words(call);
	leased_send(call);
}

void
leased_want(struct queue *q, bool wanted)
{
	struct leased *a = (struct leased *)q;

	if (a->closing || a->wanted == wanted)
		return;
	a->wanted = wanted;
	a->offered = a->no_room = false;
	/* Time has passed since the last pop: a pop costs less than the arm script. */
	if (wanted)
		leased_saw_work(a);
	leased_wake(a);
}

/* -- timers ----------------------------------------------------------------- */

/* There may be work: a message is due, or the rate allows one. */
static void
leased_has_become_due(void *arg)
{
	struct leased *a = arg;

	a->work = true;
	leased_disarm(a);
	leased_wake(a);
}

static void
leased_retry_due(void *arg)
{
	struct leased *a = arg;

	leased_was_left(a, a->retry_at);
	leased_has_become_due(a);
}

static void
leased_delayed_due(void *arg)
{
	struct leased *a = arg;

	leased_was_left(a, a->delayed_at);
	if (a->kind->promotes)
		leased_tick_due(a);
	else
		leased_has_become_due(a);
}

static void
leased_backoff_over(void *arg)
{
	struct leased *a = arg;

	if (a->misses < MISSES_OFTEN)
		leased_has_become_due(a);
	else
		leased_wake(a);
}

static void
leased_look_again(void *arg)
{
	struct leased *a = arg;

	leased_disarm(a);
	leased_wake(a);
}

/* After Redis refused the arm script, a pop shows what is wrong with the keys that both use. */
static void
leased_poll_due(void *arg)
{
	struct leased *a = arg;

	a->no_room = false;
	if (a->arm_refusals > 0)
		a->work = true;
	leased_look_again(a);
}

/* -- changes ---------------------------------------------------------------- */

/* Something has changed: the arm script's answer may be out of date when it comes. */
static void
leased_outdate(struct leased *a)
{
	leased_set_watch(a, leased_is_arming(a) ? WATCH_OUTDATED : WATCH_IDLE);
	leased_wake(a);
}

static void
leased_change(struct leased *a)
{
	if (!a->evict.on)
		leased_outdate(a);
}

/*
 * QRETRY or QDELAYED has changed.  Another daemon may have taken an overdue message: a look,
 * no later than its timer would have fired, takes the timer's place.
 */
static void
leased_later_changed(struct leased *a, struct timer *t, usec_t at)
{
	usec_t wait = leased_spread(leased_fleet(a), LOOK_EACH, LATER_MAX);

	if (timer_is_set(t) && clock_mono() >= at) {
		if (timer_left(t) < wait)
			wait = timer_left(t);
		timer_stop(t);
		a->overdue = at;
	}
	if (leased_is_arming(a) || (leased_fleet(a) <= FEW && !a->paused && !a->full))
		leased_change(a);
	else if (!a->paused && !a->full && !a->evict.on &&
	    (!timer_is_set(&a->retry_look) || timer_left(&a->retry_look) > wait))
		timer_set(&a->retry_look, wait);
}

/*
 * There may be messages to pop.  If the source also holds messages for later, the arm
 * script looks before a pop is sent.
 */
static void
leased_work_soon(struct leased *a)
{
	double taken = a->count[DELIVERY_RUNNING], most = config_most(a->cfg);
	double busy = taken < most ? taken / most : 1;
	unsigned fleet = leased_fleet(a);
	usec_t wait, now = clock_mono(), longest = MSEC << a->misses;
	bool at_once = a->misses == 0;

	if (!a->wanted || a->work || a->paused)
		return;
	a->woken = true;
	if (timer_is_set(&a->backoff))
		return;
	if (!at_once && fleet > 0 && now >= a->skip_after && random_unit() * fleet < 1) {
		/*
		 * Once in N times, with N daemons; less often if the empty pops of all of
		 * them would otherwise come faster than the backoff allows.
		 */
		a->skip_after = now + fleet * BACKOFF_EACH;
		at_once = true;
	}

	/*
	 * The backoff grows with the fleet, so that all daemons together send Redis at most some
	 * 80 empty pops a second.  Still, one of the waiting daemons wakes some 25 ms after the
	 * others have all they can take.  It is never 0, which would be none.
	 */
	if (at_once)
		wait = fleet > 1 ? (usec_t)((double)BUSY_MAX * busy) : 0;
	else
		wait = 1 + leased_spread(fleet > 0 ? fleet : FLEET_UNKNOWN, BACKOFF_EACH,
		    longest < BACKOFF_MAX ? longest : BACKOFF_MAX);
	if (wait > 0)
		timer_set(&a->backoff, wait);
	else
		a->work = a->kind->promotes || a->full;
}

static void
leased_key_changed(void *arg)
{
	const struct leased_key *k = arg;
	struct leased *a = k->queue;
	bool evicted = a->evict.on;
	const char *warning;

	if (k->which == KEY_QUEUE) {
		if (leased_is_arming(a) || (!a->paused && !a->full))
			leased_change(a);
		a->empty = false;
		if (!a->full)
			leased_work_soon(a);
		leased_wake(a);
	} else if (k->which == KEY_RETRY) {
		leased_later_changed(a, &a->retry, a->retry_at);
	} else if (k->which == KEY_DELAYED) {
		leased_later_changed(a, &a->delayed, a->delayed_at);
	} else if (k->which == KEY_PAUSED) {
		warning = a->paused ? NULL : evict_reported(&a->evict);
		if (warning != NULL)
			queue_warn(&a->queue, "%s", warning);
		/* Also when the polls begin: the first look sets their timer. */
		if (!evicted)
			leased_outdate(a);
	} else if (leased_is_arming(a) || a->full) {
		/* QBACKUP: a result, or only a renewal: the fleet may no longer be full. */
		leased_change(a);
		if (a->full)
			leased_work_soon(a);
	}
}

/* -- life ------------------------------------------------------------------- */

/* Connected: nothing is known, so a pop is worth it. */
void
leased_watch_up(struct leased *a)
{
	a->work = true;
	a->no_room = false;
	a->arm_refusals = 0;
	leased_disarm(a);
}

/* Disconnected: no key is watched. */
void
leased_watch_down(struct leased *a)
{
	leased_disarm(a);
	a->empty = false;	/* until the next look */
	evict_done(&a->evict);
	timer_stop(&a->retry);
	timer_stop(&a->delayed);
	timer_stop(&a->retry_look);
	timer_stop(&a->rate);
	timer_stop(&a->backoff);
	timer_stop(&a->poll);
}

/* Settings have changed: forgets limits and armed keys. */
void
leased_watch_anew(struct leased *a)
{
	timer_stop(&a->rate);
	a->full = false;
	leased_outdate(a);
}

/* Also arms the keys anew, in case a wake-up was lost. */
void
leased_tick_round(struct queue *q)
{
	struct leased *a = (struct leased *)q;

	leased_disarm(a);
	timer_stop(&a->retry_look);
	evict_round(&a->evict);
	leased_tick(a, false);
	leased_wake(a);
}

void
leased_watch_init(struct leased *a)
{
	static const enum key of[] = {
		KEY_QUEUE, KEY_RETRY, KEY_DELAYED, KEY_PAUSED, KEY_BACKUP
	};
	struct loop *loop = a->env->loop;
	struct leased_key *k;

	a->work = true;
	timer_init(&a->retry, loop, leased_retry_due, a);
	timer_init(&a->delayed, loop, leased_delayed_due, a);
	timer_init(&a->retry_look, loop, leased_look_again, a);
	timer_init(&a->rate, loop, leased_has_become_due, a);
	timer_init(&a->backoff, loop, leased_backoff_over, a);
	timer_init(&a->poll, loop, leased_poll_due, a);
	for (size_t i = 0; i < ARRAY_LEN(of); i++) {
		k = &a->key[i];
		*k = (struct leased_key){
			.key = { .key = a->keys.name[of[i]], .len = a->keys.len[of[i]],
			    .changed = leased_key_changed, .arg = k },
			.queue = a, .which = of[i],
		};
		watch_add(a->env->watch, &k->key);
	}
}
