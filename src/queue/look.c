/*
 * Looking; see look.h.  One script is on its way at a time.  What it reads is
 * armed by watch_script(), and a change that is told before its answer makes
 * the answer old: then it is sent again at once.
 */
#include "queue/look.h"

#include <stdlib.h>

#include "policy/backoff.h"
#include "queue/script_args.h"
#include "redis/reply.h"

#define POLL_EVERY	SEC		/* where tracking is refused */
#define LONGEST		HOUR		/* that a timer waits for the end of a pause */

/* Lives until it is answered, also beyond its look. */
struct look_call {
	struct look	*look;		/* NULL: nobody wants the answer any more */
	bool		 armed;		/* tracking was on */
};

static void	look_send(struct look *);

/* The script is answered: when to look next. */
static void
look_plan(struct look *l, const struct look_call *call, bool paused, int64_t ttl)
{
	usec_t after = POLL_EVERY;

	bool told = call->armed && !l->evict.on;

	if (l->dirty && !l->evict.on) {
		look_send(l);
		return;
	}
	if (told && !(paused && ttl >= 0))
		return;
	/* The end of a TTL is told late where nobody reads the key. */
	if (told)
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

/* waiting paused why ttl */
static void
look_answered(enum conn_answer answer, const struct redisReply *reply, void *arg)
{
	struct look_call *call = arg;
	struct look *l = call->look;
	struct looked found = { .refused = NULL };

	if (l != NULL) {
		l->call = NULL;
		if (answer == CONN_REPLY && l->on && reply_len(reply) < 4) {
			look_refused(l, reply);
		} else if (answer == CONN_REPLY && l->on) {
			l->failures = 0;
			found.waiting = reply_int(reply_at(reply, 0), 0);
			found.paused = reply_int(reply_at(reply, 1), 0) != 0;
			found.why = reply_str(reply_at(reply, 2), NULL);
			found.warning = l->warning;
			l->warning = NULL;
			l->paused = found.paused;
			look_plan(l, call, found.paused, reply_int(reply_at(reply, 3), -1));
			l->saw(&found, l->arg);
		}
	}
	free(call);
}

static void
look_send(struct look *l)
{
	struct args w = { 0 };

	if (!l->on || l->call != NULL || !conn_is_ready(l->env->conn))
		return;
	timer_stop(&l->again);
	l->dirty = false;
	l->call = xcalloc(1, sizeof(*l->call));
	l->call->look = l;
	l->call->armed = watch_is_on(l->env->watch);
	args_mem(&w, l->keys->name[KEY_PAUSED], l->keys->len[KEY_PAUSED]);
	if (l->list)
		args_mem(&w, l->keys->name[KEY_QUEUE], l->keys->len[KEY_QUEUE]);
	watch_script(l->env->watch, script_find("look"), look_answered, l->call, w.n, w.n, w.v,
	    w.len);
	args_done(&w);
}

static void
look_now(struct look *l)
{
	l->dirty = true;
	look_send(l);
}

void
look_again(struct look *l)
{
	evict_round(&l->evict);
	look_now(l);
}

static void
look_timer(void *arg)
{
	look_now(arg);
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
	const char *warning = l->paused ? NULL : evict_told(&l->evict);

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
	int i;

	*l = (struct look){ .env = env, .keys = keys, .list = list, .saw = saw, .arg = arg };
	timer_init(&l->again, env->loop, look_timer, l);
	for (i = 0; i < 1 + (list ? 1 : 0); i++) {
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
	if (l->call != NULL)
		l->call->look = NULL;
	timer_stop(&l->again);
	evict_done(&l->evict);
	watch_remove(l->env->watch, &l->watch[0]);
	if (l->list)
		watch_remove(l->env->watch, &l->watch[1]);
}
