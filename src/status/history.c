/*
 * The history of queues; see history.h.  The times of samples are in a ring.  Each
 * queue has a ring of figures beside it: place i of all rings belongs to the same
 * sample.
 */
#include "status/history.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "queue/depth.h"
#include "status/json_bytes.h"

#define NUMBER_MAX	1e12		/* Redis may hold larger ones */

/* A queue; unknown figures are NAN, or -1. */
struct track {
	char	*key;		/* owned */
	usec_t	 seen;		/* mono; its last sample */
	float	 depth[HISTORY_SAMPLES];
	float	 running[HISTORY_SAMPLES];
	float	 latency[HISTORY_SAMPLES];
	int64_t	 acked[HISTORY_SAMPLES];
	int64_t	 failed[HISTORY_SAMPLES];
};

struct history {
	size_t	 most;		/* tracks */
	usec_t	 apart;		/* samples, at least */
	usec_t	 at[HISTORY_SAMPLES];
	size_t	 n;		/* samples so far, at most HISTORY_SAMPLES */
	size_t	 last;		/* the place of the newest */
	struct track	**tracks;	/* sorted by key */
	size_t	 ntracks;
};

struct history *
history_new(size_t queues, usec_t apart)
{
	return NEW(struct history, .most = queues, .apart = apart);
}

static void
track_free(struct track *t)
{
	free(t->key);
	free(t);
}

void
history_free(struct history *h)
{
	if (h == NULL)
		return;
	for (size_t i = 0; i < h->ntracks; i++)
		track_free(h->tracks[i]);
	free(h->tracks);
	free(h);
}

/* -- samples ---------------------------------------------------------------------- */

static void
track_clear(struct track *t, size_t place)
{
	t->depth[place] = t->running[place] = t->latency[place] = NAN;
	t->acked[place] = t->failed[place] = -1;
}

/* Forgets queues that are gone.  The last sample may be older than HISTORY_WINDOW. */
static void
expire(struct history *h, usec_t now)
{
	size_t n = 0;

	for (size_t i = 0; i < h->ntracks; i++) {
		if (now - h->tracks[i]->seen > HISTORY_WINDOW &&
		    h->tracks[i]->seen != h->at[h->last])
			track_free(h->tracks[i]);
		else
			h->tracks[n++] = h->tracks[i];
	}
	h->ntracks = n;
}

bool
history_begin(struct history *h, usec_t now)
{
	if (h->n > 0 && now - h->at[h->last] < h->apart)
		return false;
	expire(h, now);
	h->last = h->n > 0 ? (h->last + 1) % HISTORY_SAMPLES : 0;
	h->n += h->n < HISTORY_SAMPLES;
	h->at[h->last] = now;
	for (size_t i = 0; i < h->ntracks; i++)
		track_clear(h->tracks[i], h->last);
	return true;
}

/* The place of the first track whose key is not smaller. */
static size_t
lower_bound(const struct history *h, const char *key)
{
	size_t from = 0, to = h->ntracks, mid;

	while (from < to) {
		mid = from + (to - from) / 2;
		if (strcmp(h->tracks[mid]->key, key) < 0)
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

static struct track *
find_track(const struct history *h, const char *key)
{
	size_t i = lower_bound(h, key);

	return i < h->ntracks && strcmp(h->tracks[i]->key, key) == 0 ? h->tracks[i] : NULL;
}

static struct track *
new_track(struct history *h, const char *key)
{
	struct track *t = xcalloc(1, sizeof(*t));
	size_t i = lower_bound(h, key);

	t->key = xstrdup(key);
	for (size_t k = 0; k < HISTORY_SAMPLES; k++)
		track_clear(t, k);
	(void)APPEND(h->tracks, h->ntracks);
	memmove(&h->tracks[i + 1], &h->tracks[i], (h->ntracks - 1 - i) * sizeof(h->tracks[0]));
	h->tracks[i] = t;
	return t;
}

void
history_add(struct history *h, const char *key, const struct history_point *p)
{
	struct track *t = find_track(h, key);

	if (t == NULL && h->ntracks >= h->most)
		return;
	if (t == NULL)
		t = new_track(h, key);
	t->seen = h->at[h->last];
	t->depth[h->last] = p->depth >= 0 ? (float)p->depth : NAN;
	t->running[h->last] = p->running >= 0 ? (float)p->running : NAN;
	t->latency[h->last] = p->latency >= 0 ? (float)p->latency : NAN;
	t->acked[h->last] = p->acked;
	t->failed[h->last] = p->failed;
}

/* -- rates ------------------------------------------------------------------------ */

/* The place of the i-th sample, 0 for the oldest. */
static size_t
place_of(const struct history *h, size_t i)
{
	return (h->last + HISTORY_SAMPLES + 1 - h->n + i) % HISTORY_SAMPLES;
}

/* The sample where the rate at sample i begins; i: there is none. */
static size_t
rate_from(const struct history *h, size_t i)
{
	usec_t now = h->at[place_of(h, i)], since;
	size_t k = i;

	while (k > 0 && (k == i || now - h->at[place_of(h, k - 1)] <= HISTORY_RATE_SPAN))
		k--;
	since = now - h->at[place_of(h, k)];
	return since >= HISTORY_RATE_LEAST ? k : i;
}

/* The rate between two samples.  If a total has become smaller, somebody has deleted it. */
static double
rate_between(const int64_t *total, size_t from, size_t to, double seconds)
{
	if (from == to || total[from] < 0 || total[to] < total[from])
		return -1;
	return (double)(total[to] - total[from]) / seconds;
}

static double
rate_at(const struct history *h, const int64_t *total, size_t i)
{
	size_t to = place_of(h, i), from = place_of(h, rate_from(h, i));

	return rate_between(total, from, to, clock_seconds(h->at[to] - h->at[from]));
}

struct history_rates
history_rates(const struct history *h, const char *key)
{
	const struct track *t = find_track(h, key);

	if (t == NULL || h->n == 0)
		return (struct history_rates){ -1, -1 };
	return (struct history_rates){
		rate_at(h, t->acked, h->n - 1), rate_at(h, t->failed, h->n - 1)
	};
}

/* -- text ------------------------------------------------------------------------- */

#define NUMBER_TEXT_MAX	32

/*
 * Writes n / 10^digits before `end`, without zeros at its end, and returns where it begins.
 * printf() would take ten times as long, and a large fleet has 700,000 of these.
 */
static char *
write_number(char *end, uint64_t n, int digits)
{
	for (; digits > 0 && n % 10 == 0; digits--)
		n /= 10;
	for (int i = 0; i <= digits || n > 0; i++) {
		if (i == digits && digits > 0)
			*--end = '.';
		*--end = (char)('0' + n % 10);
		n /= 10;
	}
	return end;
}

/*
 * Adds a number, rounded to so many digits after the point to keep the text short;
 * null: unknown.
 */
static void
add_number(struct buf *out, size_t i, double v, int digits)
{
	static const double parts[] = { 1, 10, 100 };
	char text[NUMBER_TEXT_MAX], *end = text + sizeof(text), *p;

	if (isnan(v) || v < 0)
		p = memcpy(end - 4, "null", 4);
	else if (v == 0)	/* most are */
		*(p = end - 1) = '0';
	else if (v > NUMBER_MAX)
		p = write_number(end, (uint64_t)NUMBER_MAX, 0);
	else
		p = write_number(end, (uint64_t)(v * parts[digits] + 0.5), digits);
	if (i > 0)
		*--p = ',';
	buf_add(out, p, (size_t)(end - p));
}

/* Places and times of the samples, the oldest first; all queues share them. */
struct frame {
	size_t	 n;
	size_t	 place[HISTORY_SAMPLES];
	size_t	 from[HISTORY_SAMPLES];		/* the place from which its rate is counted */
	double	 seconds[HISTORY_SAMPLES];	/* since then */
};

static void
frame_init(struct frame *f, const struct history *h)
{
	f->n = h->n;
	for (size_t i = 0; i < h->n; i++) {
		f->place[i] = place_of(h, i);
		f->from[i] = place_of(h, rate_from(h, i));
		f->seconds[i] = clock_seconds(h->at[f->place[i]] - h->at[f->from[i]]);
	}
}

static void
add_figures(const struct frame *f, const char *name, const float *figure, int digits,
    struct buf *out)
{
	buf_printf(out, ",\"%s\":[", name);
	for (size_t i = 0; i < f->n; i++)
		add_number(out, i, (double)figure[f->place[i]], digits);
	buf_addc(out, ']');
}

static void
add_rates(const struct frame *f, const char *name, const int64_t *total, struct buf *out)
{
	buf_printf(out, ",\"%s\":[", name);
	for (size_t i = 0; i < f->n; i++)
		add_number(out, i, rate_between(total, f->from[i], f->place[i], f->seconds[i]), 2);
	buf_addc(out, ']');
}

/* "key":"orders" */
static void
add_key(const char *key, struct buf *out)
{
	json_t *o = json_set(json_object(), "key:s", key);
	char *text = json_dumps(o, JSON_COMPACT);

	if (text == NULL)
		fatalx("cannot make JSON");
	buf_add(out, text + 1, strlen(text) - 2);
	free(text);
	json_decref(o);
}

static void
add_track(const struct frame *f, const struct track *t, struct buf *out)
{
	buf_addc(out, '{');
	add_key(t->key, out);
	add_figures(f, "depth", t->depth, 0, out);
	add_figures(f, "running", t->running, 0, out);
	add_figures(f, "latency", t->latency, 1, out);
	add_rates(f, "acked_rate", t->acked, out);
	add_rates(f, "failed_rate", t->failed, out);
	buf_addc(out, '}');
}

static void
add_head(const struct history *h, const struct frame *f, struct buf *out)
{
	wall_t began = clock_wall() - clock_mono();

	buf_printf(out, "{\"step\":%lld,\"window\":%lld,\"times\":[",
	    (long long)(HISTORY_STEP / SEC), (long long)(HISTORY_WINDOW / SEC));
	for (size_t i = 0; i < h->n; i++)
		add_number(out, i, clock_seconds(began + h->at[f->place[i]]), 1);
	buf_puts(out, "],\"queues\":[");
}

bool
history_text(const struct history *h, size_t *next, struct buf *out)
{
	size_t end = h->ntracks - *next > HISTORY_PART ? *next + HISTORY_PART : h->ntracks;
	struct frame f;

	frame_init(&f, h);
	if (*next == 0)
		add_head(h, &f, out);
	for (; *next < end; (*next)++) {
		if (*next > 0)
			buf_addc(out, ',');
		add_track(&f, h->tracks[*next], out);
	}
	if (*next < h->ntracks)
		return false;
	buf_puts(out, "]}\n");
	return true;
}

usec_t
history_last(const struct history *h)
{
	return h->n > 0 ? h->at[h->last] : 0;
}

usec_t
history_pace(size_t daemons, size_t keys)
{
	/* A survey asks for one heartbeat of each daemon, and for the depths of each key. */
	double commands = (double)daemons + (double)keys * DEPTH_STEPS;
	double pace = (double)daemons * commands / HISTORY_COMMANDS * (double)SEC;

	return pace > (double)HISTORY_STEP ? (usec_t)pace : HISTORY_STEP;
}
