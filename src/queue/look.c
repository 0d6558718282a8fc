/*
 * Looks; see look.h.  One look is on its way at a time.  watch_request() arms the keys
 * that it reads.  If Redis reports a change before the answer, the answer may be old:
 * another look follows at once.
 */
#include "queue/look.h"

#include "base/backoff.h"
#include "redis/reply.h"

#define POLL_EVERY	SEC		/* if Redis refuses tracking */
#define LONGEST		HOUR		/* longest wait for the end of a pause */

/* Returned by look.lua. */
enum { LOOK_WAITING, LOOK_PAUSED, LOOK_WHY, LOOK_TTL, LOOK_FIELDS };
static const char look_form[] = {
	[LOOK_WAITING] = FIELD_INT, [LOOK_PAUSED] = FIELD_INT, [LOOK_WHY] = FIELD_STR,
	[LOOK_TTL] = FIELD_INT, [LOOK_FIELDS] = 0
};

static void	look_send(struct look *);

/* After an answer: sets the time of the next look, if no wake-up will come. */
static void
look_plan(struct look *l, int64_t ttl)
{
	bool woken = l->armed && !l->evict.on;
	usec_t after = POLL_EVERY;

	if (l->dirty && !l->evict.on) {
		look_send(l);
		return;
	}
	if (woken && !(l->paused && ttl >= 0))
		return;
	/* Redis reports the end of a TTL late if nobody reads the key. */
	if (woken)
		after = ttl < LONGEST / MSEC ? (usec_t)ttl * MSEC + MSEC : LONGEST;
	timer_set(&l->again, after);
}

static void
look_refused(struct look *l, const struct redisReply *reply)
{
	char cause[REPLY_CAUSE];
	struct looked found = { .refused = reply_cause(reply, cause, sizeof(cause)) };

	if (reply_error(reply) == REPLY_ELSEWHERE) {
		conn_reset(l->env->conn, cause);
		return;
	}
	timer_set(&l->again, backoff_delay(SEC, MINUTE, ++l->failures, random_unit()));
	l->saw(&found, l->arg);
}

static void
look_answered(enum conn_answer answer, const struct redisReply *reply, void *arg)
{
	struct look *l = arg;
	struct looked found = { .warning = l->warning };

	if (answer != CONN_REPLY || !l->on)
		return;
	if (!reply_has(reply, look_form)) {
		look_refused(l, reply);
		return;
	}
	l->failures = 0;
	l->warning = NULL;
	found.waiting = reply_int_at(reply, LOOK_WAITING);
	found.paused = l->paused = reply_int_at(reply, LOOK_PAUSED) != 0;
	found.why = reply_str_at(reply, LOOK_WHY);
	look_plan(l, reply_int_at(reply, LOOK_TTL));
	l->saw(&found, l->arg);
}

static void
look_send(struct look *l)
{
	struct words w = { 0 };

	if (!l->on || request_is_sent(&l->request) || !conn_is_ready(l->env->conn))
		return;
	timer_stop(&l->again);
	l->dirty = false;
	l->armed = watch_is_on(l->env->watch);
	keys_add(l->keys, &w, KEY_PAUSED);
	if (l->list)
		keys_add(l->keys, &w, KEY_QUEUE);
	watch_request(l->env->watch, &l->request, script_find("look"), &w);
}

static void
look_now(void *arg)
{
	struct look *l = arg;

	l->dirty = true;
	look_send(l);
}

void
look_again(struct look *l)
{
	evict_round(&l->evict);
	look_now(l);
}

/* The list has changed. */
static void
look_changed(void *arg)
{
	struct look *l = arg;

	if (!l->evict.on)
		look_now(l);
}

static void
look_changed_paused(void *arg)
{
	struct look *l = arg;
	const char *warning = l->paused ? NULL : evict_reported(&l->evict);

	if (warning != NULL)
		l->warning = warning;
	look_changed(l);
}

void
look_set(struct look *l, bool on)
{
	if (l->on == on)
		return;
	l->on = on;
	if (on)
		look_now(l);
	else
		timer_stop(&l->again);
}

void
look_init(struct look *l, const struct queue_env *env, const struct keys *keys, bool list,
    void (*saw)(const struct looked *, void *), void *arg)
{
	static const enum key of[] = { KEY_PAUSED, KEY_QUEUE };

	*l = (struct look){ .env = env, .keys = keys, .list = list, .saw = saw, .arg = arg };
	request_init(&l->request, look_answered, l);
	timer_init(&l->again, env->loop, look_now, l);
	for (int i = 0; i < 1 + (list ? 1 : 0); i++) {
		l->watch[i].key = keys->name[of[i]];
		l->watch[i].len = keys->len[of[i]];
		l->watch[i].changed = i == 0 ? look_changed_paused : look_changed;
		l->watch[i].arg = l;
		watch_add(env->watch, &l->watch[i]);
	}
}

void
look_done(struct look *l)
{
	request_cancel(&l->request);
	timer_stop(&l->again);
	evict_done(&l->evict);
	watch_remove(l->env->watch, &l->watch[0]);
	if (l->list)
		watch_remove(l->env->watch, &l->watch[1]);
}
