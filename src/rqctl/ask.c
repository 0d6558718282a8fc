/* Commands of verbs and their failures; see ask.h. */
#include "rqctl/ask.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "redis/script.h"
#include "status/advice.h"
#include "status/judge.h"

/* -- words ---------------------------------------------------------------------- */

static void
end_word(struct words *w, struct buf *b)
{
	size_t len = b->len;

	words_own(w, buf_steal(b), len);
}

static void
add_list(struct words *w, const char *fmt, va_list list)
{
	struct buf b = BUF_INIT;
	size_t len;
	va_list ap;

	va_copy(ap, list);
	for (; *fmt != '\0'; fmt++)
		if (*fmt == ' ')
			end_word(w, &b);
		else if (*fmt != '%')
			buf_addc(&b, *fmt);
		else if (*++fmt == 's')
			buf_puts(&b, va_arg(ap, const char *));
		else if (*fmt == 'f')
			buf_printf(&b, "%.6f", va_arg(ap, double));
		else if (*fmt == 'l') {
			buf_printf(&b, "%lld", va_arg(ap, long long));
			fmt += strlen("lld") - 1;
		} else if (*fmt == '.') {
			len = (size_t)va_arg(ap, int);
			buf_add(&b, va_arg(ap, const char *), len);
			fmt += strlen(".*s") - 1;
		} else
			fatalx("ask_add: unknown conversion %%%s", fmt);
	end_word(w, &b);
	va_end(ap);
}

void
ask_add(struct words *w, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add_list(w, fmt, ap);
	va_end(ap);
}

struct words
ask_format(const char *fmt, ...)
{
	struct words w = { .n = 0 };
	va_list ap;

	va_start(ap, fmt);
	add_list(&w, fmt, ap);
	va_end(ap);
	return w;
}

/* -- errors ---------------------------------------------------------------------- */

int
ask_status(enum reply_error error)
{
	switch (error) {
	case REPLY_DENIED:
		return EX_NOPERM;
	case REPLY_WRONGTYPE:
		return EX_DATAERR;
	case REPLY_TRANSIENT:
	case REPLY_ELSEWHERE:
	case REPLY_REFUSED:
		return EX_TEMPFAIL;
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
	const char *hint = NULL;

	(void)reply_cause(reply, cause, sizeof(cause));
	if (reply_error(reply) == REPLY_ELSEWHERE)
		hint = reply_hint(cause);
	return ctl_error(c, ask_status(reply_error(reply)), "redis %s: %s%s%s",
	    sync_last(c->client), cause, text_if(hint != NULL, ": "),
	    or_empty(hint));
}

/* Reports and frees an error reply: returns NULL then, else the reply. */
static struct redisReply *
check_error(struct ctl *c, struct redisReply *reply)
{
	if (reply_error(reply) == REPLY_OK)
		return reply;
	ask_refused(c, reply);
	reply_free(reply);
	return NULL;
}

/* -- commands -------------------------------------------------------------------- */

struct redisReply *
ask_words(struct ctl *c, struct words *w)
{
	return check_error(c, ask_any_words(c, w));
}

struct redisReply *
ask_any_words(struct ctl *c, struct words *w)
{
	if (ask_append_words(c, w) == -1)
		return NULL;
	return ask_next(c);
}

struct redisReply *
ask_script_words(struct ctl *c, const char *name, int nkeys, struct words *w)
{
	if (ask_append_script(c, name, nkeys, w) == -1)
		return NULL;
	return check_error(c, ask_next(c));
}

struct redisReply *
ask_check(struct ctl *c, struct redisReply *reply, const char *form)
{
	if (reply == NULL || reply_has(reply, form))
		return reply;
	ask_refused(c, reply);
	reply_free(reply);
	return NULL;
}

int64_t
ask_number(struct redisReply *reply)
{
	int64_t n = reply_int(reply, -1);

	reply_free(reply);
	return n;
}

int
ask_append_script(struct ctl *c, const char *name, int nkeys, struct words *w)
{
	const struct script *script = NULL;
	int rc = ctl_connect(c);

	if (name != NULL && (script = script_find(name)) == NULL)
		fatalx("no script %s", name);
	w->nkeys = nkeys;
	if (rc == 0)
		sync_append(c->client, script, w);
	words_done(w);
	return rc;
}

struct redisReply *
ask_next(struct ctl *c)
{
	char *cause = NULL;
	struct redisReply *reply = sync_next(c->client, &cause);

	if (reply == NULL) {
		ctl_error(c, ask_status(reply_error_of_text(cause)), "redis %s: %s",
		    sync_last(c->client), cause);
		/* A later command must not get the replies that are left. */
		sync_drop(c->client);
	}
	free(cause);
	return reply;
}

/* -- common questions ------------------------------------------------------------ */

/* Takes the reply to TIME; -1: none, or an error, which was reported. */
static double
time_in(struct ctl *c, struct redisReply *reply)
{
	double t = -1;

	if (reply != NULL && (reply = check_error(c, reply)) != NULL)
		t = (double)reply_int(reply_at(reply, 0), 0) +
		    (double)reply_int(reply_at(reply, 1), 0) / 1e6;
	reply_free(reply);
	return t;
}

double
ask_time(struct ctl *c)
{
	return time_in(c, ask_any(c, "TIME"));
}

int
ask_times(struct ctl *c, const char *const *keys, size_t n, double *now)
{
	struct redisReply *reply;
	size_t asked = n;
	int rc = 0;

	if (!ctl_is_cluster(c))		/* one server has one clock */
		asked = size_min(n, 1);
	if (ctl_connect(c) == -1)
		return -1;
	for (size_t i = 0; i < asked && rc == 0; i++) {
		ask_master_of(c, keys[i]);
		rc = ask_append(c, "TIME");
	}
	ask_master_of(c, NULL);
	for (size_t i = 0; i < asked && rc == 0; i++) {
		if ((reply = ask_next(c)) == NULL)
			return -1;
		now[i] = time_in(c, reply);
	}
	for (size_t i = asked; i < n && rc == 0; i++)
		now[i] = now[0];
	for (size_t i = 0; i < n && rc == 0; i++)
		if (now[i] < 0)
			rc = -1;
	return rc;
}

double
ask_time_of(struct ctl *c, const char *key)
{
	double t;

	if (ask_times(c, &key, 1, &t) == -1)
		return -1;
	return t;
}

/* Operators often deny INFO and CONFIG: their error replies are no errors here. */
char *
ask_info(struct ctl *c, const char *section, const char *field)
{
	struct redisReply *reply = ask_any(c, "INFO %s", section);
	char *ret = reply_info(reply, field);

	reply_free(reply);
	return ret;
}

char *
ask_memory(struct ctl *c)
{
	struct redisReply *reply = ask_any(c, "INFO memory");
	char *used = reply_info(reply, "used_memory"), *most = reply_info(reply, "maxmemory");
	char *full = advice_memory(strtoull(used, NULL, 10), strtoull(most, NULL, 10));

	reply_free(reply);
	free(used);
	free(most);
	return full;
}

/* A write without effect: no daemon has this key. */
char *
ask_refusal(struct ctl *c)
{
	struct redisReply *reply = ask_any(c, "DEL %s", KEYS_DAEMON_PREFIX);
	char *ret = NULL;

	if (judge_is_refusal(reply_text(reply)))
		ret = xstrdup(reply_text(reply));
	reply_free(reply);
	return ret;
}

char *
ask_config(struct ctl *c, const char *parameter)
{
	struct redisReply *reply = ask_any(c, "CONFIG GET %s", parameter);
	char *ret = xstrdup(or_empty(reply_str(reply_at(reply, 1), NULL)));

	reply_free(reply);
	return ret;
}

/* -- a cluster --------------------------------------------------------------------- */

size_t
ask_masters(struct ctl *c)
{
	if (ctl_connect(c) == -1)
		return 0;
	return sync_masters(c->client);
}

void
ask_master(struct ctl *c, size_t i)
{
	sync_choose(c->client, i);
}

void
ask_master_of(struct ctl *c, const char *key)
{
	if (key == NULL && c->target.name != NULL)
		key = c->target.keys.name[KEY_QUEUE];
	if (ctl_connect(c) == 0)
		sync_choose_key(c->client, or_empty(key));
}

int64_t
ask_heard(struct ctl *c, const char *instance, int64_t heard)
{
	struct redisReply *reply;
	size_t n = 0;

	if (heard == 0)
		n = ask_masters(c);
	for (size_t i = 0; n > 1 && heard == 0 && i < n; i++) {
		ask_master(c, i);
		reply = ask_any(c, "PUBSUB NUMSUB %s%s", KEYS_CONTROL_PREFIX, instance);
		heard = reply_int(reply_at(reply, 1), 0);
		reply_free(reply);
	}
	if (n > 1)
		ask_master_of(c, NULL);
	return heard;
}
