/*
 * rqctl purge: empties parts of a queue.
 *
 * Each part is counted before the question is asked, and no more than that is deleted,
 * the oldest first, in bounded steps: what producers push meanwhile stays.  Retries are
 * deleted one by one, so that those that a daemon has in hand stay.  rqctl deletes
 * nothing from a stream, which may have other readers: the consumer group passes over
 * what waits.
 *
 * A step whose reply is lost is not sent again: it would delete as many once more.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/reply.h"
#include "rqctl/ask.h"
#include "rqctl/ask_depth.h"
#include "rqctl/groups.h"
#include "rqctl/out.h"

#define STEP	500	/* deleted per call */

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
describe(const struct ctl *c, const int64_t *n)
{
	struct buf b = BUF_INIT;
	char text[OUT_NUMBER_MAX];
	size_t i;

	for (i = 0; i < ARRAY_LEN(parts); i++)
		if (ctl_given(c, parts[i].opt))
			buf_printf(&b, "%s%s %s", b.len > 0 ? ", " : "",
			    out_number(n[i], text), parts[i].name);
	buf_str(&b);
	return buf_steal(&b);
}

/* What was counted, and what is gone of it. */
struct purge {
	struct ctl		*ctl;
	const struct target	*target;
	struct depth		 depth;
	char			 last[48];	/* SOURCE_STREAM: the newest entry when it was counted */
	char			 entries[24];	/* and how many there had been; "": not known */
	int64_t			 gone[ARRAY_LEN(parts)];
};

/* Calls the script for a number of things, STEP at most; how many are gone, or -1. */
static int64_t
purge_step(struct ctl *c, const char *script, const char *key, const char *what, int64_t left)
{
	struct words w = { 0 };
	struct redisReply *reply;
	char limit[24];
	int64_t gone;

	snprintf(limit, sizeof(limit), "%lld", (long long)(left < STEP ? left : STEP));
	words_add(&w, key);
	words_add(&w, limit);
	words_add(&w, what);
	reply = ask_script(c, script, 1, &w);
	gone = reply != NULL ? reply_int(reply, 0) : -1;
	client_reply_free(reply);
	words_done(&w);
	return gone;
}

/* Until as many are gone as were counted, or nothing is left. */
static int
purge_steps(struct ctl *c, const char *script, const char *key, const char *what, int64_t counted,
    int64_t *gone)
{
	int64_t n = 1;

	while (n > 0 && *gone < counted && !ctl_interrupted()) {
		if ((n = purge_step(c, script, key, what, counted - *gone)) == -1)
			return -1;
		*gone += n;
	}
	return 0;
}

/* One page of retries, n at most, from offset on: how many were there, and are gone. */
static int
forget_page(struct ctl *c, const struct target *t, int64_t offset, int64_t n, int64_t *there,
    int64_t *gone)
{
	struct redisReply *tags, *reply = NULL;
	struct words w = { 0 };
	char from[24], to[24];
	const char *tag;
	size_t i, len;

	snprintf(from, sizeof(from), "%lld", (long long)offset);
	snprintf(to, sizeof(to), "%lld", (long long)(offset + n - 1));
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
purge_retries(struct ctl *c, const struct target *t, int64_t counted, int64_t *gone)
{
	int64_t offset = 0, there = 1, n, left;

	while (there > 0 && *gone < counted && !ctl_interrupted()) {
		left = counted - *gone;
		if (forget_page(c, t, offset, left < STEP ? left : STEP, &there, &n) == -1)
			return -1;
		offset += there - n;
		*gone += n;
	}
	return 0;
}

/* The stream's newest entry, and how many entries there have been; "" if there is none. */
static int
look_at_stream(struct purge *p)
{
	struct redisReply *reply = NULL;
	const char *name, *last = NULL;
	int64_t entries = -1;
	size_t i;

	if (ask_append(p->ctl, "XINFO", "STREAM", p->target->keys.name[KEY_QUEUE], NULL) == 0)
		reply = ask_next(p->ctl);
	for (i = 0; i + 1 < reply_len(reply); i += 2) {
		name = reply_str(reply_at(reply, i), NULL);
		if (name != NULL && strcmp(name, "last-generated-id") == 0)
			last = reply_str(reply_at(reply, i + 1), NULL);
		else if (name != NULL && strcmp(name, "entries-added") == 0)
			entries = reply_int(reply_at(reply, i + 1), -1);
	}
	snprintf(p->last, sizeof(p->last), "%s", last != NULL ? last : "");
	p->entries[0] = '\0';
	if (entries >= 0)
		snprintf(p->entries, sizeof(p->entries), "%lld", (long long)entries);
	client_reply_free(reply);
	return reply == NULL ? -1 : 0;
}

static int
pass_entries(struct purge *p, int64_t counted, int64_t *gone)
{
	struct redisReply *reply;
	struct words w = { 0 };
	int64_t passed = -1;

	if (p->last[0] == '\0')
		return ctl_error(p->ctl, EX_DATAERR, "%s: XINFO STREAM tells nothing of the stream",
		    p->target->name);
	words_add(&w, p->target->keys.name[KEY_QUEUE]);
	words_add(&w, keys_group(&p->target->keys));
	words_add(&w, p->last);
	words_add(&w, p->entries);
	if ((reply = ask_script(p->ctl, "stream_pass", 1, &w)) != NULL)
		passed = reply_int(reply, -1);
	/* Deleted entries are among those that were passed, but did not wait. */
	*gone = passed >= 0 && passed < counted ? passed : counted;
	client_reply_free(reply);
	words_done(&w);
	return reply == NULL ? -1 : 0;
}

static int
purge_part(struct purge *p, size_t i)
{
	const struct target *t = p->target;
	const struct part *part = &parts[i];
	int64_t counted = number(&p->depth, part), *gone = &p->gone[i];
	bool left = t->cfg != NULL && config_pops_left(t->cfg);
	enum source source = kind_source(t->kind);

	if (counted <= 0)
		return 0;
	if (source == SOURCE_IDS && (part->key == KEY_QUEUE || part->key == KEY_DELAYED))
		return purge_steps(p->ctl, "unique_purge", t->keys.name[KEY_QUEUE], part->name,
		    counted, gone);
	if (part->key == KEY_RETRY)
		return purge_retries(p->ctl, t, counted, gone);
	if (source == SOURCE_STREAM && part->key == KEY_QUEUE)
		return pass_entries(p, counted, gone);
	return purge_steps(p->ctl, "purge", t->keys.name[part->key], left ? "left" : "right",
	    counted, gone);
}

/* The closing words, also of what ended early. */
static void
tell(const struct purge *p, const int64_t *n)
{
	const struct ctl *c = p->ctl;
	char *text;
	json_t *o;
	size_t i;

	if (!ctl_given(c, OPT_JSON)) {
		text = describe(c, n);
		printf("%s %s of %s\n", ctl_given(c, OPT_DRY_RUN) ? "would be purged:" : "purged",
		    text, p->target->name);
		free(text);
		return;
	}
	o = json_object();
	out_set_bytes(o, "queue", p->target->name, strlen(p->target->name));
	for (i = 0; i < ARRAY_LEN(parts); i++)
		if (ctl_given(c, parts[i].opt))
			json_object_set_new(o, parts[i].name, json_integer(n[i]));
	json_object_set_new(o, "dry_run", json_boolean(ctl_given(c, OPT_DRY_RUN)));
	out_json(o);
}

static void
purge_parts(struct purge *p)
{
	struct ctl *c = p->ctl;
	size_t i;

	ctl_catch_signals();
	for (i = 0; i < ARRAY_LEN(parts) && !ctl_interrupted(); i++)
		if (ctl_given(c, parts[i].opt) && purge_part(p, i) == -1)
			break;
	if (ctl_interrupted())
		ctl_error(c, EX_INTERRUPTED, "interrupted");
	tell(p, p->gone);
}

static void
purge(struct purge *p)
{
	int64_t counted[ARRAY_LEN(parts)];
	char *text;
	size_t i;

	for (i = 0; i < ARRAY_LEN(parts); i++)
		counted[i] = number(&p->depth, &parts[i]);
	text = describe(p->ctl, counted);
	if (p->depth.problem != NULL)
		ctl_error(p->ctl, EX_DATAERR, "%s: %s", p->target->name, p->depth.problem);
	else if (ctl_given(p->ctl, OPT_DRY_RUN))
		tell(p, counted);
	else if (ctl_confirm(p->ctl, "purge %s of %s", text, p->target->name))
		purge_parts(p);
	free(text);
}

/* Counts; a stream again until no entry comes in between, unless they never stop. */
static int
count_parts(struct purge *p)
{
	struct purge after = *p;
	int tries = 10;

	if (kind_source(p->target->kind) != SOURCE_STREAM || !ctl_given(p->ctl, OPT_WAITING))
		return depth_read(p->ctl, p->target, 1, &p->depth);
	if (look_at_stream(&after) == -1)
		return -1;
	do {
		memcpy(p->last, after.last, sizeof(p->last));
		memcpy(p->entries, after.entries, sizeof(p->entries));
		depth_done(&p->depth);
		if (depth_read(p->ctl, p->target, 1, &p->depth) == -1)
			return -1;
		if (look_at_stream(&after) == -1) {
			depth_done(&p->depth);
			return -1;
		}
	} while (strcmp(p->last, after.last) != 0 && tries-- > 0);
	return 0;
}

void
purge_run(struct ctl *c)
{
	struct purge p = { .ctl = c };
	struct target t;
	size_t i;

	for (i = 0; i < ARRAY_LEN(parts) && !ctl_given(c, parts[i].opt); i++)
		continue;
	if (i == ARRAY_LEN(parts)) {
		ctl_error(c, EX_USAGE, "select what to delete: --waiting, --retry, --delayed, --dead");
		return;
	}
	if (ctl_list_target(c, c->args.words[0], "purge", &t) == -1)
		return;
	p.target = &t;
	if (!kind_has(t.kind, TRAIT_LEASES) && (ctl_given(c, OPT_RETRY) ||
	    ctl_given(c, OPT_DELAYED) || ctl_given(c, OPT_DEAD)))
		ctl_error(c, EX_USAGE, "queues of kind %s, as %s is, have --waiting only",
		    kind_name(t.kind), t.name);
	else if (count_parts(&p) == 0) {
		purge(&p);
		depth_done(&p.depth);
	}
	ctl_target_done(&t);
}
