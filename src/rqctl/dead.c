/*
 * rqctl dead: lists, exports, retries, moves and deletes the letters of QDEAD.
 *
 * retry and move work in bounded steps.  Each step is atomic in Redis: dead_retry.lua puts the
 * message into QRETRY before it deletes the letter.  So an interruption neither loses nor
 * doubles a message, and the same command retries the rest.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "policy/shard_keys.h"
#include "redis/slots.h"
#include "rqctl/change.h"
#include "rqctl/letters.h"
#include "rqctl/listing.h"
#include "status/json_bytes.h"

#define STEP		500		/* letters per call at most */
#define STEP_BYTES	"1048576"	/* of messages per call */
#define ERROR_MIN	24		/* columns of an error: the ids are cut to leave it these */

/* Adds the fields of a letter under their names in QDEAD; returns the object. */
static json_t *
letter_json(json_t *o, const struct letter *l)
{
	char when[CLOCK_TEXT_MAX];

	json_set(o, "letter:b died:s", l->name.data, l->name.len,
	    clock_text((wall_t)(l->died * 1e6), when));
	if (l->field[FIELD_ATTEMPTS].data != NULL)
		json_set(o, "attempts:i", (int64_t)atoll(l->field[FIELD_ATTEMPTS].data));
	for (size_t i = 0; i < FIELD_ATTEMPTS; i++)
		if (l->field[i].data != NULL)
			json_set(o, "*:b", letter_fields[i], l->field[i].data, l->field[i].len);
	return o;
}

/* -- dead list -------------------------------------------------------------------- */

/* Returns the last line: in what a handler has printed it says most about the failure. */
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
	table_bytes(t, b.len > 0 ? b.data : "-", b.len > 0 ? b.len : 1);
}

/* Adds a cell: "status 65", "attempts 75", "crashed SIGKILL" or "too_large". */
static void
add_reason(struct table *t, struct bytes reason, struct bytes status)
{
	table_add(t, "%.*s%s%.*s", (int)reason.len, reason.data != NULL ? reason.data : "",
	    reason.len > 0 && status.len > 0 ? " " : "", (int)status.len,
	    status.data != NULL ? status.data : "");
}

static void
list_row(struct listing *l, const struct letter *letter, double now)
{
	const struct bytes *f = letter->field;
	struct table *t = &l->table;
	json_t *o = listing_row(l);
	char age[UNITS_TEXT_MAX];

	if (o != NULL) {
		letter_json(o, letter);
		return;
	}
	add_bytes(t, letter->name);
	add_bytes(t, f[FIELD_ID]);
	table_add(t, "%s", units_age(now - letter->died, age));
	add_bytes(t, f[FIELD_ATTEMPTS]);
	add_reason(t, f[FIELD_REASON], f[FIELD_STATUS]);
	add_bytes(t, f[FIELD_ANSWER].len > 0 ? f[FIELD_ANSWER] : last_line(f[FIELD_ERROR]));
}

/* Adds rows, the newest letter first.  Returns how many letters there are; -1: not known. */
static int64_t
list(struct listing *l, const struct select *s, double now)
{
	struct letters letters;
	struct letter letter;
	int64_t total;
	int n, i;

	letters_init(&letters, l->ctl, s);
	letters.newest = true;
	letters.page = listing_room(l, STEP);
	letters.cut = l->array != NULL ? -1 : 0;
	while (!listing_is_full(l) && (n = letters_next(&letters)) >= 0)
		for (i = 0; i < n && !listing_is_full(l); i++) {
			letters_get(&letters, i, &letter);
			list_row(l, &letter, now);
		}
	total = letters.total;
	letters_done(&letters);
	if (listing_is_full(l) && l->ctl->target.nkeys > 1)
		total = target_count(l->ctl, &l->ctl->target, "XLEN", KEY_DEAD);
	l->more = listing_is_full(l) && total > l->rows;
	return select_is_narrow(s) ? -1 : total;
}

void
dead_list(struct ctl *c)
{
	struct select s = { .reason = "", .match = "" };
	struct listing l;
	int64_t total = 0;
	double now;
	int rc = listing_init(&l, c, "LETTER|ID|>AGE|>ATTEMPTS|REASON|ERROR");

	l.table.last_min = ERROR_MIN;
	l.table.cut = 1;
	if (rc == 0 && select_parse(c, &s) == 0 && (now = ask_time(c)) >= 0)
		total = list(&l, &s, now);
	listing_end(&l, total, "dead letters", select_is_narrow(&s) ?
	    "no dead letter of %s matches" : "%s has no dead letters", c->target.name);
}

/* -- dead show, export ------------------------------------------------------------ */

/* Prints "NAME VALUE", or below the name each line of a value that has several. */
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
	static const enum letter_field order[] = {
		FIELD_REASON, FIELD_ANSWER, FIELD_ATTEMPTS, FIELD_STATUS, FIELD_HOST, FIELD_ERROR,
		FIELD_MESSAGE
	};
	char when[CLOCK_TEXT_MAX];
	const char *text = clock_text((wall_t)(l->died * 1e6), when);

	show_field("letter", l->name);
	show_field("id", l->field[FIELD_ID]);
	show_field("died", (struct bytes){ text, strlen(text) });
	for (size_t i = 0; i < ARRAY_LEN(order); i++)
		show_field(letter_fields[order[i]], l->field[order[i]]);
}

static void
show_one(const struct change *ch, const struct letter *l)
{
	const struct bytes *message = &l->field[FIELD_MESSAGE];
	const struct ctl *c = ch->ctl;

	if (ctl_given(c, OPT_RAW))
		fwrite(message->data, 1, message->len, stdout);
	else if (ctl_given(c, OPT_JSON) || c->args.verb->run == dead_export)
		out_json_line(letter_json(json_object(), l));
	else {
		if (ch->matched > 0)
			putchar('\n');
		show_text(l);
	}
}

/* Writes the selected letters.  Stops when standard output cannot be written. */
static void
show(struct ctl *c, bool silent)
{
	struct letter letter;
	struct letters l;
	struct change ch;
	int n, i;

	if (change_begin(c, &ch, "exported") == -1)
		return;
	ch.silent = silent;
	letters_init(&l, c, &ch.select);
	l.page = change_step(&ch, STEP);
	while (!out_failed() && !ctl_interrupted() && (n = letters_next(&l)) >= 0) {
		for (i = 0; i < n; i++, ch.matched++) {
			letters_get(&l, i, &letter);
			show_one(&ch, &letter);
		}
		(void)change_add(&ch, n, l.looked, l.total);
	}
	if (ctl_interrupted() && c->status == 0)
		c->status = EX_INTERRUPTED;
	if (ch.matched == 0)
		change_none(&ch, "dead letter");
	letters_done(&l);
}

void
dead_show(struct ctl *c)
{
	show(c, true);
}

/* Shows no progress on a terminal: the letters themselves appear there. */
void
dead_export(struct ctl *c)
{
	show(c, out_width() > 0);
}

/* -- dead retry, drop, move ------------------------------------------------------- */

/* step() changes n letters, as retry_step() does.  to: the queue whose retries they become. */
struct action {
	int	(*step)(const struct action *, const struct letters *, int, int, int64_t *);
	const struct target *to;
};

/* Adds the names of letters i to i + n - 1 of the page to a command. */
static void
add_names(const struct letters *l, int i, int n, struct words *w)
{
	struct letter letter;

	for (; n > 0; i++, n--) {
		letters_get(l, i, &letter);
		words_mem(w, letter.name.data, letter.name.len);
	}
}

/* Returned by dead_retry.lua. */
enum { RETRY_DONE, RETRY_MOVED, RETRY_FIELDS };

/*
 * Moves up to n letters from i on.  Returns how many of these the script has looked at, or -1;
 * *moved: how many it has moved.
 */
static int
retry_step(const struct action *a, const struct letters *l, int i, int n, int64_t *moved)
{
	const char *dead = l->ctl->target.keys.name[KEY_DEAD];
	char *const *k = a->to->keys.name;
	struct words w = { .n = 0 };
	struct redisReply *reply;
	int done = -1;

	if (a->to->source == SOURCE_IDS)
		ask_add(&w, "%s", k[KEY_QUEUE]);
	else
		ask_add(&w, "%s %s %s %s", k[KEY_BACKUP], k[KEY_CONTEXT], k[KEY_RETRY],
		    k[KEY_DELIVERY]);
	ask_add(&w, "%s " STEP_BYTES, dead);
	add_names(l, i, n, &w);
	reply = a->to->source == SOURCE_IDS ? ask_script_words(l->ctl, "unique_dead_retry", 2, &w) :
	    ask_script_words(l->ctl, "dead_retry", 5, &w);
	if (reply != NULL) {
		done = (int)reply_int_at(reply, RETRY_DONE);
		*moved = reply_int_at(reply, RETRY_MOVED);
	}
	blocking_reply_free(reply);
	return done;
}

static int
drop_step(const struct action *a UNUSED, const struct letters *l, int i, int n, int64_t *moved)
{
	struct words w = { .n = 0 };

	ask_add(&w, "XDEL %s", l->ctl->target.keys.name[KEY_DEAD]);
	add_names(l, i, n, &w);
	*moved = ask_number(ask_words(l->ctl, &w));
	return *moved == -1 ? -1 : n;
}

/* Changes the first n letters of a page.  False: the walk must stop. */
static bool
do_page(struct change *ch, const struct letters *l, int n)
{
	const struct action *a = ch->arg;
	int64_t moved = 0;
	int i = 0, did;

	while (i < n) {
		if ((did = a->step(a, l, i, change_step(ch, n - i), &moved)) <= 0)
			return false;
		i += did;
		if (!change_add(ch, moved, l->looked, l->total))
			return false;
	}
	return change_add(ch, 0, l->looked, l->total);
}

static void
walk(struct change *ch)
{
	struct letters l;
	int n;

	letters_init(&l, ch->ctl, &ch->select);
	l.cut = 0;
	l.page = STEP;
	while (change_goes_on(ch) && (n = letters_next(&l)) >= 0) {
		n = change_match(ch, n);
		if (!ch->dry && !do_page(ch, &l, n))
			break;
	}
	letters_done(&l);
}

static void
change_letters(struct ctl *c, const char *verb, const char *word, const struct action *a)
{
	const struct change_ops ops = { .verb = verb, .what = "dead letter", .word = word,
		.complete = true, .walk = walk };

	change_run(c, &ops, a);
}

void
dead_retry(struct ctl *c)
{
	change_letters(c, "retry", "retried", &(struct action){ retry_step, &c->target });
}

void
dead_drop(struct ctl *c)
{
	change_letters(c, "drop", "dropped", &(struct action){ drop_step, NULL });
}

/* dead_retry.lua needs the keys of both queues in one slot of a cluster. */
static bool
is_one_slot(const struct ctl *c, const struct target *to)
{
	const struct keys *a = &c->target.keys, *b = &to->keys;

	return !ctl_is_cluster(c) || (c->target.nkeys == 1 && to->nkeys == 1 &&
	    slot_of(a->name[KEY_QUEUE], a->len[KEY_QUEUE]) ==
	    slot_of(b->name[KEY_QUEUE], b->len[KEY_QUEUE]));
}

/* The last argument is the queue to which the messages go. */
void
dead_move(struct ctl *c)
{
	const char *name = c->args.words[--c->args.nwords];
	struct target to;

	c->args.words[c->args.nwords] = NULL;
	if (target_find(c, name, VERB_KEEPING, &to) == 0) {
		if (strcmp(name, c->target.name) == 0)
			ctl_error(c, EX_USAGE, "%s is the same queue: use rqctl dead retry", name);
		else if (!is_one_slot(c, &to))
			ctl_error(c, EX_USAGE, "the keys of %s and %s are in different slots of "
			    "the cluster: copy the letters by rqctl dead export %s | rqctl dead "
			    "import %s, then drop them here and retry them there", c->target.name,
			    name, c->target.name, name);
		else
			change_letters(c, "move", "moved", &(struct action){ retry_step, &to });
	}
	target_done(&to);
}

/* -- dead import ------------------------------------------------------------------ */

/*
 * Each line of standard input is a letter as export writes it.  A letter keeps its number
 * unless QDEAD has had newer ones.  Import skips a letter whose number exists, so the user can
 * repeat an interrupted import.
 */
struct import {
	struct ctl	*ctl;
	int64_t		 line;
	int64_t		 imported;
	int64_t		 present;	/* skipped: QDEAD has them already */
};

/* The fields of QDEAD that a letter may have. */
static const char *const fields[] = {
	"id", "message", "reason", "attempts", "status", "error", "answer", "host"
};

/* Adds the fields that the object has; returns whether a message is among them. */
static bool
add_fields(struct words *w, const json_t *letter)
{
	bool message = false;
	const json_t *v;
	char *text;
	size_t i, len;

	for (i = 0; i < ARRAY_LEN(fields); i++) {
		v = json_object_get(letter, fields[i]);
		if (json_is_integer(v))
			ask_add(w, "%s %lld", fields[i], (long long)json_integer_value(v));
		else if ((text = json_get_bytes(letter, fields[i], &len)) != NULL) {
			ask_add(w, "%s", fields[i]);
			words_own(w, text, len);
		} else
			continue;
		message = message || strcmp(fields[i], "message") == 0;
	}
	return message;
}

/* Selects the shard by the id, or the number: a repeated import selects the same shard. */
static void
select_shard(struct ctl *c, const json_t *letter)
{
	const char *id = json_string_value(json_object_get(letter, "id"));
	const char *number = json_string_value(json_object_get(letter, "letter"));
	const char *name = id != NULL ? id : number != NULL ? number : "";

	if (c->target.cfg != NULL && c->target.cfg->shards > 1)
		target_select(&c->target, shard_keys_part(name, strlen(name),
		    (unsigned)c->target.cfg->shards));
}

static int
import_letter(struct import *m, const json_t *letter)
{
	const char *number = json_string_value(json_object_get(letter, "letter"));
	struct words w = { .n = 0 };
	int64_t n;

	select_shard(m->ctl, letter);
	ask_add(&w, "%s %s", m->ctl->target.keys.name[KEY_DEAD],
	    number != NULL && select_is_letter(number) ? number : "");
	if (!add_fields(&w, letter)) {
		words_done(&w);
		return ctl_error(m->ctl, EX_DATAERR,
		    "line %lld: not a dead letter: it has no message", (long long)m->line);
	}
	n = ask_number(ask_script_words(m->ctl, "dead_import", 1, &w));
	m->imported += n == 1;
	m->present += n == 0;
	return n == -1 ? -1 : 0;
}

static int
import_line(struct import *m, const char *line, size_t len)
{
	json_error_t error;
	json_t *letter = json_loadb(line, len, JSON_ALLOW_NUL, &error);
	int rc = -1;

	if (json_is_object(letter))
		rc = import_letter(m, letter);
	else
		ctl_error(m->ctl, EX_DATAERR, "line %lld: not a JSON object: dead import reads "
		    "what dead export writes", (long long)m->line);
	json_decref(letter);
	return rc;
}

static void
import_all(struct import *m)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t n;

	ctl_catch_signals();
	while (!ctl_interrupted() && (n = getline(&line, &room, stdin)) > 0) {
		m->line++;
		if (line[strspn(line, " \t\r\n")] == '\0')
			continue;
		if (import_line(m, line, (size_t)n) == -1)
			break;
	}
	if (ctl_interrupted())
		ctl_error(m->ctl, EX_INTERRUPTED, "interrupted");
	else if (ferror(stdin))
		ctl_error(m->ctl, EX_IOERR, "standard input: %s", strerror(errno));
	free(line);
}

void
dead_import(struct ctl *c)
{
	struct import m = { .ctl = c };
	char n[OUT_NUMBER_MAX], there[OUT_NUMBER_MAX];

	if (ctl_connect(c) == -1)
		return;
	import_all(&m);
	ctl_result(c,
	    json_set(json_object(), "queue:s imported:i present:i complete:t", c->target.name,
		m.imported, m.present, c->status == 0),
	    "imported %s dead letter%s of %s%s%s%s", out_number(m.imported, n),
	    m.imported == 1 ? "" : "s", c->target.name, m.present > 0 ? "; skipped " : "",
	    m.present > 0 ? out_number(m.present, there) : "",
	    m.present > 0 ? " that existed" : "");
}
