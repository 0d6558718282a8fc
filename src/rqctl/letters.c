/*
 * Walks through dead letters; see letters.h.  Pages come from dead_list.lua.  Each call
 * looks at a bounded number of letters and of bytes, so a page may be empty although
 * more follow.
 *
 * letters_next() first reads the ids that look like letters' numbers, without a walk.  The
 * walk then searches the messages' ids for the others.  It ends at the letter that was the
 * newest when it began, so it does not return a message that dies again meanwhile.
 *
 * The walk visits shard after shard.  Two shards may have letters of the same
 * number: select_parse() refuses it without the key.
 */
#include "rqctl/letters.h"

#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "status/json_bytes.h"

#define PAGE		250
#define TIME_MAX	2.5e11	/* seconds, before the year 10,000: anybody may choose a number */

/* Returned by dead_list.lua; then an array for each letter: its name, size, fields. */
enum { LIST_TOTAL, LIST_LAST, LIST_LOOKED, LIST_NEXT, LIST_FIELDS };

const char *const letter_fields[FIELD_MAX] = {
	"id", "reason", "status", "host", "error", "answer", "saved", "message",
	"attempts", "cpu", "maxrss"
};

bool
select_is_letter(const char *id)
{
	size_t n = strspn(id, "0123456789");

	return n > 0 && n < 20 && id[n] == '-' && id[n + 1] != '\0' &&
	    id[n + 1 + strspn(id + n + 1, "0123456789")] == '\0';
}

bool
select_is_narrow(const struct select *s)
{
	return s->nids > 0 || s->reason[0] != '\0' || s->match[0] != '\0' || s->since != 0 ||
	    s->until != 0;
}

const char *
select_number(const struct target *t, const char *id)
{
	size_t len = t->keys.len[KEY_QUEUE];

	if (strncmp(id, t->keys.name[KEY_QUEUE], len) == 0 && id[len] == ':')
		id += len + 1;
	if (!select_is_letter(id))
		return NULL;
	return id;
}

/*
 * Whether letters of several shards have the number.  Then this was reported;
 * or an error of Redis was.
 */
static bool
is_ambiguous(struct ctl *c, const char *number)
{
	struct buf choices = BUF_INIT;
	struct redisReply *reply;
	int found = 0;

	EACH_KEY(i, &c->target) {
		reply = ask(c, "XRANGE %s %s %s", c->target.keys.name[KEY_DEAD],
		    number, number);
		if (reply_len(reply) > 0) {
			buf_puts(&choices, text_if(found > 0, " or "));
			buf_printf(&choices, "%s:%s",
			    c->target.keys.name[KEY_QUEUE], number);
			found++;
		}
		reply_free(reply);
	}
	if (found > 1)
		ctl_error(c, EX_USAGE, "%s is the number of %d dead letters: "
		    "write %s", number, found, buf_str(&choices));
	buf_done(&choices);
	return c->status != 0;
}

int
select_parse(struct ctl *c, struct select *s)
{
	static const char *const reasons[] = {
		"attempts", "status", "answer", "crashed", "too_large", "unframeable",
		"cancelled", "buried"
	};
	bool all = ctl_given(c, OPT_ALL) && c->args.verb->rows == 0, narrow;
	const char *given = "filters";
	bool dead = (verb_options(c->args.verb) & OPT(REASON)) != 0;
	struct buf list = BUF_INIT;
	char *cause;
	size_t i;

	*s = (struct select){
		.ids = c->args.words + 1,
		.reason = ctl_value(c, OPT_REASON), .match = ctl_value(c, OPT_MATCH)
	};
	if (c->args.nwords > 1)
		s->nids = c->args.nwords - 1;
	for (i = 0; i < ARRAY_LEN(reasons) && strcmp(s->reason, reasons[i]) != 0; i++)
		buf_printf(&list, "%s%s", text_if(i > 0, ", "), reasons[i]);
	if (i == ARRAY_LEN(reasons) && s->reason[0] != '\0')
		ctl_error(c, EX_USAGE, "--reason: \"%s\" is not a reason of dead letters: write "
		    "one of %s", s->reason, buf_str(&list));
	buf_done(&list);
	if (c->status != 0)
		return -1;
	if (ctl_given(c, OPT_SINCE) && units_parse_past(ctl_value(c, OPT_SINCE), clock_wall(),
	    &s->since, &cause) == -1)
		return ctl_wrong(c, OPT_SINCE, cause);
	if (ctl_given(c, OPT_UNTIL) && units_parse_past(ctl_value(c, OPT_UNTIL), clock_wall(),
	    &s->until, &cause) == -1)
		return ctl_wrong(c, OPT_UNTIL, cause);
	narrow = select_is_narrow(s) || ctl_given(c, OPT_SINCE) || ctl_given(c, OPT_UNTIL);
	for (int n = 0; dead && c->target.nkeys > 1 && n < s->nids; n++)
		if (select_is_letter(s->ids[n]) && is_ambiguous(c, s->ids[n]))
			return -1;
	if (s->nids > 0)
		given = "ids";
	if (all && narrow)
		return ctl_error(c, EX_USAGE,
		    "--all does not go together with %s", given);
	if (narrow || all || (c->args.verb->flags & VERB_SELECTS) == 0)
		return 0;
	if (dead)
		return ctl_error(c, EX_USAGE, "select dead letters: by id, "
		    "--reason, --since, --until, --match, or --all");
	return ctl_error(c, EX_USAGE,
	    "select messages: by id, --match, or --all");
}

void
letters_init(struct letters *l, struct ctl *c, const struct select *s)
{
	*l = (struct letters){
		.ctl = c, .select = s, .cut = -1, .page = PAGE,
		.seen = xcalloc((size_t)s->nids + 1, sizeof(l->seen[0]))
	};
	target_select(&c->target, 0);
}

void
letters_done(struct letters *l)
{
	target_unselect(&l->ctl->target);
	reply_free(l->reply);
	free(l->seen);
	free(l->at);
	free(l->end);
	memset(l, 0, sizeof(*l));
}

/*
 * Calls dead_list.lua.  from and to are bounds of the range; only: an id, or NULL for the ids.
 * Returns how many letters the page has, or -1.
 */
static int
call(struct letters *l, const char *from, const char *to, const char *only)
{
	const struct select *s = l->select;
	struct words w = { .n = 0 };
	size_t n;

	ask_add(&w, "%s %lld %s %s %lld %lld %s %s",
	    l->ctl->target.keys.name[KEY_DEAD], (long long)l->newest, from, to,
	    (long long)l->page, (long long)l->cut, s->reason, s->match);
	if (only != NULL)
		ask_add(&w, "%s", only);
	for (int i = 0; only == NULL && i < s->nids; i++)
		if (!l->seen[i])
			ask_add(&w, "%s", s->ids[i]);
	reply_free(l->reply);
	l->reply = ask_script_words(l->ctl, "dead_list", 1, &w);
	l->done = l->reply == NULL;
	n = reply_len(l->reply);
	l->n = 0;
	if (n > LIST_FIELDS)
		l->n = (int)(n - LIST_FIELDS);
	if (l->done)
		return -1;
	return l->n;
}

/* A time as the bound of a range, in milliseconds; otherwise: the bound for "no time". */
static char *
bound(wall_t t, const char *otherwise)
{
	if (t <= 0)
		return xstrdup(otherwise);
	return xasprintf("%lld", (long long)(t / MSEC));
}

/* Whether a letter of this number is of the time that was asked for. */
static bool
is_in_time(const struct select *s, const char *number)
{
	long long died = strtoll(number, NULL, 10);

	return (s->since == 0 || died >= s->since / MSEC) &&
	    (s->until == 0 || died <= s->until / MSEC);
}

int
letters_next(struct letters *l)
{
	const struct select *s = l->select;
	const char *last, *next, *number;
	int i;

	while (!l->done && l->end == NULL && l->direct < s->nids) {
		i = l->direct++;
		number = select_number(&l->ctl->target, s->ids[i]);
		if (l->seen[i] || number == NULL || !is_in_time(s, number))
			continue;
		if (call(l, number, number, number) == -1)
			return -1;
		l->looked += l->n;
		l->seen[i] = l->n > 0;
		return l->n;
	}
	for (i = 0; i < s->nids && l->seen[i]; i++)
		continue;
	if (l->done || (l->end == NULL && s->nids > 0 && i == s->nids))
		return -1;
	if (l->end == NULL && l->newest) {
		l->at = bound(s->until, "+");
		l->end = bound(s->since, "-");
	} else if (l->end == NULL) {
		l->at = bound(s->since, "-");
		l->end = bound(s->until, "+");
	} else if (l->at == NULL) {
		if (l->key + 1 >= l->ctl->target.nkeys || (s->nids > 0 && i == s->nids)) {
			l->done = true;
			return -1;
		}
		target_select(&l->ctl->target, ++l->key);
		xreplace(&l->end, NULL);
		l->counted = false;
		l->direct = 0;
		return l->n = 0;
	}
	if (call(l, l->at, l->end, NULL) == -1)
		return -1;

	last = reply_str_at(l->reply, LIST_LAST);
	next = reply_str_at(l->reply, LIST_NEXT);
	if (!l->counted)
		l->total += reply_int_at(l->reply, LIST_TOTAL);
	l->counted = true;
	l->looked += reply_int_at(l->reply, LIST_LOOKED);
	if (!l->newest && strcmp(l->end, "+") == 0 && last != NULL && last[0] != '\0')
		xreplace(&l->end, last);
	if (next != NULL && next[0] == '\0')
		next = NULL;
	xreplace(&l->at, next);
	return l->n;
}

void
letters_get(const struct letters *l, int i, struct letter *ret)
{
	const struct redisReply *row = reply_at(l->reply, (size_t)i + LIST_FIELDS);
	const char *name;

	memset(ret, 0, sizeof(*ret));
	ret->name.data = reply_str(reply_at(row, 0), &ret->name.len);
	if (ret->name.data != NULL)
		ret->died = strtod(ret->name.data, NULL) / 1e3;
	if (!(ret->died >= 0 && ret->died <= TIME_MAX))
		ret->died = 0;
	for (size_t at = 2; at + 1 < reply_len(row); at += 2) {
		name = reply_str(reply_at(row, at), NULL);
		for (size_t f = 0; name != NULL && f < FIELD_MAX; f++)
			if (strcmp(letter_fields[f], name) == 0)
				ret->field[f].data = reply_str(reply_at(row, at + 1),
				    &ret->field[f].len);
	}
}

bool
letter_usage(const struct letter *l, json_t *o, struct buf *text)
{
	const struct bytes *cpu = &l->field[FIELD_CPU], *maxrss = &l->field[FIELD_MAXRSS];
	char size[UNITS_TEXT_MAX];

	if (cpu->data == NULL || maxrss->data == NULL)
		return false;
	if (o != NULL)
		json_set(o, "cpu:f maxrss:i", strtod(cpu->data, NULL),
		    (int64_t)atoll(maxrss->data));
	if (text != NULL)
		buf_printf(text, "cpu %.3fs, maxrss %s", strtod(cpu->data, NULL),
		    units_about_size(strtoull(maxrss->data, NULL, 10), size));
	return true;
}
