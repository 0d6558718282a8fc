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
#define HERD_MAX	(100 * MSEC)

/* -- looking ---------------------------------------------------------------- */

static void
ack_arm_failed(struct ack *a, const struct redisReply *reply)
{
	if (ack_failed(a, ACK_ARM, reply) == REPLY_ELSEWHERE)
		return;
	/* A pop then says what is wrong with the keys that it shares. */
	a->armed = true;
	timer_set(&a->again, backoff_delay(SEC, MINUTE, ++a->arm_failures, random_unit()));
}

/* now waiting due delayed paused why ttl */
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
	if (reply_len(reply) < 7) {
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
	if (ack_time(reply_at(reply, 3), &in))
		ack_tick_at(a, clock_mono() + ack_usec(in) + MSEC);
	a->empty = !due && reply_int(reply_at(reply, 1), 0) == 0;
	a->armed = !a->dirty;
	if (!call->armed && a->armed)
		timer_set(&a->again, POLL_EVERY);
	ack_set_paused(a, reply_int(reply_at(reply, 4), 0) != 0,
	    reply_str(reply_at(reply, 5), NULL));
	if (a->paused) {
		ttl = reply_int(reply_at(reply, 6), -1);
		if (ttl >= 0 && call->armed)
			timer_set(&a->again, ack_usec((double)ttl / 1e3) + MSEC);
	} else if (!a->empty) {
		a->known = true;
	}
}

static void
ack_arm(struct ack *a)
{
	static const enum key keys[] = { KEY_QUEUE, KEY_RETRY, KEY_DELAYED, KEY_PAUSED };
	struct call *call = ack_call_new(a, ACK_ARM, ack_armed);
	struct args w = { 0 };

	a->arming = true;
	a->dirty = false;
	call->armed = watch_is_on(a->env->watch);
	timer_stop(&a->again);
	ack_keys(a, &w, keys, ARRAY_LEN(keys));
	ack_send(a, call, &w, ARRAY_LEN(keys));
}

void
ack_look(struct ack *a)
{
	if (!a->wanted || a->told || a->asked > 0 || a->closing ||
	    !ack_is_up(a) || ack_in_doubt(a))
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
 * While paused only QPAUSED matters: pushes need not wake anyone.  But what
 * comes while the arm script is on its way may be news to its reply.
 */
static void
ack_changed_zset(void *arg)
{
	struct ack *a = arg;

	if (!a->paused || a->arming)
		ack_changed(a);
}

/*
 * A push.  Who came too late for it several times lets others go first, so
 * that a hundred idle daemons do not all pop at once.
 */
static void
ack_changed_list(void *arg)
{
	struct ack *a = arg;
	usec_t most = a->raced < 7 ? MSEC << a->raced : HERD_MAX;

	ack_changed_zset(a);
	if (!a->wanted || a->known || a->paused)
		return;
	a->woken = true;
	if (a->raced == 0)
		a->known = true;
	else if (!timer_is_set(&a->herd))
		timer_set(&a->herd, (usec_t)(random_unit() * (double)most));
}

/* -- life ------------------------------------------------------------------- */

void
ack_watch_init(struct ack *a)
{
	static const struct {
		enum key	  key;
		void		(*changed)(void *);
	} of[ARRAY_LEN(a->watch)] = {
		{ KEY_QUEUE, ack_changed_list }, { KEY_RETRY, ack_changed_zset },
		{ KEY_DELAYED, ack_changed_zset }, { KEY_PAUSED, ack_changed },
	};
	size_t i;

	timer_init(&a->due, a->env->loop, ack_know, a);
	timer_init(&a->herd, a->env->loop, ack_know, a);
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
