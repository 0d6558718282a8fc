/*
 * rqctl status -w.
 *
 * Rates are differences of QSTATS.  Daemons add to it once a tick, so a rate is
 * taken over the last HISTORY pictures, not over the last two.  When Redis goes
 * away that is shown, and tried again: this runs on a screen on the wall.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "rqctl/groups.h"
#include "rqctl/out.h"
#include "rqctl/status.h"

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
	struct track	*tracks;	/* in the order of the picture's queues */
	struct rates	*rates;
	size_t		 n;
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

static void
forget(struct watch_state *w)
{
	while (w->n > 0)
		free(w->tracks[--w->n].key);
	free(w->tracks);
	free(w->rates);
	memset(w, 0, sizeof(*w));
}

/* The track of a queue, taken out of the last picture's, or a new one. */
static struct track
track_of(struct watch_state *old, const char *key)
{
	struct track t = { .n = 0 };
	size_t i;

	for (i = 0; i < old->n; i++)
		if (old->tracks[i].key != NULL && strcmp(old->tracks[i].key, key) == 0) {
			t = old->tracks[i];
			old->tracks[i].key = NULL;
			return t;
		}
	t.key = xstrdup(key);
	return t;
}

/* Adds a picture's totals; queues may have come and gone. */
static void
track(struct watch_state *w, const struct picture *p)
{
	struct watch_state old = *w;
	struct track *t;
	size_t i;

	w->n = p->n;
	w->tracks = xcalloc(p->n + 1, sizeof(w->tracks[0]));
	w->rates = xcalloc(p->n + 1, sizeof(w->rates[0]));
	for (i = 0; i < p->n; i++) {
		t = &w->tracks[i];
		*t = track_of(&old, p->targets[i].keys.name[KEY_QUEUE]);
		t->sample[t->n++ % HISTORY] = (struct sample){ clock_mono(),
		    p->depths[i].total[STAT_ACKED], p->depths[i].total[STAT_FAILED] };
		w->rates[i] = rates_of(t);
	}
	forget(&old);
}

static int
count_lines(const struct buf *b)
{
	int n = 0;
	size_t i;

	for (i = 0; i < b->len; i++)
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

/* One round; what went wrong is shown instead. */
static void
show(struct ctl *c, struct watch_state *w)
{
	struct buf b = BUF_INIT;
	struct picture p;

	ctl_hold(c);
	if (picture_take(c, &p) == 0) {
		track(w, &p);
		status_print(c, &p, w->rates, &b);
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

void
watch_run(struct ctl *c, usec_t interval)
{
	struct watch_state w = { .n = 0 };
	struct termios saved, raw;

	if (tcgetattr(STDIN_FILENO, &saved) == -1 || !isatty(STDOUT_FILENO)) {
		ctl_error(c, EX_USAGE, "-w needs a terminal");
		return;
	}
	/* A mistake is said at once, not on the screen. */
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
	forget(&w);
}
