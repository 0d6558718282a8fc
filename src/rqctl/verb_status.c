/*
 * rqctl status: every queue in a line, the worst first.  status -w shows the same again and again:
 * on a terminal it redraws the screen, elsewhere it prints.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "rqctl/listing.h"
#include "rqctl/out.h"
#include "rqctl/snapshot.h"
#include "status/queue_state.h"

#define CAUSES_MAX	10	/* that status prints */
#define STATE_MIN	16	/* columns: "suspended" with a part of the reason */

static const enum colour colours[] = {
	[LEVEL_ERROR] = COLOUR_RED, [LEVEL_WARNING] = COLOUR_YELLOW,
	[LEVEL_UNKNOWN] = COLOUR_YELLOW, [LEVEL_NOTE] = COLOUR_DIM, [LEVEL_OK] = COLOUR_GREEN,
};

static void
print_json(const struct ctl *c, const struct snapshot *p)
{
	json_t *queues = json_array();
	char when[CLOCK_TEXT_MAX];
	struct judge_context context = { .rqctl = "rqctl", .details = true };
	struct facts facts;

	for (size_t i = 0; i < p->n; i++) {
		facts = snapshot_facts(p, i);
		context.queue = facts.name;
		json_array_append_new(queues, state_json(&facts, &context));
	}
	out_json(json_set(json_object(), "time:s server:s daemons:i queues:j",
	    clock_text(p->taken, when), sync_name(c->client), (int64_t)p->fleet.n, queues), false);
}

/*
 * Returns the order of the lines: the queues in trouble, the worst first, then all others.
 * Equal ones keep their order, and so do queues that are arguments.  The caller frees it.
 */
static size_t *
order_of(const struct ctl *c, const struct snapshot *p)
{
	size_t *order = xcalloc(p->n + 1, sizeof(*order)), n = 0;
	int *trouble = xcalloc(p->n + 1, sizeof(*trouble));
	struct judge_context context = { .rqctl = "rqctl", .details = true };
	struct facts f;

	for (size_t i = 0; i < p->n && c->args.nwords == 0; i++) {
		f = snapshot_facts(p, i);
		context.queue = f.name;
		trouble[i] = judge_first(&f, &context, 0, NULL).rank;
		if (trouble[i] < RANK_MINOR)
			trouble[i] = 0;
	}
	for (int t = RANK_ERROR; t >= 0; t--)
		for (size_t i = 0; i < p->n; i++)
			if (trouble[i] == t)
				order[n++] = i;
	free(trouble);
	return order;
}

static void
add_row(struct table *t, const struct snapshot *p, size_t i, bool held)
{
	const struct depth *d = &p->depths[i];
	const int64_t most = p->services[i].concurrency;
	struct facts facts = snapshot_facts(p, i);
	struct judge_context context = { .rqctl = "rqctl", .queue = facts.name, .details = true };
	json_t *o = state_json(&facts, &context), *run;
	char n[OUT_NUMBER_MAX];

	/* "3/8": 3 handlers run, 8 may run */
	if (d->in_flight >= 0 && most > 0)
		run = json_sprintf("%s/%lld", out_number(d->in_flight, n),
		    (long long)most);
	else
		run = json_integer(d->in_flight);
	json_set(o, ".run:j", run);
	table_row(t, o);
	if (d->dead > 0)
		table_colour(t, 5 + held, COLOUR_YELLOW);
	table_colour(t, 8 + held, colours[judge_first(&facts, &context, 0, NULL).level]);
	json_decref(o);
}

/* Lines with the errors of queues, above the table. */
struct error_lines {
	const struct judge_context *context;
	struct buf	 text;
};

static void
add_error_line(const struct judge_finding *f, void *arg)
{
	struct error_lines *lines = arg;

	if (f->level == LEVEL_ERROR)
		out_line(&lines->text, "error: %s: %s", lines->context->queue, f->sentence);
}

/*
 * Appends the headline, with the time for status -w; notes, which rqctl check reports, too; and
 * the table, fitted to the terminal.
 */
static void
add_text(const struct ctl *c, const struct snapshot *p, struct buf *b)
{
	size_t *order = order_of(c, p), causes = 0, i;
	const struct service *s;
	struct judge_context context = { .rqctl = "rqctl", .details = true };
	struct error_lines lines = { .context = &context };
	char when[CLOCK_TEXT_MAX];
	struct facts facts;
	struct table t;
	bool held = false;

	buf_printf(b, "redis %s, %zu daemon%s", sync_name(c->client), p->fleet.n,
	    plural(p->fleet.n));
	if (ctl_given(c, OPT_WATCH))
		buf_printf(b, ", %.19sZ", clock_text(p->taken, when));
	buf_addc(b, '\n');

	if (p->full != NULL)
		buf_printf(b, "error: %s\n", p->full);
	else if (p->refuses != NULL)
		out_line(b, "error: Redis refuses writes: %s", p->refuses);
	for (int k = 0; k < p->notes.n; k++)
		out_line(b, "warning: %s", p->notes.v[k]);
	/* The table has no room for the cause of a suspension. */
	for (i = 0; i < p->n; i++) {
		s = &p->services[i];
		if (s->cause[0] == '\0' || facts_are_empty(&p->depths[i]) ||
		    causes++ >= CAUSES_MAX)
			continue;
		facts = snapshot_facts(p, i);
		context.queue = facts.name;
		judge(&facts, &context, add_error_line, &lines);
	}
	buf_add(b, lines.text.data, lines.text.len);
	buf_done(&lines.text);
	if (causes > CAUSES_MAX)
		buf_printf(b, "error: %zu more queues are suspended, see rqctl check\n",
		    causes - CAUSES_MAX);

	for (i = 0; i < p->n; i++)
		held |= p->depths[i].held > 0 || (p->targets[i].cfg != NULL &&
		    p->targets[i].cfg->group_by[0] != '\0');
	if (held) {
		table_init(&t, "QUEUE=name|>WAIT=waiting|>RUN=.run|>HELD=held|"
		    ">RETRY=retry|>DELAY=delayed|>DEAD=dead|>LATENCY=latency|"
		    ">OLDEST RUN=oldest|STATE=state");
		t.shed = "8547326";
	} else {
		table_init(&t, "QUEUE=name|>WAIT=waiting|>RUN=.run|"
		    ">RETRY=retry|>DELAY=delayed|>DEAD=dead|>LATENCY=latency|"
		    ">OLDEST RUN=oldest|STATE=state");
		t.shed = "743625";
	}
	t.last_min = STATE_MIN;
	for (i = 0; i < p->n; i++)
		add_row(&t, p, order[i], held);
	free(order);
	if (p->n > 0)
		table_print(&t, b, (size_t)out_width());
	else if (ctl_has_file(c))
		buf_puts(b, "no queues\n");
	else
		buf_puts(b, "no queues: no configuration file was read, and "
		    "no daemon serves one; for one key: rqctl status KEY\n");
	table_done(&t);
}

/* -- status -w -------------------------------------------------------------------- */

/* Prints the snapshot, or why there is none.  On a terminal it replaces what the screen shows. */
static void
print_again(struct buf *b, const char *error)
{
	size_t height = (size_t)out_height(), lines = 0;
	const char *text = buf_str(b), *term = getenv("TERM");
	bool draw = height > 0 && term != NULL && term[0] != '\0' && strcmp(term, "dumb") != 0;
	size_t n;

	if (draw)
		fputs("\033[H\033[2J", stdout);
	if (error != NULL) {
		puts(error);
		lines++;
	}
	for (; *text != '\0' && (!draw || lines + 1 < height); lines++) {
		n = strcspn(text, "\n") + 1;
		fwrite(text, 1, n, stdout);
		text += n;
	}
	if (!draw)
		putchar('\n');
	fflush(stdout);
}

/*
 * After an error on a terminal, the last snapshot stays below it; elsewhere only the error is
 * printed.  If Redis cannot be reached at first, rqctl ends.
 */
static void
repeat(struct ctl *c, usec_t interval)
{
	struct buf b = BUF_INIT;
	struct snapshot p;
	bool taken;

	if (ctl_connect(c) == -1)
		return;
	do {
		c->hold = true;
		taken = snapshot_take(c, &p) == 0;
		if (taken || out_height() == 0)
			buf_clear(&b);
		if (taken) {
			add_text(c, &p, &b);
			snapshot_done(&p);
		} else {
			ctl_disconnect(c);
		}
		print_again(&b, c->held);
		ctl_forget(c);
	} while (!out_failed() && ctl_sleep(interval));
	buf_done(&b);
}

static void
status_run(struct ctl *c)
{
	usec_t interval = 2 * SEC;
	struct buf b = BUF_INIT;
	struct snapshot p;

	if (ctl_duration(c, OPT_INTERVAL, &interval) == -1)
		return;
	if (interval < 100 * MSEC || interval > HOUR)
		ctl_error(c, EX_USAGE, "--interval: \"%s\" is not from 100ms to 1h",
		    ctl_value(c, OPT_INTERVAL));
	else if (ctl_given(c, OPT_WATCH) && ctl_given(c, OPT_JSON))
		ctl_error(c, EX_USAGE, "--watch and --json do not go together");
	else if (ctl_given(c, OPT_WATCH))
		repeat(c, interval);
	else if (snapshot_take(c, &p) == 0) {
		if (ctl_given(c, OPT_JSON)) {
			print_json(c, &p);
		} else {
			add_text(c, &p, &b);
			fwrite(b.data, 1, b.len, stdout);
		}
		buf_done(&b);
		snapshot_done(&p);
	}
}

const struct verb verb_status = {
	.name = "status",
	.args = "[QUEUE...]",
	.help = "show queues, their daemons, and what blocks them",
	.options = OPT(WATCH) | OPT(INTERVAL),
	.max_args = -1,
	.flags = VERB_JSON | VERB_QUEUES,
	.run = status_run,
};
