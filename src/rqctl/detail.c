/*
 * One queue in full; see detail.h.  detail_read() reads letters only when their number has
 * changed, and only the latest LETTERS.  So an open queue costs Redis little, however many
 * letters it has.
 */
#include "rqctl/detail.h"

#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "rqctl/letters.h"
#include "rqctl/listing.h"
#include "rqctl/out.h"
#include "rqctl/status.h"
#include "status/advice.h"

#define LETTERS		200		/* read at most, and counted by reason */
#define REASONS		8		/* listed at most */
#define ERROR_LINES	6		/* shown of an error: its last ones */

static void
heading(struct buf *b, const char *text)
{
	buf_printf(b, "\n%s%s%s\n", out_colour(COLOUR_BOLD), text, out_colour(COLOUR_NONE));
}

static void
add_bytes(struct buf *b, struct bytes text)
{
	out_escape(b, text.data != NULL ? text.data : "", text.len);
}

/* -- dead letters ----------------------------------------------------------------- */

struct reason_count {
	char	*reason;	/* owned */
	int64_t	 n;
	double	 last;		/* when the latest died */
};

struct reasons {
	struct reason_count list[REASONS + 1];	/* the last one: all others */
	size_t		 n;
};

/* Call it for the newest letter first: `last` is the time of the first call. */
static void
count_reason(struct reasons *r, const struct letter *l)
{
	struct bytes reason = l->field[FIELD_REASON];
	char *name = xstrndup(reason.data != NULL ? reason.data : "", reason.len);
	size_t i;

	for (i = 0; i < r->n && i < REASONS && strcmp(r->list[i].reason, name) != 0; i++)
		continue;
	if (i == r->n)
		r->list[r->n++] = (struct reason_count){
			xstrdup(i < REASONS ? name : "others"), 0, l->died
		};
	r->list[i].n++;
	free(name);
}

static int
more_first(const void *a, const void *b)
{
	int64_t x = ((const struct reason_count *)a)->n, y = ((const struct reason_count *)b)->n;

	return x < y ? 1 : x > y ? -1 : 0;
}

static void
print_reasons(struct reasons *r, const struct letters *l, struct buf *b)
{
	char when[CLOCK_TEXT_MAX], *title;
	struct table t;

	title = l->total > l->looked ? xasprintf("Dead letters by reason, of the latest %lld",
	    (long long)l->looked) : xstrdup("Dead letters by reason");
	heading(b, title);
	free(title);
	qsort(r->list, r->n < REASONS ? r->n : REASONS, sizeof(r->list[0]), more_first);
	table_init(&t, ">NUMBER|REASON|LAST");
	for (size_t i = 0; i < r->n; i++) {
		table_number(&t, r->list[i].n);
		table_add(&t, "%s", r->list[i].reason);
		table_add(&t, "%.19sZ", clock_text((wall_t)(r->list[i].last * 1e6), when));
		free(r->list[i].reason);
	}
	table_print(&t, b, 0);
	table_done(&t);
}

/* The last lines of an error that are not empty, each behind "  ". */
static void
print_error(struct buf *b, struct bytes error)
{
	const char *line[ERROR_LINES], *p = error.data, *end = error.data + error.len, *nl;
	size_t len[ERROR_LINES], n = 0;

	for (; p != NULL && p < end; p = nl + 1) {
		if ((nl = memchr(p, '\n', (size_t)(end - p))) == NULL)
			nl = end;
		if (nl == p)
			continue;
		line[n % ERROR_LINES] = p;
		len[n++ % ERROR_LINES] = (size_t)(nl - p);
	}
	for (size_t i = n > ERROR_LINES ? n - ERROR_LINES : 0; i < n; i++) {
		buf_puts(b, "  ");
		out_escape(b, line[i % ERROR_LINES], len[i % ERROR_LINES]);
		buf_addc(b, '\n');
	}
}

/* "42 died 2026-11-23T03:12:01Z on web1: exit, status 1, attempts 25" and its error. */
static void
print_last(struct buf *b, const struct letter *l)
{
	char when[CLOCK_TEXT_MAX];
	struct bytes answer = l->field[FIELD_ANSWER];

	heading(b, "Last error");
	add_bytes(b, l->field[FIELD_ID]);
	buf_printf(b, " died %.19sZ on ", clock_text((wall_t)(l->died * 1e6), when));
	add_bytes(b, l->field[FIELD_HOST]);
	buf_puts(b, ": ");
	add_bytes(b, l->field[FIELD_REASON]);
	buf_puts(b, ", status ");
	add_bytes(b, l->field[FIELD_STATUS]);
	buf_puts(b, ", attempts ");
	add_bytes(b, l->field[FIELD_ATTEMPTS]);
	buf_addc(b, '\n');
	if (answer.len > 0) {
		buf_puts(b, "  it said: ");
		add_bytes(b, answer);
		buf_addc(b, '\n');
	}
	print_error(b, l->field[FIELD_ERROR]);
}

/* Reads a page of letters; writes the last error and the reasons into d->text. */
static int
read_letters(struct ctl *c, struct detail *d)
{
	const struct select any = { .reason = "", .match = "" };
	struct reasons reasons = { .n = 0 };
	struct letters l;
	struct letter letter;
	int n;

	letters_init(&l, c, &any);
	l.newest = true;
	l.cut = 0;
	l.page = LETTERS;
	do	/* a shard may have none */
		n = letters_next(&l);
	while (n == 0);
	for (int i = 0; i < n; i++) {
		letters_get(&l, i, &letter);
		count_reason(&reasons, &letter);
		if (i > 0)
			continue;
		print_last(&d->text, &letter);
		free(d->newest);
		d->newest = xstrndup(letter.name.data != NULL ? letter.name.data : "",
		    letter.name.len);
	}
	if (n > 0)
		print_reasons(&reasons, &l, &d->text);
	letters_done(&l);
	return c->status == 0 ? 0 : -1;
}

int
detail_read(struct ctl *c, struct detail *d, const struct picture *p, size_t i)
{
	const struct target *t = &p->targets[i];
	const char *key = t->keys.name[KEY_QUEUE];
	int64_t dead = p->depths[i].dead;
	int rc = 0;

	if (d->key != NULL && strcmp(d->key, key) == 0 && d->dead == dead)
		return 0;
	detail_done(d);
	d->newest = xstrdup("");
	if (dead > 0) {
		c->target = *t;		/* for letters_next(); borrowed */
		rc = read_letters(c, d);
		memset(&c->target, 0, sizeof(c->target));
	}
	if (rc == -1)
		return -1;
	d->key = xstrdup(key);
	d->dead = dead;
	return 0;
}

void
detail_done(struct detail *d)
{
	free(d->key);
	free(d->newest);
	buf_done(&d->text);
	memset(d, 0, sizeof(*d));
}

/* -- the queue -------------------------------------------------------------------- */

static void
add_count(struct buf *b, const char *name, int64_t n)
{
	char text[OUT_NUMBER_MAX];

	if (n >= 0)
		buf_printf(b, "%s%s %s", b->data[b->len - 1] == '\n' ? "" : ", ", name,
		    out_number(n, text));
}

static void
print_numbers(const struct facts *f, const struct history_rates *r, struct buf *b)
{
	const struct depth *d = f->depth;
	char age[UNITS_TEXT_MAX], latency[STATUS_LATENCY_MAX];

	add_count(b, "waiting", d->waiting);
	add_count(b, "running", d->in_flight);
	add_count(b, "retry", d->retry);
	add_count(b, "delayed", d->delayed);
	add_count(b, "dead", d->dead);
	buf_printf(b, "\nlatency %s, oldest run %s", status_latency(f, latency),
	    units_age(state_oldest(f), age));
	if (r->acked >= 0)
		buf_printf(b, ", %.1f acked/s", r->acked);
	if (r->failed >= 0)
		buf_printf(b, ", %.1f failed/s", r->failed);
	buf_addc(b, '\n');
}

static void
print_state(const struct ctl *c, const struct target *t, const struct facts *f, struct buf *b)
{
	const struct advice known = {
		.config = ctl_has_file(c) ? c->config : NULL, .cfg = t->cfg
	};
	const char *key = f->keys->name[KEY_QUEUE];
	char *hint = advice_hint(f, &known);
	struct buf state = BUF_INIT;
	enum mood mood = state_text(f, &state);

	buf_puts(b, out_colour(COLOUR_BOLD));
	out_escape(b, f->name, strlen(f->name));
	buf_printf(b, "%s: %s", out_colour(COLOUR_NONE), out_colour(status_colours[mood]));
	out_escape(b, state.data, state.len);
	buf_printf(b, "%s\nkind %s, key ", out_colour(COLOUR_NONE), kind_name(f->kind));
	out_escape(b, key, f->keys->len[KEY_QUEUE]);
	buf_addc(b, '\n');
	if (f->service->cause[0] != '\0')
		out_line(b, "cause: %s", f->service->cause);
	if (hint != NULL)
		out_line(b, "%s", hint);
	free(hint);
	buf_done(&state);
}

static void
print_daemons(const struct picture *p, size_t i, struct buf *b)
{
	const char *key = p->targets[i].keys.name[KEY_QUEUE], *reason;
	const struct daemon *d;
	const json_t *q;
	struct table t;

	heading(b, "Daemons");
	table_init(&t, "DAEMON|VERSION|>RUN|STATE");
	for (size_t k = 0; k < p->fleet.n; k++) {
		d = &p->fleet.daemons[k];
		if ((q = fleet_queue(d, key)) == NULL)
			continue;
		reason = fleet_text(q, "reason");
		table_add(&t, "%s", d->instance);
		table_add(&t, "%s", fleet_text(d->beat, "version"));
		table_add(&t, "%lld/%lld", (long long)fleet_count(q, "running"),
		    (long long)fleet_count(q, "concurrency"));
		table_add(&t, "%s%s%s", fleet_text(q, "state"), reason[0] != '\0' ? ": " : "",
		    reason);
	}
	if (table_rows(&t) == 0)
		buf_puts(b, "none\n");
	else
		table_print(&t, b, 0);
	table_done(&t);
}

/* -- commands --------------------------------------------------------------------- */

/* "rqctl -c FILE" with the options that this rqctl has. */
static void
add_rqctl(const struct ctl *c, struct buf *b)
{
	buf_puts(b, "rqctl");
	if (ctl_given(c, OPT_CONFIG)) {
		buf_puts(b, " -c ");
		advice_word(b, ctl_value(c, OPT_CONFIG));
	}
	if (ctl_given(c, OPT_SERVER)) {
		buf_puts(b, " --server ");
		advice_word(b, ctl_value(c, OPT_SERVER));
	}
	for (size_t i = 0; c->args.set[i] != NULL; i++) {
		buf_puts(b, " -o ");
		advice_word(b, c->args.set[i]);
	}
}

static void
print_commands(const struct ctl *c, const struct detail *d, const struct target *t,
    const struct facts *f, struct buf *b)
{
	struct buf rqctl = BUF_INIT;
	struct advice advice = {
		.indent = "  ", .newest = d->newest != NULL ? d->newest : "",
		.queue = t->cfg != NULL ? t->name : t->keys.name[KEY_QUEUE],
		.config = ctl_has_file(c) ? c->config : NULL, .cfg = t->cfg,
	};

	heading(b, "Commands");
	add_rqctl(c, &rqctl);
	advice.rqctl = buf_str(&rqctl);
	advice_commands(f, &advice, b);
	buf_done(&rqctl);
}

void
detail_print(const struct ctl *c, const struct detail *d, const struct picture *p, size_t i,
    const struct history *history, struct buf *b)
{
	struct facts f = picture_facts(p, i);
	struct history_rates rates = history_rates(history, p->targets[i].key);

	print_state(c, &p->targets[i], &f, b);
	print_numbers(&f, &rates, b);
	buf_add(b, d->text.data, d->text.len);
	print_daemons(p, i, b);
	print_commands(c, d, &p->targets[i], &f, b);
}
