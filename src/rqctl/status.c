/*
 * rqctl status: every queue in a line.  top.c has status -w, which shows the same table
 * again and again, with rates.
 */
#include "rqctl/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "rqctl/out.h"
#include "rqctl/listing.h"
#include "rqctl/top.h"
#include "rqctl/unnamed.h"
#include "status/advice.h"

/* How many columns of the table fit: with rates, not all of them fit into 80 characters. */
enum width { NARROW, MEDIUM, WIDE };

#define CAUSES_MAX	10	/* that plain status prints */
#define STATE_MIN	10	/* for "suspended", "paused": names of queues are cut instead */

const enum colour status_colours[] = {
	[MOOD_OK] = COLOUR_GREEN, [MOOD_IDLE] = COLOUR_DIM, [MOOD_WARN] = COLOUR_YELLOW,
	[MOOD_BAD] = COLOUR_RED,
};

/* "3/8": 3 handlers run, 8 may run. */
static void
running_cell(struct table *t, const struct depth *d, const struct service *s)
{
	char n[OUT_NUMBER_MAX];

	if (d->in_flight < 0)
		table_add(t, "-");
	else if (s->concurrency > 0)
		table_add(t, "%s/%lld", out_number(d->in_flight, n),
		    (long long)s->concurrency);
	else
		table_add(t, "%s", out_number(d->in_flight, n));
}

/* ">12m": the message already waited when a daemon first saw the list, 12 minutes ago. */
char *
status_latency(const struct facts *f, char *text)
{
	struct latency l = state_latency(f);
	char age[UNITS_TEXT_MAX];

	snprintf(text, STATUS_LATENCY_MAX, "%s%s", l.how == LATENCY_LEAST ? ">" : "",
	    units_age(l.how == LATENCY_UNKNOWN ? -1 : l.seconds, age));
	return text;
}

static void
rate_cell(struct table *t, double r)
{
	if (r < 0)
		table_add(t, "-");
	else
		table_add(t, r < 10 ? "%.1f" : "%.0f", r);
}

/* columns: of the terminal; 0: all columns, lines may wrap. */
static enum width
width_of(size_t columns)
{
	if (columns == 0 || columns >= 96)
		return WIDE;
	return columns >= 72 ? MEDIUM : NARROW;
}

void
status_row(struct table *t, const struct picture *p, size_t i, const struct history *h,
    size_t columns)
{
	const struct depth *d = &p->depths[i];
	struct facts facts = picture_facts(p, i);
	struct buf state = BUF_INIT;
	enum mood mood = state_text(&facts, &state);
	enum width width = width_of(columns);
	struct history_rates rates;
	char age[UNITS_TEXT_MAX], latency[STATUS_LATENCY_MAX];

	table_add(t, "%s", p->targets[i].name);
	table_number(t, d->waiting);
	running_cell(t, d, &p->services[i]);
	table_number(t, d->retry);
	if (width == WIDE)
		table_number(t, d->delayed);
	table_number(t, d->dead);
	if (d->dead > 0)
		table_colour(t, COLOUR_YELLOW);
	if (h != NULL && width > NARROW) {
		rates = history_rates(h, p->targets[i].key);
		rate_cell(t, rates.acked);
		rate_cell(t, rates.failed);
	}
	if (width > NARROW)
		table_add(t, "%s", status_latency(&facts, latency));
	if (width == WIDE)
		table_add(t, "%s", units_age(state_oldest(&facts), age));
	table_bytes(t, state.data, state.len);
	table_colour(t, status_colours[mood]);
	buf_done(&state);
}

void
status_table(struct table *t, bool rates, size_t columns)
{
	static const char *const heads[] = {
		[NARROW] = "QUEUE|>WAIT|>RUN|>RETRY|>DEAD|STATE",
		[MEDIUM] = "QUEUE|>WAIT|>RUN|>RETRY|>DEAD|>OK/S|>FAIL/S|>LATENCY|STATE",
		[WIDE] = "QUEUE|>WAIT|>RUN|>RETRY|>DELAY|>DEAD|>OK/S|>FAIL/S|>LATENCY|"
		    ">OLDEST RUN|STATE",
	};
	enum width width = width_of(columns);

	table_init(t, rates ? heads[width] :
	    "QUEUE|>WAIT|>RUN|>RETRY|>DELAY|>DEAD|>LATENCY|>OLDEST RUN|STATE");
	t->last_min = rates ? STATE_MIN : 0;
	t->middle = true;
}

static void
print_json(const struct ctl *c, const struct picture *p, const struct unnamed *u)
{
	json_t *queues = json_array();
	char when[CLOCK_TEXT_MAX];
	struct facts facts;

	for (size_t i = 0; i < p->n; i++) {
		facts = picture_facts(p, i);
		json_array_append_new(queues, state_json(&facts));
	}
	out_json(json_set(json_object(), "time:s server:s daemons:i queues:j unnamed:j",
	    clock_text(p->taken, when), masters_name(c->client), (int64_t)p->fleet.n, queues,
	    unnamed_json(u)));
}

void
status_warnings(const struct picture *p, struct buf *b)
{
	const struct fleet *f = &p->fleet;
	const char *log, *reload, *name;

	if (p->full != NULL)
		buf_printf(b, "error: %s\n", p->full);
	for (size_t i = 0; i < f->n; i++) {
		log = fleet_text(f->daemons[i].beat, "log_error");
		reload = fleet_text(f->daemons[i].beat, "reload_error");
		name = f->daemons[i].instance;
		if (log[0] != '\0')
			out_line(b, "warning: " ADVICE_LOG, name, log);
		if (reload[0] != '\0')
			out_line(b, "warning: " ADVICE_RELOAD, name, reload);
	}
}

/* Adds why queues are suspended, because the table has no room for that. */
static void
add_causes(const struct picture *p, struct buf *b)
{
	const struct service *s;
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++) {
		s = &p->services[i];
		if (s->cause[0] != '\0' && n++ < CAUSES_MAX)
			out_line(b, "error: %s: suspended: %s: %s", p->targets[i].name, s->reason,
			    s->cause);
	}
	if (n > CAUSES_MAX)
		buf_printf(b, "error: %zu more queues are suspended, see rqctl check\n",
		    n - CAUSES_MAX);
}

const char *
status_none(const struct ctl *c)
{
	return ctl_has_file(c) ? "no queues\n" :
	    "no queues: no configuration file was read, and no daemon serves one\n";
}

void
status_headline(const struct ctl *c, const struct picture *p, struct buf *b)
{
	buf_printf(b, "redis %s, %zu daemon%s", masters_name(c->client), p->fleet.n,
	    p->fleet.n == 1 ? "" : "s");
}

int
status_trouble(const struct picture *p, size_t i, const struct history *h)
{
	struct facts f = picture_facts(p, i);
	struct buf ignored = BUF_INIT;
	enum mood mood = state_text(&f, &ignored);

	buf_done(&ignored);
	return state_trouble(&f, mood, h != NULL ? history_rates(h, p->targets[i].key).failed : 0);
}

/*
 * Returns the order of the lines: the queues in trouble, the worst first, then all others.
 * Equal ones keep their order, and so do queues that are arguments.  The caller frees it.
 */
static size_t *
order_of(const struct ctl *c, const struct picture *p, const struct history *h)
{
	size_t *order = xcalloc(p->n + 1, sizeof(*order)), n = 0;
	int *trouble = xcalloc(p->n + 1, sizeof(*trouble));

	for (size_t i = 0; i < p->n && c->args.nwords == 0; i++)
		if ((trouble[i] = status_trouble(p, i, h)) < STATE_TROUBLE)
			trouble[i] = 0;
	for (int t = STATE_TROUBLE_MAX; t >= 0; t--)
		for (size_t i = 0; i < p->n; i++)
			if (trouble[i] == t)
				order[n++] = i;
	free(trouble);
	return order;
}

void
status_print(const struct ctl *c, const struct picture *p, const struct history *h,
    struct buf *b)
{
	size_t width = h == NULL ? (size_t)out_width() : 0, *order = order_of(c, p, h);
	struct table t;

	status_warnings(p, b);
	add_causes(p, b);
	status_table(&t, h != NULL, 0);
	for (size_t i = 0; i < p->n; i++)
		status_row(&t, p, order[i], h, 0);
	free(order);
	if (table_rows(&t) > 0)
		table_print(&t, b, width);
	else
		buf_puts(b, status_none(c));
	table_done(&t);
}

static void
once(struct ctl *c)
{
	struct buf b = BUF_INIT;
	struct unnamed u;
	struct picture p;

	if (picture_take(c, &p) == -1)
		return;
	if (unnamed_find(c, &p, &u) == -1) {
		/* The error was reported. */
	} else if (ctl_given(c, OPT_JSON)) {
		print_json(c, &p, &u);
	} else {
		status_headline(c, &p, &b);
		buf_addc(&b, '\n');
		status_print(c, &p, NULL, &b);
		unnamed_print(&u, &b);
		fwrite(b.data, 1, b.len, stdout);
	}
	buf_done(&b);
	unnamed_done(&u);
	picture_done(&p);
}

void
status_run(struct ctl *c)
{
	usec_t interval = 2 * SEC;

	if (ctl_duration(c, OPT_INTERVAL, &interval) == -1)
		return;
	if (interval < 100 * MSEC || interval > HOUR)
		ctl_error(c, EX_USAGE, "--interval: \"%s\" is not from 100ms to 1h",
		    ctl_value(c, OPT_INTERVAL));
	else if (ctl_given(c, OPT_WATCH) && ctl_given(c, OPT_JSON))
		ctl_error(c, EX_USAGE, "--watch and --json do not go together");
	else if (ctl_given(c, OPT_WATCH))
		top_run(c, interval);
	else
		once(c);
}
