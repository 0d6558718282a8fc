/*
 * How the queue finds work.  As long as it is wanted and knows of none it
 * keeps the arm script's keys armed, or polls where tracking is refused, and
 * calls ready() when one of them changes, when a retry falls due, or when a
 * look finds something.
 */
#include "queue/ack_private.h"

#include "base/clock.h"
#include "policy/backoff.h"

#define POLL_EVERY	SEC		/* where tracking is refused */
#define HERD_EACH	(25 * MSEC)	/* for each daemon of the fleet */
#define HERD_MAX	(2 * SEC)
#define FLEET_UNKNOWN	4
#define RACED_OFTEN	3		/* from then on it asks before it pops */

/* -- looking ---------------------------------------------------------------- */

static void
ack_arm_failed(struct ack *a, const struct redisReply *reply)
{
	if (ack_failed(a, ACK_ARM, reply) == REPLY_ELSEWHERE)
		return;
	/* A pop then says what is wrong with the keys that it shares. */
	a->armed = true;
	timer_set(&a->again, backoff_delay(SEC, ack_patience(a), ++a->arm_failures,
	    random_unit()));
}

/* What falls due later in the source: news for the tick, or for a pop. */
static void
ack_saw_later(struct ack *a, const struct redisReply *delayed)
{
	double in;

	timer_stop(&a->later);
	if (!ack_time(delayed, &in))
		return;
	if (a->kind->promotes)
		ack_tick_at(a, clock_mono() + ack_usec(in) + MSEC);
	else if (in > 0)
		timer_set(&a->later, ack_usec(in) + MSEC);
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
			timer_set(&a->due, ack_usec(in) + MSEC);
	}
	ack_saw_later(a, reply_at(reply, 3));
	a->full = reply_int(reply_at(reply, 7), 0) != 0;
	a->empty = !due && reply_int(reply_at(reply, 1), 0) == 0;
	if (a->raced >= RACED_OFTEN)
		ack_raced(a, a->empty);
	a->armed = !a->dirty;
	if (!call->armed && a->armed)
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
	if (!a->wanted || a->told || a->asked > 0 || a->closing ||
	    !ack_is_up(a) || ack_in_doubt(a))
		return;
	if (timer_is_set(&a->limit) && TAILQ_EMPTY(&a->deliveries[DELIVERY_FOUND]))
		return;
	if (a->crowded && TAILQ_EMPTY(&a->deliveries[DELIVERY_FOUND]))
		return;
	if (a->known || !TAILQ_EMPTY(&a->deliveries[DELIVERY_FOUND])) {
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

static void
ack_look_again(void *arg)
{
	struct ack *a = arg;

	a->armed = false;
	if (a->arm_failures > 0)
		a->known = true;
	ack_wake(a);
}

/* -- what the watch says ---------------------------------------------------- */

static void
ack_changed(void *arg)
{
	struct ack *a = arg;

	a->dirty = true;
	a->armed = false;
	ack_wake(a);
}

/*
 * While paused only QPAUSED matters, and while the fleet is full only it and
 * QBACKUP: pushes need not wake anyone.  But what comes while the arm script is on
 * its way may be news to its reply.
 */
static void
ack_changed_zset(void *arg)
{
	struct ack *a = arg;

	if ((!a->paused && !a->full) || a->arming)
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
	unsigned fleet = a->env->fleet != NULL ? *a->env->fleet : 0;
	usec_t most = HERD_EACH * (fleet > 0 ? fleet : FLEET_UNKNOWN);

	if (most > HERD_MAX)
		most = HERD_MAX;
	if (most > MSEC << a->raced)
		most = MSEC << a->raced;
	return (usec_t)(random_unit() * (double)most);
}

/*
 * There may be something to pop.  Who came too late for it several times lets
 * others go first, and later asks before it pops, so that a hundred idle daemons
 * do not all pop at once.
 */
static void
ack_changed_soon(struct ack *a)
{
	if (!a->wanted || a->known || a->paused)
		return;
	a->woken = true;
	if (a->raced > 0 && !timer_is_set(&a->herd))
		timer_set(&a->herd, ack_herd_delay(a));
	/* Where pushes may be for later, the arm script says so before a pop is sent. */
	else if (a->raced == 0)
		a->known = a->kind->promotes || a->full;
}

/* A push. */
static void
ack_changed_source(void *arg)
{
	struct ack *a = arg;

	ack_changed_zset(a);
	if (!a->full)
		ack_changed_soon(a);
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
		{ KEY_QUEUE, ack_changed_source }, { KEY_RETRY, ack_changed_zset },
		{ KEY_DELAYED, ack_changed_zset }, { KEY_PAUSED, ack_changed },
		{ KEY_BACKUP, ack_changed_backup },
	};
	size_t i;

	timer_init(&a->due, a->env->loop, ack_know, a);
	timer_init(&a->later, a->env->loop, ack_know, a);
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
	timer_stop(&a->due);
	timer_stop(&a->later);
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
