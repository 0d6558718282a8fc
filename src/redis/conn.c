/*
 * The connection: its state machine, which conn_set_state() alone moves, and the commands
 * that wait for a reply.  greet.c makes the first commands.
 *
 *	     the timer     resolved        connected      greeted
 *	DOWN -----> RESOLVING ----> CONNECTING ----> GREETING ----> READY
 *	 ^ '---- the host is numeric ---^                             |
 *	 |                                                            |
 *	 |<-- conn_failed(): from these three, to the next address ---|
 *	 |<-- conn_lost(): the connection ended, or conn_reset() -----|
 *	 |                                                            | conn_close(),
 *	 '------- conn_turn(): no command waits for reply ---- CLOSING <- in any state
 *
 * The address to connect to next: conn_find() walks through the list of redis.server, and
 * through the addresses of each name in it; one round tries them all.  With Sentinels the
 * list is the one server that they name; each round asks them again.  A short-lived thread
 * resolves a name, since getaddrinfo(3) blocks, and sends its answer through a socket.
 * Nobody waits for the thread.  It shares nothing with the loop but that socket, and runs
 * no signal handler.
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
 * A call that Redis answers with NOSCRIPT is sent again with the script's text, after
 * the commands that were sent meanwhile.  Redis keeps the text for later calls.
 *
 * On a subscriber the list of pending commands holds the SUBSCRIBEs that are
 * not confirmed yet: the server confirms them in their order.
 *
 * Deadlines.  One timer looks LOOKS times in options.timeout.  An attempt to connect has
 * so many looks.  While commands are outstanding, so many looks in a row must have found
 * that nothing moved: no bytes of the oldest command, or of replies.  Their size does not
 * matter, and bytes of later commands do not prove that the server reads.  Since it counts
 * looks, the time in which this process was stopped does not count.
 *
 * In the period of timely replies (conn_timely_since()) the owners of leases were able
 * to renew them.  It ends with
 *	- a reply that stood still for longer than conn_timely_limit(),
 *	- silence: no whole reply for longer than silence_max, on this connection
 *	  and the ones before it,
 *	- a round of attempts that all failed, conn_reset(), or another server than
 *	  before.
 * The end of a connection alone does not end it: a server closes idle clients, and
 * operators kill connections, while the server works for all others.
 *
 * Owners are called from reply callbacks, from timers, and from conn_turn().
 * conn_turn() runs at the end of the turn, and answers the commands that were lost or
 * not sent.  Owners may call any function from there, also conn_free(): the connection
 * is freed when the last of these calls has returned.
 */
#include "redis/conn.h"

#include <sys/socket.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hiredis/hiredis.h>
#include <hiredis/async.h>

#include "base/backoff.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/log.h"
#include "base/trust.h"
#include "base/units.h"
#include "loop/io.h"
#include "loop/timer.h"
#include "redis/addr.h"
#include "redis/greet.h"
#include "redis/hiredis_loop.h"
#include "redis/reply.h"
#include "redis/sentinel.h"
#include "redis/slots.h"
#include "redis/tls.h"

#define BACKOFF_MIN	(100 * MSEC)
#define BACKOFF_MAX	(10 * SEC)
#define LASTED		SEC		/* a shorter connection counts as short */
#define LASTED_LONG	(10 * SEC)	/* the same for one that conn_reset() ended */
#define SHORT_FAILURES	3		/* after short ones the backoff stops at 0.8 s */
#define LOOKS		8
#define TIMELY_MAX	(2 * SEC)
#define PROBED_EVERY	(10 * SEC)	/* by the owner, see conn_limits */
#define FOUND_MAX	8		/* addresses of a name */
#define THREAD_STACK	((size_t)256 * 1024)
#define TIME_MAX	1e11		/* seconds: no clock of Redis shows this */

enum conn_state {
	CONN_DOWN,		/* waiting for the backoff, or not started */
	CONN_RESOLVING,
	CONN_CONNECTING,
	CONN_GREETING,		/* see greet.h */
	CONN_READY,
	CONN_CLOSING		/* conn_close(): answers outstanding commands, then stays down */
};

enum pending_fate {
	PENDING_SENT,			/* hiredis has it */
	PENDING_LOST,			/* was sent; the connection has ended */
	PENDING_NOT_SENT
};

/* A command that waits for its reply, in the order of the calls. */
struct pending {
	TAILQ_ENTRY(pending) entry;
	conn_answer_fn	 *fn;		/* NULL: nobody waits for the answer */
	void		 *arg;
	enum pending_fate fate;
	bool		  own;		/* the connection's own, not a caller's */
	usec_t		  since;	/* mono; when it was sent */
	uint64_t	  end;		/* its last byte, counted from the connection's first */
	/*
	 * The words of a script's call are kept, to send them again as EVAL after
	 * NOSCRIPT.  In a cluster those of any caller's command are kept, to send them
	 * to another node after ASK.  They stand in one block: the vectors, then the bytes.
	 */
	const struct script *script;	/* NULL: another command */
	bool		  eval;		/* sent as text */
	bool		  again;	/* sent again, after NOSCRIPT */
	bool		  caching;	/* CLIENT CACHING YES goes before it */
	bool		  asking;	/* ASKING goes before it */
	struct words	  words;	/* kept: EVALSHA sha nkeys ARG...; v is one block, owned */
	char		  nkeys[12];
};

/* The numeric addresses of a name. */
struct found {
	char		  address[FOUND_MAX][INET6_ADDRSTRLEN];
	unsigned	  n;
	char		  cause[128];	/* n is 0: why */
};

struct conn_sub {
	TAILQ_ENTRY(conn_sub) entry;
	char		*name;
	size_t		 len;
	bool		 pattern;
	conn_message_fn	*fn;
	void		*arg;
};

struct conn {
	struct loop	 *loop;
	const struct redis_options *opt;
	char		 *name;
	unsigned	  flags;
	const struct conn_events *events;
	void		 *arg;

	enum conn_state	  state;
	unsigned	  busy;		/* functions on the stack that may call the owner */
	bool		  freed;	/* by conn_free(): gone when busy is 0 */
	struct redisAsyncContext *ac;	/* NULL: none */
	struct reply_rules rules;	/* for its replies */
	struct tls_trouble trouble;	/* of its TLS */

	struct sentinel_client client;	/* with Sentinels only */
	char		 *master;	/* the master that they named; NULL: none yet */
	size_t		  place;	/* index in opt->servers of the one being tried */
	struct addr	  addr;		/* that server's; empty before conn_find() */
	struct found	  found;	/* addresses of addr.host; one if it is a path */
	unsigned	  next;		/* the one being tried */
	struct io	  io;
	int		  fd;		/* the thread's answer; -1: none is running */
	struct buf	  causes;	/* why this round's earlier servers could not be used */

	struct greet	  greet;
	bool		  greeted;	/* GREETING: only confirmations of SUBSCRIBE are missing */
	unsigned	  failures;	/* rounds since a connection lasted; see conn_lost() */
	struct conn_limits limits;
	/* DOWN: the next attempt; later: the next look at it, or at the oldest command. */
	struct timer	  timer;
	unsigned	  still;	/* looks since the attempt began, or something moved */

	TAILQ_HEAD(, pending) pending;
	unsigned	  outstanding;	/* callers' commands in it */
	uint64_t	  moved;	/* reads, and bytes sent, when something last moved */
	TAILQ_HEAD(, conn_sub) subs;
	void		(*caching_refused)(const struct redisReply *, void *);	/* or NULL */
	void		 *caching_arg;

	struct defer	  turn;
	char		 *down_cause;	/* of the last failure; NULL: READY, or none yet */
	bool		  down_due;	/* events->down() must be called with it */
	struct timer	  closing;	/* conn_close(): its end */
	void		(*closed)(void *);
	void		 *closed_arg;

	struct conn_server server;	/* of the last READY */
	uint64_t	  generation;
	usec_t		  ready_at;	/* mono; the last READY */
	usec_t		  bytes_at;	/* mono; the last bytes */
	usec_t		  heard_at;	/* mono; the last whole reply, of any connection */
	struct timer	  idle;		/* READY: the next PING of an idle connection */
	bool		  probing;	/* the answer to a PING is outstanding */
	uint64_t	  probes;	/* PINGs, ever */
	char		  probe[28];	/* the word of the last one */
	usec_t		  timely_since;	/* mono; 0: begins with the next READY */
	double		  redis_time;	/* Redis' time at redis_time_at; 0: unknown */
	usec_t		  redis_time_at;
};

static void	conn_turn(void *);
static void	conn_reply(struct redisAsyncContext *, void *, void *);
static void	conn_send_subscribe(struct conn *, const struct conn_sub *);
static void	conn_ping_idle(void *);
static void	conn_failed(struct conn *, const char *cause);
static void	conn_connect(struct conn *);

/* The server as configured, or as named; NULL: the Sentinels have named none. */
static const char *
conn_place(const struct conn *c)
{
	return c->opt->sentinel != NULL ? c->master : c->opt->servers[c->place];
}

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
	    LF_STR("server", conn_place(c)));
	c->state = state;
}

/* If a thread is running, it goes on, and finds that nobody reads. */
static void
conn_stop_resolving(struct conn *c)
{
	if (c->fd != -1)
		io_done(&c->io);
	fd_close(&c->fd);
}

/* Forgets the server's address, to look it up anew. */
static void
conn_forget_address(struct conn *c)
{
	conn_stop_resolving(c);
	sentinel_cancel(&c->client);
	addr_done(&c->addr);
	c->found.n = c->next = 0;
}

/* Back to the first server. */
static void
conn_restart_walk(struct conn *c)
{
	conn_forget_address(c);
	buf_clear(&c->causes);
	c->place = 0;
	xreplace(&c->master, NULL);
}

/* -- the turn's end -------------------------------------------------------- */

/* Ends what busy++ began; may free c. */
static void
conn_leave(struct conn *c)
{
	struct conn_sub *s;

	if (--c->busy > 0 || !c->freed)
		return;
	while ((s = TAILQ_TAKE(&c->subs, entry)) != NULL) {
		free(s->name);
		free(s);
	}
	conn_restart_walk(c);
	buf_done(&c->causes);
	free(c->down_cause);
	free(c->name);
	free(c);
}

/* Owners must be called at the end of the turn. */
static void
conn_want_turn(struct conn *c)
{
	if (!c->freed)
		loop_defer(c->loop, &c->turn, conn_turn, c);
}

/*
 * Drops the context, if there is one, and marks the commands on it as lost.  Also when
 * conn_close() has waited long enough.
 */
static void
conn_let_go(void *arg)
{
	struct conn *c = arg;
	struct redisAsyncContext *ac = c->ac;
	struct pending *p;

	conn_stop_resolving(c);
	sentinel_cancel(&c->client);
	greet_done(&c->greet);
	c->greeted = false;
	timer_stop(&c->timer);
	timer_stop(&c->idle);
	TAILQ_FOREACH(p, &c->pending, entry) {
		if (p->fate == PENDING_SENT)
			p->fate = PENDING_LOST;
	}
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

/* Answers a command, which this takes off the list; busy. */
static void
conn_answer(struct conn *c, struct pending *p, enum conn_answer answer,
    const struct redisReply *r)
{
	conn_answer_fn *fn = p->fn;
	void *arg = p->arg;

	TAILQ_REMOVE(&c->pending, p, entry);
	c->outstanding -= !p->own;
	free(p->words.v);
	free(p);
	if (fn != NULL)
		fn(answer, r, arg);
}

/* The first command that will get no reply, unless an older one of a caller still waits. */
static struct pending *
conn_answerable(struct conn *c)
{
	struct pending *p;

	TAILQ_FOREACH(p, &c->pending, entry) {
		if (p->fate != PENDING_SENT)
			return p;
		if (!p->own)
			break;
	}
	return NULL;
}

/* Answers what was lost or not sent; busy. */
static void
conn_flush(struct conn *c)
{
	struct pending *p;

	while ((p = conn_answerable(c)) != NULL)
		conn_answer(c, p, p->fate == PENDING_LOST ? CONN_LOST : CONN_NOT_SENT, NULL);
}

/* Whether the greeting is over. */
static bool
is_up(const struct conn *c)
{
	return c->ac != NULL && (c->state == CONN_READY || c->state == CONN_CLOSING);
}

/* The oldest command that was sent; NULL: none. */
static struct pending *
conn_oldest(const struct conn *c)
{
	struct pending *p;

	TAILQ_FOREACH(p, &c->pending, entry) {
		if (p->fate == PENDING_SENT)
			break;
	}
	return p;
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
	if (!c->freed && c->state == CONN_CLOSING && TAILQ_EMPTY(&c->pending)) {
		/* conn_close() is over. */
		conn_let_go(c);
		timer_stop(&c->closing);
		conn_set_state(c, CONN_DOWN);
		if (c->closed != NULL)
			c->closed(c->closed_arg);
	}
	conn_leave(c);
}

/* -- the walk through servers and addresses ------------------------------------ */

/* What the thread owns. */
struct resolve_job {
	int		 fd;
	struct found	 found;
	char		 host[];
};

static void *
resolve_thread(void *arg)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list = NULL, *ai;
	struct resolve_job *job = arg;
	struct found *f = &job->found;
	int rc = getaddrinfo(job->host, NULL, &hints, &list);
	const char *why = "No usable address";

	if (rc == EAI_SYSTEM)
		why = strerror(errno);
	else if (rc != 0)
		why = gai_strerror(rc);
	snprintf(f->cause, sizeof(f->cause), "%s", why);
	for (ai = list; rc == 0 && ai != NULL && f->n < FOUND_MAX; ai = ai->ai_next) {
		if (getnameinfo(ai->ai_addr, ai->ai_addrlen, f->address[f->n],
		    sizeof(f->address[0]), NULL, 0, NI_NUMERICHOST) == 0)
			f->n++;
	}
	if (rc == 0)
		freeaddrinfo(list);
	(void)!send(job->fd, f, sizeof(*f), MSG_NOSIGNAL);
	close(job->fd);
	free(job);
	return NULL;
}

static void
conn_resolved(int what UNUSED, void *arg)
{
	struct conn *c = arg;
	ssize_t n = recv(c->fd, &c->found, sizeof(c->found), MSG_DONTWAIT);
	char *text;

	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	conn_stop_resolving(c);
	if (n != sizeof(c->found))
		c->found = (struct found){ .cause = "The resolver failed" };
	if (c->found.n > 0) {
		conn_connect(c);
		return;
	}
	text = xasprintf("cannot resolve the name: %s", c->found.cause);
	conn_failed(c, text);
	free(text);
}

/* Starts the thread, with all signals blocked. */
static int
conn_resolve(struct conn *c, char **cause)
{
	struct resolve_job *job = xcalloc(1, sizeof(*job) + strlen(c->addr.host) + 1);
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t thread;
	int fds[2], error;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == -1) {
		error = errno;
	} else {
		job->fd = fds[1];
		strcpy(job->host, c->addr.host);
		(void)pthread_attr_init(&attr);
		(void)pthread_attr_setstacksize(&attr, THREAD_STACK);
		(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
		sigfillset(&all);
		(void)pthread_sigmask(SIG_SETMASK, &all, &old);
		error = pthread_create(&thread, &attr, resolve_thread, job);
		(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
		(void)pthread_attr_destroy(&attr);
		if (error != 0)
			fd_close_all(fds, 2);
	}
	if (error != 0) {
		free(job);
		return util_cause(cause, "cannot resolve the name: Cannot start the resolver: %s",
		    strerror(error));
	}
	c->fd = fds[0];
	io_init(&c->io, c->loop, c->fd, IO_READ, conn_resolved, c);
	io_start(&c->io);
	conn_set_state(c, CONN_RESOLVING);
	return 0;
}

/* Connects to the next address, once it is known. */
static void
conn_find(struct conn *c)
{
	const char *server = conn_place(c);
	char *cause = NULL;
	int rc;

	if (c->next < c->found.n) {
		conn_connect(c);
		return;
	}
	conn_forget_address(c);
	if (c->opt->sentinel != NULL && server == NULL) {
		sentinel_ask(c->opt->sentinel, &c->client);
		conn_set_state(c, CONN_RESOLVING);
		return;
	}
	rc = server != NULL ? addr_parse(server, &c->addr, &cause) :
	    util_cause(&cause, "no server is configured");
	if (rc == 0 && c->addr.path == NULL && !addr_is_numeric(&c->addr)) {
		rc = conn_resolve(c, &cause);
	} else if (rc == 0) {
		if (c->addr.path == NULL)
			snprintf(c->found.address[0], sizeof(c->found.address[0]), "%s",
			    c->addr.host);
		c->found.n = 1;
		conn_connect(c);
	}
	if (rc == -1)
		conn_failed(c, cause);
	free(cause);
}

/* The Sentinels' answer. */
static void
conn_told(const char *master, const char *why, void *arg)
{
	struct conn *c = arg;

	if (master == NULL) {
		conn_failed(c, why);
		return;
	}
	xreplace(&c->master, master);
	conn_find(c);
}

/* -- the period of timely replies --------------------------------------------- */

/* A reply that stands still for longer is late. */
static usec_t
conn_timely_limit(const struct conn *c)
{
	return c->opt->timeout / 2 < TIMELY_MAX ? c->opt->timeout / 2 : TIMELY_MAX;
}

/* The period of timely replies ends. */
static void
conn_untimely(struct conn *c)
{
	c->timely_since = c->state == CONN_READY ? clock_mono() : 0;
}

/* Whether the oldest reply stands still. */
static bool
conn_is_slow(const struct conn *c, usec_t now)
{
	const struct pending *oldest = conn_oldest(c);

	return oldest != NULL && now - (oldest->since > c->bytes_at ? oldest->since :
	    c->bytes_at) > conn_timely_limit(c);
}

static bool
conn_is_silent(const struct conn *c, usec_t now)
{
	return c->limits.silence_max > 0 && now - c->heard_at > c->limits.silence_max;
}

static bool
conn_is_timely(const struct conn *c)
{
	usec_t now = clock_mono();

	return !conn_is_slow(c, now) && !conn_is_silent(c, now);
}

static void
conn_received_bytes(void *arg)
{
	struct conn *c = arg;
	usec_t now = clock_mono();

	if (conn_is_slow(c, now))
		conn_untimely(c);
	c->bytes_at = now;
}

/* A whole reply or message. */
static void
conn_received_reply(struct conn *c)
{
	usec_t now = clock_mono();

	if (conn_is_silent(c, now))
		conn_untimely(c);
	c->heard_at = now;
}

usec_t
conn_timely_since(const struct conn *c)
{
	if (c->state != CONN_READY)
		return 0;
	return conn_is_timely(c) ? c->timely_since : clock_mono();
}

/* -- failure ------------------------------------------------------------------ */

static void
conn_back_off(struct conn *c)
{
	timer_set(&c->timer,
	    backoff_delay(BACKOFF_MIN, c->limits.backoff_max, ++c->failures, random_unit()));
}

/* This attempt has failed: tries the next address, or pauses after the last one. */
static void
conn_failed(struct conn *c, const char *cause)
{
	const char *server = conn_place(c);
	bool more;

	conn_set_state(c, CONN_DOWN);
	more = c->next < c->found.n && ++c->next < c->found.n;
	if (!more) {
		/*
		 * The causes of a round are one text, "a:6379: Connection refused; b:6379: is
		 * a replica", which is the same for the same failures.
		 */
		buf_printf(&c->causes, "%s%s%s%s", c->causes.len > 0 ? "; " : "",
		    server != NULL ? server : "", server != NULL ? ": " : "", cause);
		if (c->master != NULL)
			sentinel_doubt(c->opt->sentinel, c->master);
		more = server != NULL && c->opt->sentinel == NULL &&
		    c->opt->servers[c->place + 1] != NULL;
	}
	if (more && c->next >= c->found.n) {
		conn_forget_address(c);
		c->place++;
	}
	conn_let_go(c);
	if (more) {
		timer_set(&c->timer, 0);
		return;
	}
	conn_untimely(c);
	conn_say_down(c, buf_str(&c->causes));
	conn_restart_walk(c);
	conn_back_off(c);
}

/* A connection that was READY has ended; refused: by conn_reset(). */
static void
conn_lost(struct conn *c, const char *cause, bool refused)
{
	char *text = xasprintf("%s: %s", c->server.address, cause);

	if (clock_mono() - c->ready_at >= (refused ? LASTED_LONG : LASTED))
		c->failures = 0;
	else if (!refused && c->failures > SHORT_FAILURES)
		c->failures = SHORT_FAILURES;
	if (refused || !conn_is_timely(c))
		c->timely_since = 0;
	conn_let_go(c);
	if (c->state == CONN_CLOSING) {
		conn_want_turn(c);
	} else {
		conn_set_state(c, CONN_DOWN);
		conn_restart_walk(c);
		conn_say_down(c, text);
		conn_back_off(c);
	}
	free(text);
}

/* -- sending ------------------------------------------------------------------ */

/* Gives a command to hiredis; fn is conn_reply() or conn_message(). */
static void
conn_send(struct conn *c, struct pending *p, redisCallbackFn *fn, const struct words *w)
{
	p->since = clock_mono();
	p->fate = PENDING_SENT;
	TAILQ_INSERT_TAIL(&c->pending, p, entry);
	if (redisAsyncCommandArgv(c->ac, fn, NULL, w->n, w->v, w->len) != REDIS_OK) {
		p->fate = PENDING_NOT_SENT;
		conn_want_turn(c);
		return;
	}
	p->end = hiredis_loop_produced(c->ac);
	if (is_up(c) && !timer_is_set(&c->timer)) {
		c->still = 0;
		c->moved = c->rules.reads + hiredis_loop_sent(c->ac);
		timer_set(&c->timer, c->opt->timeout / LOOKS);
	}
}

/* A command of the connection's own; its words are NULL-terminated. */
static void
conn_send_own(struct conn *c, redisCallbackFn *cb, conn_answer_fn *fn, ...)
{
	struct words w = { .n = 0 };
	va_list ap;

	va_start(ap, fn);
	words_list(&w, ap);
	va_end(ap);
	conn_send(c, NEW(struct pending, .fn = fn, .arg = c, .own = true), cb, &w);
	words_done(&w);
}

/* Whether callers' commands can be sent now.  If not, p will be NOT_SENT. */
static bool
conn_accepts(struct conn *c, struct pending *p)
{
	c->outstanding++;
	if (c->state == CONN_READY && !(c->flags & CONN_SUBSCRIBER))
		return true;
	p->fate = PENDING_NOT_SENT;
	TAILQ_INSERT_TAIL(&c->pending, p, entry);
	conn_want_turn(c);
	return false;
}

/* Keeps a copy of the words, behind room for `before` more. */
static void
conn_keep(struct pending *p, size_t before, const struct words *from)
{
	size_t n = (size_t)from->n + before;
	struct words *to = &p->words;
	char *at;

	to->v = xmalloc(n * (sizeof(*to->v) + sizeof(*to->len)) + from->bytes);
	to->len = (size_t *)(void *)(to->v + n);
	to->n = (int)n;
	to->nkeys = from->nkeys;
	to->bytes = from->bytes;
	at = (char *)(to->len + n);
	for (int i = 0; i < from->n; i++) {
		to->v[(size_t)i + before] = at;
		to->len[(size_t)i + before] = from->len[i];
		if (from->len[i] > 0)
			at = mempcpy(at, from->v[i], from->len[i]);
	}
}

struct pending *
conn_command(struct conn *c, conn_answer_fn *fn, void *arg, const struct words *w)
{
	struct pending *p = NEW(struct pending, .fn = fn, .arg = arg);

	if (conn_accepts(c, p)) {
		if (c->events->redirected != NULL)
			conn_keep(p, 0, w);
		conn_send(c, p, conn_reply, w);
	}
	return p;
}

void
conn_words(struct conn *c, conn_answer_fn *fn, void *arg, ...)
{
	struct words w = { .n = 0 };
	va_list ap;

	va_start(ap, arg);
	words_list(&w, ap);
	va_end(ap);
	(void)conn_command(c, fn, arg, &w);
	words_done(&w);
}

/* -- scripts ------------------------------------------------------------------ */

/* Makes a script's call EVAL with the text. */
static void
conn_use_text(struct pending *p)
{
	p->eval = true;
	p->words.v[0] = "EVAL";
	p->words.len[0] = strlen("EVAL");
	p->words.v[1] = p->script->text;
	p->words.len[1] = p->script->len;
}

static void
conn_cached(enum conn_answer answer, const struct redisReply *r, void *arg)
{
	const struct conn *c = arg;

	if (answer == CONN_REPLY && reply_error(r) != REPLY_OK && c->caching_refused != NULL)
		c->caching_refused(r, c->caching_arg);
}

void
conn_set_caching(struct conn *c, void (*refused)(const struct redisReply *, void *), void *arg)
{
	c->caching_refused = refused;
	c->caching_arg = arg;
}

/* Sends the words that p keeps; before them CLIENT CACHING or ASKING, if p needs it. */
static void
conn_send_kept(struct conn *c, struct pending *p)
{
	static const char *v[] = { "CLIENT", "CACHING", "YES" };
	static size_t len[] = { 6, 7, 3 };
	static const struct words caching = { .v = v, .len = len, .n = 3 };

	if (p->asking)
		conn_send_own(c, conn_reply, NULL, "ASKING", NULL);
	if (p->caching)
		conn_send(c, NEW(struct pending, .fn = conn_cached, .arg = c, .own = true),
		    conn_reply, &caching);
	conn_send(c, p, conn_reply, &p->words);
}

struct pending *
conn_script(struct conn *c, bool caching, const struct script *script, conn_answer_fn *fn,
    void *arg, const struct words *w)
{
	struct pending *p = NEW(struct pending, .fn = fn, .arg = arg, .script = script,
	    .caching = caching);

	if (!conn_accepts(c, p))
		return p;
	conn_keep(p, 3, w);
	snprintf(p->nkeys, sizeof(p->nkeys), "%d", w->nkeys);
	p->words.v[0] = "EVALSHA";
	p->words.v[1] = script->sha;
	p->words.v[2] = p->nkeys;
	for (int i = 0; i < 3; i++)
		p->words.len[i] = strlen(p->words.v[i]);
	if (script->sha[0] == '\0')
		conn_use_text(p);
	conn_send_kept(c, p);
	return p;
}

/*
 * NOSCRIPT: sends this call again, with the text.  It needs no text behind another call that
 * brings it: a thousand queues may use a script for the first time in one turn.
 */
static void
conn_send_again(struct conn *c, struct pending *p)
{
	const struct pending *other;

	TAILQ_REMOVE(&c->pending, p, entry);
	TAILQ_FOREACH(other, &c->pending, entry) {
		if (other->fate == PENDING_SENT && other->eval && other->script == p->script)
			break;
	}
	if (other == NULL || p->again)
		conn_use_text(p);
	p->again = true;
	conn_send_kept(c, p);
}

void
conn_drop_answer(struct pending *p)
{
	p->fn = NULL;
}

/* -- connecting --------------------------------------------------------------- */

/*
 * The greeting is over; busy.  A process that has been a replica meanwhile counts as
 * another server.  A new replication id alone does not: a server also takes one for its
 * first replica.
 */
static void
conn_ready(struct conn *c)
{
	struct conn_server *s = &c->greet.server, *old = &c->server;
	bool moved, restarted;

	snprintf(s->address, sizeof(s->address), "%s", conn_place(c));
	moved = strcmp(s->address, old->address) != 0;
	s->first = c->generation == 0;
	s->changed = s->first || moved || s->run_id[0] == '\0' ||
	    strcmp(s->run_id, old->run_id) != 0 ||
	    (c->greet.inherits && strcmp(s->replid, old->replid) != 0);
	/*
	 * The period of timely replies continues with the same server.  If INFO is denied, the
	 * CLIENT IDs show a restart: they rise while a server runs.
	 */
	restarted = s->changed && (s->first || moved || s->run_id[0] != '\0' ||
	    old->run_id[0] != '\0' || old->client_id <= 0 || s->client_id <= old->client_id);
	if (c->limits.silence_max == 0 || restarted)
		c->timely_since = 0;
	*old = *s;
	if (s->changed)
		c->redis_time = 0;
	conn_saw_time(c, c->greet.time);
	greet_done(&c->greet);
	timer_stop(&c->timer);
	xreplace(&c->down_cause, NULL);
	c->down_due = false;
	c->greeted = false;
	c->generation++;
	c->ready_at = clock_mono();
	if (c->timely_since == 0)
		c->timely_since = c->ready_at;
	conn_set_state(c, CONN_READY);
	conn_ping_idle(c);
	if (c->events->up != NULL)
		c->events->up(&c->server, c->arg);
}

/* A reply of the greeting; busy. */
static void
conn_greeted(enum conn_answer answer, const struct redisReply *r, void *arg)
{
	struct conn *c = arg;
	struct conn_sub *s;

	if (answer != CONN_REPLY || !greet_answer(&c->greet, r))
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

/*
 * Why the context has failed, and what to write instead, if that is known; the caller frees
 * it.  hiredis' own text is "Success" where the server has just closed the connection.
 */
static char *
conn_cause(const struct conn *c, const struct redisAsyncContext *ac)
{
	const char *text = ac->c.errstr, *what = NULL;
	char last[256], *cause;

	if (c->opt->tls && c->state != CONN_READY) {
		cause = tls_cause(&c->trouble, c->opt, c->addr.host);
		if (cause != NULL)
			return cause;
	}
	if (c->state == CONN_GREETING && !c->greeted) {
		if (greet_last_words(ac->c.fd, last, sizeof(last)))
			return xstrdup(last);
		if (ac->c.err == REDIS_ERR_PROTOCOL && c->rules.complaint == NULL)
			what = greet_stranger(c->opt, c->rules.first, c->rules.nfirst);
		else if (c->greet.answered == 0 && c->rules.nfirst == 0 &&
		    (ac->c.err == REDIS_ERR_EOF || errno == ECONNRESET))
			what = greet_stranger(c->opt, "", 0);
	}
	if (what != NULL)
		return xstrdup(what);
	if (c->rules.complaint != NULL)
		return xstrdup(c->rules.complaint);
	if (text[0] != '\0' && strcmp(text, strerror(0)) != 0)
		return xstrdup(text);
	if (c->opt->tls && c->state != CONN_READY)
		return xstrdup("TLS: the handshake failed: compare "
		    "redis.tls_ca, redis.tls_cert and the port with the "
		    "settings of Redis");
	return xstrdup("connection lost");
}

/* hiredis' callback.  It may only append commands to c->ac: see the head of this file. */
static void
conn_on_connect(const struct redisAsyncContext *ac, int status)
{
	struct conn *c = ac->data;
	struct words w = { .n = 0 };
	char *cause;

	if (c == NULL)
		return;
	if (status != REDIS_OK) {
		cause = conn_cause(c, ac);
		conn_forget(c);
		conn_failed(c, cause);
		free(cause);
		return;
	}
	conn_set_state(c, CONN_GREETING);
	while (greet_next(&c->greet, &w))
		conn_send(c, NEW(struct pending, .fn = conn_greeted, .arg = c, .own = true),
		    conn_reply, &w);
	words_done(&w);
}

/* hiredis' callback: ac is about to be freed, and all its NULL replies have come. */
static void
conn_on_disconnect(const struct redisAsyncContext *ac, int status UNUSED)
{
	struct conn *c = ac->data;
	char *cause;

	if (c == NULL)
		return;
	cause = conn_cause(c, ac);
	conn_forget(c);
	if (c->state == CONN_GREETING)
		conn_failed(c, cause);
	else
		conn_lost(c, cause, false);
	free(cause);
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
 * Lets the spawner connect to a unix socket that this process may not connect to.
 * hiredis 1.2 would test the connection by connecting once more, which the kernel
 * denies; so this marks the context as connected.
 */
static bool
conn_take_socket(struct redisAsyncContext *ac, const char *path)
{
	int fd;

	if (ac->err == 0 || access(path, W_OK) == 0 || errno != EACCES ||
	    (fd = trust_lend(LEND_CONNECT, path)) == -1)
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

/* The name that a file like passwd(5) or group(5) has for this number; NULL: none. */
static char *
conn_local_name(const char *file, unsigned id)
{
	char *line = NULL, *name = NULL, *p;
	FILE *f = fopen(file, "re");
	size_t size = 0;

	while (f != NULL && name == NULL && getline(&line, &size, f) > 0) {
		p = strchr(line, ':');
		p = p != NULL ? strchr(p + 1, ':') : NULL;
		if (p != NULL && strtoul(p + 1, NULL, 10) == id)
			name = xstrndup(line, strcspn(line, ":"));
	}
	free(line);
	if (f != NULL)
		fclose(f);
	return name;
}

/*
 * Says which user may not connect to a unix socket, and what to type.  It reads
 * files, because the name service could block.
 */
static char *
conn_no_permission(const char *path)
{
	char *user = conn_local_name("/etc/passwd", geteuid()), *group, *text;
	struct stat st;

	group = stat(path, &st) == 0 ? conn_local_name("/etc/group", st.st_gid) : NULL;
	if (user == NULL)
		user = xasprintf("%u", (unsigned)geteuid());
	text = xasprintf("Permission denied to the user %s: set unixsocketperm 770 in redis.conf, "
	    "type usermod -aG %s %s, and restart both", user, group != NULL ? group : "redis",
	    user);
	free(user);
	free(group);
	return text;
}

/* Begins a connection to the address. */
static int
conn_open(struct conn *c, char **cause)
{
	const char *path = c->addr.path;
	bool taken;
	int rc = 0;
	struct redisAsyncContext *ac = path != NULL ? redisAsyncConnectUnix(path) :
	    redisAsyncConnect(c->found.address[c->next], c->addr.port);

	if (ac == NULL)
		return util_cause(cause, "out of memory");
	taken = path != NULL && conn_take_socket(ac, path);
	c->trouble = (struct tls_trouble){ .alert = 0 };
	if (ac->err != 0) {
		*cause = path != NULL && access(path, W_OK) == -1 && errno == EACCES ?
		    conn_no_permission(path) : conn_cause(c, ac);
		rc = -1;
	} else if (c->opt->tls) {
		rc = tls_start(&ac->c, c->opt, c->addr.host, &c->trouble, cause);
	}
	if (rc == -1) {
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
	    !c->opt->is_sentinel, &cause) == -1 ||
	    conn_open(c, &cause) == -1)
		conn_failed(c, cause);
	free(cause);
}

/*
 * The Sentinels name another master than the one of this connection.  The old one may
 * still accept writes, which will be lost, so this connects anew.
 */
static void
conn_switched(const char *master, void *arg)
{
	struct conn *c = arg;
	char *cause;

	if (c->master != NULL && strcmp(c->master, master) == 0)
		return;
	cause = xasprintf("Sentinel names another master: %s", master);
	switch (c->state) {
	case CONN_READY:
		conn_lost(c, cause, false);
		break;
	case CONN_CONNECTING:
	case CONN_GREETING:
		conn_restart_walk(c);	/* not to another address of the old one */
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

/* -- deadlines ---------------------------------------------------------------- */

static void
conn_timer(void *arg)
{
	struct conn *c = arg;
	const struct pending *oldest = conn_oldest(c);
	char *text, timeout[UNITS_TEXT_MAX];
	const char *what = "no answer", *hint = "";
	uint64_t moved;

	switch (c->state) {
	case CONN_DOWN:
		c->still = 0;
		timer_set(&c->timer, c->opt->timeout / LOOKS);
		conn_find(c);
		return;
	case CONN_RESOLVING:
	case CONN_CONNECTING:
	case CONN_GREETING:
		break;
	case CONN_READY:
	case CONN_CLOSING:
		if (oldest == NULL)
			return;
		moved = hiredis_loop_sent(c->ac);
		moved = c->rules.reads + (moved < oldest->end ? moved : oldest->end);
		if (moved > c->moved) {
			c->moved = moved;
			c->still = 0;
			timer_set(&c->timer, c->opt->timeout / LOOKS);
			return;
		}
		break;
	}
	if (++c->still < LOOKS) {
		timer_set(&c->timer, c->opt->timeout / LOOKS);
		return;
	}
	/* A server without TLS waits for the rest of a command. */
	if (c->opt->tls && c->state == CONN_GREETING && c->rules.nfirst == 0)
		hint = ": if this port does not speak TLS, set redis.tls = false, or write the TLS "
		    "port into redis.server";
	if (c->state == CONN_RESOLVING)
		what = "the name was not resolved";
	else if (c->state == CONN_CONNECTING)
		what = "no connection";
	text = xasprintf("%s within %s%s", what,
	    units_duration(c->opt->timeout, timeout), hint);
	if (is_up(c)) {
		conn_lost(c, text, false);
		c->timely_since = 0;
	} else {
		conn_failed(c, text);
	}
	free(text);
}

/* -- a cluster ---------------------------------------------------------------- */

static bool
conn_word_is(const struct pending *p, int i, const char *text)
{
	return i < p->words.n && p->words.len[i] == strlen(text) &&
	    memcmp(p->words.v[i], text, p->words.len[i]) == 0;
}

/*
 * The command did not run; busy.  rqd sends a cluster no other commands with several keys
 * than scripts.
 */
static void
conn_redirect(struct conn *c, struct pending *p, const struct redisReply *r)
{
	int key = conn_word_is(p, 0, "EVALSHA") || conn_word_is(p, 0, "EVAL") ? 3 : 1;
	unsigned slot = p->words.n > key ? slot_of(p->words.v[key], p->words.len[key]) : 0;
	bool has_one_key = key == 1 || conn_word_is(p, 2, "1");
	struct conn *to = c->events->redirected(reply_text(r), slot,
	    !p->asking && has_one_key, c->arg);

	if (to == NULL) {
		conn_answer(c, p, CONN_NOT_SENT, NULL);
		return;
	}

	/*
	 * The other connection does not arm keys: CACHING and ASKING would each have to come
	 * right before the command.
	 */
	TAILQ_REMOVE(&c->pending, p, entry);
	c->outstanding--;
	to->outstanding++;
	p->asking = true;
	p->caching = false;
	conn_send_kept(to, p);
}

/* -- replies ------------------------------------------------------------------ */

/*
 * After a reply: stops the timer if the connection is idle, and answers the commands
 * that can be answered now.
 */
static void
conn_after_reply(struct conn *c)
{
	if (is_up(c) && conn_oldest(c) == NULL)
		timer_stop(&c->timer);
	if (conn_answerable(c) != NULL ||
	    (c->state == CONN_CLOSING && TAILQ_EMPTY(&c->pending)))
		conn_want_turn(c);
}

/* hiredis' callback.  r is NULL while the context dies; ac->data is NULL then. */
static void
conn_reply(struct redisAsyncContext *ac, void *r, void *unused UNUSED)
{
	struct conn *c = ac->data;
	struct pending *p;

	if (c == NULL || r == NULL)
		return;
	c->busy++;
	conn_flush(c);
	if (c->freed || c->ac != ac || (p = conn_oldest(c)) == NULL) {
		conn_leave(c);
		return;
	}
	conn_received_reply(c);
	if (p->script != NULL && !p->eval && reply_error(r) == REPLY_NOSCRIPT) {
		conn_send_again(c, p);
	} else if (c->events->redirected != NULL && !p->own && reply_is_redirection(r)) {
		conn_redirect(c, p, r);
	} else {
		conn_answer(c, p, CONN_REPLY, r);
	}
	if (!c->freed)
		conn_after_reply(c);
	conn_leave(c);
}

/* -- subscriptions ------------------------------------------------------------ */

/* A message: calls all subscriptions of this name; busy. */
static void
conn_dispatch(struct conn *c, bool pattern, const struct redisReply *name,
    const struct redisReply *channel, const struct redisReply *payload)
{
	size_t name_len, channel_len;
	const char *name_str = reply_str(name, &name_len);
	const char *channel_str = reply_str(channel, &channel_len);
	struct conn_sub *s;

	if (name_str == NULL || channel_str == NULL)
		return;
	conn_received_reply(c);
	TAILQ_FOREACH(s, &c->subs, entry) {
		if (s->pattern == pattern && s->len == name_len &&
		    memcmp(s->name, name_str, name_len) == 0)
			s->fn(channel_str, channel_len, payload, s->arg);
		if (c->freed)
			break;
	}
}

/* hiredis' callback of a subscriber. */
static void
conn_message(struct redisAsyncContext *ac, void *reply, void *unused UNUSED)
{
	struct redisReply *r = reply;
	struct conn *c = ac->data;
	const char *kind = reply_str(reply_at(r, 0), NULL);
	struct pending *p;

	if (c == NULL || r == NULL)
		return;
	c->busy++;
	conn_flush(c);
	if (c->freed || c->ac != ac || kind == NULL)
		;
	else if (strcmp(kind, "message") == 0)
		conn_dispatch(c, false, reply_at(r, 1), reply_at(r, 1), reply_at(r, 2));
	else if (strcmp(kind, "pmessage") == 0)
		conn_dispatch(c, true, reply_at(r, 1), reply_at(r, 2), reply_at(r, 3));
	else if ((strcmp(kind, "subscribe") == 0 || strcmp(kind, "psubscribe") == 0) &&
	    (p = conn_oldest(c)) != NULL) {
		/* One channel is confirmed.  Ignored where no SUBSCRIBE is the oldest command. */
		conn_received_reply(c);
		conn_answer(c, p, CONN_REPLY, NULL);
		if (c->state == CONN_GREETING && c->greeted &&
		    conn_oldest(c) == NULL)
			conn_ready(c);
		if (!c->freed)
			conn_after_reply(c);
	}
	conn_leave(c);
}

static void
conn_send_subscribe(struct conn *c, const struct conn_sub *s)
{
	conn_send_own(c, conn_message, NULL, s->pattern ? "PSUBSCRIBE" : "SUBSCRIBE", s->name,
	    NULL);
}

static bool
conn_has_subscription(bool pattern, const char *name, size_t len, void *arg)
{
	const struct conn *c = arg;
	const struct conn_sub *s;

	TAILQ_FOREACH(s, &c->subs, entry) {
		if (s->pattern == pattern && s->len == len && memcmp(s->name, name, len) == 0)
			return true;
	}
	return false;
}

void
conn_subscribe(struct conn *c, bool pattern, const char *name, conn_message_fn *fn, void *arg)
{
	struct conn_sub *s = NEW(struct conn_sub, .name = xstrdup(name), .len = strlen(name),
	    .pattern = pattern, .fn = fn, .arg = arg);

	TAILQ_INSERT_TAIL(&c->subs, s, entry);
	if (c->state == CONN_READY || (c->state == CONN_GREETING && c->greeted))
		conn_send_subscribe(c, s);
}

/* If a PING returns another word, replies are out of step with commands. */
static void
conn_probed(enum conn_answer answer, const struct redisReply *reply, void *arg)
{
	struct conn *c = arg;
	const char *word = reply_str(reply, NULL);

	c->probing = false;
	if (answer == CONN_REPLY && reply_error(reply) == REPLY_OK &&
	    (word == NULL || strcmp(word, c->probe) != 0))
		conn_reset(c, "a reply belongs to another command");
}

void
conn_probe(struct conn *c)
{
	if (c->state != CONN_READY || c->probing)
		return;
	if (!(c->flags & CONN_SUBSCRIBER)) {
		c->probing = true;
		snprintf(c->probe, sizeof(c->probe), "rqd-%" PRIu64, ++c->probes);
		conn_send_own(c, conn_reply, conn_probed, "PING", c->probe, NULL);
	} else if (conn_oldest(c) == NULL && !TAILQ_EMPTY(&c->subs))
		conn_send_subscribe(c, TAILQ_FIRST(&c->subs));
}

/* -- an idle connection ------------------------------------------------------- */

/* READY: sends a PING at two thirds of silence_max, if the owner's PINGs are too rare. */
static void
conn_ping_idle(void *arg)
{
	struct conn *c = arg;
	usec_t every = c->limits.silence_max / 3 * 2, now = clock_mono();

	if (c->limits.silence_max == 0 || every >= PROBED_EVERY || c->state != CONN_READY)
		return;
	if (now >= c->heard_at + every)
		conn_probe(c);
	timer_set_at(&c->idle, now >= c->heard_at + every ? now + every : c->heard_at + every);
}

/* -- life --------------------------------------------------------------------- */

struct conn *
conn_new(struct loop *loop, const struct redis_options *opt, const char *name,
    unsigned flags, const struct conn_events *events, void *arg)
{
	struct conn *c = NEW(struct conn, .loop = loop, .opt = opt, .name = xstrdup(name),
	    .flags = flags, .events = events, .arg = arg, .fd = -1);

	signal(SIGPIPE, SIG_IGN);
	TAILQ_INIT(&c->pending);
	TAILQ_INIT(&c->subs);
	timer_init(&c->timer, loop, conn_timer, c);
	timer_init(&c->idle, loop, conn_ping_idle, c);
	timer_init(&c->closing, loop, conn_let_go, c);
	c->client = (struct sentinel_client){ .told = conn_told, .switched = conn_switched,
		.arg = c };
	if (opt->sentinel != NULL)
		sentinel_join(opt->sentinel, &c->client);
	c->rules = (struct reply_rules){
		.knows = conn_has_subscription, .came = conn_received_bytes, .arg = c
	};
	conn_set_limits(c, &(struct conn_limits){ .reply_max = 0 });
	return c;
}

void
conn_set_limits(struct conn *c, const struct conn_limits *limits)
{
	c->limits = *limits;
	if (limits->backoff_max == 0 || limits->backoff_max > BACKOFF_MAX)
		c->limits.backoff_max = BACKOFF_MAX;
	else if (limits->backoff_max < BACKOFF_MIN)
		c->limits.backoff_max = BACKOFF_MIN;
	c->rules.bytes_max = limits->reply_max > 0 && limits->reply_max < REPLY_BYTES_MAX ?
	    limits->reply_max : REPLY_BYTES_MAX;
	timer_stop(&c->idle);
	conn_ping_idle(c);
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
	if (c->opt->sentinel != NULL)
		sentinel_leave(c->opt->sentinel, &c->client);
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

bool
conn_is_ready(const struct conn *c)
{
	return c->state == CONN_READY;
}

int64_t
conn_id(const struct conn *c)
{
	return c->state == CONN_READY ? c->server.client_id : 0;
}

const struct conn_server *
conn_server(const struct conn *c)
{
	return &c->server;
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
	const struct pending *p = conn_oldest(c);

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
