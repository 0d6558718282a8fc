/*
 * The blocking connection.  It goes the way of conn.c, with the same greeting:
 * each server of the list, each address of its name, until one is a master.
 * Every wait is bounded by options.timeout.
 */
#include "redis/client.h"

#include <sys/socket.h>
#include <sys/time.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "base/buf.h"
#include "base/units.h"
#include "redis/addr.h"
#include "redis/greet.h"
#include "redis/pending.h"
#include "redis/tls.h"

struct client {
	const struct redis_options *opt;
	redisContext	*context;	/* NULL: not connected */
	char		*address;	/* as configured */
};

static struct timeval
client_timeval(const struct redis_options *opt)
{
	return (struct timeval){ .tv_sec = (time_t)(opt->timeout / SEC),
		.tv_usec = (suseconds_t)(opt->timeout % SEC) };
}

/* Says why the connection is lost; -1. */
static int
client_cause(const struct client *cl, char **cause)
{
	const redisContext *c = cl->context;
	char buf[UNITS_TEXT_MAX];

	if (c == NULL)
		return util_cause(cause, "not connected");
	if (strcmp(c->errstr, strerror(EAGAIN)) == 0)
		return util_cause(cause, "no answer within %s",
		    units_duration(cl->opt->timeout, buf));
	return util_cause(cause, "%s", c->errstr[0] != '\0' ? c->errstr : "connection lost");
}

static void
client_drop(struct client *cl)
{
	if (cl->context != NULL)
		redisFree(cl->context);
	cl->context = NULL;
}

/* -- connecting --------------------------------------------------------------- */

/* Sends the greeting, and reads the answers to it. */
static int
client_greet(struct client *cl, struct greet *g, char **cause)
{
	struct greet_command cmd;
	void *r;
	char words[256];
	bool over = false;

	while (greet_next(g, &cmd))
		redisAppendCommandArgv(cl->context, cmd.argc, cmd.argv, cmd.argvlen);
	while (!over) {
		if (redisGetReply(cl->context, &r) != REDIS_OK)
			return greet_last_words(cl->context->fd, words, sizeof(words)) ?
			    util_cause(cause, "%s", words) : client_cause(cl, cause);
		over = greet_answer(g, r);
		freeReplyObject(r);
	}
	return g->cause == NULL ? 0 : util_cause(cause, "%s", g->cause);
}

/* Connects to one numeric address, or socket. */
static int
client_connect(struct client *cl, const struct addr *a, const char *host, const char *name,
    char **cause)
{
	struct timeval tv = client_timeval(cl->opt);
	struct greet g;
	int rc;

	cl->context = a->path != NULL ? redisConnectUnixWithTimeout(a->path, tv) :
	    redisConnectWithTimeout(host, a->port, tv);
	if (cl->context == NULL)
		return util_cause(cause, "out of memory");
	if (cl->context->err != 0)
		return client_cause(cl, cause);
	(void)fcntl(cl->context->fd, F_SETFD, FD_CLOEXEC);
	if (redisSetTimeout(cl->context, tv) != REDIS_OK)
		return client_cause(cl, cause);
	if (cl->opt->tls && tls_start(cl->context, cl->opt, a->host, cause) == -1)
		return -1;
	rc = greet_init(&g, cl->opt, name, false, false, cause);
	if (rc == 0)
		rc = client_greet(cl, &g, cause);
	greet_done(&g);
	return rc;
}

/* Tries all addresses of one server. */
static int
client_try(struct client *cl, const char *server, const char *name, char **cause)
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
		free(*cause);
		*cause = NULL;
		if ((rc = client_connect(cl, &a, found[i], name, cause)) == -1)
			client_drop(cl);
	}
	addr_done(&a);
	return rc;
}

struct client *
client_open(const struct redis_options *opt, const char *name, char **cause)
{
	struct client *cl = xcalloc(1, sizeof(*cl));
	struct buf causes = BUF_INIT;
	char *why = NULL;

	signal(SIGPIPE, SIG_IGN);
	cl->opt = opt;
	for (char **s = opt->servers; *s != NULL; s++) {
		if (client_try(cl, *s, name, &why) == 0) {
			cl->address = xstrdup(*s);
			buf_done(&causes);
			return cl;
		}
		buf_printf(&causes, "%s%s: %s", causes.len > 0 ? "; " : "", *s, why);
		free(why);
		why = NULL;
	}
	(void)util_cause(cause, "%s",
	    causes.len > 0 ? buf_str(&causes) : "no server is configured");
	buf_done(&causes);
	client_close(cl);
	return NULL;
}

void
client_close(struct client *cl)
{
	if (cl == NULL)
		return;
	client_drop(cl);
	free(cl->address);
	free(cl);
}

/* -- commands ----------------------------------------------------------------- */

void
client_append(struct client *cl, int argc, const char *const *argv, const size_t *argvlen)
{
	if (cl->context != NULL)
		redisAppendCommandArgv(cl->context, argc, (const char **)(uintptr_t)argv, argvlen);
}

struct redisReply *
client_next(struct client *cl, char **cause)
{
	void *r = NULL;

	if (cl->context != NULL && redisGetReply(cl->context, &r) == REDIS_OK)
		return r;
	(void)client_cause(cl, cause);
	client_drop(cl);
	return NULL;
}

struct redisReply *
client_command(struct client *cl, char **cause, int argc, const char *const *argv,
    const size_t *argvlen)
{
	client_append(cl, argc, argv, argvlen);
	return client_next(cl, cause);
}

struct redisReply *
client_words(struct client *cl, char **cause, ...)
{
	const char *argv[32];
	size_t argvlen[ARRAY_LEN(argv)];
	int argc = 0;
	va_list ap;

	va_start(ap, cause);
	while ((argv[argc] = va_arg(ap, const char *)) != NULL) {
		argvlen[argc] = strlen(argv[argc]);
		if (++argc == ARRAY_LEN(argv))
			fatalx("client_words: more than %d words", argc - 1);
	}
	va_end(ap);
	return client_command(cl, cause, argc, argv, argvlen);
}

struct redisReply *
client_script(struct client *cl, char **cause, const struct script *script, int nkeys,
    int argc, const char *const *argv, const size_t *argvlen)
{
	struct pending *p = pending_new(NULL, NULL, true);
	struct pending_script *s;
	struct redisReply *r;

	pending_set_script(p, script, nkeys, argc, argv, argvlen);
	s = p->script;
	r = client_command(cl, cause, s->argc, s->argv, s->argvlen);
	if (r != NULL && !s->eval && reply_error(r) == REPLY_NOSCRIPT) {
		freeReplyObject(r);
		pending_use_text(p);
		r = client_command(cl, cause, s->argc, s->argv, s->argvlen);
	}
	pending_free(p);
	return r;
}

void
client_reply_free(struct redisReply *r)
{
	if (r != NULL)
		freeReplyObject(r);
}

const char *
client_address(const struct client *cl)
{
	return cl->address;
}
