/*
 * Pages come from dead_list.lua, which looks at a bounded number of letters, and
 * of bytes, in each call; so a page may be empty although more follow.
 *
 * Ids that look like a letter's own are first tried as such, without a walk;
 * what is not found so is looked for among the messages' ids.  The walk ends
 * at the letter that was the newest when it began: a message that dies again
 * while the others are retried is not met twice.
 */
#include "rqctl/letters.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/reply.h"

#define LOOK		"1000"		/* letters per call */
#define LOOK_BYTES	"1048576"	/* of messages per call */

void
letters_init(struct letters *l, struct ctl *c, const struct target *t, const struct select *s)
{
	memset(l, 0, sizeof(*l));
	l->ctl = c;
	l->target = t;
	l->select = s;
	l->cut = -1;
	l->page = 500;
	l->seen = xcalloc((size_t)s->nids + 1, sizeof(l->seen[0]));
}

void
letters_done(struct letters *l)
{
	client_reply_free(l->reply);
	free(l->seen);
	free(l->at);
	free(l->end);
	memset(l, 0, sizeof(*l));
}

/* A point in time as the bound of a range: milliseconds. */
static char *
bound(wall_t t, const char *otherwise)
{
	return t > 0 ? xasprintf("%lld", (long long)(t / MSEC)) : xstrdup(otherwise);
}

/* One call; from and to are bounds of the range, only: the one id to look for. */
static int
call(struct letters *l, const char *from, const char *to, const char *only)
{
	const struct select *s = l->select;
	struct words w = { 0 };
	char page[24], cut[24];
	int i;

	snprintf(page, sizeof(page), "%ld", l->page);
	snprintf(cut, sizeof(cut), "%ld", l->cut);
	words_add(&w, l->target->keys.name[KEY_DEAD]);
	words_add(&w, l->newest ? "1" : "0");
	words_add(&w, from);
	words_add(&w, to);
	words_add(&w, page);
	words_add(&w, LOOK);
	words_add(&w, LOOK_BYTES);
	words_add(&w, cut);
	words_add(&w, s->reason);
	words_add(&w, s->match);
	if (only != NULL)
		words_add(&w, only);
	for (i = 0; only == NULL && i < s->nids; i++)
		if (!l->seen[i])
			words_add(&w, s->ids[i]);
	client_reply_free(l->reply);
	l->reply = ask_script(l->ctl, "dead_list", 1, &w);
	words_done(&w);
	return l->reply == NULL ? -1 : 0;
}

static int
count(const struct letters *l)
{
	size_t n = reply_len(l->reply);

	return n > 4 ? (int)(n - 4) : 0;
}

/* Tries the next id that could be a letter's; -1: there is none left. */
static int
next_direct(struct letters *l)
{
	const struct select *s = l->select;
	int i;

	while (l->direct < s->nids && !select_is_letter(s->ids[l->direct]))
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
	int i;

	for (i = 0; i < l->select->nids; i++)
		if (!l->seen[i])
			return false;
	return l->select->nids > 0;
}

/* Where the walk begins and ends. */
static void
begin(struct letters *l)
{
	const struct select *s = l->select;

	l->scanning = true;
	l->at = l->newest ? bound(s->until, "+") : bound(s->since, "-");
	l->end = l->newest ? bound(s->since, "-") : bound(s->until, "+");
}

/* Keeps what the reply says of the walk. */
static void
advance(struct letters *l)
{
	const char *last = reply_str(reply_at(l->reply, 1), NULL);
	const char *next = reply_str(reply_at(l->reply, 3), NULL);

	if (l->total == 0)
		l->total = reply_int(reply_at(l->reply, 0), 0);
	l->looked += reply_int(reply_at(l->reply, 2), 0);
	if (!l->newest && strcmp(l->end, "+") == 0 && last != NULL && last[0] != '\0') {
		free(l->end);
		l->end = xstrdup(last);
	}
	free(l->at);
	l->at = next != NULL && next[0] != '\0' ? xstrdup(next) : NULL;
}

int
letters_next(struct letters *l)
{
	int n;

	if (!l->scanning && (n = next_direct(l)) >= 0)
		return n;
	if (l->done || (!l->scanning && all_seen(l)))
		return -1;
	if (!l->scanning)
		begin(l);
	if (l->at == NULL || call(l, l->at, l->end, NULL) == -1) {
		l->done = true;
		return -1;
	}
	advance(l);
	return count(l);
}

static void
set(struct bytes *b, const struct redisReply *value)
{
	b->data = reply_str(value, &b->len);
}

/* Puts one field of a letter where it belongs. */
static void
take_field(struct letter *letter, const char *name, const struct redisReply *value)
{
	static const struct { const char *name; size_t at; } fields[] = {
		{ "id", offsetof(struct letter, id) },
		{ "message", offsetof(struct letter, message) },
		{ "reason", offsetof(struct letter, reason) },
		{ "attempts", offsetof(struct letter, attempts) },
		{ "status", offsetof(struct letter, status) },
		{ "error", offsetof(struct letter, error) },
		{ "host", offsetof(struct letter, host) },
	};
	size_t i;

	for (i = 0; name != NULL && i < ARRAY_LEN(fields); i++)
		if (strcmp(fields[i].name, name) == 0)
			set((struct bytes *)(void *)((char *)letter + fields[i].at), value);
}

void
letters_get(const struct letters *l, int i, struct letter *ret)
{
	const struct redisReply *row = reply_at(l->reply, (size_t)i + 4);
	size_t f;

	memset(ret, 0, sizeof(*ret));
	set(&ret->name, reply_at(row, 0));
	ret->size = (size_t)reply_int(reply_at(row, 1), 0);
	ret->died = ret->name.data != NULL ? strtod(ret->name.data, NULL) / 1e3 : 0;
	for (f = 2; f + 1 < reply_len(row); f += 2)
		take_field(ret, reply_str(reply_at(row, f), NULL), reply_at(row, f + 1));
}
