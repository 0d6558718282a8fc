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
#include "rqctl/pausetext.h"
#include "rqctl/table.h"

/* "paused by ann@web1 (4m left): deploy" */
static void
pause_text(const struct depth *d, struct buf *b)
{
	struct pausetext t;
	char left[32];

	pausetext_split(d->pause, &t);
	buf_puts(b, "paused");
	if (t.who[0] != '\0')
		buf_printf(b, " by %s", t.who);
	if (d->pause_left >= 0)
		buf_printf(b, " (%s left)", out_age(d->pause_left, left));
	if (t.why[0] != '\0')
		buf_printf(b, ": %s", t.why);
	pausetext_done(&t);
}

/* What an operator must know first about a queue, and its colour. */
static enum colour
state_text(const struct picture *p, size_t i, struct buf *b)
{
	const struct depth *d = &p->depths[i];
	const struct service *s = &p->services[i];
	char age[32];

	if (d->problem != NULL) {
		buf_printf(b, "error: %s", d->problem);
		return COLOUR_RED;
	}
	if (d->paused) {
		pause_text(d, b);
		return COLOUR_YELLOW;
	}
	if (s->daemons == 0) {
		buf_puts(b, "no daemon");
		return d->waiting > 0 || d->due > 0 ? COLOUR_RED : COLOUR_DIM;
	}
	if (strcmp(s->state, "suspended") == 0) {
		buf_printf(b, "suspended: %s", s->reason);
		if (s->since > 0)
			buf_printf(b, " for %s", out_age((double)p->taken / 1e6 - s->since, age));
		return COLOUR_RED;
	}
	if (s->state[0] != '\0' && strcmp(s->state, "running") != 0) {
		buf_puts(b, s->state);
		return COLOUR_YELLOW;
	}
	if (s->leases_differ) {
		buf_puts(b, "daemons disagree about the lease");
		return COLOUR_YELLOW;
	}
	buf_puts(b, "ok");
	return COLOUR_GREEN;
}

/* "3/8" running of what may run. */
static void
running_cell(struct table *t, const struct depth *d, const struct service *s)
{
	char n[OUT_NUMBER_MAX];

	if (d->in_flight < 0)
		table_add(t, "-");
	else if (s->concurrency > 0)
		table_add(t, "%s/%d", out_number(d->in_flight, n), s->concurrency);
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
row(struct table *t, const struct picture *p, size_t i, const struct rates *rates, bool wide)
{
	const struct depth *d = &p->depths[i];
	struct buf state = BUF_INIT;
	enum colour colour = state_text(p, i, &state);
	char age[32];

	table_add(t, "%s", p->targets[i].name);
	table_number(t, d->waiting);
	running_cell(t, d, &p->services[i]);
	table_number(t, d->retry);
	if (wide)
		table_number(t, d->delayed);
	table_number(t, d->dead);
	if (d->dead > 0)
		table_colour(t, COLOUR_YELLOW);
	if (rates != NULL) {
		rate_cell(t, rates->acked);
		rate_cell(t, rates->failed);
	}
	table_add(t, "%s", out_age(p->services[i].oldest, age));
	table_bytes(t, state.data, state.len);
	table_colour(t, colour);
	buf_done(&state);
}

/* With rates there is no room for everything in 80 columns. */
static void
fill(struct table *t, const struct picture *p, const struct rates *rates)
{
	bool wide = rates == NULL || out_width() >= 96;
	size_t i;

	if (rates == NULL)
		table_init(t, "<QUEUE", ">WAIT", ">RUN", ">RETRY", ">DELAY", ">DEAD", ">OLDEST",
		    "<STATE", NULL);
	else if (wide)
		table_init(t, "<QUEUE", ">WAIT", ">RUN", ">RETRY", ">DELAY", ">DEAD", ">OK/S",
		    ">FAIL/S", ">OLDEST", "<STATE", NULL);
	else
		table_init(t, "<QUEUE", ">WAIT", ">RUN", ">RETRY", ">DEAD", ">OK/S", ">FAIL/S",
		    ">OLDEST", "<STATE", NULL);
	for (i = 0; i < p->n; i++)
		row(t, p, i, rates != NULL ? &rates[i] : NULL, wide);
}

static json_t *
number_or_null(int64_t n)
{
	return n >= 0 ? json_integer(n) : json_null();
}

static json_t *
pause_json(const struct depth *d)
{
	struct pausetext t;
	json_t *o;

	if (!d->paused)
		return json_null();
	pausetext_split(d->pause, &t);
	o = json_object();
	out_set_bytes(o, "by", t.who, strlen(t.who));
	out_set_bytes(o, "at", t.when, strlen(t.when));
	out_set_bytes(o, "reason", t.why, strlen(t.why));
	json_object_set_new(o, "left", d->pause_left >= 0 ? json_real(d->pause_left) :
	    json_null());
	pausetext_done(&t);
	return o;
}

static json_t *
totals_json(const struct depth *d)
{
	json_t *o = json_object();
	size_t i;

	for (i = 0; i < STAT_MAX; i++)
		json_object_set_new(o, stats_name((enum stat)i), json_integer(d->total[i]));
	return o;
}

static json_t *
queue_json(const struct picture *p, size_t i)
{
	const struct depth *d = &p->depths[i];
	const struct service *s = &p->services[i];
	struct buf state = BUF_INIT;
	json_t *o = json_object();

	state_text(p, i, &state);
	out_set_bytes(o, "name", p->targets[i].name, strlen(p->targets[i].name));
	out_set_bytes(o, "key", p->targets[i].keys.name[KEY_QUEUE],
	    p->targets[i].keys.len[KEY_QUEUE]);
	json_object_set_new(o, "kind", json_string(config_kind_name(p->targets[i].kind)));
	json_object_set_new(o, "waiting", number_or_null(d->waiting));
	json_object_set_new(o, "running", number_or_null(d->in_flight));
	json_object_set_new(o, "retry", number_or_null(d->retry));
	json_object_set_new(o, "due", number_or_null(d->due));
	json_object_set_new(o, "delayed", number_or_null(d->delayed));
	json_object_set_new(o, "dead", number_or_null(d->dead));
	json_object_set_new(o, "daemons", json_integer(s->daemons));
	json_object_set_new(o, "concurrency", json_integer(s->concurrency));
	json_object_set_new(o, "oldest", s->oldest >= 0 ? json_real(s->oldest) : json_null());
	out_set_bytes(o, "state", state.data, state.len);
	json_object_set_new(o, "paused", pause_json(d));
	json_object_set_new(o, "totals", totals_json(d));
	json_object_set_new(o, "error", d->problem != NULL ? json_string(d->problem) :
	    json_null());
	buf_done(&state);
	return o;
}

static void
print_json(const struct ctl *c, const struct picture *p)
{
	json_t *root = json_object(), *queues = json_array();
	char when[CLOCK_TEXT_MAX];
	size_t i;

	for (i = 0; i < p->n; i++)
		json_array_append_new(queues, queue_json(p, i));
	json_object_set_new(root, "time", json_string(clock_text(p->taken, when)));
	json_object_set_new(root, "server", json_string(client_address(c->client)));
	json_object_set_new(root, "daemons", json_integer((json_int_t)p->fleet.n));
	json_object_set_new(root, "queues", queues);
	out_json(root);
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
	fill(&t, p, rates);
	if (table_rows(&t) > 0)
		table_print(&t, b, (size_t)out_width());
	else
		buf_puts(b, "no queues\n");
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
