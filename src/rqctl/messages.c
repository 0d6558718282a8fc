/* Walks over messages; see messages.h. */
#include "rqctl/messages.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "policy/message.h"
#include "queue/pausetext.h"
#include "rqctl/snapshot.h"

#define STEP		500		/* letters per call at most */
#define LATEST		10000		/* dead letters to search for a hint */
#define LETTER_COLUMNS \
	"LETTER=.letter|ID=id|>AGE=.age|>ATTEMPTS=attempts|REASON=.reason|ERROR=.error"
#define WAITING_COLUMNS \
	"ID=id|DUE=.due|>ATTEMPTS=attempts|>BYTES=.bytes|MESSAGE=message"
#define RETRY_MESSAGE	4		/* the column */
#define SAID_MAX	200	/* bytes of an error by which a summary counts */
#define SUMMARY_MAX	1000	/* different failures in a summary; the rest are "others" */
#define ERROR_MIN	24		/* columns of an error: the ids are cut to leave it these */

/* -- rows of lists -------------------------------------------------------------------- */

/* The text, which is null in JSON if it is "". */
static const char *
or_null(const char *text)
{
	if (text[0] == '\0')
		return NULL;
	return text;
}

void
messages_list_waiting(struct listing *l, const struct waiting *m, double now, bool retries,
    const char *error, bool place)
{
	double due = m->score;
	bool again;
	size_t len = m->len;
	char id[MESSAGE_ID_MAX + 1], text[WAITING_DUE_MAX];
	const char *size = ".bytes";
	json_t *o = json_object();

	if (!retries)
		due = waiting_due(m);
	if (l->array == NULL)
		len = size_min(len, WAITING_SHOWN);
	/* An id of kind "unique" that was enqueued again while it runs. */
	again = place && due <= now && due != m->score && m->score < 1e11;
	waiting_id(&l->ctl->target, m, id);
	if (place) {
		json_set(o, "place:i", l->rows + 1);
		size = "length";
	}
	json_set(o, "id:s", or_null(id));
	if (!place && m->taglen > 0)
		json_set(o, "tag:b", m->tag, m->taglen);
	if (now >= 0) {
		waiting_due_text(due, now, text);
		if (again)
			snprintf(text, sizeof(text), "after its run");
		json_set(o, "due:f .due:s", due, text);
	}
	if (!place)
		json_set(o, "attempts:i crashes:i", (int64_t)m->delivery.attempts,
		    (int64_t)m->delivery.crashes);
	if (error != NULL)
		json_set(o, "error:s", or_null(error));
	json_set(o, "*:i message:b", size, m->size, m->data, len);
	listing_row(l, o);
}

static bool
bytes_are(const struct bytes *b, const char *text)
{
	return b->len == strlen(text) && memcmp(b->data, text, b->len) == 0;
}

/* Adds the fields of a letter under their names in QDEAD; returns the object. */
static json_t *
letter_json(json_t *o, const struct letter *l)
{
	char when[CLOCK_TEXT_MAX];

	json_set(o, "letter:b died:s", l->name.data, l->name.len,
	    clock_text((wall_t)(l->died * 1e6), when));
	if (l->field[FIELD_ATTEMPTS].data != NULL)
		json_set(o, "attempts:i", (int64_t)atoll(l->field[FIELD_ATTEMPTS].data));
	(void)letter_usage(l, o, NULL);
	for (size_t i = 0; i < FIELD_ATTEMPTS; i++)
		if (l->field[i].data != NULL)
			json_set(o, "*:b", letter_fields[i], l->field[i].data, l->field[i].len);
	return o;
}

/* What the handler said, else the last line of its error, which says most about the failure. */
static struct bytes
letter_said(const struct letter *letter)
{
	struct bytes said = letter->field[FIELD_ANSWER];
	const char *nl = NULL;

	if (said.len > 0)
		return said;
	said = letter->field[FIELD_ERROR];
	while (said.len > 0 && strchr("\r\n", said.data[said.len - 1]) != NULL)
		said.len--;
	if (said.len > 0)
		nl = memrchr(said.data, '\n', said.len);
	if (nl != NULL) {
		said.len -= (size_t)(nl + 1 - said.data);
		said.data = nl + 1;
	}
	return said;
}

/* "said dead", "attempts (status 75)", "status 65", "crashed (SIGKILL)" or "too_large" */
static void
letter_why(const struct letter *letter, struct buf *b)
{
	const struct bytes *reason = &letter->field[FIELD_REASON];
	const struct bytes *status = &letter->field[FIELD_STATUS];
	bool number = status->len > 0 && status->data[0] >= '0' && status->data[0] <= '9';

	if (bytes_are(reason, "answer")) {
		buf_puts(b, "said dead");
		return;
	}
	buf_add(b, reason->data, reason->len);
	if (status->len == 0)
		return;
	if (bytes_are(reason, "status"))
		buf_printf(b, " %.*s", (int)status->len, status->data);
	else
		buf_printf(b, " (%s%.*s)", text_if(number, "status "),
		    (int)status->len, status->data);
}

static void
list_letter(struct listing *l, const struct letter *letter, double now)
{
	struct bytes said = letter_said(letter);
	const struct target *t = &l->ctl->target;
	json_t *o = json_object();
	struct buf why = BUF_INIT, number = BUF_INIT;

	if (l->ctl->args.nwords == 0)
		json_set(o, "queue:s", l->ctl->target.name);
	letter_json(o, letter);
	if (t->nkeys > 1) {
		json_set(o, "key:s", t->keys.name[KEY_QUEUE]);
		buf_printf(&number, "%s:", t->keys.name[KEY_QUEUE]);
	}
	buf_add(&number, letter->name.data, letter->name.len);
	json_set(o, ".letter:s", buf_str(&number));
	buf_done(&number);
	letter_why(letter, &why);
	json_set(o, ".age:f .reason:b", now - letter->died, buf_str(&why), why.len);
	if (said.len > 0)
		json_set(o, ".error:b", said.data, said.len);
	listing_row(l, o);
	buf_done(&why);
}

/* -- summaries ------------------------------------------------------------------------ */

/* As much of the text as a summary counts by: whole characters. */
static struct bytes
summary_said(const struct letter *letter)
{
	struct bytes said = letter_said(letter);

	if (said.len <= SAID_MAX)
		return said;
	said.len = SAID_MAX;
	while (said.len > SAID_MAX - 4 &&
	    ((unsigned char)said.data[said.len] & 0xc0) == 0x80)
		said.len--;
	return said;
}

/*
 * Counts a letter in w->summary: a row by the text that tells its failure from
 * others.  The text is escaped, as members of JSON must be UTF-8.
 */
static void
count_letter(struct walk *w, const struct letter *letter)
{
	struct bytes said = summary_said(letter);
	struct buf text = BUF_INIT, why = BUF_INIT;
	json_t *row;

	letter_why(letter, &why);
	out_escape(&text, why.data, why.len);
	buf_addc(&text, '\n');
	out_escape(&text, said.data, said.len);
	row = json_object_get(w->summary, buf_str(&text));
	if (row == NULL && json_object_size(w->summary) >= SUMMARY_MAX) {
		buf_clear(&text);
		buf_puts(&text, "others\n");
		buf_clear(&why);
		buf_puts(&why, "others");
		said.len = 0;
		row = json_object_get(w->summary, buf_str(&text));
	}
	if (row == NULL) {
		row = json_set(json_object(), "count:i why:b", (int64_t)0,
		    buf_str(&why), why.len);
		if (said.len > 0)
			json_set(row, "error:b", said.data, said.len);
		else
			json_set(row, "error:s", NULL);
		json_object_set_new(w->summary, buf_str(&text), row);
	}
	json_set(row, "count:i", fleet_count(row, "count") + 1);
	buf_done(&text);
	buf_done(&why);
}

struct counted {
	const char	*text;
	json_t		*row;
	int64_t		 n;
};

static int
by_count(const void *a, const void *b)
{
	const struct counted *x = a, *y = b;

	if (x->n > y->n)
		return -1;
	if (x->n < y->n)
		return 1;
	return strcmp(x->text, y->text);
}

/* Lists the summary, the most frequent failure first. */
static void
list_summary(struct listing *l, json_t *summary)
{
	size_t n = 0, max = json_object_size(summary);
	struct counted *all = xcalloc(max + 1, sizeof(*all));
	const char *text;
	json_t *row;

	json_object_foreach(summary, text, row)
		all[n++] = (struct counted){
			text, row, fleet_count(row, "count")
		};
	qsort(all, n, sizeof(*all), by_count);
	for (size_t i = 0; i < n; i++)
		listing_row(l, json_incref(all[i].row));
	free(all);
}

/* -- letters in full ------------------------------------------------------------------ */

/* Prints the first line of the bytes, and removes it from them. */
static void
write_line(const char *before, struct bytes *b)
{
	const char *nl = memchr(b->data, '\n', b->len);
	struct buf line = BUF_INIT;
	size_t n = b->len;

	if (nl != NULL)
		n = (size_t)(nl - b->data);
	out_escape(&line, b->data, n);
	printf("%s%s\n", before, buf_str(&line));
	buf_done(&line);
	if (nl != NULL)
		n++;
	b->data += n;
	b->len -= n;
}

/* Prints "NAME VALUE", or below the name each line of a value that has several. */
static void
write_field(const char *name, struct bytes b)
{
	char before[32];

	if (b.data == NULL)
		return;
	if (b.len == 0 || memchr(b.data, '\n', b.len) == NULL) {
		snprintf(before, sizeof(before), "%-9s ", name);
		write_line(before, &b);
		return;
	}
	puts(name);
	while (b.len > 0)
		write_line("    ", &b);
}

static void
write_letter(const struct walk *w, const struct letter *l)
{
	static const enum letter_field order[] = {
		FIELD_REASON, FIELD_ANSWER, FIELD_ATTEMPTS, FIELD_STATUS, FIELD_HOST, FIELD_ERROR,
		FIELD_SAVED, FIELD_MESSAGE
	};
	const struct bytes *message = &l->field[FIELD_MESSAGE];
	struct buf usage = BUF_INIT;
	char when[CLOCK_TEXT_MAX];

	if (ctl_given(w->ctl, OPT_RAW)) {
		fwrite(message->data, 1, message->len, stdout);
		return;
	}
	if (w->json) {
		out_json(letter_json(json_object(), l), true);
		return;
	}
	if (w->matched > 1)
		putchar('\n');
	write_field("letter", l->name);
	write_field("id", l->field[FIELD_ID]);
	printf("%-9s %s\n", "died", clock_text((wall_t)(l->died * 1e6), when));
	if (letter_usage(l, NULL, &usage))
		printf("%-9s %s\n", "usage", buf_str(&usage));
	buf_done(&usage);
	for (size_t i = 0; i < ARRAY_LEN(order); i++)
		write_field(letter_fields[order[i]], l->field[order[i]]);
}

/* -- steps ---------------------------------------------------------------------------- */

void
messages_add(struct words *w, const struct words *members, int i, int n)
{
	for (; n > 0; i++, n--)
		words_mem(w, members->v[i], members->len[i]);
}

int
messages_make_due(struct walk *w, const struct words *members, int i, int n, int64_t *gone)
{
	struct words words = ask_format("%s", w->ctl->target.keys.name[w->at.key]);

	messages_add(&words, members, i, n);
	*gone = ask_number(ask_script_words(w->ctl, "due", 1, &words));
	if (*gone == -1)
		return -1;
	return n;
}

int
messages_end_retries(struct walk *w, const struct words *members, int i, int n, bool bury,
    int64_t *gone)
{
	enum { DROP_GONE, DROP_HELD };	/* returned by drop.lua */
	const struct target *t = &w->ctl->target;
	char *const *k = t->keys.name;
	const char *verb = "drop", *error = "";
	struct redisReply *reply;
	struct words words;
	int end = i + n, step = n, nkeys;
	long long most = 0;

	if (bury) {
		verb = "bury";
		error = w->error;
		step = 1;
	}
	if (t->cfg != NULL)
		most = (long long)t->cfg->dead_max;
	for (*gone = 0; i < end; i += step) {
		words = ask_format("%s %s %s %s %s %s %s %s", k[KEY_CONTEXT], k[KEY_RETRY],
		    k[KEY_DELIVERY], k[KEY_DEAD], k[KEY_QUEUE], k[KEY_HELD], k[KEY_GROUP],
		    k[KEY_ORDER]);
		nkeys = 8 + target_add_dead_key(t, &words);
		ask_add(&words, "%s %lld %s %s %s %s", verb, most,
		    w->ctl->config->name, error, keys_group(&t->keys),
		    t->dead_tell);
		messages_add(&words, members, i, step);
		reply = ask_script_words(w->ctl, "drop", nkeys, &words);
		if (reply == NULL)
			return -1;
		*gone += reply_int_at(reply, DROP_GONE);
		w->kept += reply_int_at(reply, DROP_HELD);
		reply_free(reply);
	}
	return n;
}

/* -- walks ---------------------------------------------------------------------------- */

/* How many of the next n messages may be changed, or written, in one step: at least 1. */
static int
step_of(const struct walk *w, int n)
{
	if (w->rate <= 0 || w->rate / 10 >= n)
		return n;
	if (w->rate < 10)
		return 1;
	return (int)(w->rate / 10);
}

/* What a walk over dead letters has done so far. */
static void
show_progress(const struct walk *w)
{
	double passed = (double)(clock_mono() - w->began) / (double)SEC;
	char done[OUT_NUMBER_MAX], of[OUT_NUMBER_MAX], age[UNITS_TEXT_MAX];
	const char *word = "exported";
	double left = 0, per_second = 0;
	int percent = 100;

	if (w->action != NULL)
		word = w->action->word;
	if (w->looked > 0 && w->total > w->looked)
		left = passed / (double)w->looked *
		    (double)(w->total - w->looked);
	if (w->total > 0)
		percent = (int)(100 * w->looked / w->total);
	if (passed > 0)
		per_second = (double)w->done / passed;
	out_progress("%s %s; %d%% of %s letters looked at, %.0f/s, %s left",
	    word, out_number(w->done, done), percent,
	    out_number(w->total, of), per_second, units_age(left, age));
}

/*
 * Counts n changes, shows the progress, and sleeps as --rate demands.  It computes from the
 * beginning when the next step may start, so after a slow step the next ones follow at once.
 * False: a signal has come, so the walk must stop.
 */
static bool
add_done(struct walk *w, int64_t n)
{
	usec_t due;

	w->done += n;
	if (w->part == PART_DEAD && !w->silent)
		show_progress(w);
	if (w->rate <= 0)
		return !ctl_interrupted();
	due = w->began + (usec_t)((double)w->done / w->rate * (double)SEC);
	return ctl_sleep(int64_max(due - clock_mono(), 0));
}

/* Changes the members.  Returns how many are gone, or -1: the walk must stop. */
static int64_t
change(struct walk *w, const struct words *members)
{
	int64_t all = 0, gone;
	int i, did;

	for (i = 0; i < members->n; i += did) {
		gone = 0;
		did = w->action->step(w, members, i, step_of(w, members->n - i), &gone);
		if (!add_done(w, int64_max(gone, 0)) || did <= 0)
			return -1;
		all += gone;
	}
	return all;
}

static bool
goes_on(const struct walk *w)
{
	return !ctl_interrupted() && !out_failed() && (w->most == 0 || w->matched < w->most);
}

/*
 * Whether one of the ids is the id or the name, a tag or a letter's number, of a message; marks
 * it as found.  True, too, if there are no ids.
 */
static bool
has_id(const struct walk *w, const char *id, size_t idlen, const char *name, size_t len)
{
	bool any = w->select.nids == 0;
	const char *want, *number;
	size_t n;

	for (int i = 0; i < w->select.nids; i++) {
		want = w->select.ids[i];
		n = strlen(want);
		if (n > 0 && ((idlen == n && memcmp(id, want, n) == 0) ||
		    (len == n && memcmp(name, want, n) == 0)))
			any = w->found[i] = true;
		number = select_number(&w->ctl->target, want);
		if (w->part == PART_DEAD && number != NULL &&
		    len == strlen(number) && memcmp(name, number, len) == 0)
			any = w->found[i] = true;
	}
	return any;
}

/* Whether a message that waits for a time is selected. */
static bool
is_chosen(const struct walk *w, const struct waiting *m)
{
	const char *match = w->select.match;
	char id[MESSAGE_ID_MAX + 1];

	if (w->at.key == KEY_RETRY && w->part == PART_DELAYED && (m->delivery.attempts > 0 ||
	    m->delivery.crashes > 0 || m->delivery.owned || m->score <= w->now))
		return false;
	if (w->tags && w->action != NULL && waiting_is_next(m, w->since, w->now))
		return false;
	if (w->at.key == KEY_QUEUE && waiting_due(m) <= w->now)
		return false;
	if (match[0] != '\0' && memmem(m->data, m->len, match, strlen(match)) == NULL)
		return false;
	waiting_id(&w->ctl->target, m, id);
	return has_id(w, id, strlen(id), m->tag, m->taglen);
}

/*
 * Lists or writes a message that is selected, or adds it to those that will be changed: one that
 * waits, or a letter.  False: the list is full, so the walk is over.
 */
static bool
take(struct walk *w, struct words *members, const struct waiting *m, const struct letter *letter)
{
	const char *error = NULL;

	if (w->list != NULL && w->summary == NULL && listing_is_full(w->list)) {
		w->list->more = true;
		return false;
	}
	w->matched++;
	if (letter != NULL)
		(void)has_id(w, letter->field[FIELD_ID].data, letter->field[FIELD_ID].len,
		    letter->name.data, letter->name.len);
	if (w->summary != NULL)
		count_letter(w, letter);
	else if (w->list != NULL && letter != NULL)
		list_letter(w->list, letter, w->now);
	else if (w->list != NULL) {
		if (w->part == PART_RETRY)
			error = fleet_error(&w->fleet, w->ctl->target.key,
			    m->tag, m->taglen, m->delivery.attempts);
		messages_list_waiting(w->list, m, w->now, w->at.key == KEY_RETRY,
		    error, false);
	} else if (w->write)
		write_letter(w, letter);
	else if (w->action != NULL && letter != NULL)
		words_mem(members, letter->name.data, letter->name.len);
	else if (w->action != NULL && w->tags)
		words_mem(members, m->tag, m->taglen);
	else if (w->action != NULL)
		words_mem(members, m->data, m->len);
	return true;
}

/* Lists or changes a page.  Returns 0, or -1 if the walk is over. */
static int
walk_page(struct walk *w, const struct redisReply *page)
{
	struct words members = { .n = 0 };
	int64_t gone, chosen = 0;	/* chosen: of the members with the score in w->at */
	double score = NAN;
	struct waiting m;
	int rc = 0;

	w->now = waiting_now(page);
	if (w->since <= 0)
		w->since = w->now;
	for (size_t i = 0; i < waiting_len(page) && rc == 0 && goes_on(w); i++) {
		waiting_get(page, i, &m);
		if (m.score != score)
			chosen = 0;
		score = m.score;
		if (!is_chosen(w, &m))
			continue;
		chosen++;
		if (!take(w, &members, &m, NULL))
			rc = -1;
	}
	if ((gone = change(w, &members)) == -1)
		rc = -1;
	words_done(&members);
	/* Gone members may have had other scores: the walk may then see a member twice. */
	w->at.passed -= int64_min(gone, chosen);
	return rc;
}

/* Walks over a part of the selected key.  Returns 0, or -1 if the walk is over. */
static int
walk_key(struct walk *w, enum key key)
{
	bool json = w->list != NULL && w->list->array != NULL;
	struct redisReply *page;
	long cut = WAITING_CUT;
	int rc = 0;

	w->at = (struct waiting_place){ .key = key };
	w->tags = key == KEY_RETRY || key == KEY_HELD;
	if (w->select.match[0] != '\0' || json || (w->action != NULL && !w->tags))
		cut = -1;	/* to change a message, rqctl needs all of it */
	else if (w->action != NULL)
		cut = 0;
	while (rc == 0 && !w->at.end && goes_on(w)) {
		page = waiting_page(w->ctl, &w->ctl->target, &w->at,
		    WAITING_PAGE, cut);
		rc = -1;
		if (page != NULL)
			rc = walk_page(w, page);
		reply_free(page);
	}
	return rc;
}

/* Walks over retries, or delayed messages. */
static void
walk_times(struct walk *w)
{
	enum key delayed = KEY_DELAYED;
	int rc = 0;

	if (w->ctl->target.source == SOURCE_IDS)
		delayed = KEY_QUEUE;
	EACH_KEY(i, &w->ctl->target) {
		w->since = 0;	/* each shard's master has a clock of its own */
		if (rc == 0 && w->part == PART_DELAYED)
			rc = walk_key(w, delayed);
		if (rc == 0)
			rc = walk_key(w, KEY_RETRY);
	}
}

/* How many letters a page of the walk has. */
static long
letters_page(const struct walk *w)
{
	if (w->summary != NULL)
		return STEP;
	if (w->list != NULL)
		return listing_room(w->list, STEP - 1) + 1;
	if (w->write)
		return step_of(w, STEP);
	return STEP;
}

/* Walks over dead letters: a list has the newest first. */
static void
walk_letters(struct walk *w)
{
	bool done = w->write || w->action != NULL;	/* not only looked at */
	struct words names = { .n = 0 };
	struct letters l;
	struct letter letter;
	int64_t all = 0;
	int n, i, rc = 0;

	/* The progress needs the letters of all shards. */
	if (done && w->ctl->target.nkeys > 1)
		all = target_count(w->ctl, &w->ctl->target, "XLEN", KEY_DEAD);
	if (all == -1)
		return;
	letters_init(&l, w->ctl, &w->select);
	l.newest = w->list != NULL;
	l.cut = 0;
	if (w->write || (w->list != NULL && w->list->array != NULL))
		l.cut = -1;
	l.page = letters_page(w);
	while (rc == 0 && goes_on(w) && (n = letters_next(&l)) >= 0) {
		w->looked = l.looked;
		w->total = int64_max(l.total, all);
		for (i = 0; i < n && rc == 0 && goes_on(w); i++) {
			letters_get(&l, i, &letter);
			if (!take(w, &names, NULL, &letter))
				rc = -1;
		}
		if (!w->write)
			n = 0;		/* change() counts what it has done */
		if (change(w, &names) == -1 || (done && !add_done(w, n)))
			rc = -1;
		words_done(&names);
	}
	w->total = l.total;
	letters_done(&l);
}

static void
walk(struct walk *w)
{
	if (w->part == PART_DEAD)
		walk_letters(w);
	else
		walk_times(w);
	out_progress_clear();
	if (ctl_interrupted() && w->ctl->status == 0)
		w->ctl->status = EX_INTERRUPTED;
}

/* -- lists ---------------------------------------------------------------------------- */

/* Lists the dead letters of all queues.  Returns how many there are. */
static int64_t
list_all(struct walk *w)
{
	struct ctl *c = w->ctl;
	struct snapshot p;
	int64_t total = 0;

	if (snapshot_take(c, &p) == -1)
		return 0;
	for (size_t i = 0; i < p.n && c->status == 0; i++) {
		total += int64_max(p.depths[i].dead, 0);
		c->target = p.targets[i];
		w->now = p.depths[i].now;
		if (p.depths[i].dead > 0)
			walk(w);
	}
	for (size_t i = 0; i < p.n; i++)
		if (p.depths[i].dead < 0 && p.depths[i].problem != NULL &&
		    kind_has(p.targets[i].kind, TRAIT_LEASES))
			ctl_error(c, ask_status(reply_error_of_text(p.depths[i].problem)),
			    "%s: %s", p.targets[i].name, p.depths[i].problem);
	c->target = (struct target){ .nkeys = 0 };
	snapshot_done(&p);
	return total;
}

/* Asks the daemons why messages have failed.  Where that is forbidden, nobody tells. */
static void
learn_errors(struct walk *w)
{
	w->ctl->hold = true;
	if (snapshot_refresh(w->ctl) == -1 || snapshot_fleet(w->ctl, &w->fleet) == -1)
		w->fleet = (struct fleet){ .n = 0 };
	ctl_forget(w->ctl);
}

/* The names of the parts' messages, and the columns of their lists. */
static const struct {
	const char	*one, *several;
	const char	*columns;
} parts[] = {
	[PART_RETRY] = { "retry", "retries", WAITING_COLUMNS "|ERROR=error" },
	[PART_DELAYED] = {
		"delayed message", "delayed messages", WAITING_COLUMNS
	},
	[PART_DEAD] = { "dead letter", "dead letters", LETTER_COLUMNS }
};

/* The column that is cut so that the errors get their room. */
static size_t
column_to_cut(const struct walk *w)
{
	size_t id = 0;		/* behind QUEUE and LETTER, if these are there */

	if (w->part == PART_RETRY)
		return RETRY_MESSAGE;
	if (w->summary != NULL)
		return 1;
	if (w->part == PART_DEAD)
		id++;
	if (w->ctl->args.nwords == 0)
		id++;
	return id;
}

/* Says that nothing is listed. */
static char *
text_of_none(const struct walk *w)
{
	bool all = w->ctl->args.nwords == 0;
	const char *queue = w->ctl->target.name;

	if (!select_is_narrow(&w->select) && all)
		return out_text("no queue has %s", parts[w->part].several);
	if (!select_is_narrow(&w->select))
		return out_text("%s has no %s", queue, parts[w->part].several);
	if (all)
		return out_text("no %s matches", parts[w->part].one);
	return out_text("no %s of %s matches", parts[w->part].one, queue);
}

void
messages_list(struct ctl *c)
{
	struct listing l;
	struct walk w = { .ctl = c, .list = &l, .select = { .reason = "", .match = "" },
		.part = c->args.verb->action->part };
	bool dead = w.part == PART_DEAD, full, narrow, all = c->args.nwords == 0;
	int64_t total = -1;		/* nobody counts a selection, or delayed messages */
	bool summary = ctl_given(c, OPT_SUMMARY);
	const char *columns = parts[w.part].columns, *what = "messages";
	int rc;

	if (dead)
		what = "dead letters";
	if (all)
		columns = "QUEUE=queue|" LETTER_COLUMNS;
	if (summary)
		columns = ">COUNT=count|REASON=why|ERROR=error";
	rc = listing_init(&l, c, columns);
	if (summary)
		w.summary = json_object();
	if (summary && (ctl_given(c, OPT_COUNT) || ctl_given(c, OPT_ALL)))
		rc = ctl_error(c, EX_USAGE, "--summary does not go together "
		    "with --count or --all: it counts all");
	if (dead || w.part == PART_RETRY)
		l.table.last_min = ERROR_MIN;
	l.table.cut = column_to_cut(&w);
	if (w.part == PART_RETRY && rc == 0)
		learn_errors(&w);
	if (rc == 0 && select_parse(c, &w.select) == 0 && (!dead || (w.now = ask_time(c)) >= 0)) {
		if (all)
			total = list_all(&w);
		else
			walk(&w);
	}
	if (summary) {
		list_summary(&l, w.summary);
		json_decref(w.summary);
		total = -1;
	}
	full = listing_is_full(&l) && c->status == 0;
	narrow = select_is_narrow(&w.select);
	if (dead && !all && !summary && full && c->target.nkeys > 1)
		total = target_count(c, &c->target, "XLEN", KEY_DEAD);
	else if (dead && !all && !summary)
		total = w.total;
	else if (full && !narrow && w.part == PART_RETRY)
		total = target_count(c, &c->target, "ZCARD", KEY_RETRY);
	if (narrow)
		total = -1;
	listing_finish(&l, total, what, text_of_none(&w));
	fleet_done(&w.fleet);
}

/* -- writing and changing ---------------------------------------------------- */

/* Reads the selection and --rate.  Returns 0, or -1 after an error was reported. */
static int
begin(struct walk *w)
{
	char *cause;

	w->began = clock_mono();
	if (select_parse(w->ctl, &w->select) == -1)
		return -1;
	w->found = xcalloc((size_t)w->select.nids + 1, sizeof(w->found[0]));
	if (ctl_given(w->ctl, OPT_RATE) &&
	    units_parse_rate(ctl_value(w->ctl, OPT_RATE), &w->rate, &cause) == -1)
		return ctl_wrong(w->ctl, OPT_RATE, cause);
	return 0;
}

/* Whether one of the latest dead letters has the id. */
static bool
is_letter(struct ctl *c, const char *const *id)
{
	struct select select = {
		.ids = id, .nids = 1, .reason = "", .match = ""
	};
	struct letters l;
	int n = 0;

	letters_init(&l, c, &select);
	l.newest = true;
	l.cut = 0;
	while (n == 0 && l.looked < LATEST && !ctl_interrupted())
		n = letters_next(&l);
	letters_done(&l);
	return n > 0;
}

/* Reports an id that no message of the part has. */
static void
report_missing(struct walk *w, const char *const *id, const char *what)
{
	struct ctl *c = w->ctl;
	const char *queue = c->target.name;

	if (w->part != PART_DEAD && is_letter(c, id))
		ctl_error(c, EX_NOTHING,
		    "%s is a dead letter: use rqctl dead retry %s %s", *id,
		    queue, *id);
	else
		ctl_error(c, EX_NOTHING, "%s has no %s %s", queue, what, *id);
}

/*
 * Reports the ids that no message has, or that nothing was found, unless an
 * error was reported.  A walk that has changed as many as were counted has not
 * looked for all ids.
 */
static void
end(struct walk *w, const char *what)
{
	struct ctl *c = w->ctl;
	bool ok = c->status == 0 && (w->most == 0 || w->matched < w->most);
	bool none = ok && w->matched == 0 && w->select.nids == 0;

	for (int i = 0; i < w->select.nids && ok; i++)
		if (!w->found[i])
			report_missing(w, &w->select.ids[i], what);
	if (w->kept > 0)
		ctl_error(c, EX_TEMPFAIL,
		    "%lld of %s stay%s: still in flight, or cancelled",
		    (long long)w->kept, c->target.name,
		    text_if(w->kept == 1, "s"));
	if (none && select_is_narrow(&w->select))
		ctl_error(c, EX_NOTHING, "no %s of %s matches", what, c->target.name);
	else if (none)
		ctl_error(c, EX_NOTHING, "%s has no %ss", c->target.name, what);
	free(w->found);
}

void
messages_write(struct ctl *c, bool json, bool silent)
{
	struct walk w = { .ctl = c, .part = PART_DEAD, .write = true, .json = json,
		.silent = silent };

	if (begin(&w) == 0) {
		ctl_catch_signals();
		walk(&w);
	}
	end(&w, "dead letter");
}

static int
drop_tags(struct walk *w, const struct words *tags, int i, int n, int64_t *gone)
{
	return messages_end_retries(w, tags, i, n, false, gone);
}

int
messages_drop(struct ctl *c, enum key key, int64_t most, int64_t *gone)
{
	static const struct action action = {
		.part = PART_RETRY, .step = drop_tags
	};
	struct walk w = {
		.ctl = c, .action = &action, .most = most,
		.select = { .reason = "", .match = "" }
	};

	if (most > 0)
		(void)walk_key(&w, key);
	*gone += w.done;
	if (c->status != 0)
		return -1;
	return 0;
}

/* Reports what was changed, also after an error or an interruption. */
static void
report(const struct walk *w, const struct action *a, bool dry)
{
	const struct ctl *c = w->ctl;
	const char *queue = c->target.name, *thing = a->what, *member = a->word;
	int64_t n = w->done;
	char text[OUT_NUMBER_MAX];
	bool stopped = !dry && c->status != 0;
	json_t *o;

	if (dry)
		n = w->matched;
	if (a->thing != NULL)
		thing = a->thing;
	if (a->member != NULL)
		member = a->member;
	o = json_set(json_object(), "queue:s *:i dry_run:t", queue, member, n,
	    dry);
	if (a->part == PART_DEAD)
		json_set(o, "complete:t", c->status == 0);
	if (w->kept > 0)
		json_set(o, "kept:i", w->kept);
	out_number(n, text);
	ctl_result(c, o, "%s%s%s %s %s%s of %s%s", text_if(dry, "would be "),
	    a->word, text_if(dry, ":"), text, thing, plural(n), queue,
	    text_if(stopped, "; stopped before the end, "
	    "the rest is unchanged"));
}

/* Asks whether so many messages may be changed. */
static bool
is_confirmed(struct ctl *c, int64_t n)
{
	const struct action *a = c->args.verb->action;
	char text[OUT_NUMBER_MAX];

	if (n == 0)
		return false;
	return ctl_confirm(c, "%s %s %s%s of %s", a->ask, out_number(n, text),
	    a->what, plural(n), c->target.name);
}

void
messages_change(struct ctl *c)
{
	const struct action *a = c->args.verb->action;
	unsigned flags = c->args.verb->flags;
	bool dry = ctl_given(c, OPT_DRY_RUN);
	bool ask = !dry && !ctl_given(c, OPT_YES) && ((flags & VERB_ASKS) != 0 ||
	    ((flags & VERB_ASKS_ALL) != 0 && ctl_given(c, OPT_ALL)));
	const char *why = ctl_value(c, OPT_BURY_WHY);
	struct walk w = { .ctl = c };
	char *who;

	w.part = a->part;
	if (begin(&w) == 0 && (dry || ask))
		walk(&w);
	if (c->status == 0 && !dry && (!ask || is_confirmed(c, w.matched))) {
		ctl_catch_signals();
		if (ask)
			w.most = w.matched;
		w.matched = w.looked = w.total = 0;
		memset(w.found, 0,
		    (size_t)w.select.nids * sizeof(w.found[0]));
		w.began = clock_mono();
		w.action = a;
		who = pausetext_who();
		w.error = xasprintf("buried by %s%s%s", who,
		    text_if(why[0] != '\0', ": "), why);
		walk(&w);
		free(w.error);
		free(who);
	}
	if (w.done > 0 || (w.matched > 0 && w.kept == 0 && c->status == 0))
		report(&w, a, dry);
	if (a->removes)
		audit_removed(c, c->args.verb->name, w.done);
	end(&w, a->what);
}
