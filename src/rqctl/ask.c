/*
 * Commands and their failures.  Every reply that is handed out is the
 * caller's.
 */
#include "rqctl/ask.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "redis/reply.h"
#include "redis/script.h"

static void
words_list(struct words *w, const char *first, va_list ap)
{
	for (; first != NULL; first = va_arg(ap, const char *))
		words_add(w, first);
}

int
ask_status(enum reply_error error)
{
	switch (error) {
	case REPLY_DENIED:
		return EX_NOPERM;
	case REPLY_TRANSIENT:
	case REPLY_ELSEWHERE:
	case REPLY_REFUSED:
		return EX_TEMPFAIL;
	case REPLY_WRONGTYPE:
		return EX_DATAERR;
	case REPLY_OK:
	case REPLY_NOSCRIPT:
	case REPLY_OTHER:
		break;
	}
	return EX_UNAVAILABLE;
}

int
ask_refused(struct ctl *c, const struct redisReply *reply)
{
	char cause[REPLY_CAUSE];

	return ctl_error(c, ask_status(reply_error(reply)), "redis %s: %s",
	    client_address(c->client), reply_cause(reply, cause, sizeof(cause)));
}

static void
lost(struct ctl *c, const char *cause)
{
	ctl_error(c, EX_UNAVAILABLE, "redis %s: %s", client_address(c->client),
	    cause != NULL ? cause : "connection lost");
}

/* Takes a reply or the cause of its absence; hands out only good ones. */
static struct redisReply *
check(struct ctl *c, struct redisReply *reply, char *cause)
{
	if (reply == NULL)
		lost(c, cause);
	else if (reply_error(reply) != REPLY_OK) {
		ask_refused(c, reply);
		client_reply_free(reply);
		reply = NULL;
	}
	free(cause);
	return reply;
}

struct redisReply *
ask_words(struct ctl *c, const struct words *w)
{
	char *cause = NULL;
	struct redisReply *reply;

	if (ctl_connect(c) == -1)
		return NULL;
	reply = client_command(c->client, &cause, w->n, w->v, w->len);
	return check(c, reply, cause);
}

struct redisReply *
ask(struct ctl *c, const char *first, ...)
{
	struct words w = { 0 };
	struct redisReply *reply;
	va_list ap;

	va_start(ap, first);
	words_list(&w, first, ap);
	va_end(ap);
	reply = ask_words(c, &w);
	words_done(&w);
	return reply;
}

struct redisReply *
ask_script(struct ctl *c, const char *name, int nkeys, const struct words *w)
{
	const struct script *script;
	struct redisReply *reply;
	char *cause = NULL;

	if (ctl_connect(c) == -1)
		return NULL;
	if ((script = script_find(name)) == NULL)
		fatalx("no script %s", name);
	reply = client_script(c->client, &cause, script, nkeys, w->n, w->v, w->len);
	return check(c, reply, cause);
}

int
ask_append_words(struct ctl *c, const struct words *w)
{
	if (ctl_connect(c) == -1)
		return -1;
	client_append(c->client, w->n, w->v, w->len);
	return 0;
}

int
ask_append(struct ctl *c, const char *first, ...)
{
	struct words w = { 0 };
	va_list ap;
	int rc;

	va_start(ap, first);
	words_list(&w, first, ap);
	va_end(ap);
	rc = ask_append_words(c, &w);
	words_done(&w);
	return rc;
}

struct redisReply *
ask_next(struct ctl *c)
{
	char *cause = NULL;
	struct redisReply *reply = client_next(c->client, &cause);

	if (reply == NULL)
		lost(c, cause);
	free(cause);
	return reply;
}

double
ask_time(struct ctl *c)
{
	struct redisReply *reply = ask(c, "TIME", NULL);
	double t;

	if (reply == NULL)
		return -1;
	t = (double)reply_int(reply_at(reply, 0), 0) +
	    (double)reply_int(reply_at(reply, 1), 0) / 1e6;
	client_reply_free(reply);
	return t;
}
