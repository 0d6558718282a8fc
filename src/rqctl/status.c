/*
 * rqctl status: every queue in a line, once, or with -w again and again.
 *
 * With -w there are rates: differences of QSTATS.  Daemons add to it once a tick, so rqctl
 * computes a rate over the last HISTORY pictures, not over the last two.  If Redis goes away,
 * rqctl shows that and tries again: it may run unattended for days.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/units.h"
#include "rqctl/out.h"
#include "rqctl/picture.h"
#include "rqctl/listing.h"
#include "status/state.h"

/* Per second; < 0: not known yet. */
struct rates {
	double	 acked, failed;
};

/* How many columns the table has; with rates there is no room for all in 80 columns. */
enum width { NARROW, MEDIUM, WIDE };

#define STATE_MIN	10	/* "suspended", "paused": names of queues are cut for it */

static struct facts
facts_of(const struct picture *p, size_t i)
{
	return (struct facts){
		.name = p->targets[i].name, .keys = &p->targets[i].keys,
		.kind = p->targets[i].kind, .depth = &p->depths[i],
		.elsewhere = target_is_elsewhere(&p->targets[i]),
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

/* ">12m": it has waited since before the daemon's first look at the list, 12 minutes ago. */
static void
latency_cell(struct table *t, const struct facts *f)
{
	struct latency l = state_latency(f);
	char age[UNITS_TEXT_MAX];

	table_add(t, "%s%s", l.how == LATENCY_LEAST ? ">" : "",
	    units_age(l.how == LATENCY_UNKNOWN ? -1 : l.seconds, age));
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
	char age[UNITS_TEXT_MAX];

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
		latency_cell(t, &facts);
	if (width == WIDE)
		table_add(t, "%s", units_age(state_oldest(&facts), age));
	table_bytes(t, state.data, state.len);
	table_colour(t, colours[mood]);
	buf_done(&state);
}

/* Without -w the table is always wide: its lines may wrap, and programs may read it. */
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
	static const char *const heads[] = {
		[NARROW] = "QUEUE|>WAIT|>RUN|>RETRY|>DEAD|STATE",
		[MEDIUM] = "QUEUE|>WAIT|>RUN|>RETRY|>DEAD|>OK/S|>FAIL/S|>LATENCY|STATE",
		[WIDE] = "QUEUE|>WAIT|>RUN|>RETRY|>DELAY|>DEAD|>OK/S|>FAIL/S|>LATENCY|"
		    ">OLDEST RUN|STATE",
	};
	enum width width = width_of(rates != NULL);

	table_init(t, rates != NULL ? heads[width] :
	    "QUEUE|>WAIT|>RUN|>RETRY|>DELAY|>DEAD|>LATENCY|>OLDEST RUN|STATE");
	t->last_min = rates != NULL ? STATE_MIN : 0;
	for (size_t i = 0; i < p->n; i++)
		row(t, p, i, rates != NULL ? &rates[i] : NULL, width);
}

static void
print_json(const struct ctl *c, const struct picture *p)
{
	json_t *queues = json_array();
	char when[CLOCK_TEXT_MAX];
	struct facts facts;

	for (size_t i = 0; i < p->n; i++) {
		facts = facts_of(p, i);
		json_array_append_new(queues, state_json(&facts));
	}
	out_json(json_set(json_object(), "time:s server:s daemons:i queues:j",
	    clock_text(p->taken, when), blocking_address(c->client), (int64_t)p->fleet.n, queues));
}

/* Problems of daemons, one per line; rqctl check reports the same. */
static void
print_warnings(const struct fleet *f, struct buf *b)
{
	const char *error, *name;

	for (size_t i = 0; i < f->n; i++) {
		error = fleet_text(f->daemons[i].beat, "log_error");
		name = f->daemons[i].instance;
		if (error[0] == '\0')
			continue;
		buf_puts(b, "warning: daemon ");
		out_escape(b, name, strlen(name));
		buf_puts(b, " cannot write its log: ");
		out_escape(b, error, strlen(error));
		buf_addc(b, '\n');
	}
}

/* A headline and the table; rates are one for each queue, or NULL. */
static void
print_table(const struct ctl *c, const struct picture *p, const struct rates *rates,
    struct buf *b)
{
	char when[CLOCK_TEXT_MAX];
	struct table t;

	buf_printf(b, "redis %s, %zu daemon%s", blocking_address(c->client), p->fleet.n,
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

/* -- status -w -------------------------------------------------------------------- */

#define HISTORY		20

/* Totals of one queue at one time. */
struct sample {
	usec_t	 at;
	int64_t	 acked, failed;
};

struct track {
	char		*key;		/* owned */
	struct sample	 sample[HISTORY];
	size_t		 n;		/* samples ever taken */
};

struct watch_state {
	struct track	*tracks;	/* n; of every queue that was seen */
	size_t		 n;
	struct rates	*rates;		/* in the order of the last picture's queues */
};

static double
rate(int64_t now, int64_t then, usec_t passed)
{
	return now < then || passed <= 0 ? -1 : (double)(now - then) / ((double)passed / 1e6);
}

static struct rates
rates_of(const struct track *t)
{
	const struct sample *now = &t->sample[(t->n - 1) % HISTORY];
	const struct sample *then = &t->sample[t->n > HISTORY ? t->n % HISTORY : 0];
	usec_t passed = now->at - then->at;

	return (struct rates){
		rate(now->acked, then->acked, passed), rate(now->failed, then->failed, passed)
	};
}

/* The track of a queue, which may be a new one. */
static struct track *
track_of(struct watch_state *w, const char *key)
{
	for (size_t i = 0; i < w->n; i++)
		if (strcmp(w->tracks[i].key, key) == 0)
			return &w->tracks[i];
	w->tracks = xreallocarray(w->tracks, w->n + 1, sizeof(w->tracks[0]));
	w->tracks[w->n] = (struct track){ .key = xstrdup(key) };
	return &w->tracks[w->n++];
}

/* Adds a picture's totals; queues may have come and gone. */
static void
track(struct watch_state *w, const struct picture *p)
{
	struct track *t;

	free(w->rates);
	w->rates = xcalloc(p->n + 1, sizeof(w->rates[0]));
	for (size_t i = 0; i < p->n; i++) {
		t = track_of(w, p->targets[i].keys.name[KEY_QUEUE]);
		t->sample[t->n++ % HISTORY] = (struct sample){ clock_mono(),
		    p->depths[i].total[STAT_ACKED], p->depths[i].total[STAT_FAILED] };
		w->rates[i] = rates_of(t);
	}
}

static void
watch_done(struct watch_state *w)
{
	while (w->n > 0)
		free(w->tracks[--w->n].key);
	free(w->tracks);
	free(w->rates);
}

static int
count_lines(const struct buf *b)
{
	int n = 0;

	for (size_t i = 0; i < b->len; i++)
		n += b->data[i] == '\n';
	return n;
}

/* One line, cut at the terminal's edge; sequences that set colours take no room. */
static void
draw_line(const char *line, size_t len, size_t room)
{
	char *copy = xstrndup(line, len), *text;
	const char *p;
	size_t n, shown;

	for (p = copy; *p != '\0'; p += n) {
		if (*p == '\033') {
			n = strcspn(p, "m");
			n += p[n] == 'm';
			fwrite(p, 1, n, stdout);
			continue;
		}
		n = strcspn(p, "\033");
		text = xstrndup(p, n);
		shown = out_fit(text, room);
		text[shown] = '\0';
		fputs(text, stdout);
		room -= out_columns(text);
		free(text);
	}
	free(copy);
}

/* Draws over what stands there, line by line, so that nothing flickers. */
static void
draw(const struct buf *b)
{
	const char *p = b->data, *end = b->data + b->len, *nl;
	int lines = count_lines(b), room = out_height() - 1;

	fputs("\033[H", stdout);
	for (; p < end && (room > 1 || lines == 1); p = nl + 1, room--, lines--) {
		nl = memchr(p, '\n', (size_t)(end - p));
		draw_line(p, (size_t)(nl - p), (size_t)out_width());
		fputs("\033[K\n", stdout);
	}
	if (lines > 0)
		printf("%d more; name the queues to see\033[K\n", lines);
	fputs("\033[J", stdout);
	fflush(stdout);
}

/* Waits for the next picture or a key; false: end. */
static bool
wait_key(usec_t interval)
{
	struct pollfd fd = { .fd = STDIN_FILENO, .events = POLLIN };
	char key;

	if (poll(&fd, 1, (int)(interval / MSEC)) != 1)
		return !ctl_interrupted();
	return read(STDIN_FILENO, &key, 1) == 1 && key != 'q' && key != 'Q';
}

/* One round; after an error, it shows the error instead. */
static void
show(struct ctl *c, struct watch_state *w)
{
	struct buf b = BUF_INIT;
	struct picture p;

	c->hold = true;
	if (picture_take(c, &p) == 0) {
		track(w, &p);
		print_table(c, &p, w->rates, &b);
		picture_done(&p);
	} else {
		buf_printf(&b, "%s%.*s%s\n", out_colour(COLOUR_RED),
		    (int)out_fit(c->held, (size_t)out_width()), c->held,
		    out_colour(COLOUR_NONE));
		ctl_disconnect(c);
	}
	draw(&b);
	buf_done(&b);
	ctl_forget(c);
}

/* Shows the table again and again on the terminal, until q. */
static void
watch(struct ctl *c, usec_t interval)
{
	struct watch_state w = { .n = 0 };
	struct termios saved, raw;

	if (tcgetattr(STDIN_FILENO, &saved) == -1 || !isatty(STDOUT_FILENO)) {
		ctl_error(c, EX_USAGE, "-w needs a terminal");
		return;
	}
	/* A first error ends rqctl, before it takes over the screen. */
	if (ctl_connect(c) == -1)
		return;
	ctl_catch_signals();
	raw = saved;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	fputs("\033[?1049h\033[?25l", stdout);
	do
		show(c, &w);
	while (wait_key(interval) && !out_failed());
	fputs("\033[?25h\033[?1049l", stdout);
	fflush(stdout);
	tcsetattr(STDIN_FILENO, TCSANOW, &saved);
	watch_done(&w);
}

/* -- status ----------------------------------------------------------------------- */

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
		print_table(c, &p, NULL, &b);
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
		ctl_error(c, EX_USAGE, "--interval: \"%s\" is not from 100ms to 1h",
		    ctl_value(c, OPT_INTERVAL));
	else if (ctl_given(c, OPT_WATCH) && ctl_given(c, OPT_JSON))
		ctl_error(c, EX_USAGE, "--watch and --json do not go together");
	else if (ctl_given(c, OPT_WATCH))
		watch(c, interval);
	else
		once(c);
}
