/*
 * rqctl purge: empties parts of a queue.
 *
 * rqctl counts each part before it asks.  It then deletes no more than that, the oldest first,
 * in bounded steps: messages that producers push meanwhile stay.  It deletes retries one by
 * one, so that those in flight stay.  A stream may have other readers, so rqctl deletes
 * nothing from it: the consumer group skips the entries that wait.
 *
 * A step whose reply is lost is not sent again: it would delete as many once more.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rqctl/ask.h"
#include "rqctl/out.h"
#include "rqctl/picture.h"

#define STEP	500LL	/* deleted per call */

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

	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (ctl_given(c, parts[i].opt))
			buf_printf(&b, "%s%s %s", b.len > 0 ? ", " : "",
			    out_number(n[i], text), parts[i].name);
	return buf_steal(&b);
}

struct purge {
	struct ctl	*ctl;
	struct depth	 depth;		/* as it was counted */
	char		 last[48];	/* SOURCE_STREAM: the newest entry at that time */
	char		 entries[24];	/* SOURCE_STREAM: how many there had been; "": not known */
	int64_t		 gone[ARRAY_LEN(parts)];
};

/* Calls the script until as many are gone as were counted, or nothing is left. */
static int
purge_steps(struct ctl *c, const char *script, const char *key, const char *what, int64_t counted,
    int64_t *gone)
{
	int64_t n = 1;

	while (n > 0 && *gone < counted && !ctl_interrupted()) {
		n = counted - *gone < STEP ? counted - *gone : STEP;
		n = ask_number(ask_script(c, script, 1, "%s %lld %s", key, (long long)n, what));
		if (n == -1)
			return -1;
		*gone += n;
	}
	return 0;
}

/* Deletes those retries that are not in flight; returns how many, or -1. */
static int64_t
forget(struct ctl *c, const struct redisReply *tags)
{
	char *const *k = c->target.keys.name;
	struct words w = { .n = 0 };

	if (reply_len(tags) == 0)
		return tags == NULL ? -1 : 0;
	ask_add(&w, "%s %s %s", k[KEY_CONTEXT], k[KEY_RETRY], k[KEY_DELIVERY]);
	ask_add_list(&w, tags, 1);
	return ask_number(ask_script_words(c, "drop_retries", 3, &w));
}

/* offset: of the retries that stay, because they are in flight. */
static int
purge_retries(struct ctl *c, int64_t counted, int64_t *gone)
{
	const char *key = c->target.keys.name[KEY_RETRY];
	int64_t offset = 0, there = 1, n, left;
	struct redisReply *tags;

	while (there > 0 && *gone < counted && !ctl_interrupted()) {
		left = counted - *gone < STEP ? counted - *gone : STEP;
		tags = ask(c, "ZRANGE %s %lld %lld", key, (long long)offset,
		    (long long)(offset + left - 1));
		there = (int64_t)reply_len(tags);
		n = forget(c, tags);
		blocking_reply_free(tags);
		if (n == -1)
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
	struct redisReply *reply = ask_any(p->ctl, "XINFO STREAM %s",
	    p->ctl->target.keys.name[KEY_QUEUE]);
	const char *name, *last = NULL;
	int64_t entries = -1;

	for (size_t i = 0; i + 1 < reply_len(reply); i += 2) {
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
	blocking_reply_free(reply);
	return reply == NULL ? -1 : 0;
}

static int
pass_entries(struct purge *p, int64_t counted, int64_t *gone)
{
	const struct target *t = &p->ctl->target;
	struct redisReply *reply;
	int64_t passed;

	if (p->last[0] == '\0')
		return ctl_error(p->ctl, EX_DATAERR,
		    "%s: the reply to XINFO STREAM names no last entry", t->name);
	reply = ask_script(p->ctl, "stream_pass", 1, "%s %s %s %s", t->keys.name[KEY_QUEUE],
	    keys_group(&t->keys), p->last, p->entries);
	if (reply == NULL)
		return -1;
	passed = ask_number(reply);
	/* Deleted entries are among those that were passed, but did not wait. */
	*gone = passed >= 0 && passed < counted ? passed : counted;
	return 0;
}

static int
purge_key(struct purge *p, size_t i)
{
	const struct target *t = &p->ctl->target;
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
		return purge_retries(p->ctl, counted, gone);
	if (source == SOURCE_STREAM && part->key == KEY_QUEUE)
		return pass_entries(p, counted, gone);
	return purge_steps(p->ctl, "purge", t->keys.name[part->key], left ? "left" : "right",
	    counted, gone);
}

/* Of each shard, together no more than were counted. */
static int
purge_part(struct purge *p, size_t i)
{
	int rc = 0;

	EACH_KEY(k, &p->ctl->target)
		rc = rc == 0 ? purge_key(p, i) : rc;
	return rc;
}

/* Reports what was purged, also after an early end. */
static void
report(const struct purge *p, const int64_t *n)
{
	const struct ctl *c = p->ctl;
	json_t *o = json_set(json_object(), "queue:s", c->target.name);
	bool dry = ctl_given(c, OPT_DRY_RUN);
	char *text = describe(c, n);

	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (ctl_given(c, parts[i].opt))
			json_set(o, "*:i", parts[i].name, n[i]);
	ctl_result(c, json_set(o, "dry_run:t", dry), "%s %s of %s",
	    dry ? "would be purged:" : "purged", text, c->target.name);
	free(text);
}

static void
purge_parts(struct purge *p)
{
	struct ctl *c = p->ctl;

	ctl_catch_signals();
	for (size_t i = 0; i < ARRAY_LEN(parts) && !ctl_interrupted(); i++)
		if (ctl_given(c, parts[i].opt) && purge_part(p, i) == -1)
			break;
	if (ctl_interrupted())
		ctl_error(c, EX_INTERRUPTED, "interrupted");
	report(p, p->gone);
}

static void
purge(struct purge *p)
{
	int64_t counted[ARRAY_LEN(parts)];
	char *text;

	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		counted[i] = number(&p->depth, &parts[i]);
	text = describe(p->ctl, counted);
	if (p->depth.problem != NULL)
		ctl_error(p->ctl, EX_DATAERR, "%s: %s", p->ctl->target.name, p->depth.problem);
	else if (ctl_given(p->ctl, OPT_DRY_RUN))
		report(p, counted);
	else if (ctl_confirm(p->ctl, "purge %s of %s", text, p->ctl->target.name))
		purge_parts(p);
	free(text);
}

/* Counts; a stream again until no entry comes in between, unless they never stop. */
static int
count_parts(struct purge *p)
{
	struct purge after = *p;
	int tries = 10;

	if (kind_source(p->ctl->target.kind) != SOURCE_STREAM || !ctl_given(p->ctl, OPT_WAITING))
		return picture_depths(p->ctl, &p->ctl->target, 1, &p->depth);
	if (look_at_stream(&after) == -1)
		return -1;
	do {
		memcpy(p->last, after.last, sizeof(p->last));
		memcpy(p->entries, after.entries, sizeof(p->entries));
		depth_done(&p->depth);
		if (picture_depths(p->ctl, &p->ctl->target, 1, &p->depth) == -1)
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
	enum kind kind = c->target.kind;
	size_t i;

	for (i = 0; i < ARRAY_LEN(parts) && !ctl_given(c, parts[i].opt); i++)
		continue;
	if (i == ARRAY_LEN(parts))
		ctl_error(c, EX_USAGE,
		    "select what to delete: --waiting, --retry, --delayed or --dead");
	else if (!kind_has(kind, TRAIT_LEASES) &&
		 (ctl_given(c, OPT_RETRY) || ctl_given(c, OPT_DELAYED) ||
		     ctl_given(c, OPT_DEAD)))
		ctl_error(c, EX_USAGE, "queues of kind %s, as %s is, have only --waiting",
		    kind_name(kind), c->target.name);
	else if (count_parts(&p) == 0) {
		purge(&p);
		depth_done(&p.depth);
	}
}
