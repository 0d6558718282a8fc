/*
 * rqctl retry, delayed, bury: messages that wait for a time.
 *
 * Delayed messages are the members of QDELAYED (a producer's own ZADD; of kind "unique"
 * the ids of the queue that are not due yet) and those in QRETRY that no handler has
 * seen yet (rqctl push --delay).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/message.h"
#include "queue/pausetext.h"
#include "rqctl/change.h"
#include "rqctl/letters.h"
#include "rqctl/listing.h"
#include "rqctl/waiting.h"

/* Where a group of verbs finds its messages. */
struct places {
	enum key	 keys[2];
	size_t		 n;
	bool		 undelivered;	/* of KEY_RETRY, only those */
};

static const struct places retries = { { KEY_RETRY }, 1, false };
static const struct places delayed = { { KEY_DELAYED, KEY_RETRY }, 2, true };

/* -- lists ------------------------------------------------------------------------ */

static bool
list_one(struct waiting_walk *w, const struct waiting *m, void *arg)
{
	char id[MESSAGE_ID_MAX + 1], text[WAITING_DUE_MAX];
	double due = w->key == KEY_RETRY ? m->score : waiting_due(m);
	struct listing *l = arg;
	struct table *t = &l->table;
	json_t *o;

	if (listing_is_full(l)) {
		l->more = true;
		return false;
	}
	o = listing_row(l);
	waiting_id(w->ctl->target.kind, m, id);
	if (o != NULL) {
		out_set(o, "id:s", id[0] != '\0' ? id : NULL);
		if (m->taglen > 0)
			out_set(o, "tag:b", m->tag, m->taglen);
		out_set(o, "due:f attempts:i crashes:i message:b", due,
		    (int64_t)m->delivery.attempts, (int64_t)m->delivery.crashes, m->data, m->len);
	} else {
		table_add(t, "%s", id[0] != '\0' ? id : "-");
		table_add(t, "%s", waiting_due_text(due, w->now, text));
		table_number(t, m->delivery.attempts);
		table_number(t, m->size);
		table_bytes(t, m->data, m->len < WAITING_SHOWN ? m->len : WAITING_SHOWN);
	}
	return true;
}

/* How many there are; -1: nobody has counted them. */
static int64_t
count_all(struct ctl *c, const struct places *p, const struct select *s)
{
	if (p->undelivered || s->match[0] != '\0')
		return -1;
	return ask_number(ask(c, "ZCARD %s", c->target.keys.name[KEY_RETRY]));
}

static void
list(struct ctl *c, const struct places *p)
{
	struct listing l;
	struct select s;
	int64_t total = 0;
	size_t i;
	int rc;

	rc = listing_init(&l, c, "ID|DUE|>ATTEMPTS|>BYTES|MESSAGE");
	if (rc == 0)
		rc = select_parse(c, &s);
	for (i = 0; rc == 0 && i < p->n && !l.more; i++) {
		struct waiting_walk w = {
			.ctl = c, .select = &s, .key = p->keys[i], .each = list_one, .arg = &l,
			.undelivered = p->undelivered && p->keys[i] == KEY_RETRY,
			.cut = l.array != NULL ? -1 : WAITING_CUT
		};

		rc = waiting_each(&w);
	}
	if (rc == 0 && listing_is_full(&l))
		total = count_all(c, p, &s);
	listing_end(&l, total, "messages", "%s has no %s", c->target.name,
	    p->undelivered ? "delayed messages" : "retries");
}

void
retry_list(struct ctl *c)
{
	list(c, &retries);
}

void
delayed_list(struct ctl *c)
{
	list(c, &delayed);
}

/* -- changes ---------------------------------------------------------------------- */

/* What a verb does with the members of the chosen messages of a page. */
struct action {
	const struct places *places;
	int64_t	 (*step)(struct waiting_walk *, const struct words *, void *);
	const char *error;		/* of bury */
};

static void
walk(struct change *ch)
{
	const struct action *a = ch->arg;
	size_t i;
	int rc = 0;

	for (i = 0; rc == 0 && i < a->places->n && change_goes_on(ch); i++) {
		struct waiting_walk w = {
			.ctl = ch->ctl, .select = &ch->select, .key = a->places->keys[i],
			.undelivered = a->places->undelivered && a->places->keys[i] == KEY_RETRY,
			.cut = ch->dry ? WAITING_CUT : 0, .step = ch->dry ? NULL : a->step,
			.most = ch->most > 0 ? ch->most - ch->matched : 0, .arg = ch
		};

		rc = waiting_each(&w);
		ch->matched += w.matched;
	}
}

static void
add_members(struct words *w, const struct words *members)
{
	int i;

	for (i = 0; i < members->n; i++)
		words_mem(w, members->v[i], members->len[i]);
}

/* Makes the members due. */
static int64_t
due_step(struct waiting_walk *w, const struct words *members, void *arg)
{
	struct words words = { .n = 0 };
	struct change *ch = arg;
	int64_t n;

	ask_add(&words, "%s", w->ctl->target.keys.name[w->key]);
	add_members(&words, members);
	n = ask_number(ask_script_words(w->ctl, "due", 1, &words));
	ch->done += n > 0 ? n : 0;
	return n;
}

/* Deletes the members. */
static int64_t
cancel_step(struct waiting_walk *w, const struct words *members, void *arg)
{
	char *const *k = w->ctl->target.keys.name;
	struct words words = { .n = 0 };
	struct change *ch = arg;
	int64_t n;

	if (w->key == KEY_RETRY)
		ask_add(&words, "%s %s %s", k[KEY_CONTEXT], k[KEY_RETRY], k[KEY_DELIVERY]);
	else
		ask_add(&words, "ZREM %s", k[w->key]);
	add_members(&words, members);
	n = ask_number(w->key == KEY_RETRY ? ask_script_words(w->ctl, "drop_retries", 3, &words) :
	    ask_words(w->ctl, &words));
	ch->done += n > 0 ? n : 0;
	return n;
}

/* One tag: 1 if it was buried, 0 if it could not be, -1 after an error. */
static int
bury_tag(struct ctl *c, const char *tag, size_t len, const char *error)
{
	const struct target *t = &c->target;
	char *const *k = t->keys.name;
	struct redisReply *reply;
	const char *answer;
	int rc = -1;

	reply = ask_script(c, "bury", 4, "%s %s %s %s %.*s %lld %s %s", k[KEY_CONTEXT],
	    k[KEY_RETRY], k[KEY_DELIVERY], k[KEY_DEAD], (int)len, tag,
	    t->cfg != NULL ? (long long)t->cfg->dead_max : 0LL, c->config->name, error);
	if ((answer = reply_str(reply, NULL)) != NULL)
		rc = strcmp(answer, "ok") == 0;
	if (answer != NULL && strcmp(answer, "held") == 0)
		ctl_error(c, EX_TEMPFAIL, "%.*s is still in flight", (int)len, tag);
	blocking_reply_free(reply);
	return rc;
}

static int64_t
bury_step(struct waiting_walk *w, const struct words *members, void *arg)
{
	struct change *ch = arg;
	const struct action *a = ch->arg;
	int64_t gone = 0;
	int i, rc;

	for (i = 0; i < members->n; i++) {
		rc = bury_tag(w->ctl, members->v[i], members->len[i], a->error);
		if (rc == -1)
			return -1;
		gone += rc;
		ch->done += rc;
	}
	return gone;
}

static void
report_none(struct change *ch)
{
	struct ctl *c = ch->ctl;

	if (ch->select.nids > 0 && letters_exist(c, &ch->select))
		ctl_error(c, EX_NOTHING, "%s is a dead letter: use rqctl dead retry %s %s",
		    ch->select.ids[0], c->target.name, ch->select.ids[0]);
}

static const struct change_ops due_ops = { .what = "message", .word = "made due",
	.member = "made_due", .walk = walk, .none = report_none };

void
retry_now(struct ctl *c)
{
	static const struct action action = { .places = &retries, .step = due_step };

	change_run(c, &due_ops, &action);
}

void
delayed_now(struct ctl *c)
{
	static const struct action action = { .places = &delayed, .step = due_step };

	change_run(c, &due_ops, &action);
}

void
delayed_cancel(struct ctl *c)
{
	static const struct action action = { .places = &delayed, .step = cancel_step };
	static const struct change_ops ops = { .verb = "cancel", .what = "delayed message",
		.word = "cancelled", .thing = "message", .walk = walk, .none = report_none };

	change_run(c, &ops, &action);
}

void
bury_run(struct ctl *c)
{
	static const struct change_ops ops = { .verb = "bury", .what = "message",
		.word = "buried", .walk = walk };
	const char *why = ctl_value(c, OPT_WHY);
	char *who = pausetext_who();
	char *error = xasprintf("buried by %s%s%s", who, why[0] != '\0' ? ": " : "", why);
	struct action action = { .places = &retries, .step = bury_step, .error = error };

	change_run(c, &ops, &action);
	free(error);
	free(who);
}
