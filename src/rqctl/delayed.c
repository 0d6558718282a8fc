/*
 * rqctl retry, delayed, bury: messages that wait for a time.
 *
 * Delayed are the members of QDELAYED (a producer's own ZADD; of kind "unique" those of
 * the queue itself that are not due yet) and those in QRETRY that no handler has
 * seen yet (rqctl push --delay).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/message.h"
#include "queue/pausetext.h"
#include "redis/reply.h"
#include "rqctl/groups.h"
#include "rqctl/later.h"
#include "rqctl/letters.h"
#include "rqctl/out.h"
#include "rqctl/table.h"

struct list {
	struct table	 table;
	json_t		*array;		/* NULL: the table */
	int64_t		 left;
	bool		 more;		/* there was one that is not shown */
};

/* What a walk with steps has done. */
struct work {
	bool	 dry;
	int64_t	 done;
};

static double
due(const struct later *l, const struct peeked *m)
{
	return l->key == KEY_RETRY ? m->score : peek_due(m);
}

static void
add_json(struct list *list, const struct later *l, const struct peeked *m, const char *id)
{
	json_t *o = json_object();

	if (id[0] != '\0')
		out_set_bytes(o, "id", id, strlen(id));
	else
		json_object_set_new(o, "id", json_null());
	if (m->taglen > 0)
		out_set_bytes(o, "tag", m->tag, m->taglen);
	json_object_set_new(o, "due", isinf(due(l, m)) ? json_null() : json_real(due(l, m)));
	json_object_set_new(o, "attempts", json_integer(m->delivery.attempts));
	json_object_set_new(o, "crashes", json_integer(m->delivery.crashes));
	out_set_bytes(o, "message", m->data, m->len);
	json_array_append_new(list->array, o);
}

static bool
list_one(struct later *l, const struct peeked *m, void *arg)
{
	char id[MESSAGE_ID_MAX + 1], in[32];
	struct list *list = arg;
	double at = due(l, m);

	if (list->left-- == 0) {
		list->more = true;
		return false;
	}
	later_id(l->target->kind, m, id);
	if (list->array != NULL)
		add_json(list, l, m, id);
	else {
		table_add(&list->table, "%s", id[0] != '\0' ? id : "-");
		if (isinf(at) && at > 0)
			table_add(&list->table, "never");
		else if (at > l->now)
			table_add(&list->table, "in %s", out_age(at - l->now, in));
		else
			table_add(&list->table, "now");
		table_number(&list->table, m->delivery.attempts);
		table_number(&list->table, m->size);
		table_bytes(&list->table, m->data, m->len < 200 ? m->len : 200);
	}
	return true;
}

/* How many members a key has; -1: not known. */
static int64_t
card(struct ctl *c, const struct target *t, enum key key)
{
	struct redisReply *reply = ask(c, "ZCARD", t->keys.name[key], NULL);
	int64_t n = reply_int(reply, -1);

	client_reply_free(reply);
	return n;
}

/* Lists what waits in these keys, one after the other. */
static void
list(struct ctl *c, const enum key *keys, size_t n, bool undelivered)
{
	struct list list = { .left = 50 };
	struct later_walk walk = { .fn = list_one, .arg = &list };
	struct target t;
	struct later l;
	long count = 50;
	size_t i;

	if (ctl_list_count(c, &count) == -1 ||
	    ctl_keeping_target(c, c->args.words[0], c->args.verb->name, &t) == -1)
		return;
	list.left = count;
	list.array = ctl_given(c, OPT_JSON) ? json_array() : NULL;
	walk.cut = list.array != NULL ? -1 : 65536;
	table_init(&list.table, "<ID", "<DUE", ">ATTEMPTS", ">BYTES", "<MESSAGE", NULL);
	for (i = 0; i < n && !list.more; i++) {
		if (later_init(c, &l, &t, keys[i], false) == -1)
			break;
		l.undelivered = undelivered && keys[i] == KEY_RETRY;
		if (later_each(&l, &walk) == -1)
			break;
	}
	if (c->status == 0 && list.array != NULL)
		out_json(json_incref(list.array));
	else if (table_rows(&list.table) > 0) {
		table_show(&list.table);
		if (list.more)
			ctl_list_cut(c, count, undelivered || l.match[0] != '\0' ? -1 :
			    card(c, &t, KEY_RETRY), "messages");
	} else if (c->status == 0)
		ctl_note(c, "no message waits for %s in %s", undelivered ? "its time" : "a retry",
		    t.name);
	json_decref(list.array);
	table_done(&list.table);
	ctl_target_done(&t);
}

void
retry_list(struct ctl *c)
{
	static const enum key keys[] = { KEY_RETRY };

	list(c, keys, ARRAY_LEN(keys), false);
}

void
delayed_list(struct ctl *c)
{
	static const enum key keys[] = { KEY_DELAYED, KEY_RETRY };

	list(c, keys, ARRAY_LEN(keys), true);
}

/* Appends members; borrowed. */
static void
add_members(struct words *w, const struct words *members)
{
	int i;

	for (i = 0; i < members->n; i++)
		words_mem(w, members->v[i], members->len[i]);
}

/* The integer that a script returns; -1 after an error. */
static int64_t
number_of(struct ctl *c, const char *script, int nkeys, struct words *w)
{
	struct redisReply *reply = ask_script(c, script, nkeys, w);
	int64_t n = -1;

	if (reply != NULL)
		n = reply_int(reply, 0);
	client_reply_free(reply);
	words_done(w);
	return n;
}

/* Makes the chosen ones due. */
static int64_t
due_step(struct later *l, const struct words *members, void *arg)
{
	struct words w = { 0 };
	struct work *work = arg;
	int64_t n;

	if (work->dry)
		return 0;
	words_add(&w, l->target->keys.name[l->key]);
	add_members(&w, members);
	n = number_of(l->ctl, "due", 1, &w);
	work->done += n > 0 ? n : 0;
	return n;
}

/* Deletes the chosen ones. */
static int64_t
cancel_step(struct later *l, const struct words *members, void *arg)
{
	char *const *key = l->target->keys.name;
	struct work *work = arg;
	struct words w = { 0 };
	struct redisReply *reply;
	int64_t n = -1;

	if (work->dry)
		return 0;
	if (l->key == KEY_RETRY) {
		words_add(&w, key[KEY_CONTEXT]);
		words_add(&w, key[KEY_RETRY]);
		words_add(&w, key[KEY_DELIVERY]);
		add_members(&w, members);
		n = number_of(l->ctl, "forget", 3, &w);
	} else {
		words_add(&w, "ZREM");
		words_add(&w, key[l->key]);
		add_members(&w, members);
		if ((reply = ask_words(l->ctl, &w)) != NULL)
			n = reply_int(reply, 0);
		client_reply_free(reply);
		words_done(&w);
	}
	work->done += n > 0 ? n : 0;
	return n;
}

static void
tell(const struct ctl *c, const char *queue, const char *verb, const struct work *w,
    int64_t matched)
{
	int64_t n = w->dry ? matched : w->done;
	char text[OUT_NUMBER_MAX];
	json_t *o;

	if (ctl_given(c, OPT_JSON)) {
		o = json_object();
		out_set_bytes(o, "queue", queue, strlen(queue));
		json_object_set_new(o, strcmp(verb, "made due") == 0 ? "made_due" : verb,
		    json_integer(n));
		json_object_set_new(o, "dry_run", json_boolean(w->dry));
		out_json(o);
	} else
		printf("%s%s%s %s message%s of %s\n", w->dry ? "would be " : "", verb,
		    w->dry ? ":" : "", out_number(n, text), n == 1 ? "" : "s", queue);
}

/* Walks over the keys with a step; how many were chosen, `most` if that is not 0, or -1. */
static int64_t
walk(struct ctl *c, const struct target *t, const enum key *keys, size_t n, bool undelivered,
    const struct later_walk *walk, int64_t most)
{
	int64_t matched = 0;
	struct later l;
	size_t i;

	for (i = 0; i < n && (most == 0 || matched < most); i++) {
		if (later_init(c, &l, t, keys[i], true) == -1)
			return -1;
		l.undelivered = undelivered && keys[i] == KEY_RETRY;
		l.most = most > 0 ? most - matched : 0;
		if (later_each(&l, walk) == -1)
			return -1;
		matched += l.matched;
	}
	return matched;
}

static void
run(struct ctl *c, const enum key *keys, size_t n, bool undelivered,
    int64_t (*step)(struct later *, const struct words *, void *), const char *verb, int64_t most)
{
	struct work work = { .dry = ctl_given(c, OPT_DRY_RUN) };
	struct later_walk steps = { .step = step, .arg = &work };
	struct target t;
	int64_t matched;

	if (ctl_keeping_target(c, c->args.words[0], c->args.verb->name, &t) == -1)
		return;
	ctl_catch_signals();
	matched = walk(c, &t, keys, n, undelivered, &steps, most);
	if (matched == 0 && c->args.nwords > 1 && dead_has(c, &t))
		ctl_error(c, EX_NOTHING, "it is a dead letter: rqctl dead retry %s %s", t.name,
		    c->args.words[1]);
	else if (matched == 0)
		ctl_error(c, EX_NOTHING, "no message of %s matches", t.name);
	else if (matched > 0 || work.done > 0)
		tell(c, t.name, verb, &work, matched);
	ctl_target_done(&t);
}

void
retry_now(struct ctl *c)
{
	static const enum key keys[] = { KEY_RETRY };

	run(c, keys, ARRAY_LEN(keys), false, due_step, "made due", 0);
}

void
delayed_now(struct ctl *c)
{
	static const enum key keys[] = { KEY_DELAYED, KEY_RETRY };

	run(c, keys, ARRAY_LEN(keys), true, due_step, "made due", 0);
}

/* Asks about as many as match; how many it is answered for, or -1: do nothing. */
static int64_t
confirm(struct ctl *c, const enum key *keys, size_t n, bool undelivered, const char *verb,
    const char *what)
{
	struct later_walk count = { .cut = 65536 };
	char text[OUT_NUMBER_MAX];
	struct target t;
	int64_t matched;

	if (ctl_keeping_target(c, c->args.words[0], c->args.verb->name, &t) == -1)
		return -1;
	matched = walk(c, &t, keys, n, undelivered, &count, 0);
	ctl_target_done(&t);
	if (matched == 0)
		ctl_error(c, EX_NOTHING, "no message of %s matches", c->args.words[0]);
	if (matched <= 0 || !ctl_confirm(c, "%s %s %s%s of %s", verb, out_number(matched, text),
	    what, matched == 1 ? "" : "s", c->args.words[0]))
		return -1;
	return matched;
}

void
delayed_cancel(struct ctl *c)
{
	static const enum key keys[] = { KEY_DELAYED, KEY_RETRY };
	int64_t n = 0;

	if (!ctl_given(c, OPT_DRY_RUN) && !ctl_given(c, OPT_YES))
		n = confirm(c, keys, ARRAY_LEN(keys), true, "cancel", "delayed message");
	if (n >= 0)
		run(c, keys, ARRAY_LEN(keys), true, cancel_step, "cancelled", n);
}

/* One tag; 1 when it was buried, 0 when it could not be, -1 after an error. */
static int
bury_tag(struct later *l, const char *tag, size_t len, const char *error)
{
	const struct target *t = l->target;
	struct redisReply *reply;
	struct words w = { 0 };
	const char *answer;
	char max[24];
	int rc = -1;

	snprintf(max, sizeof(max), "%lld", t->cfg != NULL ? (long long)t->cfg->dead_max : 0);
	words_add(&w, t->keys.name[KEY_CONTEXT]);
	words_add(&w, t->keys.name[KEY_RETRY]);
	words_add(&w, t->keys.name[KEY_DELIVERY]);
	words_add(&w, t->keys.name[KEY_DEAD]);
	words_mem(&w, tag, len);
	words_add(&w, max);
	words_add(&w, l->ctl->config->name);
	words_add(&w, error);
	if ((reply = ask_script(l->ctl, "bury", 4, &w)) != NULL) {
		answer = reply_str(reply, NULL);
		rc = answer != NULL && strcmp(answer, "ok") == 0;
		if (answer != NULL && strcmp(answer, "held") == 0)
			ctl_error(l->ctl, EX_TEMPFAIL, "%.*s is still in flight",
			    (int)len, tag);
	}
	client_reply_free(reply);
	words_done(&w);
	return rc;
}

struct bury {
	struct work	 work;
	const char	*error;
};

static int64_t
bury_step(struct later *l, const struct words *members, void *arg)
{
	struct bury *b = arg;
	int64_t gone = 0;
	int i, rc;

	for (i = 0; i < members->n && !b->work.dry; i++) {
		rc = bury_tag(l, members->v[i], members->len[i], b->error);
		if (rc == -1)
			return -1;
		gone += rc;
	}
	b->work.done += gone;
	return gone;
}

void
bury_run(struct ctl *c)
{
	static const enum key keys[] = { KEY_RETRY };
	struct bury b = { .work.dry = ctl_given(c, OPT_DRY_RUN) };
	struct later_walk steps = { .step = bury_step, .arg = &b };
	char *who, *error;
	struct target t;
	int64_t matched, most = 0;

	if (ctl_given(c, OPT_ALL) && !b.work.dry && !ctl_given(c, OPT_YES) &&
	    (most = confirm(c, keys, ARRAY_LEN(keys), false, "bury", "message")) == -1)
		return;
	who = pausetext_who();
	error = xasprintf("buried by %s%s%s", who, ctl_given(c, OPT_WHY) ? ": " : "",
	    ctl_given(c, OPT_WHY) ? ctl_value(c, OPT_WHY) : "");
	b.error = error;
	if (ctl_keeping_target(c, c->args.words[0], c->args.verb->name, &t) == 0) {
		matched = walk(c, &t, keys, ARRAY_LEN(keys), false, &steps, most);
		if (matched == 0)
			ctl_error(c, EX_NOTHING, "no message of %s that waits for a retry matches",
			    t.name);
		else if (b.work.dry || b.work.done > 0)
			tell(c, t.name, "buried", &b.work, matched);
		ctl_target_done(&t);
	}
	free(error);
	free(who);
}
