/*
 * Reads pages of messages that wait; rqctl peek shows the next ones.  peek.lua returns a page,
 * bounded by count and bytes.
 */
#include "rqctl/waiting.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "policy/message.h"
#include "rqctl/listing.h"
#include "rqctl/picture.h"

#define PAGE_BYTES	1048576LL	/* of messages that one call looks at */

/* -- pages ------------------------------------------------------------------------ */

/* The word that tells peek.lua what the key is. */
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

/* Returned by peek.lua. */
enum { PEEK_NOW, PEEK_TOTAL, PEEK_FIELDS };
/* Returned by peek.lua for each message. */
enum {
	PEEKED_SCORE, PEEKED_TAG, PEEKED_DELIVERY, PEEKED_SIZE, PEEKED_PAYLOAD, PEEKED_FIELDS
};

size_t
waiting_len(const struct redisReply *page)
{
	size_t n = reply_len(page);

	return n > PEEK_FIELDS ? (n - PEEK_FIELDS) / PEEKED_FIELDS : 0;
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

/* -- peek -------------------------------------------------------------------------- */

/*
 * Reads a page of c->target, from `offset` on.  Of a stream it reads the entries after the entry
 * `after`; "": from the first.
 */
static struct redisReply *
next_page(struct ctl *c, int64_t offset, const char *after, long count, long cut)
{
	const struct target *t = &c->target;

	if (t->source != SOURCE_STREAM)
		return waiting_page(c, t, KEY_QUEUE, "", offset, count, cut);
	return ask_script(c, "stream_peek", 1, "%s %s %s %lld %lld %lld",
	    t->keys.name[KEY_QUEUE], keys_group(&t->keys), after, (long long)count, PAGE_BYTES,
	    (long long)cut);
}

/* Adds a cell: when an id of kind "unique" is due. */
static void
add_due(struct table *t, double now, const struct waiting *m)
{
	double due = waiting_due(m);
	char text[WAITING_DUE_MAX];

	if (due <= now && due != m->score && m->score < 1e11)
		table_add(t, "after its run");
	else
		table_add(t, "%s", waiting_due_text(due, now, text));
}

/* now: -1 for kinds whose messages have no time. */
static void
add(struct listing *l, double now, const struct waiting *m, const char *id)
{
	json_t *o = listing_row(l);
	struct table *t = &l->table;

	if (o != NULL) {
		json_set(o, "place:i id:s", l->rows, id[0] != '\0' ? id : NULL);
		if (now >= 0)
			json_set(o, "due:f", waiting_due(m));
		json_set(o, "length:i message:b", m->size, m->data, m->len);
		return;
	}
	table_number(t, l->rows);
	table_add(t, "%s", id[0] != '\0' ? id : "-");
	if (now >= 0)
		add_due(t, now, m);
	table_number(t, m->size);
	table_bytes(t, m->data, m->len < WAITING_SHOWN ? m->len : WAITING_SHOWN);
}

/* How many messages wait; 0 if the list has them all, or after an error. */
static int64_t
count_waiting(const struct listing *l)
{
	struct depth d;
	int64_t n;

	if (l->ctl->status != 0 || !listing_is_full(l) || l->array != NULL ||
	    picture_depths(l->ctl, &l->ctl->target, 1, &d) == -1)
		return 0;
	n = d.problem == NULL ? d.waiting : 0;
	depth_done(&d);
	return n;
}

/* Adds a page of a key whose messages begin at row `first`; returns how many it had. */
static size_t
add_page(struct listing *l, int64_t first, char *last)
{
	const struct target *t = &l->ctl->target;
	struct redisReply *page = next_page(l->ctl, l->rows - first, last,
	    listing_room(l, LONG_MAX), l->array != NULL ? -1 : WAITING_CUT);
	size_t n = waiting_len(page), i;
	struct waiting m;

	for (i = 0; i < n; i++) {
		waiting_get(page, i, &m);
		add(l, t->source == SOURCE_IDS ? waiting_now(page) : -1, &m,
		    waiting_id(t->kind, &m, last));
	}
	blocking_reply_free(page);
	return n;
}

static void
list(struct ctl *c)
{
	bool times = c->target.source == SOURCE_IDS;
	char last[MESSAGE_ID_MAX + 1] = "";
	struct listing l;
	int rc = listing_init(&l, c,
	    times ? ">PLACE|ID|DUE|>BYTES|MESSAGE" : ">PLACE|ID|>BYTES|MESSAGE");

	EACH_KEY(i, &c->target) {
		int64_t first = l.rows;

		while (rc == 0 && !listing_is_full(&l) && add_page(&l, first, last) > 0)
			continue;
	}
	listing_end(&l, count_waiting(&l), "messages", "no message waits in %s", c->target.name);
}

/* Writes the next message of the key.  Returns 1; 0 if there is none; -1 after an error. */
static int
write_next(struct ctl *c)
{
	struct redisReply *page = next_page(c, 0, "", 1, -1);
	int rc = page == NULL ? -1 : waiting_len(page) > 0;
	struct waiting m;

	if (rc == 1) {
		waiting_get(page, 0, &m);
		fwrite(m.data, 1, m.len, stdout);
	}
	blocking_reply_free(page);
	return rc;
}

static void
write_raw(struct ctl *c)
{
	int rc = 0;

	EACH_KEY(i, &c->target)
		rc = rc == 0 ? write_next(c) : rc;
	if (rc == 0)
		ctl_error(c, EX_NOTHING, "no message waits in %s", c->target.name);
}

void
peek_run(struct ctl *c)
{
	if (ctl_given(c, OPT_RAW))
		write_raw(c);
	else
		list(c);
}
