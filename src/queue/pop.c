/*
 * Pops, and those of unknown outcome; see pop.h.
 *
 *	  SENT ------------------- replied -------------------> freed
 *	   |                                                     ^
 *	   | lost, or an error that may have come late           |
 *	   v        asked                  last page             |
 *	UNKNOWN ------------> ASKED -----------------------------|
 *	   ^                   | |    it has run, or never will  |
 *	   '-------------------' |                               |
 *	     next page,          | it may run yet                |
 *	     no answer           v           deadline            |
 *	                      WAITING ------------> ASKED_AGAIN -'
 *	                         ^                       |
 *	                         '-----------------------'
 *	                           next page, no answer
 *
 * In UNKNOWN and ASKED no other pop may be sent.
 */
#include "queue/pop.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/backoff.h"
#include "base/list.h"
#include "loop/timer.h"
#include "policy/rate.h"

#define REPLY_BYTES	(256 * 1024)	/* of payload in a pop's reply */
#define PAGE		1000		/* deliveries that one call of mine looks at */
#define SLACK		1.0		/* seconds: clocks drift */
#define AFTER_DEADLINE	(100 * MSEC)

enum pop_state { POP_SENT, POP_UNKNOWN, POP_ASKED, POP_WAITING, POP_ASKED_AGAIN };

struct pop_call {
	TAILQ_ENTRY(pop_call)	 entry;		/* not SENT */
	enum pop_state		 state;
	uint64_t		 number;
	usec_t			 sent;		/* mono */
	double			 since;		/* Redis seconds: it ran later; 0: unknown */
	usec_t			 deadline;	/* mono: the pop does nothing later */
	bool			 found;		/* messages that it took: it has run */
	bool			 took;		/* Redis says that it took messages */
	bool			 whole;		/* look at all of QBACKUP */
	char			 from[40];	/* next page; "": the first */
	int64_t			 offset;
};

struct pops {
	char			*instance;
	struct pop_call		*sent;		/* on its way; NULL: none */
	TAILQ_HEAD(, pop_call)	 unknown;
	uint64_t		 last;		/* number of the last call that took messages */
	bool			 noted;		/* Redis may have a note of our pops */
	char			*error;
	struct timer		 ask;
	unsigned		 failures;	/* of mine, in a row */
	bool			 new_first;	/* TURN_SHARE: the next pop prefers new messages */
	unsigned		 due_first;	/* messages before the turns begin */
};

static void
pop_set_state(struct pop_call *pop, enum pop_state state)
{
	pop->state = state;
}

/* -- numbers ---------------------------------------------------------------- */

/*
 * One counter for the process: no token may repeat, even if a queue is closed and
 * opened again.
 */
static uint64_t
pops_next_number(void)
{
	static uint64_t number;

	return ++number;
}

void
pops_saw_number(struct pops *p, uint64_t number)
{
	if (number > p->last)
		p->last = number;
	p->noted = true;
}

static void
pops_add_name(const struct pops *p, uint64_t number, struct words *w)
{
	words_fmt(w, "%s.%" PRIu64, p->instance, number);
}

void
pops_add_last(const struct pops *p, struct words *w)
{
	pops_add_name(p, p->last, w);
}

void
pops_add_rescue(const struct pops *p, uint64_t *number, struct words *w)
{
	if (*number == 0)
		*number = pops_next_number();
	pops_add_name(p, *number, w);
	words_fmt(w, "%" PRIu64, p->last);
}

bool
pops_is_noted(const struct pops *p)
{
	return p->noted;
}

void
pops_set_noted(struct pops *p, bool noted)
{
	p->noted = noted;
}

/* -- a pop ------------------------------------------------------------------ */

/*
 * The script's word for the turn.  Pops alternate between retries and new messages.  A
 * pop without room for a message that has failed before does not count; otherwise
 * retries could always come second.
 */
static const char *
pops_turn(struct pops *p, const struct pop_terms *t)
{
	static const char *const words[] = {
		[TURN_OLDEST] = "new", [TURN_NEWEST] = "newest", [TURN_FEWEST] = "fewest",
		[TURN_LONGEST] = "retry",
	};

	if (t->turn != TURN_SHARE)
		return words[t->turn];
	if (p->due_first > 0) {
		p->due_first -= t->n < p->due_first ? t->n : p->due_first;
		return "due";
	}
	if (t->batch == 0 || t->room >= t->batch)
		p->new_first = !p->new_first;
	return p->new_first ? "retry" : "new";
}

void
pops_begin(struct pops *p, const struct pop_terms *t, struct words *w)
{
	double timeout = (double)t->timeout / (double)SEC;
	struct pop_call *pop = p->sent = xcalloc(1, sizeof(*pop));

	pop->number = pops_next_number();
	pop->sent = clock_mono();
	pop->since = t->redis_now;
	pop->deadline = pop->sent + t->timeout;
	words_fmt(w, "%u", t->n);
	words_fmt(w, "%d", REPLY_BYTES);
	words_fmt(w, "%" PRIu64, t->inline_max);
	pops_add_name(p, pop->number, w);
	words_fmt(w, "%.6f", pop->since > 0 ? pop->since + timeout : 0);
	words_fmt(w, "%d", t->fleet_concurrency);
	words_fmt(w, "%.9f", t->gap);
	words_fmt(w, "%.9f", RATE_SLACK);
	if (t->batch > 0)
		words_fmt(w, "%s %u %u", pops_turn(p, t), t->room, t->batch);
	else
		words_add(w, pops_turn(p, t));
	words_fmt(w, "%" PRIu64, p->last);
}

bool
pops_is_sent(const struct pops *p)
{
	return p->sent != NULL;
}

void
pops_ended(struct pops *p, bool unknown)
{
	if (unknown) {
		pop_set_state(p->sent, POP_UNKNOWN);
		TAILQ_INSERT_TAIL(&p->unknown, p->sent, entry);
	} else {
		free(p->sent);
	}
	p->sent = NULL;
}

void
pops_replied(struct pops *p, bool took)
{
	if (took)
		pops_saw_number(p, p->sent->number);
	xreplace(&p->error, NULL);
	pops_ended(p, false);
}

/* Whether an error reply surely came before the script's first write. */
static bool
pop_error_is_early(enum reply_error e)
{
	switch (e) {
	case REPLY_NOSCRIPT:
	case REPLY_TRANSIENT:
	case REPLY_ELSEWHERE:
	case REPLY_REFUSED:
		return true;
	case REPLY_OK:
	case REPLY_DENIED:
	case REPLY_WRONGTYPE:
	case REPLY_OTHER:
		break;
	}
	return false;
}

/* Redis has answered, so the pop cannot run later. */
void
pops_refused(struct pops *p, enum reply_error e, const char *text)
{
	p->sent->deadline = 0;
	pops_ended(p, !pop_error_is_early(e));
	if (text != NULL)
		xreplace(&p->error, text);
}

const char *
pops_error(const struct pops *p)
{
	return p->error;
}

/* -- asking ----------------------------------------------------------------- */

struct pop_call *
pops_to_ask(struct pops *p)
{
	usec_t now = clock_mono(), left;
	struct pop_call *pop;

	TAILQ_FOREACH(pop, &p->unknown, entry) {
		left = pop->deadline + AFTER_DEADLINE - now;
		if (pop->state == POP_UNKNOWN || (pop->state == POP_WAITING && left <= 0))
			return pop;
		if (pop->state == POP_WAITING &&
		    (!timer_is_set(&p->ask) || timer_left(&p->ask) > left))
			timer_set(&p->ask, left);
	}
	return NULL;
}

static double
pop_from(const struct pop_call *pop)
{
	return pop->since > SLACK ? pop->since - SLACK : 0;
}

void
pops_add_question(struct pops *p, struct pop_call *pop, uint64_t inline_max, struct words *w)
{
	bool first = pop->from[0] == '\0';

	pop_set_state(pop, pop->state == POP_UNKNOWN ? POP_ASKED : POP_ASKED_AGAIN);
	pops_add_name(p, pop->number, w);
	if (first)
		words_fmt(w, "%.6f", pop_from(pop));
	else
		words_add(w, pop->from);
	words_fmt(w, "%" PRId64, first ? 0 : pop->offset);
	words_fmt(w, "%" PRIu64, inline_max);
	words_fmt(w, "%d", PAGE);
}

/* mine must be asked again, from this page on. */
static void
pop_ask_on(struct pop_call *pop, const char *from, int64_t offset)
{
	snprintf(pop->from, sizeof(pop->from), "%s", from);
	pop->offset = offset;
	if (pop->state == POP_ASKED)
		pop_set_state(pop, POP_UNKNOWN);
	else if (pop->state == POP_ASKED_AGAIN)
		pop_set_state(pop, POP_WAITING);
}

void
pops_mine_lost(struct pop_call *pop)
{
	pop_ask_on(pop, "", 0);
}

void
pops_mine_refused(struct pops *p, struct pop_call *pop, usec_t most)
{
	pop_ask_on(pop, "", 0);
	timer_set(&p->ask, backoff_delay(100 * MSEC, most, ++p->failures, random_unit()));
}

/* The last page: done, unless the pop could still run. */
static void
pops_last_page(struct pops *p, struct pop_call *pop)
{
	if (pop->took && !pop->found && !pop->whole) {
		/* Redis' clock was set back: look beyond the time of the pop. */
		pop->whole = true;
		pop->since = 0;
		pop_ask_on(pop, "", 0);
		return;
	}
	xreplace(&p->error, NULL);
	if (!pop->found && !pop->took && clock_mono() < pop->deadline) {
		pop->from[0] = '\0';
		pop_set_state(pop, POP_WAITING);
		return;
	}
	TAILQ_REMOVE(&p->unknown, pop, entry);
	free(pop);
}

void
pops_mine_page(struct pops *p, struct pop_call *pop, const struct mine_page *page)
{
	p->failures = 0;
	pop->found |= page->found;
	pop->took |= page->took;
	if (pop->found || pop->took)
		pops_saw_number(p, pop->number);
	if (page->from[0] != '\0')
		pop_ask_on(pop, page->from, page->offset);
	else
		pops_last_page(p, pop);
}

/* -- what is unknown -------------------------------------------------------- */

bool
pops_is_unsure(const struct pops *p)
{
	const struct pop_call *pop;

	TAILQ_FOREACH(pop, &p->unknown, entry) {
		if (pop->state == POP_UNKNOWN || pop->state == POP_ASKED)
			return true;
	}
	return false;
}

bool
pops_is_idle(const struct pops *p)
{
	return p->sent == NULL && TAILQ_EMPTY(&p->unknown);
}

static bool
pops_reply_is_late(const struct pops *p, usec_t interval)
{
	return p->sent != NULL && clock_mono() - p->sent->sent >= interval / 2;
}

bool
pops_is_late(const struct pops *p, usec_t interval)
{
	return !TAILQ_EMPTY(&p->unknown) || pops_reply_is_late(p, interval);
}

static void
pops_add_one_late(const struct pops *p, const struct pop_call *pop, struct words *w)
{
	pops_add_name(p, pop->number, w);
	words_fmt(w, "%.6f", pop_from(pop));
}

void
pops_add_late(const struct pops *p, usec_t interval, struct words *w)
{
	bool late = pops_reply_is_late(p, interval);
	const struct pop_call *pop;
	unsigned n = late ? 1 : 0;

	TAILQ_FOREACH(pop, &p->unknown, entry)
		n++;
	words_fmt(w, "%u", n);
	if (late)
		pops_add_one_late(p, p->sent, w);
	TAILQ_FOREACH(pop, &p->unknown, entry)
		pops_add_one_late(p, pop, w);
}

/* -- life ------------------------------------------------------------------- */

void
pops_up(struct pops *p)
{
	struct pop_call *pop;

	p->failures = 0;
	TAILQ_FOREACH(pop, &p->unknown, entry)
		pop->from[0] = '\0';
}

struct pops *
pops_new(struct loop *loop, const char *instance, unsigned due_first, void (*ask)(void *),
    void *arg)
{
	struct pops *p = NEW(struct pops, .last = pops_next_number());

	p->instance = xasprintf("%s-%" PRIu64, instance, p->last);
	p->due_first = due_first;
	TAILQ_INIT(&p->unknown);
	timer_init(&p->ask, loop, ask, arg);
	return p;
}

void
pops_free(struct pops *p)
{
	struct pop_call *pop;

	if (p == NULL)
		return;
	while ((pop = TAILQ_TAKE(&p->unknown, entry)) != NULL)
		free(pop);
	free(p->sent);
	timer_stop(&p->ask);
	free(p->instance);
	free(p->error);
	free(p);
}
