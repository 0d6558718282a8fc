/* The history of queues; see history.h. */
#include "status/history.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "queue/depth.h"
#include "status/json_bytes.h"

#define NUMBER_MAX	1e12		/* Redis may hold larger ones */

/* Figures that are not known are -1. */
struct track {
	char	*key;		/* owned */
	usec_t	 seen;		/* mono; its last sample */
	struct history_point point[HISTORY_SAMPLES];	/* one for each of history.at */
};

struct history {
	usec_t	 at[HISTORY_SAMPLES];	/* mono; the oldest first */
	size_t	 n;		/* samples so far, at most HISTORY_SAMPLES */
	struct track	**tracks;	/* sorted by key */
	size_t	 ntracks;
};

static const struct history_point unknown = { -1, -1, -1, -1 };

struct history *
history_new(void)
{
	return NEW(struct history, .n = 0);
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
	for (size_t i = 0; h != NULL && i < h->ntracks; i++)
		track_free(h->tracks[i]);
	if (h != NULL)
		free(h->tracks);
	free(h);
}

/* -- samples ---------------------------------------------------------------------- */

bool
history_begin(struct history *h, usec_t now)
{
	struct track *t;
	size_t n = 0;

	if (h->n > 0 && now - history_last(h) < HISTORY_APART)
		return false;
	/* Forgets queues that are gone.  The last sample may be older than HISTORY_WINDOW. */
	for (size_t i = 0; i < h->ntracks; i++) {
		t = h->tracks[i];
		if (now - t->seen > HISTORY_WINDOW && t->seen != history_last(h))
			track_free(t);
		else
			h->tracks[n++] = t;
	}
	h->ntracks = n;
	/* The oldest sample makes room. */
	if (h->n == HISTORY_SAMPLES) {
		h->n--;
		memmove(&h->at[0], &h->at[1], h->n * sizeof(h->at[0]));
		for (size_t i = 0; i < h->ntracks; i++) {
			t = h->tracks[i];
			memmove(&t->point[0], &t->point[1], h->n * sizeof(t->point[0]));
		}
	}
	for (size_t i = 0; i < h->ntracks; i++)
		h->tracks[i]->point[h->n] = unknown;
	h->at[h->n++] = now;
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

	if (i < h->ntracks && strcmp(h->tracks[i]->key, key) == 0)
		return h->tracks[i];
	return NULL;
}

void
history_add(struct history *h, const char *key, const struct history_point *p)
{
	struct track *t = find_track(h, key);
	size_t i = lower_bound(h, key);

	if (t == NULL && h->ntracks >= HISTORY_QUEUES)
		return;
	if (t == NULL) {
		t = NEW(struct track, .key = xstrdup(key));
		for (size_t k = 0; k < h->n; k++)
			t->point[k] = unknown;
		(void)APPEND(h->tracks, h->ntracks);
		memmove(&h->tracks[i + 1], &h->tracks[i],
		    (h->ntracks - 1 - i) * sizeof(h->tracks[0]));
		h->tracks[i] = t;
	}
	t->seen = history_last(h);
	t->point[h->n - 1] = *p;
}

/* -- rates ------------------------------------------------------------------------ */

/* The sample where the rate at sample i begins; i: there is none. */
static size_t
rate_from(const struct history *h, size_t i)
{
	usec_t now = h->at[i];
	size_t k = i;

	while (k > 0 && (k == i || now - h->at[k - 1] <= HISTORY_RATE_SPAN))
		k--;
	if (now - h->at[k] < HISTORY_RATE_LEAST)
		return i;
	return k;
}

/* The rates between two samples.  If a total has become smaller, somebody has deleted it. */
static struct history_rates
rates_between(const struct history *h, const struct track *t, size_t from, size_t to)
{
	const struct history_point *a = &t->point[from], *b = &t->point[to];
	double seconds = clock_seconds(h->at[to] - h->at[from]);
	struct history_rates r = { -1, -1 };

	if (from != to && a->acked >= 0 && b->acked >= a->acked)
		r.acked = (double)(b->acked - a->acked) / seconds;
	if (from != to && a->failed >= 0 && b->failed >= a->failed)
		r.failed = (double)(b->failed - a->failed) / seconds;
	return r;
}

struct history_rates
history_rates(const struct history *h, const char *key)
{
	const struct track *t = find_track(h, key);

	if (t == NULL || h->n == 0)
		return (struct history_rates){ -1, -1 };
	return rates_between(h, t, rate_from(h, h->n - 1), h->n - 1);
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

	if (v < 0)
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

void
history_text(const struct history *h, struct buf *out)
{
	size_t from[HISTORY_SAMPLES], i, k;	/* from: see rate_from() */
	struct buf acked = BUF_INIT, failed = BUF_INIT, latency = BUF_INIT;
	wall_t began = clock_wall() - clock_mono();
	struct history_rates rates;
	const struct track *t;
	json_t *o;
	char *key;

	buf_printf(out, "{\"step\":%lld,\"window\":%lld,\"times\":[",
	    (long long)(HISTORY_STEP / SEC), (long long)(HISTORY_WINDOW / SEC));
	for (i = 0; i < h->n; i++) {
		from[i] = rate_from(h, i);
		add_number(out, i, clock_seconds(began + h->at[i]), 1);
	}
	buf_puts(out, "],\"queues\":[");
	for (k = 0; k < h->ntracks; k++) {
		t = h->tracks[k];
		o = json_set(json_object(), "key:s", t->key);
		key = json_dumps(o, JSON_COMPACT);
		key[strlen(key) - 1] = '\0';	/* its brace */
		if (k > 0)
			buf_addc(out, ',');
		buf_printf(out, "%s,\"depth\":[", key);
		json_decref(o);
		free(key);
		for (i = 0; i < h->n; i++) {
			rates = rates_between(h, t, from[i], i);
			add_number(out, i, (double)t->point[i].depth, 0);
			add_number(&acked, i, rates.acked, 2);
			add_number(&failed, i, rates.failed, 2);
			add_number(&latency, i, t->point[i].latency, 1);
		}
		buf_printf(out, "],\"acked_rate\":[%s],\"failed_rate\":[%s],\"latency\":[%s]}",
		    buf_str(&acked), buf_str(&failed), buf_str(&latency));
		buf_clear(&latency);
		buf_clear(&acked);
		buf_clear(&failed);
	}
	buf_puts(out, "]}\n");
	buf_done(&acked);
	buf_done(&failed);
	buf_done(&latency);
}

usec_t
history_last(const struct history *h)
{
	return h->n > 0 ? h->at[h->n - 1] : 0;
}

usec_t
history_pace(size_t daemons, size_t keys)
{
	/* A survey asks for one heartbeat of each daemon, and for the depths of each key. */
	double commands = (double)daemons + (double)keys * DEPTH_STEPS;
	double pace = (double)daemons * commands / HISTORY_COMMANDS * (double)SEC;

	if (pace > (double)HISTORY_STEP)
		return (usec_t)pace;
	return HISTORY_STEP;
}
