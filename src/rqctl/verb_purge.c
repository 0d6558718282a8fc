/*
 * rqctl purge: deletes the messages in the parts of a queue that its options name.
 *
 * rqctl counts each part of each key before it asks the user.  It then deletes at most that
 * many, the next ones first, in calls of at most STEP.  So messages that producers push
 * meanwhile stay.  But if a daemon takes some of the counted messages, purge deletes as many
 * new ones instead.  If it deletes fewer than it counted, it says so.
 *
 * Retries and held messages are deleted by tag, so that rqctl can leave out those
 * in flight: see messages_drop().
 *
 * A stream may have other readers: rqctl only moves the consumer group past the entries that wait.
 *
 * A call whose reply is lost is not sent again: it could delete as many once more.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rqctl/messages.h"
#include "rqctl/snapshot.h"

#define STEP	500LL	/* deleted per call */

static const struct purged {
	enum opt	 opt;
	const char	*name;
	enum key	 key;
} parts[] = {
	{ OPT_WAITING, "waiting", KEY_QUEUE },
	/* Before the retries: each of these that goes makes a held message one. */
	{ OPT_HELD, "held", KEY_HELD }, { OPT_RETRY, "retry", KEY_RETRY },
	{ OPT_DELAYED, "delayed", KEY_DELAYED }, { OPT_DEAD, "dead", KEY_DEAD },
};

struct purge {
	struct ctl	*ctl;
	struct depth	*depths;	/* of each key, as they were counted; owned */
	char		 last[48];	/* SOURCE_STREAM: the newest entry at that time */
	char		 entries[24];	/* SOURCE_STREAM: entries ever added; "": not known */
};

/* How many messages of part i, if an option names it, were counted in key k. */
static int64_t
counted_in(const struct purge *p, size_t i, size_t k)
{
	const struct depth *d = &p->depths[k];
	const int64_t n[] = { d->waiting, d->held, d->retry, d->delayed, d->dead };

	if (!ctl_given(p->ctl, parts[i].opt))
		return 0;
	return int64_max(n[i], 0);
}

/* "3 waiting, 12 dead": the counts n of the parts that the options name. */
static char *
describe(const struct ctl *c, const int64_t *n)
{
	struct buf b = BUF_INIT;
	char text[OUT_NUMBER_MAX];

	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (ctl_given(c, parts[i].opt))
			buf_printf(&b, "%s%s %s", text_if(b.len > 0, ", "),
			    out_number(n[i], text), parts[i].name);
	return buf_steal(&b);
}

/* Moves the group of a stream past the entries that were counted.  Returns how many, or -1. */
static int64_t
pass_entries(struct purge *p, int64_t counted)
{
	const struct target *t = &p->ctl->target;
	struct redisReply *reply;
	int64_t passed = counted;

	if (p->last[0] == '\0')
		return ctl_error(p->ctl, EX_DATAERR,
		    "%s: the reply to XINFO STREAM names no last entry", t->name);
	reply = ask_script(p->ctl, "stream_purge", 1, "%s %s %s %s", t->keys.name[KEY_QUEUE],
	    keys_group(&t->keys), p->last, p->entries);
	if (reply == NULL)
		return -1;
	/* -1: the server does not know.  The script also passes deleted entries. */
	if (reply_int(reply, -1) >= 0 && reply_int(reply, -1) < counted)
		passed = reply_int(reply, -1);
	reply_free(reply);
	return passed;
}

/*
 * Deletes at most as many messages of a part as were counted in the selected key; adds those that
 * are gone to *gone.  Returns 0, or -1 after an error was reported.
 */
static int
purge_key(struct purge *p, const struct purged *part, int64_t counted, int64_t *gone)
{
	struct ctl *c = p->ctl;
	const struct target *t = &c->target;
	const char *key = t->keys.name[part->key];
	const char *which = "right";
	int64_t done = 0, there = 1, n;
	long long most;

	if (t->left)
		which = "left";
	if (part->key == KEY_RETRY || part->key == KEY_HELD)
		return messages_drop(c, part->key, counted, gone);
	/* Ids that are due and those that are due later are in one zset. */
	if (t->source == SOURCE_IDS && (part->key == KEY_QUEUE || part->key == KEY_DELAYED)) {
		key = t->keys.name[KEY_QUEUE];
		which = part->name;
	}

	while (there > 0 && done < counted && !ctl_interrupted()) {
		most = int64_min(counted - done, STEP);
		if (t->source == SOURCE_STREAM && part->key == KEY_QUEUE) {
			n = pass_entries(p, counted);
			there = 0;
		} else {
			there = n = ask_number(ask_script(c, "purge", 1, "%s %lld %s", key, most,
			    which));
		}
		if (n == -1)
			return -1;
		done += n;
		*gone += n;
	}
	return 0;
}

/*
 * Reports what was purged, also after an error or an interruption; missed: how many that were
 * counted were not found again.
 */
static void
report(const struct ctl *c, const int64_t *n, int64_t missed)
{
	json_t *o = json_set(json_object(), "queue:s", c->target.name);
	bool dry = ctl_given(c, OPT_DRY_RUN);
	const char *did = "purged";
	char *text = describe(c, n), *why = NULL, number[OUT_NUMBER_MAX];

	if (dry)
		did = "would be purged:";
	if (missed > 0)
		why = xasprintf("; %s of those counted were taken meanwhile: "
		    "pause the queue to purge all", out_number(missed, number));
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (ctl_given(c, parts[i].opt))
			json_set(o, "*:i", parts[i].name, n[i]);
	json_set(o, "missed:i dry_run:t", int64_max(missed, 0), dry);
	ctl_result(c, o, "%s %s of %s%s", did, text, c->target.name,
	    or_empty(why));
	free(text);
	free(why);
}

static void
audit_part(struct ctl *c, const struct purged *part, int64_t n)
{
	char *what = xasprintf("purge --%s", part->name);

	audit_removed(c, what, n);
	free(what);
}

static void
purge(struct purge *p)
{
	struct ctl *c = p->ctl;
	int64_t counted[ARRAY_LEN(parts)] = { 0 }, gone[ARRAY_LEN(parts)] = { 0 }, n, all = 0;
	char *text;
	int rc = 0;

	for (size_t k = 0; k < c->target.nkeys; k++) {
		if (p->depths[k].problem != NULL) {
			ctl_error(c, EX_DATAERR, "%s: %s", c->target.name, p->depths[k].problem);
			return;
		}
		for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
			n = counted_in(p, i, k);
			counted[i] += n;
			all += n;
		}
	}
	text = describe(c, counted);
	if (ctl_given(c, OPT_DRY_RUN))
		report(c, counted, 0);
	else if (all == 0 || ctl_confirm(c, "purge %s of %s", text, c->target.name)) {
		ctl_catch_signals();
		for (size_t i = 0; i < ARRAY_LEN(parts); i++)
			EACH_KEY(k, &c->target)
				if (rc == 0)
					rc = purge_key(p, &parts[i], counted_in(p, i, k),
					    &gone[i]);
		if (ctl_interrupted())
			ctl_error(c, EX_INTERRUPTED, "interrupted");
		for (size_t i = 0; i < ARRAY_LEN(parts); i++)
			all -= gone[i];
		if (c->status != 0)	/* what is left was not missed */
			all = 0;
		report(c, gone, all);
		for (size_t i = 0; i < ARRAY_LEN(parts); i++)
			audit_part(c, &parts[i], gone[i]);
	}
	free(text);
}

/* Counts the messages of each key by itself, as if it were a queue. */
static int
count_keys(struct purge *p)
{
	const struct target *t = &p->ctl->target;
	struct target *each = xcalloc(t->nkeys, sizeof(*each));
	int rc;

	for (size_t k = 0; k < t->nkeys; k++) {
		each[k] = *t;
		each[k].all = &t->all[k];
		each[k].nkeys = 1;
	}
	rc = snapshot_depths(p->ctl, each, t->nkeys, p->depths);
	free(each);
	return rc;
}

/* Reads the stream's newest entry, and how many were ever added.  Returns 0, or -1. */
static int
look_at_stream(struct purge *p)
{
	struct redisReply *reply = ask_any(p->ctl, "XINFO STREAM %s",
	    p->ctl->target.keys.name[KEY_QUEUE]);
	const char *name, *last = NULL;
	int64_t entries = -1;

	if (reply == NULL)
		return -1;
	for (size_t i = 0; i + 1 < reply_len(reply); i += 2) {
		name = reply_str(reply_at(reply, i), NULL);
		if (name != NULL && strcmp(name, "last-generated-id") == 0)
			last = reply_str(reply_at(reply, i + 1), NULL);
		else if (name != NULL && strcmp(name, "entries-added") == 0)
			entries = reply_int(reply_at(reply, i + 1), -1);
	}
	snprintf(p->last, sizeof(p->last), "%s", or_empty(last));
	if (entries >= 0)
		snprintf(p->entries, sizeof(p->entries), "%lld", (long long)entries);
	reply_free(reply);
	return 0;
}

static void
purge_run(struct ctl *c)
{
	size_t n = c->target.nkeys, i;
	struct purge p = { .ctl = c, .depths = xcalloc(n, sizeof(*p.depths)) };
	enum kind kind = c->target.kind;

	for (i = 0; i < ARRAY_LEN(parts) && !ctl_given(c, parts[i].opt); i++)
		continue;
	if (i == ARRAY_LEN(parts))
		ctl_error(c, EX_USAGE,
		    "select what to delete: --waiting, --held, --retry, --delayed or --dead");
	else if (!kind_has(kind, TRAIT_LEASES) && (ctl_given(c, OPT_RETRY) ||
	    ctl_given(c, OPT_HELD) || ctl_given(c, OPT_DELAYED) || ctl_given(c, OPT_DEAD)))
		ctl_error(c, EX_USAGE, "queues of kind %s, as %s is, have only --waiting",
		    kind_name(kind), c->target.name);
	/* First the stream's end: an entry that comes while its queue is counted stays. */
	else if ((c->target.source != SOURCE_STREAM || !ctl_given(c, OPT_WAITING) ||
	    look_at_stream(&p) == 0) && count_keys(&p) == 0)
		purge(&p);
	for (i = 0; i < n; i++)
		depth_done(&p.depths[i]);
	free(p.depths);
}

const struct verb verb_purge = {
	.name = "purge",
	.args = "QUEUE",
	.help = "delete the messages in parts of a queue",
	.more = "Messages in flight stay.",
	.options = OPT(WAITING) | OPT(HELD) | OPT(RETRY) |
	    OPT(DELAYED) | OPT(DEAD),
	.min_args = 1,
	.max_args = 1,
	.flags = VERB_JSON | VERB_ASKS | VERB_LISTS | VERB_ORDER,
	.run = purge_run,
};
