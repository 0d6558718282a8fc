/*
 * rqctl retry, delayed, bury: messages that wait for a time.
 *
 * Delayed messages are in two places.  Producers add members to QDELAYED; for kind "unique"
 * these are the ids in Q that are not due.  rqctl push --delay adds messages to QRETRY: there
 * the delayed ones are those that no handler has seen.
 *
 * Verbs walk page by page.  The next page begins at the score of the last member, and skips the
 * members with this score that were seen.  With an offset from the front, the walk would miss
 * members, because daemons remove others from the front meanwhile.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/message.h"
#include "queue/pausetext.h"
#include "rqctl/change.h"
#include "rqctl/letters.h"
#include "rqctl/listing.h"
#include "rqctl/waiting.h"

#define PAGE	500

/* The keys that a group of verbs searches. */
struct places {
	enum key	 keys[2];
	size_t		 n;
	bool		 undelivered;	/* of KEY_RETRY, only those that no handler has seen */
};

static const struct places retries = { { KEY_RETRY }, 1, false };
static const struct places delayed = { { KEY_DELAYED, KEY_RETRY }, 2, true };

/* -- walks ------------------------------------------------------------------------ */

/* A walk over the selected messages of c->target. */
struct walk {
	struct ctl		*ctl;
	const struct select	*select;	/* ids, or tags, and match */
	const struct places	*places;
	long			 cut;		/* bytes of messages that are read; -1: all */
	int64_t			 most;		/* matches at which it stops; 0: no limit */
	struct listing		*list;		/* to list them; or NULL */
	const struct action	*action;	/* to change them; or NULL */
	/* The position of the walk, and its results: */
	enum key		 key;
	char			 score[32];	/* of the last member; "": none yet */
	int64_t			 passed;	/* members with this score: seen, and stay */
	int64_t			 chosen;	/* of `passed`, those that this page has selected */
	double			 now;		/* Redis seconds, of the last page */
	int64_t			 matched;
	int64_t			 gone;		/* removed or moved */
};

/*
 * A verb that changes messages.  The walk calls step() at the end of a page, with the members
 * of the selected messages.  step() returns how many of these it has removed or moved, or -1
 * after an error was reported.
 */
struct action {
	const struct places *places;
	int64_t	 (*step)(struct walk *, const struct words *);
	const char *error;		/* of bury */
};

static bool
has_id(const struct walk *l, const struct waiting *m)
{
	const struct select *s = l->select;
	char id[MESSAGE_ID_MAX + 1];

	waiting_id(l->ctl->target.kind, m, id);
	for (int i = 0; i < s->nids; i++)
		if ((id[0] != '\0' && strcmp(s->ids[i], id) == 0) ||
		    (m->taglen == strlen(s->ids[i]) && m->taglen > 0 &&
		    memcmp(m->tag, s->ids[i], m->taglen) == 0))
			return true;
	return s->nids == 0;
}

static bool
is_chosen(const struct walk *l, const struct waiting *m)
{
	const char *match = l->select->match;

	if (l->key == KEY_RETRY && l->places->undelivered && (m->delivery.attempts > 0 ||
	    m->delivery.crashes > 0 || m->delivery.owned || m->score <= l->now))
		return false;
	if (l->key == KEY_QUEUE && waiting_due(m) <= l->now)
		return false;
	if (match[0] != '\0' && memmem(m->data, m->len, match, strlen(match)) == NULL)
		return false;
	return has_id(l, m);
}

static void
pass(struct walk *w, double score)
{
	char text[sizeof(w->score)];

	snprintf(text, sizeof(text), "%.17g", score);
	if (strcmp(text, w->score) != 0)
		w->passed = w->chosen = 0;
	strcpy(w->score, text);
	w->passed++;
}

static bool
list_one(struct walk *w, const struct waiting *m)
{
	char id[MESSAGE_ID_MAX + 1], text[WAITING_DUE_MAX];
	double due = w->key == KEY_RETRY ? m->score : waiting_due(m);
	struct listing *l = w->list;
	struct table *t = &l->table;
	json_t *o;

	if (listing_is_full(l)) {
		l->more = true;
		return false;
	}
	o = listing_row(l);
	waiting_id(w->ctl->target.kind, m, id);
	if (o != NULL) {
		json_set(o, "id:s", id[0] != '\0' ? id : NULL);
		if (m->taglen > 0)
			json_set(o, "tag:b", m->tag, m->taglen);
		json_set(o, "due:f attempts:i crashes:i message:b", due,
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

/* Lists or changes a page.  Sets *stop if the walk is over.  Returns 0, or -1 after an error. */
static int
walk_page(struct walk *w, const struct redisReply *page, bool *stop)
{
	struct words members = { .n = 0 };
	int64_t gone = 0;
	struct waiting m;

	w->now = waiting_now(page);
	for (size_t i = 0; i < waiting_len(page) && !*stop; i++) {
		waiting_get(page, i, &m);
		pass(w, m.score);
		if (!is_chosen(w, &m))
			continue;
		w->matched++;
		w->chosen++;
		if (w->action != NULL && w->key == KEY_RETRY)
			words_mem(&members, m.tag, m.taglen);
		else if (w->action != NULL)
			words_mem(&members, m.data, m.len);
		*stop = (w->list != NULL && !list_one(w, &m)) || w->matched == w->most;
	}
	if (members.n > 0)
		gone = w->action->step(w, &members);
	words_done(&members);
	if (gone == -1)
		return -1;
	w->gone += gone;
	/* Gone members may have had other scores: the walk may then see a member twice. */
	w->passed -= gone < w->chosen ? gone : w->chosen;
	w->chosen = 0;
	return 0;
}

static int
walk_key(struct walk *w, bool *stop)
{
	/* To change a member of QDELAYED, rqctl needs all of it; so does --match. */
	bool whole = (w->action != NULL && w->key != KEY_RETRY) || w->select->match[0] != '\0';
	struct redisReply *page;
	size_t n = 1;
	int rc = 0;

	w->score[0] = '\0';
	w->passed = w->chosen = 0;
	while (rc == 0 && n > 0 && !*stop && !ctl_interrupted()) {
		page = waiting_page(w->ctl, &w->ctl->target, w->key, w->score, w->passed, PAGE,
		     whole ? -1 : w->cut);
		n = waiting_len(page);
		rc = page != NULL ? walk_page(w, page, stop) : -1;
		blocking_reply_free(page);
	}
	return rc;
}

static int
walk_places(struct walk *w, bool *stop)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < w->places->n && !*stop && !ctl_interrupted(); i++) {
		w->key = w->places->keys[i];
		if (w->key == KEY_DELAYED && w->ctl->target.source == SOURCE_IDS)
			w->key = KEY_QUEUE;
		rc = walk_key(w, stop);
	}
	return rc;
}

/* Returns 0, or -1 after an error was reported or an interruption. */
static int
walk(struct walk *w)
{
	bool stop = false;
	int rc = 0;

	EACH_KEY(i, &w->ctl->target)
		if (rc == 0 && !stop && !ctl_interrupted())
			rc = walk_places(w, &stop);
	if (rc == 0 && ctl_interrupted() && w->ctl->status == 0)
		w->ctl->status = EX_INTERRUPTED;
	return ctl_interrupted() ? -1 : rc;
}

/* -- lists ------------------------------------------------------------------------ */

static void
list(struct ctl *c, const struct places *p)
{
	struct listing l;
	struct select s;
	struct walk w = { .ctl = c, .select = &s, .places = p, .list = &l };
	int64_t total = 0;

	if (listing_init(&l, c, "ID|DUE|>ATTEMPTS|>BYTES|MESSAGE") == 0 &&
	    select_parse(c, &s) == 0) {
		w.cut = l.array != NULL ? -1 : WAITING_CUT;
		if (walk(&w) == 0 && listing_is_full(&l))
			total = p->undelivered || s.match[0] != '\0' ? -1 :	/* not counted */
			    target_count(c, &c->target, "ZCARD", KEY_RETRY);
	}
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

static void
change(struct change *ch)
{
	const struct action *a = ch->arg;
	struct walk w = {
		.ctl = ch->ctl, .select = &ch->select, .places = a->places, .most = ch->most,
		.cut = ch->dry ? WAITING_CUT : 0, .action = ch->dry ? NULL : a
	};

	(void)walk(&w);
	ch->matched = w.matched;
	ch->done = w.gone;
}

static void
add_members(struct words *w, const struct words *members)
{
	for (int i = 0; i < members->n; i++)
		words_mem(w, members->v[i], members->len[i]);
}

/* Makes the members due. */
static int64_t
due_step(struct walk *w, const struct words *members)
{
	struct words words = { .n = 0 };

	ask_add(&words, "%s", w->ctl->target.keys.name[w->key]);
	add_members(&words, members);
	return ask_number(ask_script_words(w->ctl, "due", 1, &words));
}

/* Deletes the members. */
static int64_t
cancel_step(struct walk *w, const struct words *members)
{
	char *const *k = w->ctl->target.keys.name;
	struct words words = { .n = 0 };

	if (w->key == KEY_RETRY)
		ask_add(&words, "%s %s %s", k[KEY_CONTEXT], k[KEY_RETRY], k[KEY_DELIVERY]);
	else
		ask_add(&words, "ZREM %s", k[w->key]);
	add_members(&words, members);
	return ask_number(w->key == KEY_RETRY ?
	    ask_script_words(w->ctl, "drop_retries", 3, &words) : ask_words(w->ctl, &words));
}

/* Buries one message.  Returns 1 if it was buried, 0 if it could not be, -1 after an error. */
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

/* After an error, w->gone has the messages that were buried before it. */
static int64_t
bury_step(struct walk *w, const struct words *members)
{
	int64_t gone = 0;
	int i, rc;

	for (i = 0; i < members->n; i++) {
		rc = bury_tag(w->ctl, members->v[i], members->len[i], w->action->error);
		if (rc == -1) {
			w->gone += gone;
			return -1;
		}
		gone += rc;
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
	.member = "made_due", .walk = change, .none = report_none };

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
		.word = "cancelled", .thing = "message", .walk = change, .none = report_none };

	change_run(c, &ops, &action);
}

void
bury_run(struct ctl *c)
{
	static const struct change_ops ops = { .verb = "bury", .what = "message",
		.word = "buried", .walk = change };
	const char *why = ctl_value(c, OPT_WHY);
	char *who = pausetext_who();
	char *error = xasprintf("buried by %s%s%s", who, why[0] != '\0' ? ": " : "", why);
	struct action action = { .places = &retries, .step = bury_step, .error = error };

	change_run(c, &ops, &action);
	free(error);
	free(who);
}
