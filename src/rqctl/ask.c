/*
 * Commands and their failures.
 */
#include "rqctl/ask.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "redis/script.h"

/* -- words ---------------------------------------------------------------------- */

static void
end_word(struct words *w)
{
	if ((w->n & (w->n - 1)) == 0)
		w->end = xreallocarray(w->end, w->n > 0 ? 2 * (size_t)w->n : 1,
		    sizeof(w->end[0]));
	w->end[w->n++] = w->bytes.len;
}

void
words_mem(struct words *w, const void *data, size_t len)
{
	buf_add(&w->bytes, data, len);
	end_word(w);
}

/* Adds the value of the conversion that begins behind the %; returns its length. */
static size_t
convert(struct buf *b, const char *spec, va_list *ap)
{
	size_t len;

	switch (*spec) {
	case 's':
		buf_puts(b, va_arg(*ap, const char *));
		return 1;
	case 'l':
		buf_printf(b, "%lld", va_arg(*ap, long long));
		return strlen("lld");
	case 'f':
		buf_printf(b, "%.6f", va_arg(*ap, double));
		return 1;
	case '.':
		len = (size_t)va_arg(*ap, int);
		buf_add(b, va_arg(*ap, const char *), len);
		return strlen(".*s");
	}
	fatalx("words_add: unknown conversion %%%s", spec);
}

static void
add_list(struct words *w, const char *fmt, va_list list)
{
	va_list ap;

	va_copy(ap, list);
	for (; *fmt != '\0'; fmt++)
		if (*fmt == ' ')
			end_word(w);
		else if (*fmt == '%')
			fmt += convert(&w->bytes, fmt + 1, &ap);
		else
			buf_addc(&w->bytes, *fmt);
	end_word(w);
	va_end(ap);
}

void
words_add(struct words *w, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add_list(w, fmt, ap);
	va_end(ap);
}

const char *
words_at(const struct words *w, int i, size_t *len)
{
	size_t begin = i > 0 ? w->end[i - 1] : 0;

	*len = w->end[i] - begin;
	return w->bytes.data != NULL ? w->bytes.data + begin : "";
}

void
words_done(struct words *w)
{
	buf_done(&w->bytes);
	free(w->end);
	memset(w, 0, sizeof(*w));
}

/* -- errors ---------------------------------------------------------------------- */

int
ask_status(enum reply_error error)
{
	static const int status[] = {
		[REPLY_DENIED] = EX_NOPERM, [REPLY_WRONGTYPE] = EX_DATAERR,
		[REPLY_TRANSIENT] = EX_TEMPFAIL, [REPLY_ELSEWHERE] = EX_TEMPFAIL,
		[REPLY_REFUSED] = EX_TEMPFAIL, [REPLY_OTHER] = EX_UNAVAILABLE
	};

	return status[error] != 0 ? status[error] : EX_UNAVAILABLE;
}

int
ask_refused(struct ctl *c, const struct redisReply *reply)
{
	char cause[REPLY_CAUSE];

	return ctl_error(c, ask_status(reply_error(reply)), "redis %s: %s",
	    client_address(c->client), reply_cause(reply, cause, sizeof(cause)));
}

/* Takes the cause of a missing reply; an error reply is an answer, but no success. */
static struct redisReply *
take(struct ctl *c, struct redisReply *reply, char *cause, bool any)
{
	if (reply == NULL)
		ctl_error(c, EX_UNAVAILABLE, "redis %s: %s", client_address(c->client),
		    cause != NULL ? cause : "connection lost");
	else if (!any && reply_error(reply) != REPLY_OK) {
		ask_refused(c, reply);
		client_reply_free(reply);
		reply = NULL;
	}
	free(cause);
	return reply;
}

/* -- commands -------------------------------------------------------------------- */

/* Runs the words, or the script with the words; append: only queues them. */
static struct redisReply *
command(struct ctl *c, const struct script *script, int nkeys, struct words *w, bool append)
{
	const char **at = xcalloc((size_t)w->n, sizeof(at[0]));
	size_t *len = xcalloc((size_t)w->n, sizeof(len[0]));
	struct redisReply *reply = NULL;
	char *cause = NULL;
	int i;

	for (i = 0; i < w->n; i++)
		at[i] = words_at(w, i, &len[i]);
	if (append)
		client_append(c->client, w->n, at, len);
	else if (script != NULL)
		reply = client_script(c->client, &cause, script, nkeys, w->n, at, len);
	else
		reply = client_command(c->client, &cause, w->n, at, len);
	free(at);
	free(len);
	return append ? NULL : take(c, reply, cause, false);
}

struct redisReply *
ask_words(struct ctl *c, struct words *w)
{
	struct redisReply *reply = NULL;

	if (ctl_connect(c) == 0)
		reply = command(c, NULL, 0, w, false);
	words_done(w);
	return reply;
}

struct redisReply *
ask(struct ctl *c, const char *fmt, ...)
{
	struct words w = { .n = 0 };
	va_list ap;

	va_start(ap, fmt);
	add_list(&w, fmt, ap);
	va_end(ap);
	return ask_words(c, &w);
}

struct redisReply *
ask_script_words(struct ctl *c, const char *name, int nkeys, struct words *w)
{
	const struct script *script = script_find(name);
	struct redisReply *reply = NULL;

	if (script == NULL)
		fatalx("no script %s", name);
	if (ctl_connect(c) == 0)
		reply = command(c, script, nkeys, w, false);
	words_done(w);
	return reply;
}

struct redisReply *
ask_script(struct ctl *c, const char *name, int nkeys, const char *fmt, ...)
{
	struct words w = { .n = 0 };
	va_list ap;

	va_start(ap, fmt);
	add_list(&w, fmt, ap);
	va_end(ap);
	return ask_script_words(c, name, nkeys, &w);
}

int64_t
ask_number(struct redisReply *reply)
{
	int64_t n = reply_int(reply, -1);

	client_reply_free(reply);
	return n;
}

int
ask_append_words(struct ctl *c, struct words *w)
{
	int rc = ctl_connect(c);

	if (rc == 0)
		command(c, NULL, 0, w, true);
	words_done(w);
	return rc;
}

int
ask_append(struct ctl *c, const char *fmt, ...)
{
	struct words w = { .n = 0 };
	va_list ap;

	va_start(ap, fmt);
	add_list(&w, fmt, ap);
	va_end(ap);
	return ask_append_words(c, &w);
}

struct redisReply *
ask_next(struct ctl *c)
{
	char *cause = NULL;
	struct redisReply *reply = client_next(c->client, &cause);

	return take(c, reply, cause, true);
}

/* -- common questions ------------------------------------------------------------ */

double
ask_time(struct ctl *c)
{
	struct redisReply *reply = ask(c, "TIME");
	double t = reply == NULL ? -1 : (double)reply_int(reply_at(reply, 0), 0) +
	    (double)reply_int(reply_at(reply, 1), 0) / 1e6;

	client_reply_free(reply);
	return t;
}

/* Operators often deny INFO and CONFIG: their error replies are no errors here. */
char *
ask_info(struct ctl *c, const char *section, const char *field)
{
	struct redisReply *reply = ask_append(c, "INFO %s", section) == 0 ? ask_next(c) : NULL;
	const char *p = reply_str(reply, NULL);
	size_t n = strlen(field);
	char *ret = NULL;

	for (; p != NULL && ret == NULL; p = (p = strchr(p, '\n')) != NULL ? p + 1 : NULL)
		if (strncmp(p, field, n) == 0 && p[n] == ':')
			ret = xstrndup(p + n + 1, strcspn(p + n + 1, "\r\n"));
	client_reply_free(reply);
	return ret != NULL ? ret : xstrdup("");
}

char *
ask_config(struct ctl *c, const char *parameter)
{
	struct redisReply *reply = ask_append(c, "CONFIG GET %s", parameter) == 0 ?
	    ask_next(c) : NULL;
	const char *text = reply_str(reply_at(reply, 1), NULL);
	char *ret = xstrdup(text != NULL ? text : "");

	client_reply_free(reply);
	return ret;
}
