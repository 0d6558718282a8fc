/*
 * rqctl purge: deletes the messages in the parts of a queue that its options name.
 *
 * rqctl counts each part of each key before it asks the user.  It then deletes at most that
 * many, the next ones first, in calls of at most STEP.  So messages that producers push
 * meanwhile stay.  But if a daemon takes some of the counted messages, purge deletes as many
 * new ones instead.
 *
 * Retries are deleted by tag, so that rqctl can leave out those in flight.  A stream may have
 * other readers: rqctl only moves the consumer group past the entries that wait.
 *
 * A call whose reply is lost is not sent again: it could delete as many once more.
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
	size_t		 at;		/* offset of its count in struct depth */
};

static const struct part parts[] = {
	{ OPT_WAITING, "waiting", KEY_QUEUE, offsetof(struct depth, waiting) },
	{ OPT_RETRY, "retry", KEY_RETRY, offsetof(struct depth, retry) },
	{ OPT_DELAYED, "delayed", KEY_DELAYED, offsetof(struct depth, delayed) },
	{ OPT_DEAD, "dead", KEY_DEAD, offsetof(struct depth, dead) },
};

struct purge {
	struct ctl	*ctl;
	struct depth	*depths;	/* of each key, as they were counted; owned */
	char		 last[48];	/* SOURCE_STREAM: the newest entry at that time */
	char		 entries[24];	/* SOURCE_STREAM: entries ever added; "": not known */
	int64_t		 gone[ARRAY_LEN(parts)];
};

static int64_t
number(const struct depth *d, const struct part *p)
{
	return *(const int64_t *)(const void *)((const char *)d + p->at);
}

static int64_t
sum(const struct purge *p, const struct part *part)
{
	int64_t n = 0, all = 0;

	for (size_t k = 0; k < p->ctl->target.nkeys; k++)
		if ((n = number(&p->depths[k], part)) > 0)
			all += n;
	return all;
}

/* "3 waiting, 12 dead": the counts n of the parts that the options name. */
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

/* Deletes the retries of these tags that are not in flight.  Returns how many, or -1. */
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

/* offset skips the retries that stay because they are in flight. */
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

/* Reads the stream's newest entry, and how many were ever added, into last and entries. */
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
	/* The script also passes deleted entries, which were not counted. */
	*gone = passed >= 0 && passed < counted ? passed : counted;
	return 0;
}

/* Deletes at most as many as were counted in key k; adds those that are gone to *gone. */
static int
purge_key(struct purge *p, const struct part *part, size_t k, int64_t *gone)
{
	const struct target *t = &p->ctl->target;
	int64_t counted = number(&p->depths[k], part);
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

static int
purge_part(struct purge *p, size_t i)
{
	int64_t gone;
	int rc = 0;

	EACH_KEY(k, &p->ctl->target) {
		gone = 0;
		rc = rc == 0 ? purge_key(p, &parts[i], k, &gone) : rc;
		p->gone[i] += gone;
	}
	return rc;
}

/* Reports what was purged, also after an error or an interruption. */
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
	const char *problem = NULL;
	char *text;

	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		counted[i] = sum(p, &parts[i]);
	for (size_t k = 0; k < p->ctl->target.nkeys && problem == NULL; k++)
		problem = p->depths[k].problem;
	text = describe(p->ctl, counted);
	if (problem != NULL)
		ctl_error(p->ctl, EX_DATAERR, "%s: %s", p->ctl->target.name, problem);
	else if (ctl_given(p->ctl, OPT_DRY_RUN))
		report(p, counted);
	else if (ctl_confirm(p->ctl, "purge %s of %s", text, p->ctl->target.name))
		purge_parts(p);
	free(text);
}

static void
forget_depths(struct purge *p)
{
	for (size_t k = 0; p->depths != NULL && k < p->ctl->target.nkeys; k++)
		depth_done(&p->depths[k]);
	free(p->depths);
	p->depths = NULL;
}

/* Counts the messages of each key by itself, as if it were a queue. */
static int
count_keys(struct purge *p)
{
	const struct target *t = &p->ctl->target;
	struct target *each = xcalloc(t->nkeys, sizeof(*each));
	int rc;

	forget_depths(p);
	p->depths = xcalloc(t->nkeys, sizeof(*p->depths));
	for (size_t k = 0; k < t->nkeys; k++) {
		each[k] = *t;
		each[k].all = &t->all[k];
		each[k].nkeys = 1;
	}
	rc = picture_depths(p->ctl, each, t->nkeys, p->depths);
	free(each);
	return rc;
}

/* Counts the parts.  Repeats this for a stream, up to 10 times, if an entry came meanwhile. */
static int
count_parts(struct purge *p)
{
	struct purge after = *p;
	int tries = 10;

	if (kind_source(p->ctl->target.kind) != SOURCE_STREAM || !ctl_given(p->ctl, OPT_WAITING))
		return count_keys(p);
	if (look_at_stream(&after) == -1)
		return -1;
	do {
		memcpy(p->last, after.last, sizeof(p->last));
		memcpy(p->entries, after.entries, sizeof(p->entries));
		if (count_keys(p) == -1 || look_at_stream(&after) == -1)
			return -1;
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
	else if (count_parts(&p) == 0)
		purge(&p);
	forget_depths(&p);
}
