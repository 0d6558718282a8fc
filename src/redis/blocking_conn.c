/*
 * The blocking connection.  Like conn.c it tries each server of the list, and each
 * address of its name, until one is a master; it has the same greeting.
 *
 * After the greeting the socket does not block, and poll(2) waits.  As in deadline.c a call
 * fails when fewer than PROGRESS_BYTES_MIN bytes move within options.timeout, however
 * large the command or its reply is.
 */
#include "redis/blocking_conn.h"

#include <sys/ioctl.h>
#include <sys/time.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>
#include <hiredis/sds.h>

#include "base/buf.h"
#include "base/units.h"
#include "redis/addr.h"
#include "redis/greet.h"
#include "redis/guard.h"
#include "redis/hiredis_loop.h"
#include "redis/pending.h"
#include "redis/sentinel.h"
#include "redis/tls.h"

struct blocking_conn {
	const struct redis_options *opt;
	redisContext	*context;	/* NULL: not connected */
	char		*address;	/* the server, as configured */
	struct reply_rules rules;
	struct guard	 guard;
	uint64_t	 seen_moved;	/* bytes, at the last progress */
	usec_t		 still_since;	/* mono; the last progress */
};

static const volatile sig_atomic_t *interrupt;	/* NULL: nothing interrupts */

/* Sets *cause to the reason why the connection is lost; returns -1. */
static int
blocking_cause(const struct blocking_conn *cl, char **cause)
{
	const redisContext *c = cl->context;
	char buf[UNITS_TEXT_MAX];

	if (c == NULL)
		return util_cause(cause, "not connected");
	if (cl->rules.complaint != NULL)
		return util_cause(cause, "%s", cl->rules.complaint);
	if (strcmp(c->errstr, strerror(EAGAIN)) == 0)
		return util_cause(cause, "no answer within %s",
		    units_duration(cl->opt->timeout, buf));
	return util_cause(cause, "%s", c->errstr[0] != '\0' ? c->errstr : "connection lost");
}

static void
blocking_drop(struct blocking_conn *cl)
{
	if (cl->context != NULL)
		redisFree(cl->context);
	cl->context = NULL;
}

/* -- sending and receiving ---------------------------------------------------- */

/* Bytes received, and bytes that have left this machine. */
static uint64_t
blocking_moved(const struct blocking_conn *cl)
{
	uint64_t written = cl->rules.written;
	int queued = 0;

	if (ioctl(cl->context->fd, TIOCOUTQ, &queued) == -1 || queued < 0)
		queued = 0;
	return cl->rules.read + ((uint64_t)queued < written ? written - (unsigned)queued : 0);
}

/* Waits until the socket can be read or written; -1 at the deadline. */
static int
blocking_wait(struct blocking_conn *cl, char **cause)
{
	struct pollfd p = { .fd = cl->context->fd, .events = POLLIN };
	uint64_t moved = blocking_moved(cl);
	usec_t now = clock_mono(), left;
	char buf[UNITS_TEXT_MAX];

	if (moved >= cl->seen_moved + PROGRESS_BYTES_MIN) {
		cl->seen_moved = moved;
		cl->still_since = now;
	}
	left = cl->still_since + cl->opt->timeout - now;
	if (blocking_is_interrupted())
		return util_cause(cause, "interrupted");
	if (left <= 0)
		return util_cause(cause, "no answer within %s",
		    units_duration(cl->opt->timeout, buf));
	if (left > cl->opt->timeout / 4)
		left = cl->opt->timeout / 4;
	if (sdslen(cl->context->obuf) > 0)
		p.events |= POLLOUT;
	(void)poll(&p, 1, (int)(left / MSEC) + 1);
	return 0;
}

/* Writes and reads without waiting; -1 at the end of the connection. */
static int
blocking_move(struct blocking_conn *cl)
{
	redisContext *c = cl->context;
	size_t before = sdslen(c->obuf);
	int done;

	if (before > 0 && redisBufferWrite(c, &done) != REDIS_OK)
		return -1;
	cl->rules.written += before - sdslen(c->obuf);
	guard_backlog(&cl->guard);
	before = c->reader->len;
	if (redisBufferRead(c) != REDIS_OK)
		return -1;
	if (c->reader->len > before)
		cl->rules.read += c->reader->len - before;
	return 0;
}

/* The next reply, or NULL with the cause. */
static void *
blocking_receive(struct blocking_conn *cl, char **cause)
{
	uint64_t before;
	void *r = NULL;

	cl->still_since = clock_mono();
	cl->seen_moved = blocking_moved(cl);
	for (;;) {
		if (redisReaderGetReply(cl->context->reader, &r) != REDIS_OK) {
			(void)util_cause(cause, "%s", cl->rules.complaint != NULL ?
			    cl->rules.complaint : cl->context->reader->errstr);
			return NULL;
		}
		if (r != NULL)
			return r;
		before = cl->rules.read + cl->rules.written;
		if (blocking_move(cl) == -1) {
			(void)blocking_cause(cl, cause);
			return NULL;
		}
		if (cl->rules.read + cl->rules.written == before &&
		    blocking_wait(cl, cause) == -1)
			return NULL;
	}
}

/* -- connecting --------------------------------------------------------------- */

/* Sends the greeting, and reads the answers to it. */
static int
blocking_greet(struct blocking_conn *cl, struct greet *g, char **cause)
{
	struct words w = { .n = 0 };
	void *r;
	char words[256];
	bool over = false;

	while (greet_next(g, &w))
		redisAppendCommandArgv(cl->context, w.n, w.v, w.len);
	words_done(&w);
	while (!over) {
		if ((r = blocking_receive(cl, cause)) == NULL) {
			if (greet_last_words(cl->context->fd, words, sizeof(words))) {
				free(*cause);
				(void)util_cause(cause, "%s", words);
			}
			return -1;
		}
		over = greet_answer(g, r);
		freeReplyObject(r);
	}
	return g->cause == NULL ? 0 : util_cause(cause, "%s", g->cause);
}

/* From now on poll() waits, and the guard checks the replies. */
static void
blocking_unblock(struct blocking_conn *cl)
{
	redisContext *c = cl->context;

	(void)fcntl(c->fd, F_SETFL, fcntl(c->fd, F_GETFL) | O_NONBLOCK);
	c->flags &= ~REDIS_BLOCK;
	cl->rules = (struct reply_rules){ .bytes_max = REPLY_BYTES_MAX };
	guard_start(&cl->guard, c->reader, NULL, &cl->rules);
}

/* Connects to one numeric address, or socket. */
static int
blocking_connect(struct blocking_conn *cl, const struct addr *a, const char *host, const char *name,
    char **cause)
{
	struct timeval tv = { .tv_sec = (time_t)(cl->opt->timeout / SEC),
		.tv_usec = (suseconds_t)(cl->opt->timeout % SEC) };
	struct greet g;
	int rc;

	cl->context = a->path != NULL ? redisConnectUnixWithTimeout(a->path, tv) :
	    redisConnectWithTimeout(host, a->port, tv);
	if (cl->context == NULL)
		return util_cause(cause, "out of memory");
	if (cl->context->err != 0)
		return blocking_cause(cl, cause);
	(void)fcntl(cl->context->fd, F_SETFD, FD_CLOEXEC);
	if (redisSetTimeout(cl->context, tv) != REDIS_OK)
		return blocking_cause(cl, cause);
	if (cl->opt->tls && tls_start(cl->context, cl->opt, a->host, cause) == -1)
		return -1;
	blocking_unblock(cl);
	rc = greet_init(&g, cl->opt, name, false, false, cause);
	if (rc == 0)
		rc = blocking_greet(cl, &g, cause);
	greet_done(&g);
	return rc;
}

/* Tries all addresses of one server. */
static int
blocking_try(struct blocking_conn *cl, const char *server, const char *name, char **cause)
{
	char found[ADDR_MAX][INET6_ADDRSTRLEN];
	const char *why;
	struct addr a;
	unsigned n = 1;
	int rc = -1;

	if (addr_parse(server, &a, cause) == -1)
		return -1;
	if (a.path == NULL && (n = addr_lookup(a.host, found, &why)) == 0)
		(void)util_cause(cause, "cannot resolve the name: %s", why);
	for (unsigned i = 0; i < n && rc == -1; i++) {
		xreplace(cause, NULL);
		if ((rc = blocking_connect(cl, &a, found[i], name, cause)) == -1)
			blocking_drop(cl);
	}
	addr_done(&a);
	return rc;
}

/* The master's address, which the caller frees; NULL: this Sentinel did not name it. */
static char *
blocking_ask_sentinel(const struct redis_options *opt, const char *name, char **cause)
{
	struct blocking_conn *cl = blocking_open(opt, name, cause);
	struct words w = { .n = 0 };
	struct redisReply *reply;
	char *address = NULL, text[REPLY_CAUSE];

	if (cl == NULL)
		return NULL;
	words_add(&w, "SENTINEL");
	words_add(&w, "get-master-addr-by-name");
	words_add(&w, opt->master);
	reply = blocking_command(cl, cause, &w);
	if (reply != NULL && reply_is_nil(reply))
		(void)util_cause(cause, "%s does not know a master \"%.64s\"", cl->address,
		    opt->master);
	else if (reply != NULL && (address = sentinel_address(reply)) == NULL)
		(void)util_cause(cause, "%s: %s", cl->address,
		    reply_cause(reply, text, sizeof(text)));
	blocking_reply_free(reply);
	words_done(&w);
	blocking_close(cl);
	return address;
}

/* Adds a cause once: several Sentinels name the same master.  NULL: a Sentinel's. */
static void
add_cause(struct buf *causes, const char *master, const char *why)
{
	struct buf cause = BUF_INIT;

	buf_printf(&cause, "%s%s%s", master != NULL ? master : "Sentinel ",
	    master != NULL ? ": " : "", why);
	if (strstr(buf_str(causes), buf_str(&cause)) == NULL)
		buf_printf(causes, "%s%s", causes->len > 0 ? "; " : "", buf_str(&cause));
	buf_done(&cause);
}

/*
 * Connects to the master that the Sentinels name.  A Sentinel may name a server that is
 * no longer a master: then it asks the next one.  Returns NULL, or a list of causes.
 */
static char *
blocking_find_master(struct blocking_conn *cl, const char *name)
{
	char **s, *one[] = { NULL, NULL }, *why = NULL;
	struct redis_options opt;
	struct buf causes = BUF_INIT;

	sentinel_options(cl->opt, &opt);
	opt.servers = one;
	for (s = cl->opt->sentinels; *s != NULL; s++) {
		one[0] = *s;
		cl->address = blocking_ask_sentinel(&opt, name, &why);
		if (cl->address != NULL && blocking_try(cl, cl->address, name, &why) == 0) {
			buf_done(&causes);
			return NULL;
		}
		add_cause(&causes, cl->address, why);
		free(cl->address);
		free(why);
		cl->address = why = NULL;
	}
	return buf_steal(&causes);
}

/* Like blocking_find_master(), for a list of servers. */
static char *
blocking_find_server(struct blocking_conn *cl, const char *name)
{
	struct buf causes = BUF_INIT;
	char *why = NULL;

	for (char **s = cl->opt->servers; *s != NULL; s++) {
		if (blocking_try(cl, *s, name, &why) == 0) {
			cl->address = xstrdup(*s);
			buf_done(&causes);
			return NULL;
		}
		buf_printf(&causes, "%s%s: %s", causes.len > 0 ? "; " : "", *s, why);
		xreplace(&why, NULL);
	}
	if (causes.len == 0)
		buf_puts(&causes, "no server is configured");
	return buf_steal(&causes);
}

struct blocking_conn *
blocking_open(const struct redis_options *opt, const char *name, char **cause)
{
	struct blocking_conn *cl = NEW(struct blocking_conn, .opt = opt);
	char *causes;

	signal(SIGPIPE, SIG_IGN);
	causes = opt->sentinels != NULL && opt->sentinels[0] != NULL ?
	    blocking_find_master(cl, name) : blocking_find_server(cl, name);
	if (causes == NULL)
		return cl;
	(void)util_cause(cause, "%s", causes);
	free(causes);
	blocking_close(cl);
	return NULL;
}

void
blocking_close(struct blocking_conn *cl)
{
	if (cl == NULL)
		return;
	blocking_drop(cl);
	free(cl->address);
	free(cl);
}

/* -- commands ----------------------------------------------------------------- */

void
blocking_append(struct blocking_conn *cl, const struct words *w)
{
	if (cl->context != NULL)
		redisAppendCommandArgv(cl->context, w->n, w->v, w->len);
}

void
blocking_flush(struct blocking_conn *cl)
{
	redisContext *c = cl->context;
	size_t before = c != NULL ? sdslen(c->obuf) : 0;
	int done;

	/* After an error the context refuses all that follows. */
	if (before > 0 && redisBufferWrite(c, &done) == REDIS_OK)
		cl->rules.written += before - sdslen(c->obuf);
}

struct redisReply *
blocking_next(struct blocking_conn *cl, char **cause)
{
	void *r;

	if (cl->context == NULL) {
		(void)blocking_cause(cl, cause);
		return NULL;
	}
	if ((r = blocking_receive(cl, cause)) == NULL)
		blocking_drop(cl);
	return r;
}

struct redisReply *
blocking_command(struct blocking_conn *cl, char **cause, const struct words *w)
{
	blocking_append(cl, w);
	return blocking_next(cl, cause);
}

struct redisReply *
blocking_script(struct blocking_conn *cl, char **cause, const struct script *script,
    const struct words *w)
{
	struct pending *p = pending_new(NULL, NULL, true);
	struct redisReply *r;

	pending_set_script(p, script, w);
	r = blocking_command(cl, cause, &p->words);
	if (r != NULL && !p->eval && reply_error(r) == REPLY_NOSCRIPT) {
		freeReplyObject(r);
		pending_use_text(p);
		r = blocking_command(cl, cause, &p->words);
	}
	pending_free(p);
	return r;
}

void
blocking_reply_free(struct redisReply *r)
{
	if (r != NULL)
		freeReplyObject(r);
}

bool
blocking_is_interrupted(void)
{
	return interrupt != NULL && *interrupt;
}

void
blocking_interrupt(const volatile sig_atomic_t *flag)
{
	interrupt = flag;
}

const char *
blocking_address(const struct blocking_conn *cl)
{
	return cl->address;
}
