/*
 * rqctl peek: the waiting messages that come next.
 */
#include "rqctl/peek.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/message.h"
#include "redis/reply.h"
#include "rqctl/ask.h"
#include "rqctl/ask_depth.h"
#include "rqctl/groups.h"
#include "rqctl/out.h"
#include "rqctl/table.h"

#define PAGE_BYTES	"1048576"	/* of messages looked at per call */

/* The word by which peek.lua knows what it is. */
static const char *
what_of(const struct target *t, enum key key)
{
	if (key == KEY_RETRY)
		return "retry";
	if (key == KEY_DELAYED)
		return "delayed";
	return kind_source(t->kind) == SOURCE_IDS ? "ids" : "waiting";
}

struct redisReply *
peek_page(struct ctl *c, const struct target *t, enum key key, const char *from, int64_t offset,
    long count, long cut)
{
	char at[24], n[24], bytes[24];
	struct words w = { 0 };
	struct redisReply *reply;

	snprintf(at, sizeof(at), "%lld", (long long)offset);
	snprintf(n, sizeof(n), "%ld", count);
	snprintf(bytes, sizeof(bytes), "%ld", cut);
	words_add(&w, t->keys.name[key]);
	if (key == KEY_RETRY) {
		words_add(&w, t->keys.name[KEY_CONTEXT]);
		words_add(&w, t->keys.name[KEY_DELIVERY]);
	}
	words_add(&w, what_of(t, key));
	words_add(&w, at);
	words_add(&w, n);
	words_add(&w, PAGE_BYTES);
	words_add(&w, bytes);
	words_add(&w, from);
	reply = ask_script(c, "peek", key == KEY_RETRY ? 3 : 1, &w);
	words_done(&w);
	return reply;
}

/* The same of a stream's entries that wait, those behind the id `after`; "": from the first. */
static struct redisReply *
peek_entries(struct ctl *c, const struct target *t, const char *after, long count, long cut)
{
	char n[24], bytes[24];
	struct words w = { 0 };
	struct redisReply *reply;

	snprintf(n, sizeof(n), "%ld", count);
	snprintf(bytes, sizeof(bytes), "%ld", cut);
	words_add(&w, t->keys.name[KEY_QUEUE]);
	words_add(&w, keys_group(&t->keys));
	words_add(&w, after);
	words_add(&w, n);
	words_add(&w, PAGE_BYTES);
	words_add(&w, bytes);
	reply = ask_script(c, "stream_peek", 1, &w);
	words_done(&w);
	return reply;
}

size_t
peek_len(const struct redisReply *page)
{
	size_t n = reply_len(page);

	return n > 2 ? (n - 2) / 5 : 0;
}

void
peek_get(const struct redisReply *page, size_t i, struct peeked *ret)
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

/* "" where rqd will make one, or where too little of the message is here to see. */
const char *
peek_id(enum kind kind, const struct peeked *m, char *buf)
{
	if (m->taglen > 0 && m->taglen <= MESSAGE_ID_MAX) {
		memcpy(buf, m->tag, m->taglen);
		buf[m->taglen] = '\0';
		return buf;
	}
	if ((int64_t)m->len != m->size || message_id_of(kind, m->data, m->len, buf) == -1)
		buf[0] = '\0';
	return buf;
}

double
peek_due(const struct peeked *m)
{
	if (m->score >= 1e11)
		return m->score / 1e3;
	return m->score >= 1e10 && m->score < 2e10 ? m->score - 1e10 : m->score;
}

/* When an id of kind "unique" is due. */
static void
add_due(struct table *t, double now, const struct peeked *m)
{
	double at = peek_due(m);
	char in[32];

	if (at <= now)
		table_add(t, "%s", at == m->score || m->score >= 1e11 ? "now" : "after its run");
	else if (isinf(at))
		table_add(t, "never");
	else
		table_add(t, "in %s", out_age(at - now, in));
}

/* now: of kind "unique"; -1: its messages have no time */
static void
add(json_t *array, struct table *t, int64_t place, double now, const struct peeked *m,
    const char *id)
{
	json_t *o;

	if (array != NULL) {
		o = json_object();
		json_object_set_new(o, "place", json_integer(place));
		if (id[0] != '\0')
			out_set_bytes(o, "id", id, strlen(id));
		else
			json_object_set_new(o, "id", json_null());
		if (now >= 0)
			json_object_set_new(o, "due", isinf(peek_due(m)) ? json_null() :
			    json_real(peek_due(m)));
		json_object_set_new(o, "length", json_integer(m->size));
		out_set_bytes(o, "message", m->data, m->len);
		json_array_append_new(array, o);
		return;
	}
	table_number(t, place);
	table_add(t, "%s", id[0] != '\0' ? id : "-");
	if (now >= 0)
		add_due(t, now, m);
	table_number(t, m->size);
	table_bytes(t, m->data, m->len < 200 ? m->len : 200);
}

static void
say_rest(struct ctl *c, const struct target *target, int64_t shown)
{
	struct depth d;

	if (depth_read(c, target, 1, &d) == -1)
		return;
	if (d.problem == NULL)
		ctl_list_cut(c, shown, d.waiting, "messages");
	depth_done(&d);
}

static void
list(struct ctl *c, const struct target *target, long count)
{
	json_t *array = ctl_given(c, OPT_JSON) ? json_array() : NULL;
	struct redisReply *page;
	struct peeked m;
	bool times = kind_source(target->kind) == SOURCE_IDS;
	struct table t;
	size_t n = 1, i;
	int64_t place = 0;
	char last[MESSAGE_ID_MAX + 1] = "";

	if (times)
		table_init(&t, ">PLACE", "<ID", "<DUE", ">BYTES", "<MESSAGE", NULL);
	else
		table_init(&t, ">PLACE", "<ID", ">BYTES", "<MESSAGE", NULL);
	while (n > 0 && place < count) {
		page = kind_source(target->kind) == SOURCE_STREAM ?
		    peek_entries(c, target, last, count - place, array != NULL ? -1 : 65536) :
		    peek_page(c, target, KEY_QUEUE, "", place, count - place,
		    array != NULL ? -1 : 65536);
		n = peek_len(page);
		for (i = 0; i < n; i++) {
			peek_get(page, i, &m);
			peek_id(target->kind, &m, last);
			add(array, &t, ++place,
			    times ? reply_double(reply_at(page, 0), 0) : -1, &m, last);
		}
		client_reply_free(page);
	}
	if (c->status == 0 && array != NULL)
		out_json(json_incref(array));
	else if (table_rows(&t) > 0) {
		table_show(&t);
		if (c->status == 0 && place == count)
			say_rest(c, target, place);
	} else if (c->status == 0)
		ctl_note(c, "no message waits in %s", target->name);
	json_decref(array);
	table_done(&t);
}

static void
raw_entry(struct ctl *c, const struct target *t)
{
	struct redisReply *page = peek_entries(c, t, "", 1, -1);
	struct peeked m;

	if (page != NULL && peek_len(page) > 0) {
		peek_get(page, 0, &m);
		fwrite(m.data, 1, m.len, stdout);
	} else if (page != NULL)
		ctl_error(c, EX_NOTHING, "no message waits in %s", t->name);
	client_reply_free(page);
}

static void
raw(struct ctl *c, const struct target *t)
{
	bool ids = kind_source(t->kind) == SOURCE_IDS;
	struct redisReply *reply = ask(c, ids ? "ZRANGE" : "LINDEX", t->keys.name[KEY_QUEUE],
	    ids ? "0" : "-1", ids ? "0" : NULL, NULL);
	const char *data;
	size_t len;

	if (reply == NULL)
		return;
	if ((data = reply_str(ids ? reply_at(reply, 0) : reply, &len)) != NULL)
		fwrite(data, 1, len, stdout);
	else
		ctl_error(c, EX_NOTHING, "no message waits in %s", t->name);
	client_reply_free(reply);
}

void
peek_run(struct ctl *c)
{
	struct target t;
	long count = 10;

	if (ctl_list_count(c, &count) == -1 ||
	    ctl_list_target(c, c->args.words[0], "peek", &t) == -1)
		return;
	if (ctl_given(c, OPT_RAW) && kind_source(t.kind) == SOURCE_STREAM)
		raw_entry(c, &t);
	else if (ctl_given(c, OPT_RAW))
		raw(c, &t);
	else
		list(c, &t, count);
	ctl_target_done(&t);
}
