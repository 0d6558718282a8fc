/* Decides when to send a tick, and where it goes on; see ticker.h. */
#include "queue/ticker.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/backoff.h"
#include "loop/timer.h"

#define SOONEST		(100 * MSEC)	/* after the last tick */
#define ENTRIES_MAX	250		/* that a tick looks at */
#define BYTES_MAX	(1024 * 1024)	/* of payload that a tick moves */

struct ticker {
	struct stats		*stats;
	bool			 closing;
	bool			 sent;		/* a tick is on its way */
	usec_t			 sent_at;	/* mono: the last one */
	usec_t			 not_before;	/* mono: after an error */
	unsigned		 failures;	/* in a row */
	struct tick_report	 found;		/* in this round */
	uint64_t		 counted[STAT_MAX];	/* stats->n as sent */
	int64_t			 rank;		/* see struct ticker_answer */
	char			 cursor[24];
	char			 scan[48];
	struct timer		 timer;
};

/* A tick is due at this time, unless one is due before. */
static void
ticker_set(struct ticker *t, usec_t at)
{
	if (t->closing)
		return;
	if (at < t->sent_at + SOONEST)
		at = t->sent_at + SOONEST;
	if (at < t->not_before)
		at = t->not_before;
	if (!timer_is_set(&t->timer) || t->timer.at > at)
		timer_set_at(&t->timer, at);
}

/* -- sending ---------------------------------------------------------------- */

bool
ticker_begin(struct ticker *t, bool at_once)
{
	usec_t now = clock_mono();

	if (t->sent)
		return false;
	if (now < t->not_before || (!at_once && now < t->sent_at + SOONEST)) {
		ticker_set(t, now);
		return false;
	}
	t->sent = true;
	t->sent_at = now;
	timer_stop(&t->timer);
	return true;
}

/* Only the first tick of a round sweeps QDELIVERY. */
void
ticker_add_words(const struct ticker *t, const struct ticker_terms *terms, struct words *w)
{
	bool follows = t->rank > 0 || t->found.requeued + t->found.promoted > 0;

	words_fmt(w, "%.6f", (double)terms->lease / (double)SEC);
	words_fmt(w, "%.6f", (double)terms->foreign_timeout / (double)SEC);
	words_add(w, clock_mono() >= terms->judge_at ? "1" : "0");
	words_fmt(w, "%.6f", terms->redis_now);
	words_fmt(w, "%d", ENTRIES_MAX);
	words_fmt(w, "%d", BYTES_MAX);
	words_fmt(w, "%" PRId64, t->rank);
	words_add(w, follows || t->closing ? "-" : t->cursor);
}

void
ticker_add_counters(struct ticker *t, struct words *w)
{
	memcpy(t->counted, t->stats->n, sizeof(t->counted));
	queue_add_counters(t->stats, w);
}

/* -- answers ---------------------------------------------------------------- */

/*
 * After a lost reply the counters count as added: adding them twice would be worse than
 * not at all.
 */
void
ticker_ended(struct ticker *t, bool acted)
{
	t->sent = false;
	if (acted)
		memcpy(t->stats->sent, t->counted, sizeof(t->counted));
}

/*
 * Plans the tick for the end of a lease.  Other daemons plan one, too: the random delay
 * spreads them, so that the first tick serves all.
 */
static void
ticker_plan(struct ticker *t, usec_t expires_in, const struct ticker_terms *terms)
{
	usec_t slack = terms->lease / 10 < SEC ? terms->lease / 10 : SEC;
	usec_t now = clock_mono();

	timer_stop(&t->timer);
	if (terms->judge_at > now && terms->judge_at < USEC_MAX)
		ticker_set(t, terms->judge_at + MSEC);
	if (expires_in >= 0)
		ticker_set(t, now + expires_in + slack +
		    (usec_t)(random_unit() * (double)slack));
}

bool
ticker_answered(struct ticker *t, const struct ticker_answer *a,
    const struct ticker_terms *terms)
{
	ticker_ended(t, true);
	t->failures = 0;
	t->found.requeued += a->requeued;
	t->found.promoted += a->promoted;
	t->found.dropped += a->dropped;
	t->rank = a->rank;
	if (strcmp(a->cursor, "-") != 0)
		snprintf(t->cursor, sizeof(t->cursor), "%s", a->cursor);
	if (a->scan != NULL)
		snprintf(t->scan, sizeof(t->scan), "%s", a->scan);
	if (a->more && !t->closing)
		return true;
	t->rank = 0;
	ticker_plan(t, a->expires_in, terms);
	return false;
}

/* Redis may have refused the position where the tick should go on: begins anew. */
void
ticker_refused(struct ticker *t, usec_t most)
{
	ticker_ended(t, false);
	t->rank = 0;
	strcpy(t->cursor, "0");
	t->scan[0] = '\0';
	t->not_before = clock_mono() + backoff_delay(SEC, most, ++t->failures, random_unit());
	ticker_set(t, t->not_before);
}

bool
ticker_report(struct ticker *t, struct tick_report *report)
{
	*report = t->found;
	t->found = (struct tick_report){ 0 };
	return report->requeued > 0 || report->promoted > 0 || report->dropped > 0;
}

/* -- life ------------------------------------------------------------------- */

void
ticker_up(struct ticker *t)
{
	t->failures = 0;
	t->not_before = 0;
	ticker_set(t, clock_mono());
}

void
ticker_close(struct ticker *t)
{
	t->closing = true;
	timer_stop(&t->timer);
}

struct ticker *
ticker_new(struct loop *loop, struct stats *stats, void (*due)(void *), void *arg)
{
	struct ticker *t = NEW(struct ticker, .stats = stats);

	strcpy(t->cursor, "0");
	timer_init(&t->timer, loop, due, arg);
	return t;
}

void
ticker_free(struct ticker *t)
{
	if (t == NULL)
		return;
	timer_stop(&t->timer);
	free(t);
}

const char *
ticker_scan(const struct ticker *t)
{
	return t->scan;
}

bool
ticker_is_sent(const struct ticker *t)
{
	return t->sent;
}

bool
ticker_has_counters(const struct ticker *t)
{
	return stats_has_unsent(t->stats) && t->failures == 0;
}
