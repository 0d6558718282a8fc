/*
 * status -w.  On a terminal:
 *
 *	TABLE --/--> FILTER --Enter, Esc--> TABLE
 *	TABLE --Enter--> QUEUE --Esc--> TABLE
 *	TABLE, QUEUE --?--> HELP --any key but q--> TABLE
 *
 * top keeps the last picture.  If it cannot reach Redis, it shows the error above that picture,
 * and tries again after each interval: it may run unattended for days.  Rows move, so it
 * remembers the marked queue by its key.
 */
#include "rqctl/top.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rqctl/detail.h"
#include "rqctl/out.h"
#include "rqctl/screen.h"
#include "rqctl/status.h"
#include "rqctl/unnamed.h"

#define GUTTER		2		/* columns before a row, for the mark */
#define FILTER_MAX	100		/* bytes */
#define WARNINGS	2		/* lines of warnings that are shown */
#define SAMPLES_APART	(HISTORY_RATE_SPAN / 42)	/* rates need no more samples */
#define UNNAMED_EVERY	(10 * SEC)	/* searches for queues that nobody names */

enum view { VIEW_TABLE, VIEW_FILTER, VIEW_QUEUE, VIEW_HELP };

enum order {
	ORDER_TROUBLE, ORDER_NAME, ORDER_WAITING, ORDER_LATENCY, ORDER_RUNNING, ORDER_FAILURES,
	ORDER_DEAD
};

static const struct {
	char		 key;
	const char	*name;
} orders[] = {
	[ORDER_TROUBLE] = { 't', "trouble" }, [ORDER_NAME] = { 'n', "name" },
	[ORDER_WAITING] = { 'w', "waiting" }, [ORDER_LATENCY] = { 'l', "latency" },
	[ORDER_RUNNING] = { 'i', "in flight" }, [ORDER_FAILURES] = { 'f', "failures/s" },
	[ORDER_DEAD] = { 'd', "dead" },
};

struct ranked {
	size_t		 queue;		/* its place in the picture */
	const char	*name;		/* borrowed */
	double		 rank;		/* the highest comes first */
};

struct top {
	struct ctl	*ctl;
	struct picture	 picture;	/* the last one */
	struct buf	 headline;	/* of the picture */
	char		*error;		/* why the last refresh failed; NULL: it did not; owned */
	struct history	*history;	/* for rates */
	struct unnamed	 unnamed;	/* as of unnamed_at */
	usec_t		 unnamed_at;	/* mono; 0: never */
	struct detail	 detail;	/* of the open queue */
	enum view	 view;
	struct buf	 filter;	/* what names must contain */
	enum order	 order;
	bool		 reversed;
	struct ranked	*lines;		/* n: the queues that the filter lets through, in order */
	size_t		 n;
	char		*marked;	/* the key of a queue; NULL: the first; owned */
	size_t		 at;		/* its place in lines */
	size_t		 first;		/* line at the top of the table */
	size_t		 page;		/* lines that the table shows */
	size_t		 scroll;	/* of VIEW_QUEUE */
};

/* -- order and filter -------------------------------------------------------------- */

/* A queue whose latency is not known comes last. */
static double
latency_rank(const struct top *t, size_t i)
{
	struct facts f = picture_facts(&t->picture, i);
	struct latency l = state_latency(&f);

	return l.how == LATENCY_UNKNOWN ? -1 : l.seconds;
}

static double
rank_of(const struct top *t, size_t i)
{
	const struct depth *d = &t->picture.depths[i];

	switch (t->order) {
	case ORDER_TROUBLE:
		/* The worst trouble first; then the most waiting messages. */
		return status_trouble(&t->picture, i, t->history) * 1e12 +
		    (double)(d->waiting > 0 ? d->waiting : 0);
	case ORDER_NAME:
		return 0;
	case ORDER_WAITING:
		return (double)d->waiting;
	case ORDER_LATENCY:
		return latency_rank(t, i);
	case ORDER_RUNNING:
		return (double)d->in_flight;
	case ORDER_FAILURES:
		return history_rates(t->history, t->picture.targets[i].key).failed;
	case ORDER_DEAD:
		return (double)d->dead;
	}
	return 0;
}

static int
compare(const void *a, const void *b, void *arg)
{
	const struct ranked *x = a, *y = b;
	const struct top *t = arg;
	int d = x->rank < y->rank ? 1 : x->rank > y->rank ? -1 : strcmp(x->name, y->name);

	return t->reversed ? -d : d;
}

static const char *
key_of(const struct top *t, size_t line)
{
	return t->picture.targets[t->lines[line].queue].keys.name[KEY_QUEUE];
}

/* Marks the queue at a line, or the last one if there are fewer lines. */
static void
mark(struct top *t, size_t at)
{
	t->at = t->n == 0 ? 0 : at < t->n ? at : t->n - 1;
	xreplace(&t->marked, t->n > 0 ? key_of(t, t->at) : NULL);
}

/* Filters and sorts the picture's queues; the marked one stays marked if it is still there. */
static void
arrange(struct top *t)
{
	const char *part = buf_str(&t->filter), *name;
	size_t i;

	free(t->lines);
	t->lines = xcalloc(t->picture.n + 1, sizeof(t->lines[0]));
	t->n = 0;
	for (i = 0; i < t->picture.n; i++) {
		name = t->picture.targets[i].name;
		if (strcasestr(name, part) != NULL)
			t->lines[t->n++] = (struct ranked){ i, name, rank_of(t, i) };
	}
	qsort_r(t->lines, t->n, sizeof(t->lines[0]), compare, t);
	for (i = 0; t->marked != NULL && i < t->n; i++)
		if (strcmp(key_of(t, i), t->marked) == 0)
			break;
	if (t->marked == NULL)
		t->at = 0;
	else
		t->at = i < t->n ? i : t->at < t->n ? t->at : t->n > 0 ? t->n - 1 : 0;
}

static void
set_view(struct top *t, enum view view)
{
	t->view = view;
	t->scroll = 0;
	detail_done(&t->detail);
}

/* -- pictures ---------------------------------------------------------------------- */

static void
set_headline(struct top *t)
{
	char when[CLOCK_TEXT_MAX];

	buf_clear(&t->headline);
	status_headline(t->ctl, &t->picture, &t->headline);
	buf_printf(&t->headline, ", %.19sZ", clock_text(t->picture.taken, when));
}

/* Only each UNNAMED_EVERY: each of these keys costs Redis as much as a queue. */
static int
find_unnamed(struct top *t)
{
	usec_t now = clock_mono();

	if (t->unnamed_at != 0 && now - t->unnamed_at < UNNAMED_EVERY)
		return 0;
	unnamed_done(&t->unnamed);
	t->unnamed_at = 0;
	if (unnamed_find(t->ctl, &t->picture, &t->unnamed) == -1)
		return -1;
	t->unnamed_at = now;
	return 0;
}

static void
add_sample(struct top *t)
{
	const struct picture *p = &t->picture;

	if (!history_begin(t->history, clock_mono()))
		return;
	for (size_t i = 0; i < p->n; i++)
		history_add(t->history, p->targets[i].key, &(struct history_point){
		    .depth = -1, .running = -1, .latency = -1,
		    .acked = p->depths[i].total[STAT_ACKED],
		    .failed = p->depths[i].total[STAT_FAILED] });
}

/* A new picture; -1 after an error. */
static int
take_picture(struct top *t)
{
	struct picture p;

	if (picture_take(t->ctl, &p) == -1)
		return -1;
	picture_done(&t->picture);
	t->picture = p;
	add_sample(t);
	set_headline(t);
	arrange(t);
	if (t->view == VIEW_QUEUE &&
	    (t->n == 0 || t->marked == NULL || strcmp(key_of(t, t->at), t->marked) != 0))
		set_view(t, VIEW_TABLE);
	return find_unnamed(t);
}

static int
read_detail(struct top *t)
{
	if (t->view != VIEW_QUEUE || t->n == 0)
		return 0;
	return detail_read(t->ctl, &t->detail, &t->picture, t->lines[t->at].queue);
}

/* Runs a part that asks Redis, and keeps its error, unless a signal has interrupted it. */
static void
try_part(struct top *t, int (*part)(struct top *))
{
	struct ctl *c = t->ctl;

	xreplace(&t->error, NULL);
	c->hold = true;
	if (part(t) == -1) {
		if (!screen_is_asked() && c->held != NULL)
			t->error = xstrdup(c->held);
		ctl_disconnect(c);
	}
	ctl_forget(c);
}

static int
refresh(struct top *t)
{
	return take_picture(t) == 0 && read_detail(t) == 0 ? 0 : -1;
}

/* -- views ------------------------------------------------------------------------- */

static void
draw_error(const struct top *t, struct buf *b)
{
	if (t->error != NULL)
		buf_printf(b, "%s%s%s\n", out_colour(COLOUR_RED), t->error,
		    out_colour(COLOUR_NONE));
}

/* "300 queues: 2 bad, 1 warn; 1,204 waiting, 12 in flight, 7 dead" */
static void
draw_summary(const struct top *t, struct buf *b)
{
	const struct picture *p = &t->picture;
	size_t moods[] = { [MOOD_OK] = 0, [MOOD_IDLE] = 0, [MOOD_WARN] = 0, [MOOD_BAD] = 0 };
	char waiting[OUT_NUMBER_MAX], running[OUT_NUMBER_MAX], dead[OUT_NUMBER_MAX];
	int64_t sum[3] = { 0 };
	struct buf ignored = BUF_INIT;
	struct facts f;

	for (size_t i = 0; i < p->n; i++) {
		f = picture_facts(p, i);
		moods[state_text(&f, &ignored)]++;
		sum[0] += p->depths[i].waiting > 0 ? p->depths[i].waiting : 0;
		sum[1] += p->depths[i].in_flight > 0 ? p->depths[i].in_flight : 0;
		sum[2] += p->depths[i].dead > 0 ? p->depths[i].dead : 0;
	}
	buf_done(&ignored);
	buf_printf(b, "%zu queue%s, %zu bad, %zu warn; %s waiting, %s in flight, %s dead\n", p->n,
	    p->n == 1 ? "" : "s", moods[MOOD_BAD], moods[MOOD_WARN], out_number(sum[0], waiting),
	    out_number(sum[1], running), out_number(sum[2], dead));
}

static size_t
count_lines(const struct buf *b)
{
	size_t n = 0;

	for (size_t i = 0; i < b->len; i++)
		n += b->data[i] == '\n';
	return n;
}

/* Appends line i of a text, or nothing; whether it is there. */
static bool
add_line(struct buf *b, const struct buf *text, size_t i)
{
	const char *p = text->data, *end = text->data + text->len, *nl = p;

	for (; p < end; p = nl + 1, i--) {
		if ((nl = memchr(p, '\n', (size_t)(end - p))) == NULL)
			nl = end;
		if (i == 0)
			break;
	}
	if (p >= end)
		return false;
	buf_add(b, p, (size_t)(nl - p));
	buf_addc(b, '\n');
	return true;
}

/* Shows WARNINGS lines.  If there are more, the last of these says how many. */
static void
draw_warnings(const struct top *t, size_t *room, struct buf *b)
{
	struct buf text = BUF_INIT;
	size_t n;

	status_warnings(&t->picture, &text);
	unnamed_print(&t->unnamed, &text);
	n = count_lines(&text);
	for (size_t i = 0; i < n && i < WARNINGS && *room > 6; i++, (*room)--) {
		if (i == WARNINGS - 1 && n > WARNINGS)
			buf_printf(b, "warning: %zu more, see rqctl status\n", n - i);
		else
			add_line(b, &text, i);
	}
	buf_done(&text);
}

/* The position and the keys.  A narrow terminal cuts the end, so the position comes first. */
static void
draw_footer(const struct top *t, struct buf *b)
{
	const char *filter = buf_str((struct buf *)&t->filter);

	if (t->view == VIEW_FILTER) {
		buf_puts(b, "/");
		out_escape(b, filter, strlen(filter));
		buf_puts(b, "_  Enter keeps it, Esc ends it");
		return;
	}
	buf_printf(b, "%zu/%zu by %s%s", t->n > 0 ? t->at + 1 : 0, t->n, orders[t->order].name,
	    t->reversed ? ", reversed" : "");
	if (filter[0] != '\0') {
		buf_puts(b, ", /");
		out_escape(b, filter, strlen(filter));
	}
	buf_printf(b, "  %sq quit  ? help  / filter  Enter open  sort: t n w l i f d%s",
	    out_colour(COLOUR_DIM), out_colour(COLOUR_NONE));
}

/* The rows around the marked one, under their heads. */
static void
draw_rows(struct top *t, size_t room, struct buf *b)
{
	size_t columns = (size_t)out_width(), i;
	struct buf text = BUF_INIT;
	struct table table;

	t->page = room > 1 ? room - 1 : 1;
	if (t->at < t->first)
		t->first = t->at;
	if (t->at >= t->first + t->page)
		t->first = t->at - t->page + 1;
	if (t->first + t->page > t->n)
		t->first = t->n > t->page ? t->n - t->page : 0;
	status_table(&table, true, columns);
	for (i = 0; i < t->n; i++)
		status_row(&table, &t->picture, t->lines[i].queue, t->history, columns);
	table_print(&table, &text, columns > GUTTER ? columns - GUTTER : 1);
	table_done(&table);
	if (room > 1) {
		buf_puts(b, "  ");
		add_line(b, &text, 0);
	}
	for (i = t->first; i < t->n && i < t->first + t->page; i++) {
		buf_puts(b, i == t->at ? "> " : "  ");
		add_line(b, &text, i + 1);
	}
	buf_done(&text);
}

/* Adds empty lines up to a number of lines, so that the footer is the last one. */
static void
fill_up(struct buf *b, size_t lines)
{
	for (size_t n = count_lines(b); n < lines; n++)
		buf_addc(b, '\n');
}

static void
draw_table(struct top *t, struct buf *b)
{
	size_t height = (size_t)out_height(), room = height;

	if (t->error != NULL) {
		draw_error(t, b);
		room--;
	}
	if (height > 2 && t->headline.len > 0) {
		buf_add(b, t->headline.data, t->headline.len);
		buf_addc(b, '\n');
		room--;
	}
	if (height > 7 && t->headline.len > 0) {
		draw_summary(t, b);
		room--;
	}
	draw_warnings(t, &room, b);
	if (height > 4)
		room--;
	if (t->n > 0)
		draw_rows(t, room, b);
	else if (t->filter.len > 0)
		buf_puts(b, "no queue's name contains the filter\n");
	else if (t->headline.len > 0)
		buf_puts(b, status_none(t->ctl));
	if (height <= 4)
		return;
	fill_up(b, height - 1);
	draw_footer(t, b);
}

/* The open queue.  Lines are wrapped, not cut, so that users can copy the commands. */
static void
draw_queue(struct top *t, struct buf *b)
{
	size_t height = (size_t)out_height(), page = height > 2 ? height - 2 : 1, n, i;
	struct buf text = BUF_INIT, lines = BUF_INIT, line = BUF_INIT;

	detail_print(t->ctl, &t->detail, &t->picture, t->lines[t->at].queue, t->history, &text);
	for (i = 0; add_line(&line, &text, i); i++) {
		out_wrap(&lines, line.data, line.len - 1, (size_t)out_width(), true);
		buf_addc(&lines, '\n');
		buf_clear(&line);
	}
	n = count_lines(&lines);
	if (t->scroll + page > n)
		t->scroll = n > page ? n - page : 0;
	draw_error(t, b);
	for (i = 0; i < page - (t->error != NULL && page > 1) &&
	    add_line(b, &lines, t->scroll + i); i++)
		continue;
	fill_up(b, height - 1);
	buf_printf(b, "%sEsc back  q quit  ? help  up and down scroll%s%s", out_colour(COLOUR_DIM),
	    t->scroll + page < n ? ": there is more" : "", out_colour(COLOUR_NONE));
	t->page = page;
	buf_done(&text);
	buf_done(&lines);
	buf_done(&line);
}

static void
draw_help(struct buf *b)
{
	buf_puts(b, "rqctl status -w\n\n"
	    "  up down PgUp PgDn Home End   mark a queue (also k j g G)\n"
	    "  Enter                        open the marked queue: its trouble, its last\n"
	    "                               error, its daemons, commands that help\n"
	    "  Esc                          back; ends the filter\n"
	    "  /                            show only names that contain some text\n"
	    "  q                            quit\n\n"
	    "  sort, and again to reverse:\n"
	    "  t  trouble     n  name        w  waiting   l  latency\n"
	    "  i  in flight   f  failures/s  d  dead letters\n\n"
	    "  LATENCY is how long the oldest message has waited; \">\": at least so long.\n"
	    "  OK/S and FAIL/S are rates of the last seconds. RUN is running/possible.\n"
	    "\nany key goes back");
}

static bool
draw(struct top *t)
{
	struct buf b = BUF_INIT;
	bool ok;

	if (t->view == VIEW_HELP)
		draw_help(&b);
	else if (t->view == VIEW_QUEUE)
		draw_queue(t, &b);
	else
		draw_table(t, &b);
	ok = screen_draw(&b);
	buf_done(&b);
	return ok;
}

/* -- keys -------------------------------------------------------------------------- */

/* Returns the line to which a key moves from line `at`; SIZE_MAX: it is no such key. */
static size_t
moved(int key, size_t at, size_t page)
{
	switch (key) {
	case SCREEN_UP:
	case 'k':
		return at > 0 ? at - 1 : 0;
	case SCREEN_DOWN:
	case 'j':
		return at + 1;
	case SCREEN_PAGE_UP:
		return at > page ? at - page : 0;
	case SCREEN_PAGE_DOWN:
	case ' ':
		return at + page;
	case SCREEN_HOME:
	case 'g':
		return 0;
	case SCREEN_LAST:
	case 'G':
		return SIZE_MAX / 2;
	}
	return SIZE_MAX;
}

static void
filter_key(struct top *t, int key)
{
	if (key == SCREEN_ENTER || key == SCREEN_ESCAPE)
		set_view(t, VIEW_TABLE);
	if (key == SCREEN_ESCAPE || key == 'U' - '@')
		buf_clear(&t->filter);
	else if (key == SCREEN_BACKSPACE)
		/* Removes all bytes of a character. */
		while (t->filter.len > 0 && (t->filter.data[--t->filter.len] & 0xc0) == 0x80)
			continue;
	else if (key >= ' ' && key < SCREEN_TIMEOUT && t->filter.len < FILTER_MAX)
		buf_addc(&t->filter, (char)key);
	arrange(t);
}

static void
sort_key(struct top *t, int key)
{
	for (size_t i = 0; i < ARRAY_LEN(orders); i++) {
		if (orders[i].key != key)
			continue;
		t->reversed = t->order == (enum order)i && !t->reversed;
		t->order = (enum order)i;
		xreplace(&t->marked, NULL);	/* mark the first queue of the new order */
		arrange(t);
	}
}

static void
table_key(struct top *t, int key)
{
	size_t to = moved(key, t->at, t->page);

	if (to != SIZE_MAX)
		mark(t, to);
	else if (key == SCREEN_ENTER && t->n > 0) {
		mark(t, t->at);
		set_view(t, VIEW_QUEUE);
		try_part(t, read_detail);
	} else if (key == '/')
		set_view(t, VIEW_FILTER);
	else if (key == SCREEN_ESCAPE) {
		buf_clear(&t->filter);
		arrange(t);
	} else
		sort_key(t, key);
}

static void
queue_key(struct top *t, int key)
{
	size_t to = moved(key, t->scroll, t->page);

	if (to != SIZE_MAX)
		t->scroll = to;		/* draw_queue() limits it */
	else if (key == SCREEN_ESCAPE || key == SCREEN_BACKSPACE || key == SCREEN_LEFT ||
	    key == SCREEN_ENTER)
		set_view(t, VIEW_TABLE);
}

/* False: quit. */
static bool
take_key(struct top *t, int key)
{
	if (key == SCREEN_TIMEOUT || key == SCREEN_CHANGED)
		return true;
	if (t->view == VIEW_FILTER)
		filter_key(t, key);
	else if (key == 'q' || key == 'Q')
		return false;
	else if (t->view == VIEW_HELP)
		set_view(t, VIEW_TABLE);
	else if (key == '?' || key == 'h')
		set_view(t, VIEW_HELP);
	else if (t->view == VIEW_QUEUE)
		queue_key(t, key);
	else
		table_key(t, key);
	return true;
}

/* -- status -w --------------------------------------------------------------------- */

static void
watch(struct top *t, usec_t interval)
{
	usec_t due = 0, now;
	int key;

	do {
		if (clock_mono() >= due) {
			try_part(t, refresh);
			due = clock_mono() + interval;
		}
		if (!draw(t))
			return;
		now = clock_mono();
		key = screen_key(due > now ? due - now : 0);
	} while (key != SCREEN_END && take_key(t, key));
}

static void
top_done(struct top *t)
{
	picture_done(&t->picture);
	history_free(t->history);
	detail_done(&t->detail);
	unnamed_done(&t->unnamed);
	buf_done(&t->headline);
	buf_done(&t->filter);
	free(t->error);
	free(t->lines);
	free(t->marked);
}

static void
full_screen(struct ctl *c, usec_t interval)
{
	struct top t = { .ctl = c };

	if (screen_open() == -1) {
		ctl_error(c, EX_OSERR, "cannot take over the terminal: %s", strerror(errno));
		return;
	}
	t.history = history_new(SIZE_MAX, SAMPLES_APART);
	watch(&t, interval);
	screen_close();
	top_done(&t);
}

/* Without a terminal: prints a table and an empty line. */
static void
print_frame(struct top *t)
{
	struct buf b = BUF_INIT;

	try_part(t, take_picture);
	if (t->error != NULL)
		buf_printf(&b, "%s\n", t->error);
	else {
		buf_add(&b, t->headline.data, t->headline.len);
		buf_addc(&b, '\n');
		status_print(t->ctl, &t->picture, t->history, &b);
		unnamed_print(&t->unnamed, &b);
	}
	buf_addc(&b, '\n');
	fwrite(b.data, 1, b.len, stdout);
	fflush(stdout);
	buf_done(&b);
}

static void
frames(struct ctl *c, usec_t interval)
{
	struct top t = { .ctl = c, .history = history_new(SIZE_MAX, SAMPLES_APART) };

	ctl_catch_signals();
	do
		print_frame(&t);
	while (!out_failed() && ctl_sleep(interval));
	top_done(&t);
}

void
top_run(struct ctl *c, usec_t interval)
{
	/* If Redis cannot be reached at first, rqctl ends before it takes over the screen. */
	if (ctl_connect(c) == -1)
		return;
	if (screen_is_possible())
		full_screen(c, interval);
	else
		frames(c, interval);
}
