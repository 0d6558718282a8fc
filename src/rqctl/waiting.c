/*
 * Pages come from peek.lua, bounded by count and bytes.  In a walk, the next page begins
 * at the score of the last member, behind the members of this score that were seen.  An
 * offset alone would skip members, because daemons take others from the front meanwhile.
 */
#include "rqctl/waiting.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "policy/message.h"

#define PAGE		500
#define PAGE_BYTES	1048576LL	/* of messages that one call looks at */

/* -- pages ------------------------------------------------------------------------ */

/* The word by which peek.lua knows what the key is. */
static const char *
what_of(const struct target *t, enum key key)
{
	if (key == KEY_RETRY)
		return "retry";
	if (key == KEY_DELAYED)
		return "delayed";
	return t->source == SOURCE_IDS ? "ids" : "waiting";
}

struct redisReply *
waiting_page(struct ctl *c, const struct target *t, enum key key, const char *from,
    int64_t offset, long count, long cut)
{
	char *const *k = t->keys.name;
	struct words w = { .n = 0 };

	ask_add(&w, "%s", k[key]);
	if (key == KEY_RETRY)
		ask_add(&w, "%s %s", k[KEY_CONTEXT], k[KEY_DELIVERY]);
	ask_add(&w, "%s %lld %lld %lld %lld %s", what_of(t, key), (long long)offset,
	    (long long)count, PAGE_BYTES, (long long)cut, from);
	return ask_script_words(c, "peek", key == KEY_RETRY ? 3 : 1, &w);
}

struct redisReply *
waiting_entries(struct ctl *c, const struct target *t, const char *after, long count, long cut)
{
	return ask_script(c, "stream_peek", 1, "%s %s %s %lld %lld %lld",
	    t->keys.name[KEY_QUEUE], keys_group(&t->keys), after, (long long)count, PAGE_BYTES,
	    (long long)cut);
}

size_t
waiting_len(const struct redisReply *page)
{
	size_t n = reply_len(page);

	return n > 2 ? (n - 2) / 5 : 0;
}

double
waiting_now(const struct redisReply *page)
{
	return reply_double(reply_at(page, 0), 0);
}

void
waiting_get(const struct redisReply *page, size_t i, struct waiting *ret)
{
	size_t at = 2 + 5 * i;

	ret->score = reply_double(reply_at(page, at), 0);
	ret->tag = reply_str(reply_at(page, at + 1), &ret->taglen);
	delivery_parse(reply_str(reply_at(page, at + 2), NULL), &ret->delivery);
	ret->size = reply_int(reply_at(page, at + 3), 0);
	ret->data = reply_str(reply_at(page, at + 4), &ret->len);
	if (ret->tag == NULL)
		ret->tag = "";
	if (ret->data == NULL)
		ret->data = "";
}

/* The tag of a retry begins with the id. */
const char *
waiting_id(enum kind kind, const struct waiting *m, char *buf)
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
	} else if ((int64_t)m->len == m->size && message_id_of(kind, m->data, m->len, buf) == -1)
		buf[0] = '\0';
	return buf;
}

/* Scores from 1e11 on are milliseconds; from 1e10 on, the id is due after its run. */
double
waiting_due(const struct waiting *m)
{
	if (m->score >= 1e11)
		return m->score / 1e3;
	return m->score >= 1e10 && m->score < 2e10 ? m->score - 1e10 : m->score;
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

/* -- walks ------------------------------------------------------------------------ */

static bool
has_id(const struct waiting_walk *l, const struct waiting *m)
{
	const struct select *s = l->select;
	char id[MESSAGE_ID_MAX + 1];
	int i;

	waiting_id(l->ctl->target.kind, m, id);
	for (i = 0; i < s->nids; i++)
		if ((id[0] != '\0' && strcmp(s->ids[i], id) == 0) ||
		    (m->taglen == strlen(s->ids[i]) && m->taglen > 0 &&
		    memcmp(m->tag, s->ids[i], m->taglen) == 0))
			return true;
	return s->nids == 0;
}

static bool
is_chosen(const struct waiting_walk *l, const struct waiting *m)
{
	const char *match = l->select->match;

	if (l->undelivered && (m->delivery.attempts > 0 || m->delivery.crashes > 0 ||
	    m->delivery.owned || m->score <= l->now))
		return false;
	if (l->key == KEY_QUEUE && waiting_due(m) <= l->now)
		return false;
	if (match[0] != '\0' && memmem(m->data, m->len, match, strlen(match)) == NULL)
		return false;
	return has_id(l, m);
}

/* How far a walk has come. */
struct list_place {
	char	 score[32];	/* of the last member; "": none yet */
	int64_t	 passed;	/* members of this score that were seen, and are still there */
	int64_t	 chosen;	/* of these, in this page */
};

static void
place_pass(struct list_place *p, double score)
{
	char text[sizeof(p->score)];

	snprintf(text, sizeof(text), "%.17g", score);
	if (strcmp(text, p->score) != 0)
		*p = (struct list_place){ .passed = 0 };
	strcpy(p->score, text);
	p->passed++;
}

/* So many of the chosen ones have left; to see one twice does no harm. */
static void
place_lose(struct list_place *p, int64_t gone)
{
	p->passed -= gone < p->chosen ? gone : p->chosen;
	p->chosen = 0;
}

/* One page; *stop: each() wants no more. */
static int
do_page(struct waiting_walk *l, const struct redisReply *page, struct list_place *place, bool *stop)
{
	struct words members = { .n = 0 };
	int64_t gone = 0;
	struct waiting m;
	size_t i;

	l->now = waiting_now(page);
	for (i = 0; i < waiting_len(page) && !*stop; i++) {
		waiting_get(page, i, &m);
		place_pass(place, m.score);
		if (!is_chosen(l, &m))
			continue;
		l->matched++;
		place->chosen++;
		if (l->step != NULL && l->key == KEY_RETRY)
			words_mem(&members, m.tag, m.taglen);
		else if (l->step != NULL)
			words_mem(&members, m.data, m.len);
		*stop = (l->each != NULL && !l->each(l, &m, l->arg)) || l->matched == l->most;
	}
	if (members.n > 0)
		gone = l->step(l, &members, l->arg);
	words_done(&members);
	if (gone != -1)
		place_lose(place, gone);
	return gone == -1 ? -1 : 0;
}

int
waiting_each(struct waiting_walk *l)
{
	const struct target *t = &l->ctl->target;
	struct list_place place = { .passed = 0 };
	struct redisReply *page;
	bool stop = false;
	size_t n = 1;
	int rc = 0;

	if (l->key == KEY_DELAYED && t->source == SOURCE_IDS)
		l->key = KEY_QUEUE;
	/* A member of QDELAYED is the message; and --match needs all of it. */
	if ((l->step != NULL && l->key != KEY_RETRY) || l->select->match[0] != '\0')
		l->cut = -1;
	while (rc == 0 && n > 0 && !stop && !ctl_interrupted()) {
		page = waiting_page(l->ctl, t, l->key, place.score, place.passed, PAGE, l->cut);
		n = waiting_len(page);
		rc = page != NULL ? do_page(l, page, &place, &stop) : -1;
		blocking_reply_free(page);
	}
	if (rc == 0 && ctl_interrupted() && l->ctl->status == 0)
		l->ctl->status = EX_INTERRUPTED;
	return rc == 0 && !ctl_interrupted() ? 0 : -1;
}
