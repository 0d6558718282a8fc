/*
 * The lock's state machine; see lock.h.
 *
 * A try whose answer is lost may have taken the lock: `doubt`.  The next try has
 * the same token and is told so; who gives up before that gives back what it
 * may have.
 *
 * Renewals are sent every third of the ttl, whether or not the last one is
 * answered; each knows when it was sent.  The connection's timeout is at most
 * that third too, so that a dead one is replaced in time.
 */
#include "queue/lock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loop/boot_timer.h"
#include "loop/timer.h"
#include "queue/keys.h"
#include "redis/conn.h"
#include "redis/script.h"
#include "redis/watch.h"

#define LOOK_EVERY	(5 * SEC)	/* while the watch says nothing */
#define POLL_EVERY	(200 * MSEC)	/* where there is no watch */
#define EXPIRY_SPREAD	(20 * MSEC)	/* not all at once when a key expires */
#define RELEASE_MAX	(5 * SEC)
#define REGRET_MAX	SEC		/* for what perhaps was never had */

#define SINCE_MAX	1e11		/* no time that a clock of Redis shows */
#define ARGS_MAX	4		/* words of a script's call: key, token, two more */

enum lock_state { LOCK_WANTED, LOCK_HELD, LOCK_RELEASING, LOCK_OVER };

struct lock {
	struct loop		*loop;
	struct redis_options	 redis;		/* with our timeout */
	usec_t			 patience;	/* the configured timeout: how long Redis may be away */
	struct lock_options	 opt;
	const struct lock_events *events;
	void			*arg;
	struct conn		*conn;
	struct watch		*watch;		/* NULL before the first wait */
	struct watch_key	 changed;
	char			*key;
	char			 token[27];
	char			 ms[24];	/* the ttl, for Redis */

	enum lock_state		 state;
	bool			 trying;	/* a try is not answered */
	bool			 again;		/* the key changed meanwhile */
	bool			 waiting;	/* events->waiting() was called */
	bool			 doubt;		/* Redis may hold it for us, and we don't know */
	boot_t			 until;		/* HELD: the end, as far as we know */
	bool			 told;		/* ending() was called */
	bool			 lost;		/* HELD: Redis says so */
	char			*trouble;	/* why it was not had, or not renewed; owned */
	enum lock_refusal	 refusal;
	enum reply_error	 error;		/* of trouble */
	bool			 refusing;	/* RELEASING: ends in refused() */
	bool			 unlocking;	/* RELEASING: unlock was sent ... */
	bool			 repeated;	/* ... twice: the first one may have acted */
	enum lock_release	 how;

	struct timer		 next;		/* WANTED: the next try.  HELD: the next renewal */
	struct timer		 limit;		/* WANTED: the wait is over.  RELEASING: enough */
	struct timer		 away;		/* WANTED: Redis was lost, and does not come back */
	struct boot_timer	 end;		/* HELD: `grace` before until */
	struct defer		 over;
};

/* A script on its way; the lock outlives its connection, so this is safe. */
struct lock_call {
	struct lock	*lock;
	boot_t		 sent;
};

static void	lock_try(void *);

static void
lock_set_trouble(struct lock *l, enum lock_refusal refusal, enum reply_error error,
    const char *text)
{
	char *copy = xstrdup(text);

	free(l->trouble);
	l->trouble = copy;
	l->refusal = refusal;
	l->error = error;
}

/* Calls a script with the key, the token, and more. */
static void
lock_send(struct lock *l, const char *script, conn_answer_fn *fn, const char *const *more,
    bool watched)
{
	struct lock_call *call = xcalloc(1, sizeof(*call));
	const struct script *s = script_find(script);
	const char *argv[ARGS_MAX] = { l->key, l->token };
	size_t argvlen[ARGS_MAX];
	int argc, i;

	if (s == NULL)
		fatalx("no script %s", script);
	call->lock = l;
	call->sent = clock_boot();
	for (argc = 2; *more != NULL; more++)
		argv[argc++] = *more;
	for (i = 0; i < argc; i++)
		argvlen[i] = strlen(argv[i]);
	if (watched)
		watch_script(l->watch, s, fn, call, 1, argc, argv, argvlen);
	else
		conn_script(l->conn, s, fn, call, 1, argc, argv, argvlen);
}

static struct lock *
lock_answered(struct lock_call *call, boot_t *sent)
{
	struct lock *l = call->lock;

	*sent = call->sent;
	free(call);
	return l;
}

/* -- the end ------------------------------------------------------------------ */

static void
lock_over(void *arg)
{
	struct lock *l = arg;

	if (l->refusing)
		l->events->refused(l->refusal, l->error, l->trouble, l->arg);
	else
		l->events->released(l->how, l->arg);
}

static void
lock_stop_timers(struct lock *l)
{
	timer_stop(&l->next);
	timer_stop(&l->limit);
	timer_stop(&l->away);
	boot_timer_stop(&l->end);
}

static void
lock_end(struct lock *l, enum lock_release how)
{
	l->state = LOCK_OVER;
	l->how = how;
	lock_stop_timers(l);
	loop_defer(l->loop, &l->over, lock_over, l);
}

static void
lock_unlocked(enum conn_answer answer, const struct redisReply *r, void *arg)
{
	boot_t sent;
	struct lock *l = lock_answered(arg, &sent);

	if (l->state != LOCK_RELEASING || answer != CONN_REPLY)
		return;
	if (reply_error(r) != REPLY_OK)
		lock_end(l, LOCK_LEFT);
	else
		lock_end(l, reply_int(r, 0) == 1 || l->repeated ? LOCK_RELEASED : LOCK_LOST);
}

static void
lock_unlock(struct lock *l)
{
	static const char *const none[] = { NULL };

	if (!conn_is_ready(l->conn)) {
		conn_start(l->conn);
		return;
	}
	l->repeated = l->unlocking;
	l->unlocking = true;
	lock_send(l, "unlock", lock_unlocked, none, false);
}

/* It was not given back in time. */
static void
lock_leave(void *arg)
{
	lock_end(arg, LOCK_LEFT);
}

/* Not longer than the lock could be ours. */
static void
lock_start_release(struct lock *l)
{
	usec_t most = l->refusing ? REGRET_MAX : RELEASE_MAX;

	if (most > l->opt.ttl)
		most = l->opt.ttl;
	l->state = LOCK_RELEASING;
	lock_stop_timers(l);
	timer_init(&l->limit, l->loop, lock_leave, l);
	timer_set(&l->limit, most);
	lock_unlock(l);
}

void
lock_release(struct lock *l)
{
	if (l->state == LOCK_WANTED && !l->doubt)
		lock_end(l, LOCK_RELEASED);
	else if (l->lost)
		lock_end(l, LOCK_LOST);
	else if (l->state != LOCK_OVER)
		lock_start_release(l);
}

/* -- trying ------------------------------------------------------------------- */

static void
lock_refuse(struct lock *l)
{
	l->refusing = true;
	if (l->trouble == NULL)
		lock_set_trouble(l, LOCK_DOWN, REPLY_OK, "no answer");
	if (l->doubt)
		lock_start_release(l);
	else
		lock_end(l, LOCK_RELEASED);
}

/* Redis does not come back. */
static void
lock_give_up(void *arg)
{
	lock_refuse(arg);
}

/* The wait is over; but one answer there must be. */
static void
lock_wait_is_over(void *arg)
{
	struct lock *l = arg;

	if (l->trouble != NULL)
		lock_refuse(l);
	else
		l->opt.wait = 0;
}

static void
lock_key_changed(void *arg)
{
	struct lock *l = arg;

	l->again = true;
	if (l->state == LOCK_WANTED)
		timer_set(&l->next, 0);
}

/* What the watch can do shows in watch_is_on(). */
static void
lock_watch_mode(bool on, const char *why, void *arg)
{
	(void)on;
	(void)why;
	(void)arg;
}

static void
lock_start_watch(struct lock *l)
{
	l->watch = watch_new(l->loop, l->conn, &l->redis, "rqctl", lock_watch_mode, l);
	l->changed = (struct watch_key){ .key = l->key, .len = strlen(l->key),
	    .changed = lock_key_changed, .arg = l };
	watch_add(l->watch, &l->changed);
	watch_start(l->watch);
	watch_conn_up(l->watch);
}

/* When to look again, if nobody tells: left is of the present holder, in ms. */
static void
lock_look_later(struct lock *l, int64_t left)
{
	usec_t most = l->watch != NULL && watch_is_on(l->watch) ? LOOK_EVERY : POLL_EVERY;
	usec_t after = (usec_t)((double)most * (0.5 + random_unit() / 2));

	if (left >= 0 && left < after / MSEC)
		after = left * MSEC + MSEC + (usec_t)(random_unit() * (double)EXPIRY_SPREAD);
	timer_set(&l->next, after);
	if (l->watch == NULL)
		lock_start_watch(l);
}

static void
lock_is_busy(struct lock *l, const struct redisReply *r)
{
	const char *holder = reply_str(reply_at(r, 1), NULL);

	l->doubt = false;
	lock_set_trouble(l, LOCK_BUSY, REPLY_OK, holder != NULL ? holder : "");
	if (l->opt.wait != 0 && !l->waiting) {
		l->waiting = true;
		l->events->waiting(l->trouble, l->arg);
	}
	if (l->opt.wait == 0)
		lock_refuse(l);
	else if (l->again)
		lock_try(l);
	else
		lock_look_later(l, reply_int(reply_at(r, 2), -1));
}

/* Errors that pass are waited for; those of a replica mean another server. */
static void
lock_has_error(struct lock *l, const struct redisReply *r)
{
	enum reply_error e = reply_error(r);
	char cause[REPLY_CAUSE];

	lock_set_trouble(l, LOCK_REFUSED, e, reply_cause(r, cause, sizeof(cause)));
	if (l->opt.wait == 0 || (e != REPLY_TRANSIENT && e != REPLY_REFUSED &&
	    e != REPLY_ELSEWHERE))
		lock_refuse(l);
	else if (e == REPLY_ELSEWHERE)
		conn_reset(l->conn, cause);
	else
		timer_set(&l->next, POLL_EVERY);
}

static void	lock_take(struct lock *, boot_t sent);

static void
lock_tried(enum conn_answer answer, const struct redisReply *r, void *arg)
{
	boot_t sent;
	struct lock *l = lock_answered(arg, &sent);

	l->trying = false;
	if (l->state != LOCK_WANTED || answer != CONN_REPLY)
		return;
	if (reply_error(r) != REPLY_OK)
		lock_has_error(l, r);
	else if (reply_int(reply_at(r, 0), 0) == 1)
		lock_take(l, sent);
	else
		lock_is_busy(l, r);
}

static void
lock_try(void *arg)
{
	struct lock *l = arg;
	const char *more[] = { l->opt.who, l->ms, NULL };

	if (l->trying || !conn_is_ready(l->conn))
		return;
	timer_stop(&l->next);
	l->again = false;
	l->trying = l->doubt = true;
	lock_send(l, "lock", lock_tried, more, l->watch != NULL);
}

/* -- holding ------------------------------------------------------------------ */

static void
lock_tell_ending(struct lock *l, const char *why, usec_t left)
{
	if (l->told)
		return;
	l->told = true;
	l->events->ending(why, left > 0 ? left : 0, l->arg);
}

/* The time is nearly over. */
static void
lock_ends(void *arg)
{
	struct lock *l = arg;

	if (l->state == LOCK_HELD)
		lock_tell_ending(l, l->trouble != NULL ? l->trouble :
		    "Redis does not answer", l->until - clock_boot());
}

static void
lock_extend(struct lock *l, boot_t sent)
{
	if (sent + l->opt.ttl <= l->until)
		return;
	l->until = sent + l->opt.ttl;
	free(l->trouble);
	l->trouble = NULL;
	boot_timer_set_at(&l->end, l->until - l->opt.grace);
}

static void
lock_is_lost(struct lock *l, const struct redisReply *r)
{
	const char *value = reply_str(reply_at(r, 1), NULL);
	struct lock_holder h;
	char *why;

	lock_holder(value != NULL ? value : "", &h);
	if (reply_int(reply_at(r, 2), -2) == -2)
		why = xstrdup("its key is gone");
	else if (h.host[0] != '\0')
		why = xasprintf("now %s has it, process %ld", h.host, h.pid);
	else
		why = xstrdup("now another program has it");
	l->lost = true;
	timer_stop(&l->next);
	boot_timer_stop(&l->end);
	lock_tell_ending(l, why, l->opt.grace);
	free(why);
}

static void
lock_renewed(enum conn_answer answer, const struct redisReply *r, void *arg)
{
	boot_t sent;
	struct lock *l = lock_answered(arg, &sent);
	char cause[REPLY_CAUSE];

	if (l->state != LOCK_HELD || l->lost || answer != CONN_REPLY)
		return;
	if (reply_error(r) != REPLY_OK) {
		lock_set_trouble(l, LOCK_REFUSED, reply_error(r),
		    reply_cause(r, cause, sizeof(cause)));
		if (reply_error(r) == REPLY_ELSEWHERE)
			conn_reset(l->conn, cause);
	} else if (reply_int(reply_at(r, 0), 0) == 1) {
		lock_extend(l, sent);
	} else {
		lock_is_lost(l, r);
	}
}

static void
lock_renew(void *arg)
{
	struct lock *l = arg;
	const char *more[] = { l->ms, NULL };

	timer_set(&l->next, l->opt.ttl / 3);
	if (conn_is_ready(l->conn))
		lock_send(l, "lock_renew", lock_renewed, more, false);
	else
		conn_start(l->conn);
}

static void
lock_stop_watch(struct lock *l)
{
	watch_free(l->watch);
	l->watch = NULL;
}

/* Redis has it for us; an answer that took too long is of no use. */
static void
lock_take(struct lock *l, boot_t sent)
{
	if (clock_boot() >= sent + l->opt.ttl - l->opt.grace) {
		lock_try(l);
		return;
	}
	l->state = LOCK_HELD;
	l->doubt = false;
	lock_stop_timers(l);
	lock_stop_watch(l);
	lock_extend(l, sent);
	timer_init(&l->next, l->loop, lock_renew, l);
	timer_set(&l->next, l->opt.ttl / 3);
	l->events->held(l->arg);
}

/* -- the connection ------------------------------------------------------------- */

static void
lock_conn_up(const struct conn_server *server, void *arg)
{
	struct lock *l = arg;

	(void)server;
	switch (l->state) {
	case LOCK_WANTED:
		timer_stop(&l->away);
		if (l->watch != NULL)
			watch_conn_up(l->watch);
		lock_try(l);
		break;
	case LOCK_HELD:
		if (!l->lost)
			lock_renew(l);
		break;
	case LOCK_RELEASING:
		lock_unlock(l);
		break;
	case LOCK_OVER:
		break;
	}
}

/* Without any connection yet, or with no time to wait, there is nothing to wait for. */
static void
lock_conn_down(const char *cause, void *arg)
{
	struct lock *l = arg;

	if (l->watch != NULL)
		watch_conn_down(l->watch);
	if (l->state != LOCK_WANTED && l->state != LOCK_HELD)
		return;
	lock_set_trouble(l, LOCK_DOWN, REPLY_OK, cause);
	if (l->state == LOCK_HELD)
		return;
	timer_stop(&l->next);
	if (conn_generation(l->conn) == 0 || l->opt.wait == 0)
		lock_refuse(l);
	else if (!timer_is_set(&l->away))
		timer_set(&l->away, l->patience);
}

/* -- life ----------------------------------------------------------------------- */

struct lock *
lock_new(struct loop *loop, const struct redis_options *redis, const struct lock_options *opt,
    const struct lock_events *events, void *arg)
{
	static const struct conn_events conn_events = { lock_conn_up, lock_conn_down };
	struct lock *l = xcalloc(1, sizeof(*l));

	l->loop = loop;
	l->redis = *redis;
	l->patience = redis->timeout;
	if (l->redis.timeout > opt->ttl / 3)
		l->redis.timeout = opt->ttl / 3;
	l->opt = *opt;
	l->events = events;
	l->arg = arg;
	l->key = xasprintf("%s%s", KEYS_LOCK_PREFIX, opt->name);
	random_name(l->token, sizeof(l->token));
	snprintf(l->ms, sizeof(l->ms), "%lld", (long long)(opt->ttl / MSEC));
	timer_init(&l->next, loop, lock_try, l);
	timer_init(&l->limit, loop, lock_wait_is_over, l);
	timer_init(&l->away, loop, lock_give_up, l);
	boot_timer_init(&l->end, loop, lock_ends, l);
	if (opt->wait > 0)
		timer_set(&l->limit, opt->wait);
	l->conn = conn_new(loop, &l->redis, "rqctl", 0, &conn_events, l);
	conn_start(l->conn);
	return l;
}

void
lock_free(struct lock *l)
{
	if (l == NULL)
		return;
	l->state = LOCK_OVER;
	watch_free(l->watch);
	conn_free(l->conn);
	timer_stop(&l->next);
	timer_stop(&l->limit);
	timer_stop(&l->away);
	boot_timer_done(&l->end);
	loop_defer_cancel(l->loop, &l->over);
	free(l->trouble);
	free(l->key);
	free(l);
}

void
lock_holder(const char *value, struct lock_holder *h)
{
	int end = -1;

	*h = (struct lock_holder){ .pid = 0 };
	if (sscanf(value, "%*[0-9a-z] %255s %ld %lf%n", h->host, &h->pid, &h->since, &end) != 3 ||
	    end == -1 || value[end] != '\0' || !(h->since > 0 && h->since < SINCE_MAX))
		*h = (struct lock_holder){ .pid = 0 };
}
