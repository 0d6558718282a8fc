/*
 * rqctl status: every queue in a line, once, or again and again (watch.c).
 */
#include "rqctl/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rqctl/ask.h"
#include "rqctl/groups.h"
#include "rqctl/out.h"
#include "rqctl/table.h"
#include "status/state.h"

/* How many columns the table has; with rates there is no room for all in 80 columns. */
enum width { NARROW, MEDIUM, WIDE };

#define STATE_MIN	10	/* "suspended", "paused": names of queues are cut for it */

static struct facts
facts_of(const struct picture *p, size_t i)
{
	return (struct facts){
		.name = p->targets[i].name, .keys = &p->targets[i].keys,
		.kind = p->targets[i].kind, .depth = &p->depths[i],
		.service = &p->services[i], .taken = p->taken,
	};
}

static const enum colour colours[] = {
	[MOOD_OK] = COLOUR_GREEN, [MOOD_IDLE] = COLOUR_DIM, [MOOD_WARN] = COLOUR_YELLOW,
	[MOOD_BAD] = COLOUR_RED,
};

/* "3/8" running of what may run. */
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

static void
rate_cell(struct table *t, double r)
{
	if (r < 0)
		table_add(t, "-");
	else
		table_add(t, r < 10 ? "%.1f" : "%.0f", r);
}

static void
row(struct table *t, const struct picture *p, size_t i, const struct rates *rates,
    enum width width)
{
	const struct depth *d = &p->depths[i];
	struct facts facts = facts_of(p, i);
	struct buf state = BUF_INIT;
	enum mood mood = state_text(&facts, &state);
	char age[32];

	table_add(t, "%s", p->targets[i].name);
	table_number(t, d->waiting);
	running_cell(t, d, &p->services[i]);
	table_number(t, d->retry);
	if (width == WIDE)
		table_number(t, d->delayed);
	table_number(t, d->dead);
	if (d->dead > 0)
		table_colour(t, COLOUR_YELLOW);
	if (rates != NULL && width > NARROW) {
		rate_cell(t, rates->acked);
		rate_cell(t, rates->failed);
	}
	if (width > NARROW)
		table_add(t, "%s", out_age(state_oldest(&facts), age));
	table_bytes(t, state.data, state.len);
	table_colour(t, colours[mood]);
	buf_done(&state);
}

/* A single picture is always wide: its lines may wrap, and programs may read it. */
static enum width
width_of(bool watched)
{
	if (!watched || out_width() >= 96)
		return WIDE;
	return out_width() >= 72 ? MEDIUM : NARROW;
}

static void
fill(struct table *t, const struct picture *p, const struct rates *rates)
{
	enum width width = width_of(rates != NULL);
	size_t i;

	if (rates == NULL)
		table_init(t, "<QUEUE", ">WAIT", ">RUN", ">RETRY", ">DELAY", ">DEAD", ">OLDEST",
		    "<STATE", NULL);
	else if (width == WIDE)
		table_init(t, "<QUEUE", ">WAIT", ">RUN", ">RETRY", ">DELAY", ">DEAD", ">OK/S",
		    ">FAIL/S", ">OLDEST", "<STATE", NULL);
	else if (width == MEDIUM)
		table_init(t, "<QUEUE", ">WAIT", ">RUN", ">RETRY", ">DEAD", ">OK/S", ">FAIL/S",
		    ">OLDEST", "<STATE", NULL);
	else
		table_init(t, "<QUEUE", ">WAIT", ">RUN", ">RETRY", ">DEAD", "<STATE", NULL);
	t->last_min = rates != NULL ? STATE_MIN : 0;
	for (i = 0; i < p->n; i++)
		row(t, p, i, rates != NULL ? &rates[i] : NULL, width);
}

static void
print_json(const struct ctl *c, const struct picture *p)
{
	json_t *root = json_object(), *queues = json_array();
	char when[CLOCK_TEXT_MAX];
	struct facts facts;
	size_t i;

	for (i = 0; i < p->n; i++) {
		facts = facts_of(p, i);
		json_array_append_new(queues, state_json(&facts));
	}
	json_object_set_new(root, "time", json_string(clock_text(p->taken, when)));
	json_object_set_new(root, "server", json_string(client_address(c->client)));
	json_object_set_new(root, "daemons", json_integer((json_int_t)p->fleet.n));
	json_object_set_new(root, "queues", queues);
	out_json(root);
}

/* What is wrong with daemons, each in a line; rqctl check says the same. */
static void
print_warnings(const struct fleet *f, struct buf *b)
{
	const char *error;
	char *line;
	size_t i;

	for (i = 0; i < f->n; i++) {
		error = fleet_text(f->daemons[i].beat, "log_error");
		if (error[0] == '\0')
			continue;
		line = xasprintf("warning: daemon %s cannot write its log: %s",
		    f->daemons[i].instance, error);
		out_escape(b, line, strlen(line));
		buf_addc(b, '\n');
		free(line);
	}
}

void
status_print(const struct ctl *c, const struct picture *p, const struct rates *rates,
    struct buf *b)
{
	char when[CLOCK_TEXT_MAX];
	struct table t;

	buf_printf(b, "redis %s, %zu daemon%s", client_address(c->client), p->fleet.n,
	    p->fleet.n == 1 ? "" : "s");
	if (rates != NULL)
		buf_printf(b, ", %.19sZ", clock_text(p->taken, when));
	buf_addc(b, '\n');
	print_warnings(&p->fleet, b);
	fill(&t, p, rates);
	if (table_rows(&t) > 0)
		table_print(&t, b, (size_t)out_width());
	else
		buf_puts(b, ctl_has_file(c) ? "no queues\n" :
		    "no queues: no configuration file was read, and no daemon serves one\n");
	table_done(&t);
}

static void
once(struct ctl *c)
{
	struct buf b = BUF_INIT;
	struct picture p;

	if (picture_take(c, &p) == -1)
		return;
	if (ctl_given(c, OPT_JSON))
		print_json(c, &p);
	else {
		status_print(c, &p, NULL, &b);
		fwrite(b.data, 1, b.len, stdout);
	}
	buf_done(&b);
	picture_done(&p);
}

void
status_run(struct ctl *c)
{
	usec_t interval = 2 * SEC;

	if (ctl_duration(c, OPT_INTERVAL, &interval) == -1)
		return;
	if (interval < 100 * MSEC || interval > HOUR)
		ctl_error(c, EX_USAGE, "--interval is from 100ms to 1h");
	else if (ctl_given(c, OPT_WATCH) && ctl_given(c, OPT_JSON))
		ctl_error(c, EX_USAGE, "--watch and --json do not go together");
	else if (ctl_given(c, OPT_WATCH))
		watch_run(c, interval);
	else
		once(c);
}
