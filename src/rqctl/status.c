/*
 * rqctl status: every queue in a line, the worst first.  status -w shows the same again and again:
 * on a terminal it redraws the screen, elsewhere it prints.
 *
 * The screen stays usable while Redis cannot be reached: it then shows the error above the last
 * table.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/units.h"
#include "rqctl/listing.h"
#include "rqctl/out.h"
#include "rqctl/picture.h"
#include "status/queue_state.h"

#define CAUSES_MAX	10	/* that status prints */
#define LOOK		(200 * MSEC)	/* for a signal */
#define STATE_MIN	16	/* columns: "suspended" with a part of the reason */

static const enum colour colours[] = {
	[LEVEL_ERROR] = COLOUR_RED, [LEVEL_WARNING] = COLOUR_YELLOW,
	[LEVEL_UNKNOWN] = COLOUR_YELLOW, [LEVEL_NOTE] = COLOUR_DIM, [LEVEL_OK] = COLOUR_GREEN,
};

static void
print_json(const struct ctl *c, const struct picture *p)
{
	json_t *queues = json_array();
	char when[CLOCK_TEXT_MAX];
	struct judge_context context = { .rqctl = "rqctl", .details = true };
	struct facts facts;

	for (size_t i = 0; i < p->n; i++) {
		facts = picture_facts(p, i);
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
order_of(const struct ctl *c, const struct picture *p)
{
	size_t *order = xcalloc(p->n + 1, sizeof(*order)), n = 0;
	int *trouble = xcalloc(p->n + 1, sizeof(*trouble));
	struct judge_context context = { .rqctl = "rqctl", .details = true };
	struct facts f;

	for (size_t i = 0; i < p->n && c->args.nwords == 0; i++) {
		f = picture_facts(p, i);
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
add_row(struct table *t, const struct picture *p, size_t i, bool held)
{
	const struct depth *d = &p->depths[i];
	const int64_t most = p->services[i].concurrency;
	struct facts facts = picture_facts(p, i);
	struct judge_context context = { .rqctl = "rqctl", .queue = facts.name, .details = true };
	json_t *o = state_json(&facts, &context);
	char n[OUT_NUMBER_MAX];

	/* "3/8": 3 handlers run, 8 may run */
	json_set(o, ".run:j", d->in_flight >= 0 && most > 0 ? json_sprintf("%s/%lld",
	    out_number(d->in_flight, n), (long long)most) : json_integer(d->in_flight));
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
	size_t		 n;
};

static void
add_error(const struct finding *f, void *arg)
{
	struct error_lines *lines = arg;

	if (f->level != LEVEL_ERROR)
		return;
	out_line(&lines->text, "error: %s: %s", lines->context->queue, f->sentence);
	lines->n++;
}

/*
 * Appends the headline, with the time for status -w; notes, which rqctl check reports, too; and
 * the table, fitted to the terminal.  Returns how many lines the notes have.
 */
static size_t
add_text(const struct ctl *c, const struct picture *p, struct buf *b)
{
	size_t *order = order_of(c, p), notes = 0, causes = 0, i;
	const struct service *s;
	struct judge_context context = { .rqctl = "rqctl", .details = true };
	struct error_lines lines = { .context = &context };
	char when[CLOCK_TEXT_MAX], *refusal;
	struct facts facts;
	struct table t;
	bool held = false;

	buf_printf(b, "redis %s, %zu daemon%s", sync_name(c->client), p->fleet.n,
	    p->fleet.n == 1 ? "" : "s");
	if (ctl_given(c, OPT_WATCH))
		buf_printf(b, ", %.19sZ", clock_text(p->taken, when));
	buf_addc(b, '\n');

	if (p->full != NULL) {
		buf_printf(b, "error: %s\n", p->full);
		notes++;
	} else if (p->refuses != NULL) {
		refusal = judge_refusal(p->refuses);
		out_line(b, "error: %s", refusal);
		free(refusal);
		notes++;
	}
	for (int k = 0; k < p->notes.n; k++)
		out_line(b, "warning: %s", p->notes.v[k]);
	notes += (size_t)p->notes.n;
	/* The table has no room for the cause of a suspension. */
	for (i = 0; i < p->n; i++) {
		s = &p->services[i];
		if (s->cause[0] == '\0' || facts_are_empty(&p->depths[i]) ||
		    causes++ >= CAUSES_MAX)
			continue;
		facts = picture_facts(p, i);
		context.queue = facts.name;
		judge(&facts, &context, add_error, &lines);
	}
	buf_add(b, lines.text.data, lines.text.len);
	buf_done(&lines.text);
	notes += lines.n;
	if (causes > CAUSES_MAX) {
		buf_printf(b, "error: %zu more queues are suspended, see rqctl check\n",
		    causes - CAUSES_MAX);
		notes++;
	}

	for (i = 0; i < p->n; i++)
		held |= p->depths[i].held > 0 || (p->targets[i].cfg != NULL &&
		    p->targets[i].cfg->group_by[0] != '\0');
	table_init(&t, held ? "QUEUE=name|>WAIT=waiting|>RUN=.run|>HELD=held|>RETRY=retry|"
	    ">DELAY=delayed|>DEAD=dead|>LATENCY=latency|>OLDEST RUN=oldest|STATE=state" :
	    "QUEUE=name|>WAIT=waiting|>RUN=.run|>RETRY=retry|>DELAY=delayed|>DEAD=dead|"
	    ">LATENCY=latency|>OLDEST RUN=oldest|STATE=state");
	t.shed = held ? "8547326" : "743625";
	t.last_min = STATE_MIN;
	for (i = 0; i < p->n; i++)
		add_row(&t, p, order[i], held);
	free(order);
	if (p->n > 0)
		table_print(&t, b, (size_t)out_width());
	else
		buf_puts(b, ctl_has_file(c) ? "no queues\n" :
		    "no queues: no configuration file was read, and no daemon "
		    "serves one; for one key: rqctl status KEY\n");
	table_done(&t);
	return notes;
}

/* -- status -w -------------------------------------------------------------------- */

/* The alternate screen, without the cursor, without wrapped lines; and back. */
#define ENTER	"\033[?1049h\033[?25l\033[?7l"
#define LEAVE	"\033[?7h\033[?25h\033[H\033[J\033[?1049l"

struct display {
	struct ctl	*ctl;
	struct buf	 text;		/* of the last picture: headline, notes, table */
	size_t		 nnotes;	/* lines of it: warnings and causes */
	size_t		 n;		/* queues in the table */
	char		*error;		/* why the last refresh failed; NULL: it did not; owned */
	size_t		 first;		/* the queue at the top of the screen */
	struct termios	 saved;
};

static volatile sig_atomic_t ended;	/* a signal asked rqctl to end */
static volatile sig_atomic_t changed;	/* the terminal's size, or rqctl was stopped */

static void
on_end(int signo UNUSED)
{
	ended = 1;
}

static void
on_change(int signo UNUSED)
{
	changed = 1;
}

/* Takes a new picture; after an error the text of the last one stays. */
static void
refresh(struct display *d)
{
	struct ctl *c = d->ctl;
	struct picture p;

	xreplace(&d->error, NULL);
	c->hold = true;
	if (picture_take(c, &p) == 0) {
		buf_clear(&d->text);
		d->nnotes = add_text(c, &p, &d->text);
		d->n = p.n;
		picture_done(&p);
	} else {
		d->error = xstrdup(c->held != NULL ? c->held : "interrupted");
		ctl_disconnect(c);
	}
	ctl_forget(c);
}

/* Adds line y of the screen.  The table's lines fit; others are plain text and are cut. */
static void
add_line(struct buf *b, size_t y, const char *text, size_t width, enum colour colour)
{
	buf_printf(b, "%s\033[K%s%.*s%s", y > 0 ? "\n" : "", out_colour(colour),
	    (int)out_fit(text, width), text, out_colour(COLOUR_NONE));
}

/* Draws the error, the headline, some notes, as many queues as fit, and the footer. */
static void
draw(struct display *d)
{
	size_t height = (size_t)out_height(), width = (size_t)out_width(), i, y = 0;
	size_t notes = d->nnotes < height / 6 ? d->nnotes : height / 6, top = d->nnotes + 2;
	size_t above = (d->error != NULL) + 1 + notes + 1;
	size_t page = height > above + 1 ? height - above - 1 : 1;
	char *copy = xstrndup(buf_str(&d->text), d->text.len), *rest = copy, *line;
	struct buf b = BUF_INIT;

	if (d->first + page > d->n)
		d->first = d->n > page ? d->n - page : 0;
	buf_puts(&b, "\033[H");
	if (d->error != NULL)
		add_line(&b, y++, d->error, width, COLOUR_RED);
	for (i = 0; (line = strsep(&rest, "\n")) != NULL && rest != NULL; i++) {
		if ((i > notes && i <= d->nnotes) || (i >= top && i < top + d->first))
			continue;
		if (y == 0 || y + 1 < height)
			add_line(&b, y++, line, i <= d->nnotes ? width : SIZE_MAX / 2, COLOUR_NONE);
	}
	free(copy);
	for (; y + 1 < height; y++)
		add_line(&b, y, "", width, COLOUR_NONE);
	if (height > 1) {
		line = xasprintf("queues %zu to %zu of %zu; arrows scroll, q quits", d->first +
		    (d->n > 0), d->first + page < d->n ? d->first + page : d->n, d->n);
		add_line(&b, y, line, width, COLOUR_DIM);
		free(line);
	}
	fwrite(b.data, 1, b.len, stdout);
	fflush(stdout);
	buf_done(&b);
}

/* Takes the terminal.  Control-Z comes as a key, so that rqctl can give it back first. */
static void
take_terminal(const struct display *d)
{
	struct termios raw = d->saved;

	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | IEXTEN);
	raw.c_oflag |= OPOST | ONLCR;
	raw.c_cc[VSUSP] = _POSIX_VDISABLE;
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	(void)tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	fputs(ENTER, stdout);
}

static void
give_terminal(const struct display *d)
{
	fputs(LEAVE, stdout);
	fflush(stdout);
	(void)tcsetattr(STDIN_FILENO, TCSANOW, &d->saved);
}

/* Reads what was typed; false: q, or the terminal is gone. */
static bool
read_keys(struct display *d)
{
	size_t page = (size_t)out_height() / 2;
	char typed[64];
	ssize_t n = read(STDIN_FILENO, typed, sizeof(typed));

	for (ssize_t i = 0; i < n; i++) {
		if (typed[i] == 'q')
			return false;
		if (typed[i] == d->saved.c_cc[VSUSP]) {
			give_terminal(d);
			kill(0, SIGTSTP);
			changed = 1;
		}
		if (typed[i] != '\033' || i + 2 >= n)
			continue;
		i += 2;		/* ESC [ A, or ESC O A: up, down, right, left, page up, page down */
		if (memchr("AD5", typed[i], 3) != NULL)
			d->first -= typed[i] == 'A' ? d->first > 0 :
			    d->first < page ? d->first : page;
		else if (memchr("BC6", typed[i], 3) != NULL)
			d->first += typed[i] == 'B' ? 1 : page;
	}
	return n > 0;
}

static void
full_screen(struct display *d, usec_t interval)
{
	static const int ends[] = { SIGINT, SIGTERM, SIGQUIT, SIGHUP };
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	struct sigaction sa = { .sa_handler = on_end };
	usec_t due = 0, left;
	bool go_on = true;
	int n;

	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		sigaction(ends[i], &sa, NULL);
	sa.sa_handler = on_change;
	sigaction(SIGCONT, &sa, NULL);
	sigaction(SIGWINCH, &sa, NULL);
	sync_interrupt(&ended);
	take_terminal(d);
	while (go_on && !ended && !out_failed()) {
		if (clock_mono() >= due || changed) {
			if (changed)
				take_terminal(d);
			changed = 0;
			refresh(d);
			due = clock_mono() + interval;
		}
		draw(d);
		/* A signal may come just before poll(2): it waits LOOK at most. */
		n = 0;
		while (n == 0 && !ended && !changed && (left = due - clock_mono()) > 0)
			n = poll(&in, 1, (int)((left < LOOK ? left : LOOK) / MSEC) + 1);
		if (n == 1)
			go_on = read_keys(d);
	}
	give_terminal(d);
	sync_interrupt(NULL);
}

static void
repeat(struct ctl *c, usec_t interval)
{
	struct display d = { .ctl = c };
	const char *term = getenv("TERM");

	/* If Redis cannot be reached at first, rqctl ends before it takes the terminal. */
	if (ctl_connect(c) == -1)
		return;
	if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && term != NULL && term[0] != '\0' &&
	    strcmp(term, "dumb") != 0 && tcgetattr(STDIN_FILENO, &d.saved) == 0) {
		full_screen(&d, interval);
	} else {
		ctl_catch_signals();
		do {
			refresh(&d);
			printf("%s\n", d.error != NULL ? d.error : buf_str(&d.text));
			if (d.error != NULL)
				putchar('\n');
			fflush(stdout);
		} while (!out_failed() && ctl_sleep(interval));
	}
	buf_done(&d.text);
	free(d.error);
}

void
status_run(struct ctl *c)
{
	usec_t interval = 2 * SEC;
	struct buf b = BUF_INIT;
	struct picture p;

	if (ctl_duration(c, OPT_INTERVAL, &interval) == -1)
		return;
	if (interval < 100 * MSEC || interval > HOUR)
		ctl_error(c, EX_USAGE, "--interval: \"%s\" is not from 100ms to 1h",
		    ctl_value(c, OPT_INTERVAL));
	else if (ctl_given(c, OPT_WATCH) && ctl_given(c, OPT_JSON))
		ctl_error(c, EX_USAGE, "--watch and --json do not go together");
	else if (ctl_given(c, OPT_WATCH))
		repeat(c, interval);
	else if (picture_take(c, &p) == 0) {
		if (ctl_given(c, OPT_JSON)) {
			print_json(c, &p);
		} else {
			add_text(c, &p, &b);
			fwrite(b.data, 1, b.len, stdout);
		}
		buf_done(&b);
		picture_done(&p);
	}
}
