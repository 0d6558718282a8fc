/*
 * rqctl dead: the letters of QDEAD.
 *
 * retry moves letters in bounded steps, each one atomic in Redis
 * (dead_retry.lua: the message is in QRETRY before its letter is deleted), so
 * that an interruption between or inside of steps loses none and doubles none;
 * what is left over is retried by saying the same again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/reply.h"
#include "rqctl/ask.h"
#include "rqctl/groups.h"
#include "rqctl/letters.h"
#include "rqctl/out.h"
#include "rqctl/progress.h"
#include "rqctl/table.h"

#define STEP		500		/* letters per call at most */
#define STEP_BYTES	"1048576"	/* of messages per call */

/* What a walk over the chosen letters does to each page: how many, or -1 to stop. */
struct job {
	struct ctl	*ctl;
	struct target	 target;
	const struct target *to;	/* whose retries letters become; target, mostly */
	struct select	 select;
	struct letters	 letters;
	struct progress	 progress;
	int64_t		 matched;	/* letters that were chosen ... */
	int64_t		 most;		/* ... and are, at most: as many as were asked about; 0: all */
	int64_t		 done;
};

static int
job_init(struct job *j, struct ctl *c, bool must)
{
	memset(j, 0, sizeof(*j));
	j->ctl = c;
	if (select_parse(c, &j->select, must) == -1 ||
	    ctl_keeping_target(c, c->args.words[0], "dead", &j->target) == -1)
		return -1;
	j->to = &j->target;
	letters_init(&j->letters, c, &j->target, &j->select);
	return 0;
}

static void
job_done(struct job *j)
{
	letters_done(&j->letters);
	ctl_target_done(&j->target);
}

/* The status and the words for "there is none". */
static void
nothing(struct ctl *c, const struct job *j)
{
	if (c->status == 0)
		ctl_error(c, EX_NOTHING, "no dead letter of %s %s", j->target.name,
		    j->letters.total == 0 && j->select.nids == 0 ? "is there" : "matches");
}

/* Whole or as far as it was read; as an object with the names of QDEAD's fields. */
static json_t *
letter_json(const struct letter *l)
{
	static const struct { const char *name; size_t at; } fields[] = {
		{ "id", offsetof(struct letter, id) },
		{ "reason", offsetof(struct letter, reason) },
		{ "status", offsetof(struct letter, status) },
		{ "host", offsetof(struct letter, host) },
		{ "error", offsetof(struct letter, error) },
		{ "message", offsetof(struct letter, message) },
	};
	char when[CLOCK_TEXT_MAX];
	const struct bytes *b;
	json_t *o = json_object();
	size_t i;

	out_set_bytes(o, "letter", l->name.data, l->name.len);
	json_object_set_new(o, "died", json_string(clock_text((wall_t)(l->died * 1e6), when)));
	if (l->attempts.data != NULL)
		json_object_set_new(o, "attempts", json_integer(atoll(l->attempts.data)));
	for (i = 0; i < ARRAY_LEN(fields); i++) {
		b = (const struct bytes *)(const void *)((const char *)l + fields[i].at);
		if (b->data != NULL)
			out_set_bytes(o, fields[i].name, b->data, b->len);
	}
	return o;
}

/* The last line of what a handler wrote says most. */
static struct bytes
last_line(struct bytes text)
{
	const char *nl;

	while (text.len > 0 && (text.data[text.len - 1] == '\n' || text.data[text.len - 1] == '\r'))
		text.len--;
	nl = text.len > 0 ? memrchr(text.data, '\n', text.len) : NULL;
	if (nl != NULL) {
		text.len -= (size_t)(nl + 1 - text.data);
		text.data = nl + 1;
	}
	return text;
}

static void
add_bytes(struct table *t, struct bytes b)
{
	table_bytes(t, b.data != NULL ? b.data : "-", b.data != NULL ? b.len : 1);
}

static void
list_row(struct table *t, const struct letter *l, double now)
{
	char age[32];
	struct bytes error = last_line(l->error);

	add_bytes(t, l->name);
	add_bytes(t, l->id);
	table_add(t, "%s", out_age(now - l->died, age));
	add_bytes(t, l->reason);
	add_bytes(t, l->attempts);
	add_bytes(t, l->status);
	add_bytes(t, error.len > 0 ? error : l->message);
}

/* Fills the table, or the array where it is not NULL; newest first. */
static void
list_collect(struct job *j, struct table *t, json_t *array, double now, long count)
{
	struct letter letter;
	int n, i;

	while (j->matched < count && (n = letters_next(&j->letters)) >= 0) {
		for (i = 0; i < n && j->matched < count; i++, j->matched++) {
			letters_get(&j->letters, i, &letter);
			if (array != NULL)
				json_array_append_new(array, letter_json(&letter));
			else
				list_row(t, &letter, now);
		}
	}
}

/* Says where there are more than were shown; with filters nobody has counted them. */
static void
list_rest(const struct job *j, long count)
{
	const struct select *s = &j->select;
	bool all = s->reason[0] == '\0' && s->match[0] == '\0' && s->since == 0 && s->until == 0;

	if (j->matched >= count && j->letters.total > j->matched)
		ctl_list_cut(j->ctl, j->matched, all ? j->letters.total : -1, "dead letters");
}

void
dead_list(struct ctl *c)
{
	json_t *array = ctl_given(c, OPT_JSON) ? json_array() : NULL;
	struct table t;
	struct job j;
	double now;
	long count = 50;

	table_init(&t, "<LETTER", "<ID", ">AGE", "<REASON", ">ATTEMPTS", "<STATUS", "<ERROR", NULL);
	if (ctl_list_count(c, &count) == 0 && job_init(&j, c, false) == 0) {
		if ((now = ask_time(c)) >= 0) {
			j.letters.newest = true;
			j.letters.page = count < STEP ? count : STEP;
			j.letters.cut = array != NULL ? -1 : 200;
			list_collect(&j, &t, array, now, count);
			if (c->status == 0 && array != NULL)
				out_json(json_incref(array));
			else if (table_rows(&t) > 0) {
				table_show(&t);
				list_rest(&j, count);
			} else if (c->status == 0)
				ctl_note(c, "no dead letter of %s %s", j.target.name,
				    j.letters.total == 0 ? "is there" : "matches");
		}
		job_done(&j);
	}
	json_decref(array);
	table_done(&t);
}

/* A field of `dead show`, on lines of its own where it has several. */
static void
show_field(const char *name, struct bytes b)
{
	struct buf line = BUF_INIT;
	const char *p = b.data, *nl;
	size_t left = b.len, n;

	if (p == NULL)
		return;
	if (memchr(p, '\n', left) == NULL) {
		out_escape(&line, p, left);
		printf("%-9s %s\n", name, buf_str(&line));
	} else {
		printf("%s\n", name);
		for (; left > 0; p += n, left -= n) {
			nl = memchr(p, '\n', left);
			n = nl != NULL ? (size_t)(nl - p) + 1 : left;
			buf_clear(&line);
			out_escape(&line, p, nl != NULL ? n - 1 : n);
			printf("    %s\n", buf_str(&line));
		}
	}
	buf_done(&line);
}

static void
show_text(const struct letter *l)
{
	char when[CLOCK_TEXT_MAX];
	const char *text = clock_text((wall_t)(l->died * 1e6), when);

	show_field("letter", l->name);
	show_field("id", l->id);
	show_field("died", (struct bytes){ text, strlen(text) });
	show_field("reason", l->reason);
	show_field("attempts", l->attempts);
	show_field("status", l->status);
	show_field("host", l->host);
	show_field("error", l->error);
	show_field("message", l->message);
}

static void
show_one(const struct ctl *c, const struct letter *l, bool first)
{
	if (ctl_given(c, OPT_RAW))
		fwrite(l->message.data, 1, l->message.len, stdout);
	else if (ctl_given(c, OPT_JSON))
		out_json_line(letter_json(l));
	else {
		if (!first)
			putchar('\n');
		show_text(l);
	}
}

/* Writes every chosen letter by fn; stops where nobody reads. */
static void
write_letters(struct job *j, void (*fn)(const struct ctl *, const struct letter *, bool))
{
	struct letters *l = &j->letters;
	struct letter letter;
	int n, i;

	l->page = progress_step(&j->progress, STEP);
	while (!out_failed() && !ctl_interrupted() && (n = letters_next(l)) >= 0) {
		for (i = 0; i < n; i++) {
			letters_get(l, i, &letter);
			fn(j->ctl, &letter, j->matched++ == 0);
		}
		(void)progress_add(&j->progress, n, l->looked, l->total);
	}
	if (ctl_interrupted() && j->ctl->status == 0)
		j->ctl->status = EX_INTERRUPTED;
}

void
dead_show(struct ctl *c)
{
	struct job j;

	if (job_init(&j, c, true) == -1)
		return;
	j.progress.silent = true;
	write_letters(&j, show_one);
	if (j.matched == 0)
		nothing(c, &j);
	job_done(&j);
}

static void
export_one(const struct ctl *c, const struct letter *l, bool first)
{
	(void)c;
	(void)first;
	out_json_line(letter_json(l));
}

void
dead_export(struct ctl *c)
{
	struct job j;

	if (job_init(&j, c, false) == -1)
		return;
	if (progress_init(c, &j.progress, "exported") == 0) {
		j.progress.silent = out_width() > 0;	/* the letters are there to see */
		write_letters(&j, export_one);
		if (j.matched == 0)
			nothing(c, &j);
	}
	job_done(&j);
}

/* Letters i.. of the page, as words. */
static void
names_of(const struct letters *l, int i, int n, struct words *w)
{
	struct letter letter;

	for (; n > 0; i++, n--) {
		letters_get(l, i, &letter);
		words_mem(w, letter.name.data, letter.name.len);
	}
}

/* Moves up to n letters from i on; how many of these are dealt with, or -1. */
static int
retry_step(struct job *j, int i, int n, int64_t *moved)
{
	static const enum key lists[] = {
		KEY_BACKUP, KEY_CONTEXT, KEY_RETRY, KEY_DELIVERY, KEY_DEAD
	};
	static const enum key zsets[] = { KEY_QUEUE, KEY_DEAD };
	bool ids = kind_source(j->to->kind) == SOURCE_IDS;
	const enum key *keys = ids ? zsets : lists;
	size_t k, nkeys = ids ? ARRAY_LEN(zsets) : ARRAY_LEN(lists);
	struct words w = { 0 };
	struct redisReply *reply;
	int done = -1;

	for (k = 0; k < nkeys; k++)
		words_add(&w, (keys[k] == KEY_DEAD ? &j->target : j->to)->keys.name[keys[k]]);
	words_add(&w, STEP_BYTES);
	names_of(&j->letters, i, n, &w);
	reply = ask_script(j->ctl, ids ? "unique_dead_retry" : "dead_retry", (int)nkeys, &w);
	if (reply != NULL) {
		done = (int)reply_int(reply_at(reply, 0), 0);
		*moved = reply_int(reply_at(reply, 1), 0);
	}
	client_reply_free(reply);
	words_done(&w);
	return done;
}

/* The same for deletion. */
static int
drop_step(struct job *j, int i, int n, int64_t *moved)
{
	struct words w = { 0 };
	struct redisReply *reply;

	words_add(&w, "XDEL");
	words_add(&w, j->target.keys.name[KEY_DEAD]);
	names_of(&j->letters, i, n, &w);
	reply = ask_words(j->ctl, &w);
	if (reply != NULL)
		*moved = reply_int(reply, 0);
	else
		n = -1;
	client_reply_free(reply);
	words_done(&w);
	return n;
}

typedef int step_fn(struct job *, int, int, int64_t *);

/* Works through one page; false: stop. */
static bool
work_page(struct job *j, step_fn *step, int n)
{
	int64_t moved = 0;
	int i = 0, did, most;

	while (i < n) {
		most = progress_step(&j->progress, n - i);
		if ((did = step(j, i, most, &moved)) <= 0)
			return false;
		i += did;
		j->done += moved;
		if (!progress_add(&j->progress, moved, j->letters.looked, j->letters.total))
			return false;
	}
	return progress_add(&j->progress, 0, j->letters.looked, j->letters.total);
}

/* Walks over the letters; without a step they are only counted. */
static void
work(struct job *j, step_fn *step)
{
	int n;

	j->letters.cut = 0;
	j->letters.page = STEP;
	while (!ctl_interrupted() && (j->most == 0 || j->matched < j->most) &&
	    (n = letters_next(&j->letters)) >= 0) {
		if (j->most > 0 && n > j->most - j->matched)
			n = (int)(j->most - j->matched);
		j->matched += n;
		if (step != NULL && !work_page(j, step, n))
			break;
	}
	out_progress_clear();
	if (ctl_interrupted() && j->ctl->status == 0)
		j->ctl->status = EX_INTERRUPTED;
}

/* The closing words, whatever the end was. */
static void
tell(struct ctl *c, const struct job *j, const char *verb, int64_t n)
{
	char text[OUT_NUMBER_MAX];
	json_t *o;

	if (ctl_given(c, OPT_JSON)) {
		o = json_object();
		out_set_bytes(o, "queue", j->target.name, strlen(j->target.name));
		json_object_set_new(o, verb, json_integer(n));
		json_object_set_new(o, "dry_run", json_boolean(ctl_given(c, OPT_DRY_RUN)));
		json_object_set_new(o, "complete", json_boolean(c->status == 0));
		out_json(o);
	} else if (ctl_given(c, OPT_DRY_RUN))
		printf("would be %s: %s dead letter%s of %s\n", verb, out_number(n, text),
		    n == 1 ? "" : "s", j->target.name);
	else
		printf("%s %s dead letter%s of %s%s\n", verb, out_number(n, text),
		    n == 1 ? "" : "s", j->target.name,
		    c->status == 0 ? "" : "; stopped before the end, the rest is as it was");
}

/* Counts without doing anything; -1 when there is none or something went wrong. */
static int64_t
count_letters(struct ctl *c)
{
	struct job j;
	int64_t n = -1;

	if (job_init(&j, c, true) == -1)
		return -1;
	work(&j, NULL);
	if (j.matched == 0)
		nothing(c, &j);
	else if (c->status == 0)
		n = j.matched;
	job_done(&j);
	return n;
}

static void
run(struct ctl *c, step_fn *step, const char *verb, int64_t most, const struct target *to)
{
	struct job j;

	if (job_init(&j, c, true) == -1)
		return;
	j.most = most;
	j.to = to != NULL ? to : &j.target;
	if (progress_init(c, &j.progress, verb) == 0) {
		work(&j, ctl_given(c, OPT_DRY_RUN) ? NULL : step);
		if (j.matched == 0)
			nothing(c, &j);
		else if (c->status == 0 || j.done > 0)
			tell(c, &j, verb, ctl_given(c, OPT_DRY_RUN) ? j.matched : j.done);
	}
	job_done(&j);
}

/* Asks about as many as there are; how many it is answered for, or -1: do nothing. */
static int64_t
confirm(struct ctl *c, const char *what)
{
	int64_t n = count_letters(c);
	char text[OUT_NUMBER_MAX];

	if (n <= 0 || !ctl_confirm(c, "%s %s dead letter%s of %s", what, out_number(n, text),
	    n == 1 ? "" : "s", c->args.words[0]))
		return -1;
	return n;
}

static bool
must_ask(const struct ctl *c)
{
	return !ctl_given(c, OPT_DRY_RUN) && !ctl_given(c, OPT_YES);
}

void
dead_retry(struct ctl *c)
{
	int64_t n = 0;

	if (must_ask(c) && ctl_given(c, OPT_ALL))
		n = confirm(c, "retry");
	if (n >= 0)
		run(c, retry_step, "retried", n, NULL);
}

/* As retry, but into another queue, the last argument. */
void
dead_move(struct ctl *c)
{
	const char *name = c->args.words[--c->args.nwords];
	struct target to;
	int64_t n = 0;

	c->args.words[c->args.nwords] = NULL;
	if (ctl_keeping_target(c, name, "dead", &to) == -1)
		return;
	if (strcmp(name, c->args.words[0]) == 0) {
		ctl_error(c, EX_USAGE, "%s and %s are the same queue: rqctl dead retry", name, name);
		n = -1;
	} else if (must_ask(c) && ctl_given(c, OPT_ALL))
		n = confirm(c, "move");
	if (n >= 0)
		run(c, retry_step, "moved", n, &to);
	ctl_target_done(&to);
}

void
dead_drop(struct ctl *c)
{
	int64_t n = must_ask(c) ? confirm(c, "drop") : 0;

	if (n >= 0)
		run(c, drop_step, "dropped", n, NULL);
}

bool
dead_has(struct ctl *c, const struct target *t)
{
	struct select s = { .ids = c->args.words + 1, .nids = c->args.nwords - 1,
		.reason = "", .match = "" };
	struct letters l;
	int n = 0;

	letters_init(&l, c, t, &s);
	l.cut = 0;
	while (n == 0 && !ctl_interrupted())
		n = letters_next(&l);
	letters_done(&l);
	return n > 0;
}
