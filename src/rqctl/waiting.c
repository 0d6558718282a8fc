/* Reads pages of messages; see waiting.h. */
#include "rqctl/waiting.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "policy/message.h"

/* A token is INSTANCE.CALL.NUMBER. */
void
delivery_instance(const char *token, char ret[DELIVERY_INSTANCE])
{
	const char *end = strrchr(token, '.');

	ret[0] = '\0';
	while (end != NULL && end > token && *--end != '.')
		;
	if (end == NULL || end == token)
		return;
	snprintf(ret, DELIVERY_INSTANCE, "%.*s", (int)(end - token), token);
}

void
delivery_parse(const char *text, struct delivery_info *d)
{
	const char *bare, *who, *last;
	int at = 0;
	char token[256];

	memset(d, 0, sizeof(*d));
	if (text == NULL || sscanf(text, "%9ld %9ld %255s %lf %n%zu", &d->attempts, &d->crashes,
	    token, &d->time, &at, &d->idlen) != 5) {
		memset(d, 0, sizeof(*d));
		return;
	}
	/* The mark of cancel.lua: "!drop:WHO:TOKEN", or dead or retry.  "WHO:" is optional. */
	who = strchr(token, ':');
	last = strrchr(token, ':');
	d->ours = true;
	d->saves = text[at] == '0' && d->idlen > 0;
	if (d->saves && (text = strchr(text + at, '\n')) != NULL)
		d->saved = text + 1;
	d->cancelled = token[0] == '!' && who != NULL;
	if (d->cancelled && last > who)
		snprintf(d->by, sizeof(d->by), "%.*s", (int)(last - who - 1), who + 1);
	bare = token;
	if (d->cancelled)
		bare = last + 1;
	d->owned = strcmp(bare, "-") != 0;
	delivery_instance(bare, d->instance);
}

/* Returned by peek.lua. */
enum { PEEK_NOW, PEEK_FROM, PEEK_OFFSET, PEEK_MORE, PEEK_FIELDS };
static const char peek_form[] = {
	[PEEK_NOW] = FIELD_NUMBER, [PEEK_FROM] = FIELD_STR, [PEEK_OFFSET] = FIELD_INT,
	[PEEK_MORE] = FIELD_INT, [PEEK_FIELDS] = 0
};
/* Returned by peek.lua for each message. */
enum {
	PEEKED_SCORE, PEEKED_TAG, PEEKED_DELIVERY, PEEKED_SIZE, PEEKED_PAYLOAD, PEEKED_FIELDS
};

/* What peek.lua reads: a zset, or a list with its next end. */
static const char *
peeked_part(const struct target *t, enum key key)
{
	if (key == KEY_DELAYED)
		return "delayed";
	if (t->source == SOURCE_IDS)
		return "ids";
	if (t->left)
		return "left";
	return "waiting";
}

struct redisReply *
waiting_page(struct ctl *c, const struct target *t, struct waiting_place *at, long count, long cut)
{
	bool tags = at->key == KEY_RETRY || at->key == KEY_BACKUP || at->key == KEY_HELD;
	bool entries = at->key == KEY_QUEUE && t->source == SOURCE_STREAM;
	const char *script = "peek";
	struct words w = ask_format("%s", t->keys.name[at->key]);
	struct redisReply *page;
	int nkeys = 1;

	if (tags) {
		nkeys = 3;
		ask_add(&w, "%s %s tags", t->keys.name[KEY_CONTEXT], t->keys.name[KEY_DELIVERY]);
	} else if (entries) {
		script = "stream_peek";
		ask_add(&w, "%s", keys_group(&t->keys));
	} else {
		ask_add(&w, "%s", peeked_part(t, at->key));
	}
	ask_add(&w, "%lld %lld %s %lld", (long long)count, (long long)cut, at->from,
	    (long long)at->passed);
	page = ask_script_words(c, script, nkeys, &w);
	if ((page = ask_check(c, page, peek_form)) == NULL)
		return NULL;
	snprintf(at->from, sizeof(at->from), "%s", reply_str_at(page, PEEK_FROM));
	at->passed = reply_int_at(page, PEEK_OFFSET);
	at->end = reply_int_at(page, PEEK_MORE) == 0 || waiting_len(page) == 0;
	return page;
}

size_t
waiting_len(const struct redisReply *page)
{
	size_t n = reply_len(page);

	if (n <= PEEK_FIELDS)
		return 0;
	return (n - PEEK_FIELDS) / PEEKED_FIELDS;
}

double
waiting_now(const struct redisReply *page)
{
	return reply_double_at(page, PEEK_NOW);
}

void
waiting_get(const struct redisReply *page, size_t i, struct waiting *ret)
{
	size_t at = PEEK_FIELDS + PEEKED_FIELDS * i;

	ret->score = reply_double_at(page, at + PEEKED_SCORE);
	ret->tag = reply_str(reply_at(page, at + PEEKED_TAG), &ret->taglen);
	delivery_parse(reply_str_at(page, at + PEEKED_DELIVERY), &ret->delivery);
	ret->size = reply_int_at(page, at + PEEKED_SIZE);
	ret->data = reply_str(reply_at(page, at + PEEKED_PAYLOAD), &ret->len);
	if (ret->tag == NULL)
		ret->tag = "";
	if (ret->data == NULL)
		ret->data = "";
}

/* Reads the next page; false: there is none. */
static bool
visit_page(struct visit *v)
{
	int64_t left = WAITING_PAGE;

	if (v->most > 0)
		left = v->most - v->n;
	if (left <= 0 || v->at.end || v->failed)
		return false;
	reply_free(v->page);
	v->i = 0;
	v->page = waiting_page(v->ctl, v->target, &v->at, (long)left, v->cut);
	v->failed = v->page == NULL;
	v->now = 0;
	if (!v->failed)
		v->now = waiting_now(v->page);
	return !v->failed;
}

bool
visit_next(struct visit *v, struct waiting *m)
{
	while (v->i >= waiting_len(v->page))
		if (!visit_page(v))
			return false;
	waiting_get(v->page, v->i++, m);
	v->n++;
	return true;
}

/* The place counts from a score on; in a list, where both are 0, from the first. */
void
visit_gone(struct visit *v, const struct waiting *m)
{
	if (strtod(v->at.from, NULL) == m->score)
		v->at.passed--;
}

int
visit_end(struct visit *v)
{
	reply_free(v->page);
	v->page = NULL;
	if (v->failed)
		return -1;
	return 0;
}

bool
waiting_is_next(const struct waiting *m, double since, double now)
{
	return m->delivery.attempts == 0 && m->delivery.crashes == 0 && m->score >= since &&
	    m->score <= now;
}

/* The tag of a retry begins with the id. */
const char *
waiting_id(const struct target *t, const struct waiting *m, char *buf)
{
	size_t n = m->taglen;

	buf[0] = '\0';
	if (m->delivery.ours && m->delivery.idlen < n)
		n = m->delivery.idlen;
	if (n > MESSAGE_ID_MAX)
		n = MESSAGE_ID_MAX;
	if (n > 0) {
		memcpy(buf, m->tag, n);
		buf[n] = '\0';
	} else if ((int64_t)m->len == m->size &&
	    message_id_of(t->kind, t->id, m->data, m->len, buf) == -1)
		buf[0] = '\0';
	return buf;
}

/* Scores from 1e11 on are milliseconds; from 1e10 on, the id is due after its run. */
double
waiting_due(const struct waiting *m)
{
	if (m->score >= 1e11)
		return m->score / 1e3;
	if (m->score >= 1e10 && m->score < 2e10)
		return m->score - 1e10;
	return m->score;
}

char *
waiting_due_text(double due, double now, char *buf)
{
	char in[UNITS_TEXT_MAX];

	if (isinf(due) && due > 0)
		strcpy(buf, "never");
	else if (due <= now)
		strcpy(buf, "now");
	else
		snprintf(buf, WAITING_DUE_MAX, "in %s", units_age(due - now, in));
	return buf;
}

struct redisReply *
waiting_entry(struct ctl *c, const char *id)
{
	static const char form[] = {
		[ENTRY_STATE] = FIELD_STR, [ENTRY_MESSAGE] = FIELD_STR,
		[ENTRY_CONSUMER] = FIELD_STR, [ENTRY_IDLE] = FIELD_INT,
		[ENTRY_DELIVERIES] = FIELD_INT, [ENTRY_FIELDS] = 0
	};
	const struct keys *k = &c->target.keys;

	return ask_check(c, ask_script(c, "stream_show", 1, "%s %s %s", k->name[KEY_QUEUE],
	    keys_group(k), id), form);
}
