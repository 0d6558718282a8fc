/*
 * How the queue finds work.  As long as it is wanted and knows of none it
 * keeps the arm script's keys armed, or polls where tracking is refused, and
 * calls ready() when one of them changes, when a retry falls due, or when a
 * look finds something.
 *
 * In a fleet a change reaches every daemon without work, and one of them is enough
 * for most:
 *
 * - QRETRY and QDELAYED change when something is for later, mostly.  Of all daemons
 *   some KEEPERS, which they draw every 10 s, look at once.  The others look at QRETRY some time
 *   later, so that there is enough of them where much has fallen due; at QDELAYED
 *   they do not look: who promotes its messages wakes everybody by the push.
 *   In the same way keepers go first when something falls due; the others hear
 *   that it was taken.
 * - After a push a daemon that has come too late before waits, to let others go
 *   first, but for one time in as many as there are daemons: so the same one is not always
 *   first.  A daemon with messages in hand lets idle ones go first.
 *
 * A daemon that is alone never waits.
 */
#include "queue/ack_private.h"

#include "base/clock.h"
#include "policy/backoff.h"

#define POLL_EVERY	SEC		/* where tracking is refused */
#define HERD_EACH	(25 * MSEC)	/* for each daemon of the fleet */
#define HERD_MAX	(2 * SEC)
#define FLEET_UNKNOWN	4
#define KEEPERS		3		/* of a fleet, on average */
#define KEEPER_SPREAD	(10 * MSEC)	/* between them */
#define JOIN_EACH	(100 * MSEC)	/* for each daemon of the fleet: the others */
#define JOIN_MAX	(2 * SEC)
#define BUSY_MAX	(2 * MSEC)	/* that a daemon with nearly all slots taken waits */
#define RACED_OFTEN	3		/* from then on it asks before it pops */

/* -- the fleet --------------------------------------------------------------- */

/* How many daemons there are; 0: unknown. */
static unsigned
ack_fleet(const struct ack *a)
{
	return a->env->fleet != NULL ? *a->env->fleet : 0;
}

/* How long to let others go first with what is, or was, for later. */
static usec_t
ack_join_delay(const struct ack *a, bool keeper)
{
	unsigned fleet = ack_fleet(a);
	usec_t most = KEEPER_SPREAD;

	if (fleet <= 1)
		return 0;
	if (!keeper)
		most = fleet < JOIN_MAX / JOIN_EACH ? fleet * JOIN_EACH : JOIN_MAX;
	return (usec_t)(random_unit() * (double)most);
}

void
ack_due_in(struct ack *a, usec_t in, bool ours)
{
	a->due_at = clock_mono() + in + MSEC;
	timer_set_at(&a->due, a->due_at + ack_join_delay(a, a->keeper || ours));
}

void
ack_later_in(struct ack *a, usec_t in)
{
	if (a->closing)
		return;
	a->later_at = clock_mono() + in + MSEC;
	timer_set_at(&a->later, a->later_at + ack_join_delay(a, a->keeper));
}

void
ack_watch_round(struct ack *a)
{
	unsigned fleet = ack_fleet(a);

	a->keeper = random_unit() * fleet < KEEPERS;
	a->armed = false;
	timer_stop(&a->join);
	evict_round(&a->evict);
}

/* -- looking ---------------------------------------------------------------- */

static void
ack_arm_failed(struct ack *a, const struct redisReply *reply)
{
	if (ack_failed(a, ACK_ARM, reply) == REPLY_ELSEWHERE)
		return;
	/* A pop then says what is wrong with the keys that it shares. */
	a->armed = true;
	timer_set(&a->again, backoff_delay(SEC, ledger_patience(a->ledger), ++a->arm_failures,
	    random_unit()));
}

/* What falls due later in the source: news for the tick, or for a pop. */
static void
ack_saw_later(struct ack *a, const struct redisReply *delayed)
{
	double in;

	timer_stop(&a->later);
	if (ack_time(delayed, &in) && (a->kind->promotes || in > 0))
		ack_later_in(a, ack_usec(in));
}

/* now waiting due delayed paused why ttl full */
static void
ack_armed(struct ack *a, struct call *call, enum conn_answer answer,
    const struct redisReply *reply)
{
	bool due = false;
	int64_t ttl;
	double in;

	a->arming = false;
	if (answer != CONN_REPLY)
		return;
	ack_wake(a);
	if (reply_len(reply) < 8) {
		ack_arm_failed(a, reply);
		return;
	}
	a->arm_failures = 0;
	ack_complain(a, ACK_ARM, NULL);
	ack_saw_now(a, reply_at(reply, 0));
	timer_stop(&a->due);
	if (ack_time(reply_at(reply, 2), &in)) {
		due = in <= 0;
		if (!due)
			ack_due_in(a, ack_usec(in), false);
	}
	ack_saw_later(a, reply_at(reply, 3));
	a->full = reply_int(reply_at(reply, 7), 0) != 0;
	a->empty = !due && reply_int(reply_at(reply, 1), 0) == 0;
	if (a->raced >= RACED_OFTEN)
		ack_raced(a, a->empty);
	a->armed = !a->dirty || a->evict.on;
	if (a->armed && (!call->armed || a->evict.on))
		timer_set(&a->again, POLL_EVERY);
	ack_set_paused(a, reply_int(reply_at(reply, 4), 0) != 0,
	    reply_str(reply_at(reply, 5), NULL));
	if (a->paused) {
		ttl = reply_int(reply_at(reply, 6), -1);
		if (ttl >= 0 && call->armed)
			timer_set(&a->again, ack_usec((double)ttl / 1e3) + MSEC);
	} else if (!a->empty && !a->full) {
		a->known = true;
	}
}

static void
ack_arm(struct ack *a)
{
	bool fleet = a->cfg->fleet_concurrency > 0;
	struct call *call = ack_call_new(a, ACK_ARM, ack_armed);
	struct args w = { 0 };

	a->arming = true;
	a->dirty = false;
	timer_stop(&a->join);
	call->armed = watch_is_on(a->env->watch);
	timer_stop(&a->again);
	ack_keys(a, call, &w);
	if (fleet) {
		args_mem(&w, a->keys.name[KEY_BACKUP], a->keys.len[KEY_BACKUP]);
		call->nkeys++;
	}
	args_fmt(&w, "%d", a->cfg->fleet_concurrency);
	ack_words(a, call, &w);
	ack_send(a, call, &w);
}

void
ack_look(struct ack *a)
{
	bool found = ledger_found(a->ledger) != NULL;

	if (!a->wanted || a->told || a->asked > 0 || a->closing ||
	    !ack_is_up(a) || ack_in_doubt(a) || ack_is_full(a))
		return;
	if (timer_is_set(&a->limit) && !found)
		return;
	if (ack_is_crowded(a) && !found)
		return;
	if (a->known || found) {
		a->told = true;
		a->queue.events->ready(a->queue.arg);
	} else if (!a->arming && !a->armed && !timer_is_set(&a->herd)) {
		ack_arm(a);
	}
}

static void
ack_know(void *arg)
{
	struct ack *a = arg;

	a->known = true;
	a->armed = false;
	ack_wake(a);
}

/* It has let others go first. */
static void
ack_herd_gone(void *arg)
{
	struct ack *a = arg;

	if (a->raced < RACED_OFTEN)
		ack_know(a);
	else
		ack_wake(a);
}

/* The first in QDELAYED, or in the source, is due. */
static void
ack_later_due(void *arg)
{
	struct ack *a = arg;

	if (a->kind->promotes)
		ack_tick(a);
	else
		ack_know(a);
}

static void
ack_join(void *arg)
{
	struct ack *a = arg;

	a->armed = false;
	ack_wake(a);
}

static void
ack_look_again(void *arg)
{
	struct ack *a = arg;

	a->armed = a->crowded = false;
	if (a->arm_failures > 0)
		a->known = true;
	ack_wake(a);
}

/* -- what the watch says ---------------------------------------------------- */

static void
ack_changed(struct ack *a)
{
	if (a->evict.on)
		return;
	a->dirty = true;
	a->armed = false;
	ack_wake(a);
}

static void
ack_changed_paused(void *arg)
{
	struct ack *a = arg;
	struct tick_report report = { .warning = NULL };

	if (!a->paused)
		report.warning = evict_told(&a->evict);
	if (report.warning != NULL)
		a->queue.events->ticked(&report, a->queue.arg);
	ack_changed(a);
}

/*
 * While paused only QPAUSED matters, and while the fleet is full only it and
 * QBACKUP: pushes need not wake anyone.  But what comes while the arm script is on
 * its way may be news to its reply.
 */
static bool
ack_minds_changes(const struct ack *a)
{
	return (!a->paused && !a->full) || a->arming;
}

/* Where the first was due and waits for others to take it: one has. */
static void
ack_stop_overdue(struct timer *t, usec_t at)
{
	if (timer_is_set(t) && clock_mono() >= at)
		timer_stop(t);
}

static void
ack_changed_retry(void *arg)
{
	struct ack *a = arg;

	ack_stop_overdue(&a->due, a->due_at);
	if (!ack_minds_changes(a))
		return;
	if (a->keeper)
		ack_changed(a);
	else if (!timer_is_set(&a->join) && !a->evict.on)
		timer_set(&a->join, ack_join_delay(a, false));
}

static void
ack_changed_delayed(void *arg)
{
	struct ack *a = arg;

	ack_stop_overdue(&a->later, a->later_at);
	if (a->keeper && ack_minds_changes(a))
		ack_changed(a);
}

/*
 * How long to let others go first.  The larger the fleet, the longer: so all of it
 * together asks Redis no more than some 80 times a second in vain, and still one
 * of those who wait wakes some 25 ms after the others have all they can take.
 */
static usec_t
ack_herd_delay(const struct ack *a)
{
	unsigned fleet = ack_fleet(a);
	usec_t most = HERD_EACH * (fleet > 0 ? fleet : FLEET_UNKNOWN);

	if (most > HERD_MAX)
		most = HERD_MAX;
	if (most > MSEC << a->raced)
		most = MSEC << a->raced;
	return (usec_t)(random_unit() * (double)most);
}

/*
 * One time in as many as there are daemons, but not so often that all of them together ask in
 * vain more often than ack_herd_delay() says.
 */
static bool
ack_is_lucky(struct ack *a)
{
	unsigned fleet = ack_fleet(a);
	usec_t now = clock_mono();

	if (fleet == 0 || now < a->lucky_at || random_unit() * fleet >= 1)
		return false;
	a->lucky_at = now + fleet * HERD_EACH;
	return true;
}

/* How long to let daemons go first that have more free slots. */
static usec_t
ack_busy_delay(const struct ack *a)
{
	unsigned taken = ledger_count(a->ledger, DELIVERY_IN_HAND), most = config_most(a->cfg);

	if (ack_fleet(a) <= 1 || taken == 0)
		return 0;
	return taken < most ? BUSY_MAX * taken / most : BUSY_MAX;
}

/*
 * There may be something to pop.  A daemon that came too late several times lets
 * others go first, and later asks before it pops, so that a hundred idle daemons
 * do not all pop at once.
 */
static void
ack_changed_soon(struct ack *a)
{
	usec_t wait;

	if (!a->wanted || a->known || a->paused)
		return;
	a->woken = true;
	if (timer_is_set(&a->herd))
		return;
	wait = a->raced > 0 && !ack_is_lucky(a) ? ack_herd_delay(a) : ack_busy_delay(a);
	if (wait > 0)
		timer_set(&a->herd, wait);
	/* Where pushes may be for later, the arm script says so before a pop is sent. */
	else
		a->known = a->kind->promotes || a->full;
}

/* A push. */
static void
ack_changed_source(void *arg)
{
	struct ack *a = arg;

	if (ack_minds_changes(a))
		ack_changed(a);
	if (!a->full)
		ack_changed_soon(a);
	ack_wake(a);
}

/* Something was settled, or only renewed.  While the fleet is full: a place may be free. */
static void
ack_changed_backup(void *arg)
{
	struct ack *a = arg;

	if (a->arming || a->full)
		ack_changed(a);
	if (a->full)
		ack_changed_soon(a);
}

/* -- life ------------------------------------------------------------------- */

void
ack_watch_init(struct ack *a)
{
	static const struct {
		enum key	  key;
		void		(*changed)(void *);
	} of[ARRAY_LEN(a->watch)] = {
		{ KEY_QUEUE, ack_changed_source }, { KEY_RETRY, ack_changed_retry },
		{ KEY_DELAYED, ack_changed_delayed }, { KEY_PAUSED, ack_changed_paused },
		{ KEY_BACKUP, ack_changed_backup },
	};
	size_t i;

	timer_init(&a->due, a->env->loop, ack_know, a);
	a->keeper = true;
	timer_init(&a->later, a->env->loop, ack_later_due, a);
	timer_init(&a->join, a->env->loop, ack_join, a);
	timer_init(&a->limit, a->env->loop, ack_know, a);
	timer_init(&a->herd, a->env->loop, ack_herd_gone, a);
	timer_init(&a->again, a->env->loop, ack_look_again, a);
	for (i = 0; i < ARRAY_LEN(of); i++) {
		a->watch[i].key = a->keys.name[of[i].key];
		a->watch[i].len = a->keys.len[of[i].key];
		a->watch[i].changed = of[i].changed;
		a->watch[i].arg = a;
		watch_add(a->env->watch, &a->watch[i]);
	}
}

/* Nothing is looked for until the next look. */
void
ack_watch_stop(struct ack *a)
{
	a->armed = false;
	evict_done(&a->evict);
	timer_stop(&a->due);
	timer_stop(&a->later);
	timer_stop(&a->join);
	timer_stop(&a->limit);
	timer_stop(&a->herd);
	timer_stop(&a->again);
}

void
ack_watch_done(struct ack *a)
{
	size_t i;

	ack_watch_stop(a);
	for (i = 0; i < ARRAY_LEN(a->watch); i++)
		watch_remove(a->env->watch, &a->watch[i]);
}
