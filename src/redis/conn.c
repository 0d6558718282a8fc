/*
 * The connection.  address_walk.c chooses the address, greet.c sends the first
 * commands, and pending.c keeps the commands that wait for a reply.  This file has the
 * state machine, which conn_set_state() alone moves, and the calls of hiredis'
 * asynchronous functions.
 *
 *	     the timer     resolved        connected      greeted
 *	DOWN -----> RESOLVING ----> CONNECTING ----> GREETING ----> READY
 *	 ^ '---- the host is numeric ---^                             |
 *	 |                                                            |
 *	 |<-- conn_failed(): from these three, to the next address ---|
 *	 |<-- conn_lost(): the connection ended, or conn_reset() -----|
 *	 |                                                            | conn_close(),
 *	 '------- conn_end(): no command waits for a reply --- CLOSING <- in any state
 *
 * hiredis owns the context (ac) and frees it by itself after a failure.  Its traps, and
 * how this file avoids them:
 *  - Freeing or disconnecting in its connect callback is a double free in
 *    0.14: that callback only notes the outcome and appends commands.
 *  - Callbacks come with a NULL reply while a context dies, and commands are
 *    not accepted then: those are ignored.  Each command is in our own list;
 *    conn_let_go() marks all of them as lost.
 *  - conn_let_go() clears ac->data, so that later callbacks of hiredis find no
 *    connection.
 *  - Replies come in the order of the commands, so a reply belongs to the head
 *    of the list: hiredis is never given a pointer that may dangle.
 *
 * Owners are called from reply callbacks, from timers, and from conn_turn().
 * conn_turn() runs at the end of the turn, and answers the commands that were lost or
 * not sent.  Owners may call any function from there, also conn_free(): the connection
 * is freed when the last of these calls has returned.
 */
#include "redis/conn.h"

#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hiredis/hiredis.h>
#include <hiredis/async.h>

#include "base/backoff.h"
#include "base/log.h"
#include "redis/conn_private.h"
#include "redis/secret.h"
#include "redis/tls.h"

#define BACKOFF_MIN	(100 * MSEC)
#define BACKOFF_MAX	(10 * SEC)
#define LASTED		SEC		/* a shorter connection that worked counts as short */
#define LASTED_LONG	(10 * SEC)	/* then it counts as one that worked */
#define SHORT_FAILURES	3		/* after short ones the backoff stops at 0.8 s */
#define TIME_MAX	1e11		/* seconds: no clock of Redis shows this */

static void	conn_turn(void *);

/* The only place that changes the state. */
static void
conn_set_state(struct conn *c, enum conn_state state)
{
	static const char *const names[] = {
		[CONN_DOWN] = "down", [CONN_RESOLVING] = "resolving",
		[CONN_CONNECTING] = "connecting", [CONN_GREETING] = "greeting",
		[CONN_READY] = "ready", [CONN_CLOSING] = "closing"
	};

	if (state == c->state)
		return;
	log_event(LOG_LV_DEBUG, "redis_state", NULL, LF_STR("connection", c->name),
	    LF_STR("from", names[c->state]), LF_STR("to", names[state]),
	    LF_STR("server", walk_server(&c->route)));
	c->state = state;
}

/* -- the turn's end -------------------------------------------------------- */

static void
conn_destroy(struct conn *c)
{
	struct conn_sub *s;

	while ((s = TAILQ_TAKE(&c->subs, entry)) != NULL) {
		free(s->name);
		free(s);
	}
	walk_done(&c->route);
	free(c->down_cause);
	free(c->name);
	free(c);
}

void
conn_leave(struct conn *c)
{
	if (--c->busy == 0 && c->freed)
		conn_destroy(c);
}

void
conn_want_turn(struct conn *c)
{
	if (!c->freed)
		loop_defer(c->loop, &c->turn, conn_turn, c);
}

/* Drops the context, if there is one, and marks the commands on it as lost. */
static void
conn_let_go(struct conn *c)
{
	struct redisAsyncContext *ac = c->ac;

	walk_cancel(&c->route);
	greet_done(&c->greet);
	c->greeted = false;
	timer_stop(&c->timer);
	timer_stop(&c->idle);
	pending_lose(&c->pending);
	if (!TAILQ_EMPTY(&c->pending))
		conn_want_turn(c);
	c->ac = NULL;
	if (ac != NULL) {
		ac->data = NULL;
		redisAsyncFree(ac);
	}
}

/* Forgets ac without freeing it, because hiredis frees it.  Call this before conn_let_go(). */
static void
conn_forget(struct conn *c)
{
	c->ac->data = NULL;
	c->ac = NULL;
}

static void
conn_say_down(struct conn *c, const char *cause)
{
	if (c->down_cause != NULL && strcmp(c->down_cause, cause) == 0)
		return;
	xreplace(&c->down_cause, cause);
	c->down_due = true;
	conn_want_turn(c);
}

/* Ends conn_close(): calls done(); busy. */
static void
conn_end(struct conn *c)
{
	conn_let_go(c);
	timer_stop(&c->closing);
	conn_set_state(c, CONN_DOWN);
	if (c->closed != NULL)
		c->closed(c->closed_arg);
}

/* Runs at the end of a turn, and calls the owners. */
static void
conn_turn(void *arg)
{
	struct conn *c = arg;

	c->busy++;
	conn_flush(c);
	if (c->down_due && !c->freed) {
		c->down_due = false;
		if (c->state != CONN_CLOSING && c->events->down != NULL)
			c->events->down(c->down_cause, c->arg);
	}
	if (!c->freed && c->state == CONN_CLOSING && TAILQ_EMPTY(&c->pending))
		conn_end(c);
	conn_leave(c);
}

/* -- failure ------------------------------------------------------------------ */

static void
conn_back_off(struct conn *c)
{
	timer_set(&c->timer,
	    backoff_delay(BACKOFF_MIN, c->backoff_max, ++c->failures, random_unit()));
}

/* This attempt has failed: tries the next address, or pauses after the last one. */
static void
conn_failed(struct conn *c, const char *cause)
{
	bool more;

	conn_set_state(c, CONN_DOWN);	/* before walk_failed(): this logs the address */
	more = walk_failed(&c->route, cause);
	conn_let_go(c);
	if (more) {
		timer_set(&c->timer, 0);
		return;
	}
	conn_untimely(c);
	conn_say_down(c, buf_str(&c->route.causes));
	walk_restart(&c->route);
	conn_back_off(c);
}

/*
 * Sets the backoff after a connection that was READY.  It starts over after one that
 * worked for a second.  After shorter ones in a row the pauses grow, to 0.8 s.  A
 * connection that refused all commands counts as a failure, unless it lasted.
 */
static void
conn_judge(struct conn *c, bool refused)
{
	usec_t lasted = clock_mono() - c->ready_at;

	c->unproven = refused || !c->worked;
	if (lasted >= LASTED_LONG || (!c->unproven && lasted >= LASTED))
		c->failures = 0;
	else if (!c->unproven && c->failures > SHORT_FAILURES)
		c->failures = SHORT_FAILURES;
}

/* A connection that was READY has ended; refused: by conn_reset(). */
static void
conn_lost(struct conn *c, const char *cause, bool refused)
{
	char *text = xasprintf("%s: %s", c->server.address, cause);

	conn_judge(c, refused);
	if (refused || !conn_is_timely(c))
		c->timely_since = 0;
	conn_let_go(c);
	if (c->state == CONN_CLOSING) {
		conn_want_turn(c);
	} else {
		conn_set_state(c, CONN_DOWN);
		walk_restart(&c->route);
		conn_say_down(c, text);
		conn_back_off(c);
	}
	free(text);
}

/* -- connecting --------------------------------------------------------------- */

/*
 * Whether the period of timely replies continues with this server.  If INFO is denied,
 * the CLIENT IDs show a restart: they rise while a server runs.
 */
static bool
conn_period_continues(const struct conn *c, const char *address)
{
	const struct conn_server *s = &c->server;

	if (c->silence_max == 0 || !s->changed)
		return c->silence_max != 0;
	return c->generation > 0 && s->run_id[0] == '\0' && c->greet.run_id[0] == '\0' &&
	    strncmp(address, s->address, sizeof(s->address) - 1) == 0 &&
	    c->id > 0 && c->greet.id > c->id;
}

/*
 * The greeting is over; busy.  A process that has been a replica meanwhile counts as
 * another server.  A new replication id alone does not: a server also takes one for its
 * first replica.
 */
void
conn_ready(struct conn *c)
{
	struct conn_server *s = &c->server;
	const char *address = walk_server(&c->route);

	s->first = c->generation == 0;
	s->changed = s->first || c->greet.run_id[0] == '\0' ||
	    strcmp(c->greet.run_id, s->run_id) != 0 ||
	    (c->greet.inherits && strcmp(c->greet.replid, c->replid) != 0) ||
	    strncmp(address, s->address, sizeof(s->address) - 1) != 0;
	if (!conn_period_continues(c, address))
		c->timely_since = 0;
	snprintf(s->address, sizeof(s->address), "%s", address);
	memcpy(s->run_id, c->greet.run_id, sizeof(s->run_id));
	memcpy(s->version, c->greet.version, sizeof(s->version));
	memcpy(s->maxmemory_policy, c->greet.maxmemory_policy, sizeof(s->maxmemory_policy));
	memcpy(c->replid, c->greet.replid, sizeof(c->replid));
	c->id = c->greet.id;
	if (s->changed)
		c->redis_time = 0;
	conn_saw_time(c, c->greet.time);
	greet_done(&c->greet);
	timer_stop(&c->timer);
	xreplace(&c->down_cause, NULL);
	c->down_due = false;
	c->greeted = c->grace = false;
	c->worked = (c->flags & CONN_SUBSCRIBER) != 0;
	c->loading = NULL;
	c->generation++;
	c->ready_at = clock_mono();
	if (c->timely_since == 0)
		c->timely_since = c->ready_at;
	conn_set_state(c, CONN_READY);
	conn_ping_idle(c);
	if (c->events->up != NULL)
		c->events->up(s, c->arg);
}

void
conn_greet(struct conn *c, const struct redisReply *r)
{
	struct conn_sub *s;

	if (!greet_answer(&c->greet, r))
		return;
	if (c->greet.cause != NULL) {
		conn_failed(c, c->greet.cause);
	} else if (!TAILQ_EMPTY(&c->subs)) {
		c->greeted = true;
		TAILQ_FOREACH(s, &c->subs, entry)
			conn_send_subscribe(c, s);
	} else {
		conn_ready(c);
	}
}

/* hiredis' error text.  After a failed TLS handshake that is "Success". */
static const char *
conn_errstr(const struct conn *c, const struct redisAsyncContext *ac)
{
	const char *text = ac->c.errstr;

	if (c->rules.complaint != NULL)
		return c->rules.complaint;
	if (text[0] != '\0' && strcmp(text, strerror(0)) != 0)
		return text;
	return c->opt->tls && c->state != CONN_READY ? "TLS: the handshake failed; "
	    "is the server's certificate signed by an authority of tls_ca? "
	    "Does this port speak TLS?" : "connection lost";
}

/* hiredis' callback.  It may only append commands to c->ac: see the head of this file. */
static void
conn_on_connect(const struct redisAsyncContext *ac, int status)
{
	struct conn *c = ac->data;
	struct words w = { .n = 0 };

	if (c == NULL)
		return;
	if (status != REDIS_OK) {
		conn_forget(c);
		conn_failed(c, conn_errstr(c, ac));
		return;
	}
	conn_set_state(c, CONN_GREETING);
	while (greet_next(&c->greet, &w))
		conn_send(c, pending_new(NULL, NULL, true), conn_reply, &w);
	words_done(&w);
}

/* hiredis' callback: ac is about to be freed, and all its NULL replies have come. */
static void
conn_on_disconnect(const struct redisAsyncContext *ac, int status UNUSED)
{
	struct conn *c = ac->data;
	char words[256];

	if (c == NULL)
		return;
	conn_forget(c);
	if (c->state == CONN_GREETING)
		conn_failed(c, !c->greeted && greet_last_words(ac->c.fd, words, sizeof(words)) ?
		    words : conn_errstr(c, ac));
	else
		conn_lost(c, conn_errstr(c, ac), false);
}

/*
 * Sets socket options by itself: a failure of redisEnableKeepAlive() would count as the
 * connection's.
 */
static void
conn_tune(const struct redisAsyncContext *ac, bool tcp)
{
	int on = 1, idle = 15, interval = 5, count = 3, fd = ac->c.fd;

	(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	if (!tcp)
		return;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
}

/*
 * Lets the launcher connect to a unix socket that this process may not connect to.
 * hiredis 1.2 would test the connection by connecting once more, which the kernel
 * denies; so this marks the context as connected.
 */
static bool
conn_take_socket(struct redisAsyncContext *ac, const char *path)
{
	int fd;

	if (ac->err == 0 || access(path, W_OK) == 0 || errno != EACCES ||
	    (fd = secret_connect(path)) == -1)
		return false;
	/* Some versions of hiredis have closed the descriptor, others close it with ac. */
	if (ac->c.fd >= 0)
		(void)close(ac->c.fd);
	ac->c.fd = fd;
	ac->err = ac->c.err = 0;
	ac->c.errstr[0] = '\0';
	ac->c.flags |= REDIS_CONNECTED;
	return true;
}

/* Begins a connection to the route's address. */
static int
conn_open(struct conn *c, char **cause)
{
	const char *path = c->route.addr.path;
	bool taken;
	struct redisAsyncContext *ac = path != NULL ? redisAsyncConnectUnix(path) :
	    redisAsyncConnect(c->route.found[c->route.next], c->route.addr.port);

	if (ac == NULL)
		return util_cause(cause, "out of memory");
	taken = path != NULL && conn_take_socket(ac, path);
	if (ac->err != 0 ? util_cause(cause, "%s", conn_errstr(c, ac)) == -1 :
	    c->opt->tls && tls_start(&ac->c, c->opt, c->route.addr.host, cause) == -1) {
		redisAsyncFree(ac);
		return -1;
	}
	conn_tune(ac, path == NULL);
	ac->data = c;
	c->ac = ac;
	hiredis_loop_attach(c->loop, ac, &c->rules);
	redisAsyncSetConnectCallback(ac, conn_on_connect);
	redisAsyncSetDisconnectCallback(ac, conn_on_disconnect);
	if (taken)
		conn_on_connect(ac, REDIS_OK);
	return 0;
}

static void
conn_connect(struct conn *c)
{
	char *cause = NULL;

	conn_set_state(c, CONN_CONNECTING);
	if (greet_init(&c->greet, c->opt, c->name, !(c->flags & CONN_SUBSCRIBER) &&
	    !c->opt->is_sentinel, !c->unproven, &cause) == -1 ||
	    conn_open(c, &cause) == -1)
		conn_failed(c, cause);
	free(cause);
}

/* The walk has found the address, or not. */
static void
conn_found(const char *cause, void *arg)
{
	struct conn *c = arg;

	if (cause == NULL)
		conn_connect(c);
	else
		conn_failed(c, cause);
}

/*
 * The Sentinels name another master than the one of this connection.  The old one may
 * still accept writes, which will be lost, so this connects anew.
 */
static void
conn_switched(const char *master, void *arg)
{
	struct conn *c = arg;
	char *cause = xasprintf("Sentinel names another master: %s", master);

	switch (c->state) {
	case CONN_READY:
		conn_lost(c, cause, false);
		break;
	case CONN_CONNECTING:
	case CONN_GREETING:
		walk_restart(&c->route);	/* not to another address of the old one */
		conn_failed(c, cause);
		break;
	case CONN_DOWN:
	case CONN_RESOLVING:
	case CONN_CLOSING:
		break;
	}
	if (c->state == CONN_DOWN && timer_is_set(&c->timer))
		timer_set(&c->timer, 0);
	free(cause);
}

static void
conn_attempt(struct conn *c)
{
	char *cause = NULL;

	c->grace = false;
	timer_set(&c->timer, c->opt->timeout);
	switch (walk_find(&c->route, &cause)) {
	case WALK_FOUND:
		conn_connect(c);
		break;
	case WALK_RESOLVING:
		conn_set_state(c, CONN_RESOLVING);
		break;
	case WALK_BAD:
		conn_failed(c, cause);
		break;
	}
	free(cause);
}

/* -- deadlines ---------------------------------------------------------------- */

/* The attempt has reached its deadline, and fails if the grace is over, too. */
static void
conn_attempt_late(struct conn *c)
{
	char *text;

	if (!c->grace) {
		c->grace = true;
		timer_set(&c->timer, conn_grace(c));
		return;
	}
	text = conn_timeout_text(c, c->state == CONN_RESOLVING ? "the name was not resolved" :
	    c->state == CONN_CONNECTING ? "no connection" : "no answer");
	conn_failed(c, text);
	free(text);
}

static void
conn_look_late(struct conn *c)
{
	char *text;

	if (conn_look(c))
		return;
	text = conn_timeout_text(c, "no answer");
	conn_lost(c, text, false);
	c->timely_since = 0;
	free(text);
}

static void
conn_timer(void *arg)
{
	struct conn *c = arg;

	switch (c->state) {
	case CONN_DOWN:
		conn_attempt(c);
		break;
	case CONN_RESOLVING:
	case CONN_CONNECTING:
	case CONN_GREETING:
		conn_attempt_late(c);
		break;
	case CONN_READY:
	case CONN_CLOSING:
		conn_look_late(c);
		break;
	}
}

/* conn_close() has waited long enough. */
static void
conn_close_late(void *arg)
{
	struct conn *c = arg;

	conn_let_go(c);
	conn_want_turn(c);
}

/* -- life --------------------------------------------------------------------- */

struct conn *
conn_new(struct loop *loop, const struct redis_options *opt, const char *name,
    unsigned flags, const struct conn_events *events, void *arg)
{
	struct conn *c = NEW(struct conn, .loop = loop, .opt = opt, .name = xstrdup(name),
	    .flags = flags, .events = events, .arg = arg, .backoff_max = BACKOFF_MAX);

	signal(SIGPIPE, SIG_IGN);
	TAILQ_INIT(&c->pending);
	TAILQ_INIT(&c->subs);
	timer_init(&c->timer, loop, conn_timer, c);
	timer_init(&c->idle, loop, conn_ping_idle, c);
	timer_init(&c->closing, loop, conn_close_late, c);
	walk_init(&c->route, loop, opt, conn_found, conn_switched, c);
	c->rules = (struct reply_rules){
		.bytes_max = REPLY_BYTES_MAX, .knows = conn_has_subscription,
		.may_refuse = conn_may_refuse, .came = conn_received_bytes, .arg = c
	};
	return c;
}

void
conn_set_reply_max(struct conn *c, size_t bytes)
{
	c->rules.bytes_max = bytes < REPLY_BYTES_MAX ? bytes : REPLY_BYTES_MAX;
}

void
conn_set_backoff_max(struct conn *c, usec_t most)
{
	c->backoff_max = most < BACKOFF_MIN ? BACKOFF_MIN : most < BACKOFF_MAX ? most :
	    BACKOFF_MAX;
}

void
conn_start(struct conn *c)
{
	if (c->state == CONN_DOWN)
		timer_set(&c->timer, 0);
}

void
conn_close(struct conn *c, usec_t within, void (*done)(void *), void *arg)
{
	bool up = c->state == CONN_READY;

	c->closed = done;
	c->closed_arg = arg;
	conn_set_state(c, CONN_CLOSING);
	if (!up)
		conn_let_go(c);
	timer_set(&c->closing, within);
	conn_want_turn(c);
}

void
conn_free(struct conn *c)
{
	struct pending *p;

	if (c == NULL)
		return;
	c->busy++;
	c->freed = true;
	conn_set_state(c, CONN_DOWN);
	conn_let_go(c);
	walk_leave(&c->route);
	timer_stop(&c->closing);
	loop_defer_cancel(c->loop, &c->turn);
	while ((p = TAILQ_FIRST(&c->pending)) != NULL)
		conn_answer(c, p, p->fate == PENDING_LOST ? CONN_LOST : CONN_NOT_SENT, NULL);
	conn_leave(c);
}

void
conn_reset(struct conn *c, const char *cause)
{
	if (c->state == CONN_READY)
		conn_lost(c, cause, true);
}

/* -- what is known ------------------------------------------------------------ */

enum conn_state
conn_state(const struct conn *c)
{
	return c->state;
}

bool
conn_is_ready(const struct conn *c)
{
	return c->state == CONN_READY;
}

int64_t
conn_id(const struct conn *c)
{
	return c->state == CONN_READY ? c->id : 0;
}

const struct conn_server *
conn_server(const struct conn *c)
{
	return &c->server;
}

bool
conn_is_one_server(const struct conn_server *a, const struct conn_server *b)
{
	if (a->run_id[0] != '\0' && b->run_id[0] != '\0')
		return strcmp(a->run_id, b->run_id) == 0;
	return strcmp(a->address, b->address) == 0;
}

uint64_t
conn_generation(const struct conn *c)
{
	return c->generation;
}

unsigned
conn_outstanding(const struct conn *c)
{
	return c->outstanding;
}

usec_t
conn_waits(const struct conn *c)
{
	const struct pending *p = pending_oldest(&c->pending);

	return p != NULL ? clock_mono() - p->since : 0;
}

double
conn_redis_time(const struct conn *c)
{
	if (c->redis_time <= 0)
		return 0;
	return c->redis_time + (double)(clock_mono() - c->redis_time_at) / (double)SEC;
}

/*
 * If Redis' clock jumps ahead, all leases look expired, as after an outage: then the
 * period of timely replies begins anew.
 */
void
conn_saw_time(struct conn *c, double redis_seconds)
{
	double expected = conn_redis_time(c);

	if (!(redis_seconds > 0 && redis_seconds < TIME_MAX))
		return;
	if (expected > 0 &&
	    redis_seconds - expected > (double)conn_timely_limit(c) / (double)SEC)
		conn_untimely(c);
	c->redis_time = redis_seconds;
	c->redis_time_at = clock_mono();
}
