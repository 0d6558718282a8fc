/*
 * rqctl purge: empties parts of a queue.
 *
 * What waits for its first delivery, and QDELAYED, are deleted as whole keys, in
 * the background of Redis; retries one by one, so that those that a daemon has in
 * hand stay; dead letters as by `dead drop --all`.  Of kind "unique" both are in one
 * key: ids are deleted page by page.  A stream is not ours to delete from: its
 * group passes over what waits.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/reply.h"
#include "rqctl/ask.h"
#include "rqctl/depth.h"
#include "rqctl/groups.h"
#include "rqctl/out.h"

#define STEP	"500"

struct part {
	enum opt	 opt;
	const char	*name;
	enum key	 key;
	size_t		 at;		/* of its number in struct depth */
};

static const struct part parts[] = {
	{ OPT_WAITING, "waiting", KEY_QUEUE, offsetof(struct depth, waiting) },
	{ OPT_RETRY, "retry", KEY_RETRY, offsetof(struct depth, retry) },
	{ OPT_DELAYED, "delayed", KEY_DELAYED, offsetof(struct depth, delayed) },
	{ OPT_DEAD, "dead", KEY_DEAD, offsetof(struct depth, dead) },
};

static int64_t
number(const struct depth *d, const struct part *p)
{
	return *(const int64_t *)(const void *)((const char *)d + p->at);
}

/* "3 waiting, 12 dead" of the parts that were named. */
static char *
describe(const struct ctl *c, const struct depth *d)
{
	struct buf b = BUF_INIT;
	char text[OUT_NUMBER_MAX];
	size_t i;

	for (i = 0; i < ARRAY_LEN(parts); i++)
		if (ctl_given(c, parts[i].opt))
			buf_printf(&b, "%s%s %s", b.len > 0 ? ", " : "",
			    out_number(number(d, &parts[i]), text), parts[i].name);
	buf_str(&b);
	return buf_steal(&b);
}

static int
unlink_key(struct ctl *c, const char *key)
{
	struct redisReply *reply = ask(c, "UNLINK", key, NULL);

	client_reply_free(reply);
	return reply == NULL ? -1 : 0;
}

/* One page of retries, from offset on: how many were there, and how many are gone. */
static int
forget_page(struct ctl *c, const struct target *t, int64_t offset, int64_t *there, int64_t *gone)
{
	struct redisReply *tags, *reply = NULL;
	struct words w = { 0 };
	char from[24], to[24];
	const char *tag;
	size_t i, len;

	snprintf(from, sizeof(from), "%lld", (long long)offset);
	snprintf(to, sizeof(to), "%lld", (long long)offset + atoi(STEP) - 1);
	if ((tags = ask(c, "ZRANGE", t->keys.name[KEY_RETRY], from, to, NULL)) == NULL)
		return -1;
	words_add(&w, t->keys.name[KEY_CONTEXT]);
	words_add(&w, t->keys.name[KEY_RETRY]);
	words_add(&w, t->keys.name[KEY_DELIVERY]);
	for (i = 0; i < reply_len(tags); i++)
		if ((tag = reply_str(reply_at(tags, i), &len)) != NULL)
			words_mem(&w, tag, len);
	*there = (int64_t)reply_len(tags);
	*gone = 0;
	if (*there > 0 && (reply = ask_script(c, "forget", 3, &w)) != NULL)
		*gone = reply_int(reply, 0);
	words_done(&w);
	client_reply_free(tags);
	client_reply_free(reply);
	return *there > 0 && reply == NULL ? -1 : 0;
}

static int
purge_retries(struct ctl *c, const struct target *t)
{
	int64_t offset = 0, there, gone;

	do {
		if (ctl_interrupted() || forget_page(c, t, offset, &there, &gone) == -1)
			return -1;
		offset += there - gone;
	} while (there > 0);
	return 0;
}

/* The ids of kind "unique" that are due, or those that are not. */
static int
purge_ids(struct ctl *c, const struct target *t, const char *what)
{
	struct redisReply *reply;
	struct words w = { 0 };
	int64_t gone;

	do {
		words_clear(&w);
		words_add(&w, t->keys.name[KEY_QUEUE]);
		words_add(&w, what);
		words_add(&w, STEP);
		reply = ask_script(c, "unique_purge", 1, &w);
		gone = reply != NULL ? reply_int(reply, 0) : -1;
		client_reply_free(reply);
	} while (gone > 0 && !ctl_interrupted());
	words_done(&w);
	return gone == 0 ? 0 : -1;
}

static int
pass_entries(struct ctl *c, const struct target *t)
{
	struct redisReply *reply = ask(c, "XGROUP", "SETID", t->keys.name[KEY_QUEUE],
	    keys_group(&t->keys), "$", NULL);

	client_reply_free(reply);
	return reply == NULL ? -1 : 0;
}

static int
purge_part(struct ctl *c, const struct target *t, const struct depth *d, const struct part *p)
{
	if (t->kind == KIND_UNIQUE && (p->key == KEY_QUEUE || p->key == KEY_DELAYED))
		return purge_ids(c, t, p->name);
	if (p->key == KEY_RETRY)
		return purge_retries(c, t);
	if (t->kind == KIND_STREAM && p->key == KEY_QUEUE)
		return d->waiting == 0 ? 0 : pass_entries(c, t);
	return unlink_key(c, t->keys.name[p->key]);
}

static void
tell(const struct ctl *c, const struct target *t, const struct depth *d, const char *text)
{
	json_t *o;
	size_t i;

	if (!ctl_given(c, OPT_JSON)) {
		printf("%s %s of %s\n", ctl_given(c, OPT_DRY_RUN) ? "would be purged:" : "purged",
		    text, t->name);
		return;
	}
	o = json_object();
	out_set_bytes(o, "queue", t->name, strlen(t->name));
	for (i = 0; i < ARRAY_LEN(parts); i++)
		if (ctl_given(c, parts[i].opt))
			json_object_set_new(o, parts[i].name,
			    json_integer(number(d, &parts[i])));
	json_object_set_new(o, "dry_run", json_boolean(ctl_given(c, OPT_DRY_RUN)));
	out_json(o);
}

static void
purge(struct ctl *c, const struct target *t, const struct depth *d)
{
	char *text = describe(c, d);
	size_t i;

	if (d->problem != NULL)
		ctl_error(c, EX_DATAERR, "%s: %s", t->name, d->problem);
	else if (ctl_given(c, OPT_DRY_RUN))
		tell(c, t, d, text);
	else if (ctl_confirm(c, "purge %s of %s", text, t->name)) {
		ctl_catch_signals();
		for (i = 0; i < ARRAY_LEN(parts); i++)
			if (ctl_given(c, parts[i].opt) && purge_part(c, t, d, &parts[i]) == -1)
				break;
		if (ctl_interrupted())
			ctl_error(c, EX_INTERRUPTED, "interrupted");
		else if (c->status == 0)
			tell(c, t, d, text);
	}
	free(text);
}

void
purge_run(struct ctl *c)
{
	struct target t;
	struct depth d;
	size_t i;

	for (i = 0; i < ARRAY_LEN(parts) && !ctl_given(c, parts[i].opt); i++)
		continue;
	if (i == ARRAY_LEN(parts)) {
		ctl_error(c, EX_USAGE, "say what: --waiting, --retry, --delayed, --dead");
		return;
	}
	if (ctl_list_target(c, c->args.words[0], "purge", &t) == -1)
		return;
	if (!config_kind_keeps(t.kind) && (ctl_given(c, OPT_RETRY) ||
	    ctl_given(c, OPT_DELAYED) || ctl_given(c, OPT_DEAD)))
		ctl_error(c, EX_USAGE, "queues of kind %s, as %s is, have --waiting only",
		    config_kind_name(t.kind), t.name);
	else if (depth_read(c, &t, 1, &d) == 0) {
		purge(c, &t, &d);
		depth_done(&d);
	}
	ctl_target_done(&t);
}
