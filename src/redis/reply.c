/*
 * Replies.  Only this file, conn.c and greet.c read hiredis' struct;
 * the rest of the program uses these functions.
 *
 * Errors are recognized by their first word.  Redis before 7 wraps errors inside a
 * script ("ERR Error running script ...: @user_script:3: WRONGTYPE ..."); of those the
 * word after the script's position counts.
 */
#include "redis/reply.h"

#include <ctype.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "base/util.h"
#include "redis/script.h"

static const struct {
	const char		*text;		/* how the error begins */
	enum reply_error	 error;
} reply_errors[] = {
	{ "NOSCRIPT", REPLY_NOSCRIPT },
	{ "LOADING", REPLY_TRANSIENT },
	{ "BUSY", REPLY_TRANSIENT },
	{ "TRYAGAIN", REPLY_TRANSIENT },
	{ "READONLY", REPLY_ELSEWHERE },
	{ "MASTERDOWN", REPLY_ELSEWHERE },
	{ "MOVED", REPLY_ELSEWHERE },
	{ "ASK", REPLY_ELSEWHERE },
	{ "CLUSTERDOWN", REPLY_ELSEWHERE },
	{ "UNBLOCKED", REPLY_ELSEWHERE },
	{ "OOM", REPLY_REFUSED },
	{ "MISCONF", REPLY_REFUSED },
	{ "NOREPLICAS", REPLY_REFUSED },
	{ "NOAUTH", REPLY_DENIED },
	{ "WRONGPASS", REPLY_DENIED },
	{ "NOPERM", REPLY_DENIED },
	{ "DENIED", REPLY_DENIED },
	{ "ERR max number of clients", REPLY_DENIED },
	{ "ERR invalid password", REPLY_DENIED },
	{ "ERR AUTH", REPLY_DENIED },
	{ "The user executing the script can't", REPLY_DENIED },	/* Redis 6 */
	{ "ERR The user executing the script can't", REPLY_DENIED },	/* Redis 7 */
	{ "ERR ACL failure in script", REPLY_DENIED },		/* Redis 8 */
	{ "ERR Client sent AUTH", REPLY_DENIED },
	{ "WRONGTYPE", REPLY_WRONGTYPE },
};

enum reply_error
reply_error_of_text(const char *text)
{
	for (size_t i = 0; i < ARRAY_LEN(reply_errors); i++) {
		size_t len = strlen(reply_errors[i].text);

		if (strncmp(text, reply_errors[i].text, len) == 0 &&
		    !isalnum((unsigned char)text[len]))
			return reply_errors[i].error;
	}
	return REPLY_OTHER;
}

/* Whether the user's ACL lacks something; two texts are those of scripts. */
static bool
reply_lacks_acl(const char *text)
{
	static const char *const words[] = {
		"NOPERM", "The user executing the script can't",
		"ACL failure in script"
	};

	if (reply_error_of_text(text) != REPLY_DENIED)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		if (strstr(text, words[i]) != NULL)
			return true;
	}
	return false;
}

/*
 * The error inside a script, which follows "@user_script: 3: "; otherwise text.  Redis 6
 * writes that twice before an error of its own, and "-" after it.
 */
static const char *
reply_script_error(const char *text)
{
	static const char where[] = "@user_script:";
	const char *p = strstr(text, where);

	if (p == NULL || (p != text && strncmp(text, "ERR ", 4) != 0))
		return text;
	for (; strncmp(p, where, sizeof(where) - 1) == 0; p += strspn(p, " -")) {
		p += sizeof(where) - 1;
		p += strspn(p, " 0123456789");
		if (*p++ != ':')
			return text;
	}
	return p;
}

enum reply_error
reply_error(const struct redisReply *r)
{
	if (r == NULL)
		return REPLY_OK;
	if (r->type == REDIS_REPLY_ERROR)
		return reply_error_of_text(reply_script_error(reply_text(r)));
	for (size_t i = 0; i < reply_len(r); i++) {
		const struct redisReply *e = reply_at(r, i);

		if (e != NULL && e->type == REDIS_REPLY_ERROR)
			return reply_error(e);
	}
	return REPLY_OK;
}

bool
reply_is_redirection(const struct redisReply *r)
{
	static const char *const words[] = { "MOVED ", "ASK ", "TRYAGAIN ", "CLUSTERDOWN " };

	if (r == NULL || r->type != REDIS_REPLY_ERROR || strstr(r->str, "@user_script") != NULL)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		if (strncmp(r->str, words[i], strlen(words[i])) == 0)
			return true;
	}
	return false;
}

const char *
reply_text(const struct redisReply *r)
{
	if (r == NULL || r->str == NULL ||
	    (r->type != REDIS_REPLY_ERROR && r->type != REDIS_REPLY_STATUS))
		return "";
	return r->str;
}

/*
 * The length of an error's first line without what Redis adds: " script: SHA, on
 * @user_script:LINE."  Redis 8 also has " script: " in the error itself.
 */
static size_t
cause_len(const char *text)
{
	size_t line = strcspn(text, "\r\n");
	const char *p = text;

	while ((p = strstr(p, " script: ")) != NULL && (size_t)(p - text) < line) {
		const char *sha = p + strlen(" script: ");

		if (sha[strspn(sha, "0123456789abcdef")] == ',')
			return (size_t)(p - text);
		p = sha;
	}
	return line;
}

/*
 * The command in the line of a script that an error names.  Redis before 7.2 does not name the
 * command that it denied.
 */
static void
script_command(const struct script *s, const char *error, char *buf, size_t size)
{
	static const char where[] = "@user_script:";
	const char *at = strstr(error, where), *p = s->text, *end;
	int n = 0;

	buf[0] = '\0';
	if (at == NULL)
		return;
	for (long line = strtol(at + strlen(where), NULL, 10); line > 1; line--) {
		if ((p = strchr(p, '\n')) == NULL)
			return;
		p++;
	}

	/* The line has no second one: see tests/lint/30-lua.t. */
	end = p + strcspn(p, "\n");
	if ((p = strstr(p, "call(\'")) == NULL || p >= end)
		return;
	p += strlen("call(\'");
	while (isupper((unsigned char)p[n]))
		n++;
	if (p[n] == '\'')
		snprintf(buf, size, "%.*s", n, p);
}

const char *
reply_script_cause(const struct script *s, const char *error, char *buf, size_t size)
{
	const char *text = reply_script_error(error);
	const char *advice = "";
	size_t len = cause_len(text);
	char command[32] = "";

	if (reply_lacks_acl(text)) {
		advice = "; repeat rqctl acl, and give its output to redis-cli";
		if (s != NULL && strstr(text, " run the '") == NULL)
			script_command(s, error, command, sizeof(command));
	} else if (strncmp(text, "CROSSSLOT", strlen("CROSSSLOT")) == 0) {
		advice = "; this server is a node of a Redis Cluster: write "
		    "redis.cluster in place of redis.server";
	}
	snprintf(buf, size, "%s%s%.*s%s", command, command[0] != '\0' ? ": " : "",
	    len < size ? (int)len : (int)size, text, advice);
	return buf;
}

const char *
reply_cause(const struct redisReply *r, char *buf, size_t size)
{
	const char *error = r != NULL && r->type == REDIS_REPLY_ERROR ? r->str :
	    "an unexpected reply";
	const struct script *s = script_table;

	while (s->name != NULL && (s->sha[0] == '\0' || strstr(error, s->sha) == NULL))
		s++;
	return reply_script_cause(s->name != NULL ? s : NULL, error, buf, size);
}

const char *
reply_hint(const char *cause)
{
	static const struct { const char *text, *hint, *sentinel; } hints[] = {
		{ "Connection refused", "is Redis running there? Start it, or correct "
		    "the address", "are Sentinels running there? Start them, or correct "
		    "redis.sentinel" },
		{ "NOAUTH", "write the password into a file, and its name into "
		    "redis.password_file", "write the Sentinels' password into a file, and its "
		    "name into redis.sentinel_password_file" },
		{ "WRONGPASS", "compare redis.username and the file redis.password_file with "
		    "the settings of Redis", "compare redis.sentinel_username and the file "
		    "redis.sentinel_password_file with the settings of the Sentinels" },
		{ "invalid password", "compare the file redis.password_file with requirepass of "
		    "Redis", "compare the file redis.sentinel_password_file with requirepass of "
		    "the Sentinels" },
		{ "NOPERM", "see Permissions in rqd(8)", "see sentinel_username in rqd.conf(5)" },
		{ "MOVED ", "this server is a node of a Redis Cluster: write redis.cluster in "
		    "place of redis.server", NULL },
		{ "cluster support disabled", "this server is no Redis Cluster: write "
		    "redis.server in place of redis.cluster", NULL },
	};
	bool sentinel = strncmp(cause, "Sentinel", strlen("Sentinel")) == 0;

	for (size_t i = 0; i < ARRAY_LEN(hints); i++) {
		if (strstr(cause, hints[i].text) != NULL)
			return sentinel ? hints[i].sentinel : hints[i].hint;
	}
	return NULL;
}

bool
reply_is_array(const struct redisReply *r)
{
	return r != NULL && r->type == REDIS_REPLY_ARRAY;
}

size_t
reply_len(const struct redisReply *r)
{
	return reply_is_array(r) && r->element != NULL ? r->elements : 0;
}

const struct redisReply *
reply_at(const struct redisReply *r, size_t i)
{
	return i < reply_len(r) ? r->element[i] : NULL;
}

bool
reply_is_nil(const struct redisReply *r)
{
	return r == NULL || r->type == REDIS_REPLY_NIL;
}

const char *
reply_str(const struct redisReply *r, size_t *len)
{
	bool is_string = r != NULL && r->type == REDIS_REPLY_STRING && r->str != NULL;

	if (len != NULL)
		*len = is_string ? r->len : 0;
	return is_string ? r->str : NULL;
}

int64_t
reply_int(const struct redisReply *r, int64_t otherwise)
{
	size_t len;
	const char *s = reply_str(r, &len);
	char *end;
	long long n;

	if (r != NULL && r->type == REDIS_REPLY_INTEGER)
		n = r->integer;
	else if (len > 0 && (isdigit((unsigned char)s[0]) ||
	    (s[0] == '-' && isdigit((unsigned char)s[1])))) {
		n = strtoll(s, &end, 10);
		if (end != s + len)
			return otherwise;
	} else
		return otherwise;
	return n >= -REPLY_INT_MAX && n <= REPLY_INT_MAX ? n : otherwise;
}

double
reply_double(const struct redisReply *r, double otherwise)
{
	static locale_t c;	/* whatever the process has set */
	const char *s;
	char *end;
	double d;
	size_t len;

	if (r != NULL && r->type == REDIS_REPLY_INTEGER)
		return (double)r->integer;
	if ((s = reply_str(r, &len)) == NULL || len == 0)
		return otherwise;
	if (strcmp(s, "inf") != 0 && strcmp(s, "-inf") != 0 &&
	    strspn(s, "0123456789+-.eE") != len)
		return otherwise;
	if (c == (locale_t)0)
		c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	d = c == (locale_t)0 ? strtod(s, &end) : strtod_l(s, &end, c);
	return end == s + len ? d : otherwise;
}

/* -- fields -------------------------------------------------------------------- */

bool
reply_has(const struct redisReply *r, const char *form)
{
	const struct redisReply *e;
	bool fits = true;
	size_t len;

	for (size_t i = 0; fits && form[i] != 0; i++) {
		e = reply_at(r, i);
		if (form[i] == FIELD_STR)
			fits = reply_str(e, NULL) != NULL;
		else if (form[i] == FIELD_INT)
			fits = reply_int(e, 0) == reply_int(e, 1);
		else
			fits = !isnan(reply_double(e, NAN)) || (form[i] == FIELD_TIME &&
			    reply_str(e, &len) != NULL && len == 0);
	}
	return fits;
}

const char *
reply_str_at(const struct redisReply *r, size_t i)
{
	return reply_str(reply_at(r, i), NULL);
}

int64_t
reply_int_at(const struct redisReply *r, size_t i)
{
	return reply_int(reply_at(r, i), 0);
}

double
reply_double_at(const struct redisReply *r, size_t i)
{
	return reply_double(reply_at(r, i), 0);
}

char *
reply_info(const struct redisReply *r, const char *field)
{
	char *line = xasprintf("\n%s:", field), *value;
	const char *text = reply_str(r, NULL), *p = text != NULL ? strstr(text, line) : NULL;

	p = p != NULL ? p + strlen(line) : "";
	value = xstrndup(p, strcspn(p, "\r\n"));
	free(line);
	return value;
}

/* -- taking -------------------------------------------------------------------- */

char *
reply_take(const struct redisReply *r, size_t *len)
{
	struct redisReply *w = (struct redisReply *)(uintptr_t)r;
	char *s;

	if (reply_str(r, len) == NULL)
		return NULL;
	s = w->str;
	w->str = NULL;
	w->len = 0;
	return s;
}

struct redisReply *
reply_steal(const struct redisReply *r)
{
	struct redisReply *from = (struct redisReply *)(uintptr_t)r;
	struct redisReply *to = xmemdup(from, sizeof(*from));

	*from = (struct redisReply){ .type = REDIS_REPLY_NIL };
	return to;
}

void
reply_free(struct redisReply *r)
{
	if (r != NULL)
		freeReplyObject(r);
}
