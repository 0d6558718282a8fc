/*
 * Walks through dead letters; see letters.h.  Pages come from dead_list.lua.  Each call
 * looks at a bounded number of letters and of bytes, so a page may be empty although
 * more follow.
 *
 * letters_next() first reads the ids that look like letters' numbers, without a walk.  The
 * walk then searches the messages' ids for the others.  It ends at the letter that was the
 * newest when it began, so it does not return a message that dies again meanwhile.
 *
 * The walk visits shard after shard.  If two shards have a letter of the same number, the
 * number means the one in the first of them.
 */
#include "rqctl/letters.h"

#include <stdlib.h>
#include <string.h>

#define LOOK		"1000"		/* letters per call */
#define LOOK_BYTES	"1048576"	/* of messages per call */

/* Returned by dead_list.lua; then an array for each letter: its name, size, fields. */
enum { LIST_TOTAL, LIST_LAST, LIST_LOOKED, LIST_NEXT, LIST_FIELDS };

const char *const letter_fields[FIELD_MAX] = {
	"id", "reason", "status", "host", "error", "answer", "message", "attempts"
};

void
letters_init(struct letters *l, struct ctl *c, const struct select *s)
{
	*l = (struct letters){
		.ctl = c, .select = s, .cut = -1, .page = 500,
		.seen = xcalloc((size_t)s->nids + 1, sizeof(l->seen[0]))
	};
	target_select(&c->target, 0);
}

void
letters_done(struct letters *l)
{
	target_unselect(&l->ctl->target);
	blocking_reply_free(l->reply);
	free(l->seen);
	free(l->at);
	free(l->end);
	memset(l, 0, sizeof(*l));
}

/* A time as the bound of a range, in milliseconds; otherwise: the bound for "no time". */
static char *
bound(wall_t t, const char *otherwise)
{
	return t > 0 ? xasprintf("%lld", (long long)(t / MSEC)) : xstrdup(otherwise);
}

/* Calls dead_list.lua.  from and to are bounds of the range; only: an id, or NULL for the ids. */
static int
call(struct letters *l, const char *from, const char *to, const char *only)
{
	const struct select *s = l->select;
	struct words w = { .n = 0 };

	ask_add(&w, "%s %s %s %s %lld " LOOK " " LOOK_BYTES " %lld %s %s",
	    l->ctl->target.keys.name[KEY_DEAD], l->newest ? "1" : "0", from, to,
	    (long long)l->page, (long long)l->cut, s->reason, s->match);
	if (only != NULL)
		ask_add(&w, "%s", only);
	for (int i = 0; only == NULL && i < s->nids; i++)
		if (!l->seen[i])
			ask_add(&w, "%s", s->ids[i]);
	blocking_reply_free(l->reply);
	l->reply = ask_script_words(l->ctl, "dead_list", 1, &w);
	return l->reply == NULL ? -1 : 0;
}

static int
count(const struct letters *l)
{
	size_t n = reply_len(l->reply);

	return n > LIST_FIELDS ? (int)(n - LIST_FIELDS) : 0;
}

/* Reads the next letter whose number is an id; returns 0 or 1, or -1: no id is left to try. */
static int
next_direct(struct letters *l)
{
	const struct select *s = l->select;
	int i;

	while (l->direct < s->nids &&
	    (l->seen[l->direct] || !select_is_letter(s->ids[l->direct])))
		l->direct++;
	if (l->direct >= s->nids)
		return -1;
	i = l->direct++;
	if (call(l, s->ids[i], s->ids[i], s->ids[i]) == -1) {
		l->done = true;
		return -1;
	}
	l->looked += count(l);
	l->seen[i] = count(l) > 0;
	return count(l);
}

static bool
all_seen(const struct letters *l)
{
	for (int i = 0; i < l->select->nids; i++)
		if (!l->seen[i])
			return false;
	return l->select->nids > 0;
}

/* Sets the beginning and the end of the walk. */
static void
begin(struct letters *l)
{
	const struct select *s = l->select;

	l->scanning = true;
	l->at = l->newest ? bound(s->until, "+") : bound(s->since, "-");
	l->end = l->newest ? bound(s->since, "-") : bound(s->until, "+");
}

/* Takes totals, end and next position from the reply. */
static void
advance(struct letters *l)
{
	const char *last = reply_str_at(l->reply, LIST_LAST);
	const char *next = reply_str_at(l->reply, LIST_NEXT);

	if (!l->counted)
		l->total += reply_int_at(l->reply, LIST_TOTAL);
	l->counted = true;
	l->looked += reply_int_at(l->reply, LIST_LOOKED);
	if (!l->newest && strcmp(l->end, "+") == 0 && last != NULL && last[0] != '\0') {
		xreplace(&l->end, last);
	}
	free(l->at);
	l->at = next != NULL && next[0] != '\0' ? xstrdup(next) : NULL;
}

/* Begins the walk of the next shard.  False: there is none, or all ids were found. */
static bool
next_key(struct letters *l)
{
	if (l->key + 1 >= l->ctl->target.nkeys || all_seen(l))
		return false;
	target_select(&l->ctl->target, ++l->key);
	xreplace(&l->end, NULL);
	l->scanning = l->counted = false;
	l->direct = 0;
	return true;
}

int
letters_next(struct letters *l)
{
	int n;

	if (!l->scanning && !l->done && (n = next_direct(l)) >= 0)
		return n;
	if (l->done || (!l->scanning && all_seen(l)))
		return -1;
	if (!l->scanning)
		begin(l);
	if (l->at == NULL && next_key(l))
		return 0;
	if (l->at == NULL || call(l, l->at, l->end, NULL) == -1) {
		l->done = true;
		return -1;
	}
	advance(l);
	return count(l);
}

void
letters_get(const struct letters *l, int i, struct letter *ret)
{
	const struct redisReply *row = reply_at(l->reply, (size_t)i + LIST_FIELDS);
	const char *name;

	memset(ret, 0, sizeof(*ret));
	ret->name.data = reply_str(reply_at(row, 0), &ret->name.len);
	ret->died = ret->name.data != NULL ? strtod(ret->name.data, NULL) / 1e3 : 0;
	for (size_t at = 2; at + 1 < reply_len(row); at += 2) {
		name = reply_str(reply_at(row, at), NULL);
		for (size_t f = 0; name != NULL && f < FIELD_MAX; f++)
			if (strcmp(letter_fields[f], name) == 0)
				ret->field[f].data = reply_str(reply_at(row, at + 1),
				    &ret->field[f].len);
	}
}

bool
letters_exist(struct ctl *c, const struct select *s)
{
	struct select ids = { .ids = s->ids, .nids = s->nids, .reason = "", .match = "" };
	struct letters l;
	int n = 0;

	letters_init(&l, c, &ids);
	l.cut = 0;
	while (n == 0 && !ctl_interrupted())
		n = letters_next(&l);
	letters_done(&l);
	return n > 0;
}
