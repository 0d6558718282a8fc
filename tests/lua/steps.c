/* The interpreter of steps; see steps.h. */
#include "steps.h"

#include <ctype.h>

#include "base/buf.h"
#include "redis/reply.h"

#define HAD_MAX		4096

struct rig		rig;

static struct popped	had[HAD_MAX];
static int		nhad, repetition;
static unsigned		calls;
static char		call[24];		/* the last pop's */
static struct buf	answer;			/* of the last step: words, bytes escaped */
static const char	*status = "";		/* of the last pop */
static struct ticked	ticked;
static char		*turn, *member, *tell, *lists[4], digest[48];
static unsigned		score;			/* of the last id that was produced */

/* -- words ---------------------------------------------------------------------------- */

/* Adds a word to the answer, so that it has no blank and no odd byte. */
static void
say(const char *s, size_t len)
{
	if (answer.len > 0)
		buf_addc(&answer, ' ');
	if (len == 0)
		buf_puts(&answer, "\"\"");
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s[i];

		if (c == ' ')
			buf_puts(&answer, "\\s");
		else if (c < ' ' || c >= 127)
			buf_printf(&answer, "\\x%02x", c);
		else
			buf_addc(&answer, (char)c);
	}
}

static void
say_number(long long n)
{
	char text[24];

	say(text, (size_t)snprintf(text, sizeof(text), "%lld", n));
}

static void
say_text(const char *s)
{
	say(s, strlen(s));
}

static void
say_reply(const redisReply *r)
{
	if (r == NULL)
		say_text(rig.error);
	else if (r->type == REDIS_REPLY_INTEGER)
		say_number(r->integer);
	else if (r->type == REDIS_REPLY_NIL)
		say_text("nil");
	else if (r->type != REDIS_REPLY_ARRAY)
		say(r->str, r->len);
	else
		for (size_t i = 0; i < r->elements; i++)
			say_reply(r->element[i]);
}

static const struct popped *
delivery(const char *number)
{
	int i = atoi(number);

	if (i >= nhad)
		fail_msg("there is no delivery %d", i);
	return &had[i];
}

/* The bytes of a word; see the head of steps.h. */
static void
expand(const char *word, struct buf *b)
{
	bool ms = strncmp(word, "ms", 2) == 0;
	enum key k;

	if (strcmp(word, "\"\"") == 0)
		return;
	for (k = 0; word[0] == 'Q' && k < KEY_MAX; k++)
		if (strcmp(word + 1, keys_suffix(k)) == 0) {
			buf_puts(b, rig_key(&rig, k));
			return;
		}
	if (word[0] == '#' && word[1] != '\0') {
		buf_puts(b, "{\"id\":");
		expand(word + 1, b);
		buf_addc(b, '}');
		return;
	}
	if (word[0] == '@' && isdigit((unsigned char)word[1])) {
		for (int n = atoi(word + 1); n > 0; n--)
			buf_addc(b, 'x');
		return;
	}
	if ((ms || strncmp(word, "now", 3) == 0) &&
	    (word[ms ? 2 : 3] == '+' || word[ms ? 2 : 3] == '-')) {
		buf_printf(b, ms ? "%.0f" : "%.6f",
		    (rig_now(&rig) + atof(word + (ms ? 2 : 3))) * (ms ? 1000 : 1));
		return;
	}
	for (; *word != '\0'; word++) {
		if (strncmp(word, "~n", 2) == 0) {
			buf_printf(b, "%d", repetition);
			word++;
		} else if ((word[0] == '$' || word[0] == '%') && isdigit((unsigned char)word[1])) {
			const struct popped *p = delivery(word + 1);

			if (word[0] == '$')
				buf_add(b, p->tag, p->taglen);
			else
				buf_puts(b, p->token);
			word += strspn(word + 1, "0123456789");
		} else if (word[0] == '\\' && word[1] == 'x') {
			char hex[3] = { word[2], word[3], '\0' };

			buf_addc(b, (char)strtol(hex, NULL, 16));
			word += 3;
		} else if (word[0] == '\\' && strchr("0ns", word[1]) != NULL) {
			buf_addc(b, *++word == '0' ? '\0' : *word == 'n' ? '\n' : ' ');
		} else {
			buf_addc(b, *word);
		}
	}
}

static void
split(const char *text, struct words *w)
{
	char *copy = xstrdup(text), *rest = copy, *word;

	while ((word = strsep(&rest, " \t")) != NULL) {
		struct buf b = BUF_INIT;

		if (*word == '\0')
			continue;
		expand(word, &b);
		(void)buf_str(&b);
		words_own(w, b.data, b.len);
	}
	free(copy);
}

/* The word of an answer with * for any bytes. */
static bool
fits(const char *want, const char *is)
{
	for (; *want != '*'; want++, is++) {
		if (*want != *is)
			return false;
		if (*want == '\0')
			return true;
	}
	do
		if (fits(want + 1, is))
			return true;
	while (*is++ != '\0');
	return false;
}

static bool
word_fits(const char *want, const char *is)
{
	const char *dots = strstr(want, "..");
	struct words w = { 0 };
	struct buf was = answer;
	char *from, *text;
	bool rc;

	answer = (struct buf)BUF_INIT;
	if (dots != NULL && dots > want) {
		from = xasprintf("%.*s %s", (int)(dots - want), want, dots + 2);
		split(from, &w);
		rc = w.n == 2 && atof(is) >= atof(w.v[0]) && atof(is) <= atof(w.v[1]);
		free(from);
	} else {
		split(want, &w);
		say(w.v[0], w.len[0]);
		text = buf_steal(&answer);
		rc = fits(text, is);
		free(text);
	}
	words_done(&w);
	answer = was;
	return rc;
}

static bool
answer_fits(const char *want)
{
	char *a = xstrdup(want), *b = xstrdup(buf_str(&answer)), *wants = a, *is = b, *x, *y;
	bool rc = true;

	do {
		while ((x = strsep(&wants, " ")) != NULL && *x == '\0')
			;
		while ((y = strsep(&is, " ")) != NULL && *y == '\0')
			;
		if (x != NULL && strcmp(x, "...") == 0)
			break;
		rc = (x == NULL) == (y == NULL) && (x == NULL || word_fits(x, y));
	} while (rc && x != NULL);
	free(a);
	free(b);
	return rc;
}

/* -- verbs ---------------------------------------------------------------------------- */

/* The ith word, or this one where there are fewer. */
static const char *
word(const struct words *w, int i, const char *otherwise)
{
	return i < w->n ? w->v[i] : otherwise;
}

static void
do_add(const struct words *w)
{
	for (int i = 0; i < w->n; i++) {
		if (rig.consumer != NULL)
			rig_do(&rig, "XADD %s * message %b", rig_key(&rig, KEY_QUEUE), w->v[i],
			    w->len[i]);
		else if (rig.unique)
			rig_do(&rig, "ZADD %s %u %b", rig_key(&rig, KEY_QUEUE), ++score, w->v[i],
			    w->len[i]);
		else
			rig_do(&rig, "%s %s %b", rig.left ? "RPUSH" : "LPUSH",
			    rig_key(&rig, KEY_QUEUE), w->v[i], w->len[i]);
	}
}

static void
do_pop(const struct words *w)
{
	int n = atoi(word(w, 0, "1")), got;
	struct buf b = BUF_INIT;

	snprintf(call, sizeof(call), "i.%u", ++calls);
	status = "";
	if (nhad + n > HAD_MAX)
		fail_msg("too many deliveries");
	got = rig_pop(&rig, n, atoll(word(w, 1, "1048576")), atoll(word(w, 2, "16777216")), call,
	    atof(word(w, 3, "0")), had + nhad, &status);
	if (got < 0)
		say_text(rig.error);
	for (; got > 0; got--) {
		const struct popped *p = &had[nhad++];

		buf_clear(&b);
		buf_add(&b, p->tag, p->taglen);
		if (p->attempts + p->crashes > 0)
			buf_printf(&b, "/%lld/%lld", p->attempts, p->crashes);
		if (p->mark != NULL)
			buf_printf(&b, "!%s", p->mark);
		if (p->payload == NULL)
			buf_printf(&b, "(%zu)", p->len);
		if (p->saved != NULL)
			buf_printf(&b, "+%s", p->saved);
		say(b.data, b.len);
	}
	buf_done(&b);
}

static void
do_popped(const struct words *w)
{
	const char *what = word(w, 0, "");
	const struct popped *p = w->n > 1 ? delivery(w->v[1]) : NULL;

	if (p != NULL && strcmp(what, "idlen") == 0)
		say_number((long long)p->idlen);
	else if (p != NULL)
		say(p->payload, p->len);
	else if (strcmp(what, "taken") == 0)
		say_number(rig.taken);
	else if (strcmp(what, "due") == 0)
		buf_printf(&answer, "%.3f", rig.popped_due - rig.popped_now);
	else
		say_text(strcmp(what, "limited") == 0 ? rig.limited : status);
}

/* Of a result that was not done. */
static void
say_error(const char *text)
{
	if (strncmp(text, "error ", 6) != 0)
		return;
	snprintf(rig.error, sizeof(rig.error), "%s", text);
	(void)reply_script_cause(rig.script, text + 6, rig.cause, sizeof(rig.cause));
}

static void
do_settle(const struct words *w)
{
	const char *text = rig_settle(&rig, word(w, 1, ""), delivery(word(w, 0, "0")),
	    word(w, 2, "0"));

	say_text(text != NULL ? text : rig.error);
	say_error(text != NULL ? text : "");
}

static void
do_settles(const struct words *w)
{
	struct words all = { 0 };
	redisReply *r;

	rig_settle_begin(&rig, &all);
	for (int i = 0; i < w->n; i++)
		words_mem(&all, w->v[i], w->len[i]);
	r = rig_settle_script(&rig, &all);
	say_reply(r);
	for (size_t i = 2; r != NULL && i < r->elements; i++)
		say_error(r->element[i]->str);
	freeReplyObject(r);
}

static void
do_to(const struct words *w)
{
	rig.more = (const char *const *)lists;
	rig.nmore = (size_t)w->n;
	for (int i = 0; i < w->n; i++)
		xreplace(&lists[i], w->v[i]);
}

static void
do_renew(const struct words *w)
{
	int n = rig_renew(&rig, delivery(word(w, 0, "0")));

	if (n == -99)
		say_text(rig.error);
	else
		say_number(n);
}

static void
do_cancel(const struct words *w)
{
	const char *state = rig_cancel(&rig, word(w, 0, "drop"), w->v[1], w->len[1]);

	say_text(state != NULL ? state : rig.error);
}

static void
do_reclaim(const struct words *w)
{
	int n = rig_reclaim(&rig, word(w, 2, call), atoi(word(w, 1, "10")),
	    strcmp(word(w, 0, "0"), "1") == 0);

	if (n < 0)
		say_text(rig.error);
	else
		say_number(n);
}

/* The value of NAME=VALUE among the words. */
static const char *
option(const struct words *w, const char *name, const char *otherwise)
{
	size_t len = strlen(name);

	for (int i = 0; i < w->n; i++)
		if (strncmp(w->v[i], name, len) == 0 && w->v[i][len] == '=')
			return w->v[i] + len + 1;
	return otherwise;
}

/* Makes one tick; adds what it did to the sums. */
static int
tick(const struct words *w, bool on, long long sums[3])
{
	char cursor[24];
	const char *sent = option(w, "sent", NULL);
	int rc;

	snprintf(cursor, sizeof(cursor), "%s", on && ticked.cursor[0] != '\0' ? ticked.cursor :
	    option(w, "cursor", ""));
	rig.dead_max_age = atof(option(w, "age", "0"));
	if (!on)
		ticked.rank = 0;
	rc = rig_tick(&rig, atof(option(w, "lease", "60")), atof(option(w, "foreign", "60")),
	    strcmp(option(w, "judge", "1"), "1") == 0,
	    sent == NULL ? 1e12 : sent[0] == '@' ? atof(sent + 1) : rig_now(&rig) + atof(sent),
	    atoi(option(w, "batch", "250")), atoll(option(w, "bytes", "1048576")), ticked.rank,
	    cursor[0] != '\0' && strcmp(option(w, "cursor", ""), "") != 0 ? cursor : NULL, &ticked);
	sums[0] += ticked.requeued;
	sums[1] += ticked.promoted;
	sums[2] += ticked.dropped;
	return rc;
}

static void
say_ticked(int rc, const long long sums[3], long long more, long long steps)
{
	const struct { const char *name; long long n; } fields[] = {
		{ "requeued", sums[0] }, { "promoted", sums[1] }, { "dropped", sums[2] },
		{ "more", more }, { "others", ticked.others }, { "steps", steps },
	};

	if (rc == -1)
		say_text(rig.error);
	for (size_t i = 0; i < ARRAY_LEN(fields) && rc == 0; i++)
		if (fields[i].n != 0)
			buf_printf(&answer, "%s%s:%lld", answer.len > 0 ? " " : "", fields[i].name,
			    fields[i].n);
}

static void
do_tick(const struct words *w)
{
	long long sums[3] = { 0 };
	int rc = tick(w, false, sums);

	say_ticked(rc, sums, ticked.more, 0);
}

static void
do_ticks(const struct words *w)
{
	long long sums[3] = { 0 }, steps = 0;
	int rc;

	ticked.scan[0] = ticked.cursor[0] = '\0';
	do
		rc = tick(w, steps > 0, sums);
	while (rc == 0 && ++steps < 2000 && (ticked.more != 0 || ticked.scan[0] != '\0' ||
	    (option(w, "cursor", NULL) != NULL && strcmp(ticked.cursor, "0") != 0)));
	say_ticked(rc, sums, 0, steps);
}

static void
do_ticked(const struct words *w)
{
	const struct { const char *name, *text; long long n; } fields[] = {
		{ "expires", ticked.expires, 0 }, { "due", ticked.due, 0 },
		{ "delayed", ticked.delayed, 0 }, { "cursor", ticked.cursor, 0 },
		{ "scan", ticked.scan, 0 }, { "warning", ticked.warning, 0 },
		{ "waiting", NULL, ticked.waiting }, { "taken", NULL, ticked.taken },
	};

	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		if (strcmp(word(w, 0, ""), fields[i].name) == 0) {
			if (fields[i].text != NULL)
				say_text(fields[i].text);
			else
				say_number(fields[i].n);
		}
}

static void
do_call(const struct words *w)
{
	struct words args = { 0 };
	redisReply *r;

	for (int i = 2; i < w->n; i++)
		words_mem(&args, w->v[i], w->len[i]);
	/* The letter Q alone was taken for the key. */
	r = rig_script(&rig, w->v[0], strcmp(word(w, 1, ""), rig_key(&rig, KEY_QUEUE)) == 0 ? "Q" :
	    word(w, 1, ""), &args);
	say_reply(r);
	freeReplyObject(r);
}

static void
age(enum key k, void (*fn)(struct rig *, const char *, size_t))
{
	redisReply *r = rig_command(&rig, "ZRANGE %s 0 -1", rig_key(&rig, k));

	for (size_t i = 0; i < r->elements; i++)
		fn(&rig, r->element[i]->str, r->element[i]->len);
	freeReplyObject(r);
}

void
steps_age(void)
{
	redisReply *r;

	age(KEY_BACKUP, rig_expire);
	age(KEY_RETRY, rig_fall_due);
	/* The next tick looks at the groups. */
	freeReplyObject(rig_command(&rig, "HDEL %s groups", rig_key(&rig, KEY_STATS)));
	if (rig.consumer == NULL)
		return;
	r = rig_command(&rig, "XPENDING %s rqd - + 100", rig_key(&rig, KEY_QUEUE));
	for (size_t i = 0; r->type == REDIS_REPLY_ARRAY && i < r->elements; i++)
		rig_idle(&rig, r->element[i]->element[0]->str, r->element[i]->element[0]->len);
	freeReplyObject(r);
}

/* The limits of further pops, and what they take first. */
static void
do_limits(const struct words *w)
{
	free(turn);
	turn = option(w, "turn", NULL) != NULL ? xstrdup(option(w, "turn", NULL)) : NULL;
	for (char *p = turn; p != NULL && *p != '\0'; p++)
		*p = *p == ',' ? ' ' : *p;
	rig.turn = turn;
	free(member);
	member = option(w, "id", NULL) != NULL ? xstrdup(option(w, "id", NULL)) : NULL;
	rig.id = member;
	free(tell);
	tell = option(w, "tell", NULL) != NULL ? xstrdup(option(w, "tell", NULL)) : NULL;
	rig.tell = tell;
	rig.left = strcmp(option(w, "end", "right"), "left") == 0;
	rig.fleet = atoi(option(w, "fleet", "0"));
	rig.gap = atof(option(w, "gap", "0"));
	rig.slack = atof(option(w, "slack", "0"));
	rig.max_crashes = atoi(option(w, "crashes", "1000000"));
	rig.places = atoi(option(w, "places", "1"));
}

/* The verbs that take a few lines; false: it is none of these. */
static bool
small_verb(const char *verb, const struct words *w)
{
	void (*of_tag)(struct rig *, const char *, size_t) =
	    strcmp(verb, "expire") == 0 ? rig_expire : strcmp(verb, "due") == 0 ? rig_fall_due :
	    strcmp(verb, "idle") == 0 ? rig_idle : NULL;
	char is[48];

	for (int i = 0; of_tag != NULL && i < w->n; i++)
		of_tag(&rig, w->v[i], w->len[i]);
	if (of_tag != NULL)
		return true;
	if (strcmp(verb, "limits") == 0) {
		do_limits(w);
	} else if (strcmp(verb, "age") == 0) {
		steps_age();
	} else if (strcmp(verb, "live") == 0) {
		say_number(rig_live(&rig, w->v[0], w->len[0]));
	} else if (strcmp(verb, "dead") == 0) {
		say_number(rig_dead(&rig, w->v[0], w->len[0]));
	} else if (strcmp(verb, "clean") == 0) {
		rig_check_clean(&rig);
	} else if (strcmp(verb, "left") == 0) {
		say_number(rig_left(&rig));
	} else if (strcmp(verb, "deny") == 0) {
		rig_connect(&rig, "");
		rig_do(&rig, "ACL SETUSER few reset on >x ~* &* +@all -%s", w->v[0]);
		rig_connect(&rig, "few");
	} else if (strcmp(verb, "allow") == 0) {
		rig_connect(&rig, "");
	} else if (strcmp(verb, "mark") == 0) {
		rig_digest(&rig, digest);
	} else if (strcmp(verb, "unchanged") == 0) {
		rig_digest(&rig, is);
		if (strcmp(is, digest) != 0)
			say_text("ERR something has changed");
	} else if (strcmp(verb, "sleep") == 0) {
		usleep((useconds_t)atoi(w->v[0]) * 1000);
	} else {
		return false;
	}
	return true;
}

static const struct verb {
	const char	*name;
	void		(*fn)(const struct words *);
} verbs[] = {
	{ "add", do_add }, { "pop", do_pop }, { "popped", do_popped }, { "settle", do_settle },
	{ "settles", do_settles }, { "to", do_to }, { "renew", do_renew },
	{ "cancel", do_cancel }, { "reclaim", do_reclaim }, { "tick", do_tick },
	{ "ticks", do_ticks }, { "ticked", do_ticked }, { "call", do_call },
};

/* -- steps ---------------------------------------------------------------------------- */

/* Runs a step that has no "="; its answer is in `answer`. */
static void
run(const char *text)
{
	struct words w = { 0 };
	char name[24];
	size_t n = strcspn(text, " "), i;
	redisReply *r;

	buf_clear(&answer);
	snprintf(name, sizeof(name), "%.*s", (int)n, text);
	for (i = 0; i < ARRAY_LEN(verbs) && strcmp(verbs[i].name, name) != 0; i++)
		;
	split(text + n, &w);
	if (i < ARRAY_LEN(verbs)) {
		verbs[i].fn(&w);
	} else if (!small_verb(name, &w)) {
		words_clear(&w);
		split(text, &w);
		r = redisCommandArgv(rig.c, w.n, w.v, w.len);
		if (r == NULL)
			fail_msg("%s: %s", text, rig.c->errstr);
		if (r->type == REDIS_REPLY_ERROR)
			snprintf(rig.error, sizeof(rig.error), "%s", r->str);
		say_reply(r);
		freeReplyObject(r);
	}
	words_done(&w);
}

static int
step(const struct section *s, char *text, bool may_fail)
{
	char *want = strstr(text, " ="), *more;
	int times = 1;
	bool until = strncmp(text, "until ", 6) == 0;

	if (want != NULL && (want[2] == ' ' || want[2] == '\0')) {
		*want = '\0';
		want += 2;
	} else {
		want = NULL;
	}
	if (until) {
		text += 6;
		times = 10000;
	} else if (strncmp(text, "times ", 6) == 0) {
		times = (int)strtol(text + 6, &more, 10);
		text = more + 1;
	}
	for (repetition = 0; repetition < times; repetition++) {
		rig.error[0] = '\0';
		run(text);
		if (until && answer_fits(want))
			return 0;
		if (may_fail || until || (want == NULL ? rig.error[0] == '\0' &&
		    strncmp(buf_str(&answer), "ERR", 3) != 0 : answer_fits(want)))
			continue;
		print_message("# %s: %s (line %d, %s): \"%s\"%s%s answers: %.2000s\n", s->file,
		    s->name, s->line, rig.consumer != NULL ? "stream" : rig.unique ? "ids" :
		    rig.by != NULL ? "groups" : "list",
		    text, want != NULL ? " must answer:" : "", want != NULL ? want : "",
		    buf_str(&answer));
		return -1;
	}
	return until ? -1 : 0;
}

int
steps_run(const struct section *s, const char *text, bool may_fail)
{
	char *copy = xstrdup(text), *rest = copy, *line, *one, *next;
	char error[sizeof(rig.error)] = "";
	int rc = 0;

	while (rc == 0 && (line = strsep(&rest, "\n")) != NULL) {
		for (one = line; rc == 0 && one != NULL; one = next) {
			if ((next = strstr(one, "; ")) != NULL) {
				*next = '\0';
				next += 2;
			}
			one += strspn(one, " \t");
			if (*one == '\0' || strncmp(one, "# ", 2) == 0)
				break;
			rc = step(s, one, may_fail);
			if (rig.error[0] != '\0')
				memcpy(error, rig.error, sizeof(error));
		}
	}
	memcpy(rig.error, error, sizeof(error));
	free(copy);
	return rc;
}

void
steps_reset(unsigned kind)
{
	struct words none = { 0 };

	rig_connect(&rig, "");
	rig_do(&rig, "CONFIG SET maxmemory 0");
	rig_do(&rig, "FLUSHALL");
	rig_popped_done(had, nhad);
	nhad = 0;
	calls = score = 0;
	rig.unique = kind == OF_IDS;
	rig.consumer = kind == OF_STREAM ? "me" : NULL;
	rig.by = kind == OF_GROUPS ? "g" : NULL;
	do_limits(&none);
	rig.nmore = 0;
	ticked = (struct ticked){ .scan = "" };
}

int
steps_had(void)
{
	return nhad;
}

/* -- files ---------------------------------------------------------------------------- */

static unsigned
kinds_of(const char *words)
{
	return (strstr(words, "list") != NULL ? OF_LIST : 0) |
	    (strstr(words, "ids") != NULL ? OF_IDS : 0) |
	    (strstr(words, "stream") != NULL ? OF_STREAM : 0) |
	    (strstr(words, "groups") != NULL ? OF_GROUPS : 0) |
	    (strstr(words, "all") != NULL ? OF_ALL : 0);
}

struct section *
steps_open(const char *name, size_t *n)
{
	const char *dir = getenv("SRCDIR");
	char *path = xasprintf("%s/tests/lua/%s.steps", dir != NULL ? dir : ".", name), *colon;
	struct section *all = NULL, *s = NULL;
	FILE *f = fopen(path, "r");
	char *line = NULL, *was;
	size_t size = 0;
	int number = 0;

	if (f == NULL)
		fail_msg("cannot open %s", path);
	*n = 0;
	while (getline(&line, &size, f) > 0) {
		number++;
		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, "== ", 3) == 0 && (colon = strchr(line, ':')) != NULL) {
			*colon = '\0';
			s = APPEND(all, *n);
			*s = (struct section){ .file = xstrdup(name), .name = xstrdup(colon + 2),
			    .flags = xstrdup(line), .kinds = kinds_of(line),
			    .line = number, .text = xstrdup("") };
		} else if (s != NULL && strcmp(line, "--") == 0) {
			s->then = xstrdup("");
		} else if (s != NULL) {
			char **to = s->then != NULL ? &s->then : &s->text;

			was = *to;
			*to = xasprintf("%s%s\n", was, line);
			free(was);
		}
	}
	free(line);
	fclose(f);
	free(path);
	return all;
}

void
steps_close(struct section *all, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(all[i].file);
		free(all[i].name);
		free(all[i].flags);
		free(all[i].text);
		free(all[i].then);
	}
	free(all);
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		xreplace(&lists[i], NULL);
	buf_done(&answer);
}
