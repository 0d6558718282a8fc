/*
 * The lock's state machine; see lock.h.  lock_set_state() alone changes the state.
 *
 *	        the script has given it to us
 *	WANTED ------------------------------> HELD
 *	 | | refused or released, and           | | released
 *	 | | a try may have taken it            | |
 *	 | '------------> RELEASING <-----------' |
 *	 |                    | unlocked, late    |
 *	 '------------------> OVER <--------------'
 *	   refused or released              Redis says that it is lost
 *
 * A try whose reply is lost may have taken the lock: `may_have`.  The next try has the
 * same token, so the script answers it like the first one.  If the waiter gives up
 * before that, it unlocks.
 *
 * Renewals are sent every third of the ttl, even if the last one is not answered; each
 * has its own time of sending.  The connection's timeout is at most that third too, so
 * that a dead connection is replaced in time.
 *
 * In a cluster the connection is that of the key's master, and changes with it.  A
 * command that was redirected did not run, and is sent again.
 */
#include "rqctl/lock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loop/timer.h"
#include "queue/keys.h"
#include "redis/conn.h"
#include "redis/nodes.h"
#include "redis/request.h"
#include "redis/sentinel.h"
#include "redis/script.h"

#define POLL_EVERY	(200 * MSEC)	/* a waiter tries again */
#define EXPIRY_SPREAD	(20 * MSEC)	/* spreads the waiters when a key expires */
#define RELEASE_MAX	(5 * SEC)	/* to unlock a lock that was held */
#define UNDO_MAX	SEC		/* to unlock one that may never have been taken */
#define SENTINELS_MAX	(3 * SEC)	/* time to ask other Sentinels after a wrong master */

#define SHOWN		60		/* bytes of a value that another program has set */
#define SINCE_MAX	1e11		/* later than any clock of Redis */
#define RENEWALS	3		/* per ttl; older answers are of no use */

/* Returned by lock.lua: 1 alone, or all. */
enum { ANSWER_OURS, ANSWER_HOLDER, ANSWER_LEFT, ANSWER_FIELDS };
static const char answer_form[] = {
	[ANSWER_OURS] = FIELD_INT, [ANSWER_HOLDER] = FIELD_STR, [ANSWER_LEFT] = FIELD_INT,
	[ANSWER_FIELDS] = 0
};

enum lock_state { LOCK_WANTED, LOCK_HELD, LOCK_RELEASING, LOCK_OVER };

/* A renewal, with the time when it was sent. */
struct renewal {
	struct lock	*lock;
	struct request	 request;
};

struct lock {
	struct loop		*loop;
	struct redis_options	 redis;		/* with our timeout */
	usec_t			 away_max;	/* Redis may be away for the configured timeout */
	struct lock_options	 opt;
	const struct lock_events *events;
	void			*arg;
	struct conn		*conn;
	struct nodes		*nodes;		/* NULL: no cluster; else conn is one of theirs */
	struct node		*node;		/* the key's master; NULL: not known */
	char			*key;
	char			 token[27];
	char			 ms[24];	/* the ttl, for Redis */

	enum lock_state		 state;
	struct request		 attempt;	/* WANTED */
	struct renewal		 renewals[RENEWALS];	/* HELD */
	unsigned		 renewed;	/* number of renewals sent */
	struct request		 unlock;	/* RELEASING */
	bool			 waiting;	/* events->waiting() was called */
	bool			 may_have;	/* WANTED: Redis may hold it for us */
	boot_t			 until;		/* HELD: the end of our time */
	bool			 ending;	/* events->ending() was called */
	bool			 lost;		/* HELD: Redis says so */
	char			*trouble;	/* why it was not taken or renewed; owned */
	enum lock_refusal	 refusal;
	enum reply_error	 error;		/* of trouble */
	bool			 refusing;	/* RELEASING: ends in refused() */
	bool			 unlocking;	/* RELEASING: the unlock was sent ... */
	bool			 repeated;	/* ... twice: the first may have acted */
	enum lock_release	 how;

	struct timer		 next;		/* WANTED: the next try.  HELD: the next renewal */
	struct timer		 limit;		/* of the wait (WANTED), or of the release */
	struct timer		 away;		/* WANTED: the time without Redis */
	struct boot_timer	 end;		/* HELD: `grace` before until */
	struct defer		 over;
};

static void	lock_try(struct lock *);

/*
 * A call got no reply.  Without a cluster the lock goes on when the next connection is
 * up.  In a cluster that may have happened before, so a timer goes on.
 */
static void
lock_unanswered(struct lock *l)
{
	if (l->nodes != NULL)
		timer_set(&l->next, POLL_EVERY);
}

/* Changes the state, and stops all timers: each belongs to one state. */
static void
lock_set_state(struct lock *l, enum lock_state state)
{
	l->state = state;
	timer_stop(&l->next);
	timer_stop(&l->limit);
	timer_stop(&l->away);
	boot_timer_stop(&l->end);
}

static void
lock_set_trouble(struct lock *l, enum lock_refusal refusal, enum reply_error error,
    const char *text)
{
	xreplace(&l->trouble, text);
	l->refusal = refusal;
	l->error = error;
}

/* Takes an error reply, or a reply that the script never gives, as the trouble. */
static enum reply_error
lock_set_error(struct lock *l, const struct redisReply *r)
{
	enum reply_error e = reply_error(r);
	char cause[REPLY_CAUSE];

	if (e == REPLY_OK)
		e = REPLY_OTHER;
	lock_set_trouble(l, LOCK_REFUSED, e, reply_cause(r, cause, sizeof(cause)));
	if (e == REPLY_ELSEWHERE && (l->state == LOCK_HELD || l->opt.wait != 0))
		conn_reset(l->conn, cause);
	return e;
}

/* Adds the words with which all three scripts begin. */
static void
lock_words(const struct lock *l, struct words *w)
{
	words_key(w, l->key, strlen(l->key));
	words_add(w, l->token);
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
lock_end(struct lock *l, enum lock_release how)
{
	lock_set_state(l, LOCK_OVER);
	l->how = how;
	loop_defer(l->loop, &l->over, lock_over, l);
}

static void
lock_unlocked(enum conn_answer answer, const struct redisReply *r, void *arg)
{
	struct lock *l = arg;

	if (l->state != LOCK_RELEASING)
		return;
	if (answer != CONN_REPLY)
		lock_unanswered(l);
	else if (reply_error(r) != REPLY_OK)
		lock_end(l, LOCK_LEFT);
	else if (reply_int_at(r, ANSWER_OURS) == 1 || l->repeated)
		lock_end(l, LOCK_RELEASED);
	else
		lock_end(l, LOCK_LOST);
}

/* Connects at once, even during a backoff. */
static void
lock_connect(struct lock *l)
{
	if (l->nodes == NULL || l->node != NULL)
		conn_start(l->conn);
}

static void
lock_unlock(struct lock *l)
{
	struct words w = { .n = 0 };

	if (request_is_sent(&l->unlock))
		return;
	if (!conn_is_ready(l->conn)) {
		lock_connect(l);
		return;
	}
	l->repeated = l->unlocking;
	l->unlocking = true;
	lock_words(l, &w);
	words_add(&w, "0");
	request_script(&l->unlock, l->conn, script_find("lock"), &w);
}

/* Tries to unlock, but not for longer than the lock could be ours. */
static void
lock_start_release(struct lock *l)
{
	usec_t most = RELEASE_MAX;

	if (l->refusing)
		most = UNDO_MAX;
	lock_set_state(l, LOCK_RELEASING);
	timer_set(&l->limit, int64_min(most, l->opt.ttl));
	lock_unlock(l);
}

void
lock_release(struct lock *l)
{
	if (l->state == LOCK_WANTED && !l->may_have)
		lock_end(l, LOCK_RELEASED);
	else if (l->lost)
		lock_end(l, LOCK_LOST);
	else if (l->state != LOCK_OVER)
		lock_start_release(l);
}

/* -- trying ------------------------------------------------------------------- */

static void
lock_refuse(void *arg)
{
	struct lock *l = arg;

	l->refusing = true;
	if (l->trouble == NULL)
		lock_set_trouble(l, LOCK_DOWN, REPLY_OK, "no answer");
	if (l->may_have)
		lock_start_release(l);
	else
		lock_end(l, LOCK_RELEASED);
}

/*
 * WANTED: the wait is over; if no try was answered yet, the next answer decides.
 * RELEASING: gives up.
 */
static void
lock_limit(void *arg)
{
	struct lock *l = arg;

	if (l->state == LOCK_RELEASING)
		lock_end(l, LOCK_LEFT);
	else if (l->trouble != NULL)
		lock_refuse(l);
	else
		l->opt.wait = 0;
}

static void
lock_is_busy(struct lock *l, const struct redisReply *r)
{
	int64_t left = reply_int_at(r, ANSWER_LEFT);	/* of the holder's ttl, in ms */
	usec_t after = (usec_t)((double)POLL_EVERY * (0.5 + random_unit() / 2));

	l->may_have = false;
	lock_set_trouble(l, LOCK_BUSY, REPLY_OK, reply_str_at(r, ANSWER_HOLDER));
	if (l->opt.wait != 0 && !l->waiting) {
		l->waiting = true;
		l->events->waiting(l->trouble, l->arg);
	}
	if (l->opt.wait == 0) {
		lock_refuse(l);
		return;
	}
	if (left >= 0 && left < after / MSEC)
		after = left * MSEC + MSEC + (usec_t)(random_unit() * (double)EXPIRY_SPREAD);
	timer_set(&l->next, after);
}

static void
lock_try(struct lock *l)
{
	const struct script *s = script_find("lock");
	struct words w = { .n = 0 };

	if (request_is_sent(&l->attempt) || !conn_is_ready(l->conn))
		return;
	timer_stop(&l->next);
	l->may_have = true;
	lock_words(l, &w);
	words_add(&w, l->ms);
	words_add(&w, l->opt.who);
	request_script(&l->attempt, l->conn, s, &w);
}

static void
lock_extend(struct lock *l, boot_t sent)
{
	if (sent + l->opt.ttl <= l->until)
		return;
	l->until = sent + l->opt.ttl;
	lock_set_trouble(l, LOCK_DOWN, REPLY_OK, NULL);
	boot_timer_set_at(&l->end, l->until - l->opt.grace);
}

static void
lock_tried(enum conn_answer answer, const struct redisReply *r, void *arg)
{
	struct lock *l = arg;
	boot_t sent = l->attempt.sent_at;
	enum reply_error e;

	if (l->state != LOCK_WANTED)
		return;
	if (answer != CONN_REPLY) {
		lock_unanswered(l);
	} else if (reply_int_at(r, ANSWER_OURS) == 1) {
		if (clock_boot() >= sent + l->opt.ttl - l->opt.grace) {
			lock_try(l);	/* the reply took too long */
			return;
		}
		lock_set_state(l, LOCK_HELD);
		l->may_have = false;
		lock_extend(l, sent);
		timer_set(&l->next, l->opt.ttl / 3);
		l->events->held(l->arg);
	} else if (reply_has(r, answer_form)) {
		lock_is_busy(l, r);
	} else {
		/* It waits if the error may pass; one of a replica leads to another connection. */
		e = lock_set_error(l, r);
		if (l->opt.wait == 0 || (e != REPLY_TRANSIENT && e != REPLY_REFUSED &&
		    e != REPLY_ELSEWHERE))
			lock_refuse(l);
		else if (e != REPLY_ELSEWHERE)
			timer_set(&l->next, POLL_EVERY);
	}
}

/* -- holding ------------------------------------------------------------------ */

static void
lock_say_ending(struct lock *l, const char *why, usec_t left)
{
	if (l->ending)
		return;
	l->ending = true;
	l->events->ending(why, int64_max(left, 0), l->arg);
}

/* The lock will end soon: calls ending(). */
static void
lock_ends(void *arg)
{
	struct lock *l = arg;
	const char *why = "Redis does not answer";

	if (l->trouble != NULL)
		why = l->trouble;
	lock_say_ending(l, why, l->until - clock_boot());
}

/* The parts of a value: "TOKEN HOST PID SINCE". */
struct lock_holder {
	char	host[256];	/* "": another program's value, or none */
	long	pid;
	double	since;		/* Redis' time */
};

static void
lock_holder(const char *value, struct lock_holder *h)
{
	int end = -1;

	*h = (struct lock_holder){ .pid = 0 };
	if (sscanf(value, "%*[0-9a-z] %255s %ld %lf%n", h->host, &h->pid,
	    &h->since, &end) != 3 || end == -1 || value[end] != '\0' ||
	    !(h->since > 0 && h->since < SINCE_MAX))
		*h = (struct lock_holder){ .pid = 0 };
}

static void
lock_renewed(enum conn_answer answer, const struct redisReply *r, void *arg)
{
	const struct renewal *renewal = arg;
	struct lock *l = renewal->lock;
	struct lock_holder h;
	char *why;

	if (l->state != LOCK_HELD || l->lost)
		return;
	if (answer != CONN_REPLY) {
		lock_unanswered(l);
		return;
	}
	if (reply_int_at(r, ANSWER_OURS) == 1) {
		lock_extend(l, renewal->request.sent_at);
		return;
	}
	if (!reply_has(r, answer_form)) {
		(void)lock_set_error(l, r);
		return;
	}
	lock_holder(reply_str_at(r, ANSWER_HOLDER), &h);
	if (reply_int_at(r, ANSWER_LEFT) == -2)
		why = xstrdup("its key is gone");
	else if (h.host[0] != '\0')
		why = xasprintf("now %s has it, process %ld", h.host, h.pid);
	else
		why = xstrdup("now another program has it");
	l->lost = true;
	timer_stop(&l->next);
	boot_timer_stop(&l->end);
	lock_say_ending(l, why, l->opt.grace);
	free(why);
}

/* Sends the next try, renewal or unlock. */
static void
lock_next(void *arg)
{
	struct lock *l = arg;
	struct renewal *renewal = &l->renewals[l->renewed % RENEWALS];
	struct words w = { .n = 0 };

	if (l->state == LOCK_WANTED)
		lock_try(l);
	else if (l->state == LOCK_RELEASING)
		lock_unlock(l);
	if (l->state != LOCK_HELD || l->lost)
		return;
	timer_set(&l->next, l->opt.ttl / 3);
	if (!conn_is_ready(l->conn)) {
		lock_connect(l);
		return;
	}
	l->renewed++;
	request_cancel(&renewal->request);
	lock_words(l, &w);
	words_add(&w, l->ms);
	request_script(&renewal->request, l->conn, script_find("lock"), &w);
}

/* -- the connection ------------------------------------------------------------- */

static void
lock_conn_up(const struct conn_server *server UNUSED, void *arg)
{
	struct lock *l = arg;

	if (l->state == LOCK_WANTED)
		timer_stop(&l->away);
	lock_next(l);
}

/*
 * Whether the connection was ever up; in a cluster, whether a node has named the key's
 * master.
 */
static bool
lock_was_up(const struct lock *l)
{
	if (l->nodes != NULL)
		return l->node != NULL;
	return conn_generation(l->conn) > 0;
}

/* Refuses at once if Redis was never up, or if the lock may not wait. */
static void
lock_conn_down(const char *cause, void *arg)
{
	struct lock *l = arg;
	bool refuses = l->redis.sentinel == NULL;
	usec_t most = SENTINELS_MAX;

	if (l->state != LOCK_WANTED && l->state != LOCK_HELD)
		return;
	lock_set_trouble(l, LOCK_DOWN, REPLY_OK, cause);
	if (l->state == LOCK_HELD)
		return;
	timer_stop(&l->next);
	if (lock_was_up(l)) {
		refuses = l->opt.wait == 0;
		most = l->away_max;
	}
	if (refuses)
		lock_refuse(l);
	else if (!timer_is_set(&l->away))
		timer_set(&l->away, most);
}

/* -- a cluster ------------------------------------------------------------------- */

static void
lock_use(struct lock *l, struct node *node)
{
	if (node != NULL)
		node->users++;
	if (l->node != NULL)
		l->node->users--;
	l->node = node;
	if (node == NULL)
		l->conn = nodes_nowhere(l->nodes)->conn;
	else
		l->conn = node->conn;
}

/* Uses the master that has the key now. */
static void
lock_follow(struct lock *l)
{
	struct node *node = nodes_of(l->nodes, nodes_slot(l->nodes, l->key, strlen(l->key)));

	if (node == l->node)
		return;
	lock_use(l, node);
	if (conn_is_ready(l->conn))
		lock_conn_up(NULL, l);
}

static void
lock_node_up(struct node *node, const struct conn_server *server, void *arg)
{
	struct lock *l = arg;

	if (node == l->node)
		lock_conn_up(server, l);
}

static void
lock_node_down(struct node *node, const char *cause, void *arg)
{
	struct lock *l = arg;

	if (node == l->node)
		lock_conn_down(cause, l);
}

static void
lock_node_gone(struct node *node, void *arg)
{
	struct lock *l = arg;

	if (node == l->node)
		lock_use(l, NULL);
}

static void
lock_slots_changed(unsigned masters UNUSED, void *arg)
{
	lock_follow(arg);
}

/* The answer to the redirected command follows, and leads to the next try. */
static void
lock_redirected(struct node *node UNUSED, const char *error UNUSED, unsigned slot UNUSED,
    bool later UNUSED, void *arg)
{
	lock_follow(arg);
}

static void
lock_no_table(const char *cause, void *arg)
{
	if (cause != NULL)
		lock_conn_down(cause, arg);
}

/* -- life ----------------------------------------------------------------------- */

struct lock *
lock_new(struct loop *loop, const struct redis_options *redis, const struct lock_options *opt,
    const struct lock_events *events, void *arg)
{
	static const struct conn_events conn_events = {
		.up = lock_conn_up, .down = lock_conn_down
	};
	static const struct nodes_events nodes_events = {
		.up = lock_node_up, .down = lock_node_down, .gone = lock_node_gone,
		.changed = lock_slots_changed, .redirected = lock_redirected,
		.no_table = lock_no_table
	};
	struct lock *l = NEW(struct lock, .loop = loop, .redis = *redis,
	    .away_max = redis->timeout, .opt = *opt, .events = events, .arg = arg);

	if (l->redis.timeout > opt->ttl / 3)
		l->redis.timeout = opt->ttl / 3;
	l->key = xasprintf("%s%s", KEYS_LOCK_PREFIX, opt->name);
	random_name(l->token, sizeof(l->token));
	snprintf(l->ms, sizeof(l->ms), "%lld", (long long)(opt->ttl / MSEC));
	timer_init(&l->next, loop, lock_next, l);
	timer_init(&l->limit, loop, lock_limit, l);
	timer_init(&l->away, loop, lock_refuse, l);
	boot_timer_init(&l->end, loop, lock_ends, l);
	request_init(&l->attempt, lock_tried, l);
	request_init(&l->unlock, lock_unlocked, l);
	for (size_t i = 0; i < RENEWALS; i++) {
		l->renewals[i].lock = l;
		request_init(&l->renewals[i].request, lock_renewed, &l->renewals[i]);
	}
	if (opt->wait > 0)
		timer_set(&l->limit, opt->wait);

	if (l->redis.clusters != NULL && l->redis.clusters[0] != NULL) {
		l->nodes = nodes_new(loop, &l->redis, "rqctl", &nodes_events, l);
		l->conn = nodes_nowhere(l->nodes)->conn;
		nodes_start(l->nodes);
		lock_follow(l);
		return l;
	}
	if (l->redis.sentinels != NULL && l->redis.sentinels[0] != NULL)
		l->redis.sentinel = sentinel_new(loop, redis, "rqctl", NULL);
	l->conn = conn_new(loop, &l->redis, "rqctl", 0, &conn_events, l);
	conn_start(l->conn);
	return l;
}

void
lock_free(struct lock *l)
{
	if (l == NULL)
		return;
	lock_set_state(l, LOCK_OVER);
	if (l->nodes == NULL)
		conn_free(l->conn);
	nodes_free(l->nodes);
	sentinel_free(l->redis.sentinel);
	boot_timer_done(&l->end);
	loop_defer_cancel(l->loop, &l->over);
	free(l->trouble);
	free(l->key);
	free(l);
}

char *
lock_holder_text(const char *value)
{
	char since[CLOCK_TEXT_MAX];
	struct lock_holder h;

	lock_holder(value, &h);
	if (h.host[0] == '\0')
		return xasprintf("another program: \"%.*s\"", SHOWN, value);
	return xasprintf("%s, process %ld, since %s", h.host, h.pid,
	    clock_text((wall_t)(h.since * (double)SEC), since));
}
