/*
 * Results: see settler.h.
 *
 * Batches: the results of one turn go into one call.  While handlers are quick, a
 * result also waits for others, for BATCH_TIME at most.  It waits only while the engine
 * has more than twice as many messages as results are kept.  ready() waits with it, so
 * that one pop fills all the slots that became free.  Two scripts for three messages,
 * instead of two for each message, halve the cost of a message in Redis.
 *
 * Unknown outcomes: a result whose answer was lost, or was an error, may have acted.
 * If the next answer is "held", "gone" or "taken", it has acted, or the message was
 * settled elsewhere.  Both count as success.  "lost" means that Redis has forgotten the
 * delivery.  Then an ack is done, and any other result is rescued: written again from
 * our copy.
 *
 * Hand-over: acks with pushes have calls of their own.  Their script pushes and acks,
 * or does neither, so an error means that nothing has happened.  One call pushes to one
 * set of queues, since an ACL that denies one of them refuses the whole call.  "lost"
 * is no success here: Redis does not have the pushed messages, so a rescue pushes them.
 *
 * Rescues: a rescue has a number, as pops have, and Redis notes the last number.  So a
 * rescue whose reply was lost can be sent again: the script sees whether the first one
 * has acted.  This needs that no other call with a number comes in between.  So only
 * one rescue or pop is on its way at a time.  After an error reply a rescue gets a new
 * number.
 *
 * Refusals: a result that Redis refuses keeps its slot, so pops ask for fewer messages
 * meanwhile.  It backs off by itself and delays no other result.  If Redis refuses a
 * whole call, its results go into calls of half the size the next time, until the one
 * at fault is alone.  While Redis accepts nothing, the settler tries one such call at a
 * time.  A result that was never refused is sent at once.
 */
#include "queue/settler.h"

#include <stdlib.h>
#include <string.h>

#include "base/backoff.h"
#include "base/util.h"
#include "loop/timer.h"

#define BATCH_TIME	MSEC
#define BATCH_ENOUGH	16		/* a larger batch saves little */
#define PACE_MAX	(10 * MSEC)
#define CALL_MAX	64		/* results */
#define CALL_BYTES	(1024 * 1024)	/* of their tags, answers, error texts and pushes */
#define CALL_PUSHES	1000		/* more only if one result has more */

struct settler {
	struct ledger	*ledger;
	const struct settler_events *events;
	void		*arg;
	usec_t		 result_at;	/* mono: the last result came */
	usec_t		 pace;		/* between two results, smoothed; at most PACE_MAX */
	struct timer	 batch_timer;	/* set: results wait for others */
	struct timer	 hold;		/* set: send no refused result before it fires */
	struct timer	 again;		/* set: the first refused result is due then */
	struct delivery	*rescuing;	/* its rescue is on its way, or may have acted */
	bool		 retrying;	/* a call with refused results is on its way */
	bool		 closing;	/* refused hand-overs are given back */
	unsigned	 failures;	/* calls in a row of which nothing was accepted */
};

/* If only one result came, only one slot is quick: the next result of it must not wait. */
static void
settler_batch_due(void *arg)
{
	struct settler *s = arg;

	if (ledger_tally(s->ledger)->count[DELIVERY_KEPT] == 1)
		s->pace = PACE_MAX;
	s->events->batch_due(s->arg);
}

static void
settler_wake(void *arg)
{
	struct settler *s = arg;

	s->events->wake(s->arg);
}

struct settler *
settler_new(struct loop *loop, struct ledger *ledger, const struct settler_events *events,
    void *arg)
{
	struct settler *s = NEW(struct settler, .ledger = ledger, .events = events, .arg = arg,
	    .pace = PACE_MAX);

	timer_init(&s->batch_timer, loop, settler_batch_due, s);
	timer_init(&s->hold, loop, settler_wake, s);
	timer_init(&s->again, loop, settler_wake, s);
	return s;
}

static void
settler_move(struct settler *s, struct delivery *d, enum delivery_state state)
{
	ledger_move(s->ledger, d, state);
	settler_wake(s);
}

static void
settler_end(struct settler *s, struct delivery *d, enum settled how)
{
	if (d->from_engine)
		s->events->settled(d, how, s->arg);
	settler_move(s, d, DELIVERY_DONE);
}

void
settler_free(struct settler *s)
{
	enum delivery_state state;
	struct delivery *d;

	for (state = DELIVERY_KEPT; state < DELIVERY_DONE; state++) {
		while ((d = ledger_first(s->ledger, state)) != NULL)
			settler_end(s, d, SETTLED_GAVE_UP);
	}
	timer_stop(&s->batch_timer);
	timer_stop(&s->hold);
	timer_stop(&s->again);
	free(s);
}

void
settler_up(struct settler *s)
{
	struct delivery *d;

	s->failures = 0;
	timer_stop(&s->hold);
	timer_stop(&s->again);
	for (d = ledger_first(s->ledger, DELIVERY_REFUSED); d != NULL; d = ledger_next(d))
		d->due = 0;
}

/* -- kept ------------------------------------------------------------------- */

void
settler_keep(struct settler *s, struct delivery *d, const struct verdict *verdict,
    struct result *result)
{
	usec_t now = clock_mono(), since = now - s->result_at;

	if (since > PACE_MAX)
		since = PACE_MAX;
	s->pace += (since - s->pace) / 8;
	s->result_at = now;
	ledger_keep(s->ledger, d, verdict, result);
	settler_wake(s);
}

void
settler_put_away(struct settler *s, bool connected)
{
	struct delivery *d, *next;

	for (d = ledger_first(s->ledger, DELIVERY_KEPT); d != NULL; d = next) {
		next = ledger_next(d);
		if (d->verdict.op == VERDICT_STALE && !(d->taken && connected))
			settler_end(s, d, SETTLED_STALE);
	}
}

/* Waiting helps only quick handlers: at least two results must be expected in the time. */
bool
settler_waits(struct settler *s, bool may_wait)
{
	const unsigned *count = ledger_tally(s->ledger)->count;
	unsigned kept = count[DELIVERY_KEPT];

	if (!may_wait || kept == 0 || kept >= BATCH_ENOUGH ||
	    2 * kept >= count[DELIVERY_IN_HAND] || s->pace > BATCH_TIME / 2) {
		timer_stop(&s->batch_timer);
		return false;
	}
	if (!timer_is_set(&s->batch_timer))
		timer_set(&s->batch_timer, BATCH_TIME);
	return true;
}

/* -- sent ------------------------------------------------------------------- */

static void
settler_take(struct settler *s, struct delivery *d, struct delivery_batch *b)
{
	batch_add(b, d);
	ledger_move(s->ledger, d, DELIVERY_SENT);
}

/* The rescue that may have acted goes first. */
static struct delivery *
settler_next_rescue(const struct settler *s)
{
	usec_t now = clock_mono();
	struct delivery *d;

	if (s->rescuing != NULL)
		return s->rescuing->state == DELIVERY_KEPT ? s->rescuing : NULL;
	for (d = ledger_first(s->ledger, DELIVERY_KEPT); d != NULL; d = ledger_next(d)) {
		if (d->rescue)
			return d;
	}
	for (d = ledger_first(s->ledger, DELIVERY_REFUSED); d != NULL; d = ledger_next(d)) {
		if (d->rescue && d->due <= now)
			return d;
	}
	return NULL;
}

/*
 * Whether all deliveries of the daemon are in this list, all are acks, and they fit
 * into one call.
 */
static bool
settler_has_all(const struct settler *s, enum delivery_state from)
{
	const struct delivery *d;
	const unsigned *count = ledger_tally(s->ledger)->count;
	usec_t now = clock_mono();

	if (count[from] > CALL_MAX)
		return false;
	for (enum delivery_state state = 0; state < DELIVERY_LISTS; state++) {
		if (state != from && count[state] > 0)
			return false;
	}
	for (d = ledger_first(s->ledger, from); d != NULL; d = ledger_next(d)) {
		if (d->verdict.op != VERDICT_ACK || d->result.pushes != NULL || d->most > 0 ||
		    d->due > now)
			return false;
	}
	return true;
}

/* Whether a result may follow the others of its call. */
static bool
settler_has_room(const struct delivery *d, size_t bytes, size_t pushes)
{
	return bytes <= CALL_BYTES && (pushes == 0 ||
	    (bytes + pushes_bytes(d->result.pushes) <= CALL_BYTES &&
	    pushes + pushes_count(d->result.pushes) <= CALL_PUSHES));
}

static bool
has_target(const struct pushes *p, const char *key)
{
	for (size_t i = 0; i < pushes_targets(p); i++) {
		if (strcmp(pushes_target(p, i)->key, key) == 0)
			return true;
	}
	return false;
}

/* Whether every target of p is also a target of other. */
static bool
has_targets(const struct pushes *other, const struct pushes *p)
{
	for (size_t i = 0; i < pushes_targets(p); i++) {
		if (!has_target(other, pushes_target(p, i)->key))
			return false;
	}
	return true;
}

/* Whether two results hand over to the same queues. */
static bool
same_targets(const struct delivery *a, const struct delivery *b)
{
	return has_targets(a->result.pushes, b->result.pushes) &&
	    has_targets(b->result.pushes, a->result.pushes);
}

/*
 * Takes as many results of a list as fit into a call; false if there are none.
 * hand_over: only hand-overs, or only others.
 */
static bool
settler_take_list(struct settler *s, enum delivery_state from, bool hand_over, bool may_end,
    struct delivery_batch *b)
{
	bool over = may_end && !hand_over && settler_has_all(s, from);
	usec_t now = clock_mono();
	size_t most = CALL_MAX, bytes = 0, pushes = 0;
	struct delivery *d, *next;

	for (d = ledger_first(s->ledger, from); d != NULL; d = next) {
		next = ledger_next(d);
		if (d->rescue || delivery_hands_over(d) != hand_over ||
		    (from == DELIVERY_REFUSED && d->due > now))
			continue;
		if (hand_over && b->n > 0 && !same_targets(b->v[0], d))
			continue;
		if (d->most > 0 && d->most < most)
			most = d->most > b->n ? d->most : b->n;
		if (b->n == most || !settler_has_room(d, bytes, pushes))
			break;
		settler_take(s, d, b);
		bytes += d->taglen + d->result.error_len +
		    (d->result.answer != NULL ? strlen(d->result.answer) : 0) +
		    pushes_bytes(d->result.pushes);
		pushes += hand_over ? pushes_count(d->result.pushes) : 0;
	}
	b->over = over;
	return b->n > 0;
}

/* Takes a call of either kind from a list. */
static enum settler_call
settler_take_call(struct settler *s, enum delivery_state from, bool may_end,
    struct delivery_batch *b)
{
	if (settler_take_list(s, from, false, may_end, b))
		return SETTLER_SETTLE;
	if (ledger_tally(s->ledger)->count[from] > 0 && settler_take_list(s, from, true, false, b))
		return SETTLER_HAND_OVER;
	return SETTLER_NOTHING;
}

/* Makes one call with results that were refused, or sets the time of the next one. */
static enum settler_call
settler_retry(struct settler *s, bool may_rescue, bool may_end, struct delivery_batch *b)
{
	bool no_rescue = !may_rescue || s->rescuing != NULL;	/* a later wake-up follows */
	const struct delivery *d;
	usec_t first = USEC_MAX, now = clock_mono();
	enum settler_call what;

	if (s->retrying || timer_is_set(&s->hold) || timer_is_set(&s->again))
		return SETTLER_NOTHING;
	what = settler_take_call(s, DELIVERY_REFUSED, may_end, b);
	s->retrying = b->retry = what != SETTLER_NOTHING;
	if (s->retrying)
		return what;
	for (d = ledger_first(s->ledger, DELIVERY_REFUSED); d != NULL; d = ledger_next(d)) {
		if (d->due < first && !(d->rescue && no_rescue))
			first = d->due;
	}
	if (first != USEC_MAX)
		timer_set(&s->again, first > now ? first - now : MSEC);
	return SETTLER_NOTHING;
}

enum settler_call
settler_next(struct settler *s, bool may_rescue, bool may_end, struct delivery_batch *b)
{
	struct delivery *d = may_rescue ? settler_next_rescue(s) : NULL;
	enum settler_call what;

	*b = (struct delivery_batch){ 0 };
	if (d != NULL) {
		s->rescuing = d;
		settler_take(s, d, b);
		return SETTLER_RESCUE;
	}
	what = settler_take_call(s, DELIVERY_KEPT, may_end, b);
	return what != SETTLER_NOTHING ? what : settler_retry(s, may_rescue, may_end, b);
}

bool
settler_is_rescuing(const struct settler *s)
{
	return s->rescuing != NULL;
}

/* -- no answer, or an error --------------------------------------------------- */

static void
settler_call_over(struct settler *s, const struct delivery_batch *b)
{
	if (b->retry)
		s->retrying = false;
}

/* A delivery whose rescue was sent stays `rescuing`, with its number. */
void
settler_returned(struct settler *s, const struct delivery_batch *b, bool may_have_acted)
{
	settler_call_over(s, b);
	for (size_t i = 0; i < b->n; i++) {
		if (may_have_acted)
			b->v[i]->may_have_acted = true;
		settler_move(s, b->v[i], DELIVERY_KEPT);
	}
}

/* Redis has refused the hand-over: drops the pushes, and ends the delivery by this verdict. */
static void
settler_end_hand_over(struct settler *s, struct delivery *d, const struct verdict *verdict)
{
	pushes_free(d->result.pushes);
	d->result.pushes = NULL;
	d->verdict = *verdict;
	d->refusals = d->most = 0;
	settler_move(s, d, DELIVERY_KEPT);
}

void
settler_cancel(struct settler *s, struct delivery *d)
{
	const struct result stopped = { .end = END_NOT_RUN, .stop = STOP_CANCEL };
	const struct verdict v = outcome_decide(d->msg, &stopped, false, 0);

	settler_end_hand_over(s, d, &v);
}

/*
 * While the queue closes, nobody would try a refused hand-over again.  Nothing has
 * happened, so the message is returned, uncounted.  Otherwise its lease would expire,
 * and count as a crash.
 */
static bool
settler_gives_back(struct settler *s, struct delivery *d)
{
	const struct verdict back = { .op = VERDICT_RETURN, .reason = REASON_DRAIN };

	if (!s->closing || !delivery_hands_over(d) || d->rescue)
		return false;
	settler_end_hand_over(s, d, &back);
	return true;
}

static usec_t
settler_delay(const struct settler *s, enum reply_error e, unsigned failures)
{
	bool soon = e == REPLY_TRANSIENT || e == REPLY_REFUSED;

	return backoff_delay(soon ? 100 * MSEC : SEC, ledger_patience(s->ledger), failures,
	    random_unit());
}

static void
settler_put_off(struct settler *s, struct delivery *d, usec_t due)
{
	if (!delivery_hands_over(d))
		d->may_have_acted = true;
	d->due = due;
	timer_stop(&s->again);
	settler_move(s, d, DELIVERY_REFUSED);
}

void
settler_refuse(struct settler *s, struct delivery *d, enum reply_error e)
{
	if (settler_gives_back(s, d))
		return;
	settler_put_off(s, d, clock_mono() + settler_delay(s, e, ++d->refusals));
}

void
settler_close(struct settler *s)
{
	struct delivery *d, *next;

	s->closing = true;
	for (d = ledger_first(s->ledger, DELIVERY_REFUSED); d != NULL; d = next) {
		next = ledger_next(d);
		(void)settler_gives_back(s, d);
	}
}

/* A queue that they push to refuses: tries each result alone, so that it delays no other. */
static void
settler_refused_targets(struct settler *s, const struct delivery_batch *b, enum reply_error e)
{
	for (size_t i = 0; i < b->n; i++) {
		b->v[i]->most = 1;
		settler_refuse(s, b->v[i], e);
	}
}

/* Redis does not say which result of the batch it refused. */
void
settler_refused(struct settler *s, const struct delivery_batch *b, enum reply_error e)
{
	bool passes = e == REPLY_TRANSIENT || e == REPLY_REFUSED || e == REPLY_ELSEWHERE;
	usec_t now = clock_mono();

	settler_call_over(s, b);
	if (!passes && b->n > 0 && delivery_hands_over(b->v[0])) {
		settler_refused_targets(s, b, e);
		return;
	}
	timer_set(&s->hold, settler_delay(s, e, ++s->failures));
	for (size_t i = 0; i < b->n; i++) {
		if (e == REPLY_REFUSED && settler_gives_back(s, b->v[i]))
			continue;
		if (!passes && b->n == 1)
			settler_refuse(s, b->v[i], e);
		else
			settler_put_off(s, b->v[i], now);
		if (!passes)
			b->v[i]->most = b->n > 1 ? (unsigned)b->n / 2 : 1;
	}
}

static void
settler_accepted(struct settler *s)
{
	s->failures = 0;
	timer_stop(&s->hold);
	timer_stop(&s->again);
}

/* -- answers ------------------------------------------------------------------ */

/* Whether the result removes the message from Redis. */
static bool
settler_removes(const struct delivery *d)
{
	return d->verdict.op == VERDICT_ACK || d->verdict.op == VERDICT_DROP;
}

static enum settled
settler_gone(const struct delivery *d)
{
	return d->may_have_acted ? SETTLED_OK : SETTLED_STALE;
}

static bool
settler_can_rescue(const struct delivery *d)
{
	if (delivery_hands_over(d))
		return true;
	return d->msg->payload != NULL && d->verdict.op != VERDICT_ACK &&
	    d->verdict.op != VERDICT_STALE;
}

/* Redis has forgotten the delivery, and the tag is nowhere. */
static void
settler_lost(struct settler *s, struct delivery *d)
{
	if (!settler_can_rescue(d)) {
		settler_end(s, d, settler_removes(d) ? SETTLED_OK : SETTLED_STALE);
		return;
	}
	d->rescue = true;
	d->may_have_acted = false;
	d->refusals = d->most = 0;
	settler_move(s, d, DELIVERY_KEPT);
}

/*
 * Another delivery holds the message, or it waits for one.  If a dead letter may have
 * been written, the living message proves that it was not: the letter was deferred.
 */
static void
settler_held(struct settler *s, struct delivery *d)
{
	if (d->may_have_acted && d->verdict.op == VERDICT_DEAD && d->msg->payload != NULL)
		s->events->check(d, s->arg);
	else
		settler_end(s, d, settler_gone(d));
}

/* Like "held", but Redis has forgotten our delivery: rescue compares the payloads. */
static void
settler_held_lost(struct settler *s, struct delivery *d)
{
	if (settler_can_rescue(d)) {
		d->may_have_acted = d->may_have_acted && !delivery_hands_over(d);
		d->rescue = true;
		settler_move(s, d, DELIVERY_KEPT);
	} else if (d->usurped && settler_removes(d)) {
		settler_end(s, d, SETTLED_OK);
	} else {
		settler_end(s, d, settler_gone(d));
	}
}

/* The text is "cancelled" or "cancelled dead", perhaps followed by " by WHO". */
static void
settler_cancelled(struct settler *s, struct delivery *d, const char *text)
{
	const char *by = strstr(text, " by ");

	d->verdict = (struct verdict){ .reason = REASON_CANCELLED,
	    .op = strncmp(text, "cancelled dead", 14) == 0 ? VERDICT_DEAD : VERDICT_DROP };
	if (by != NULL)
		xreplace(&d->msg->cancelled_by, by + 4);
	settler_end(s, d, SETTLED_OK);
}

bool
settler_answer(struct settler *s, const struct delivery_batch *b, size_t i, const char *text)
{
	struct delivery *d = b->v[i];

	settler_call_over(s, b);
	if (d->verdict.op == VERDICT_STALE) {
		settler_end(s, d, SETTLED_STALE);
	} else if (strcmp(text, "ok") == 0) {
		settler_end(s, d, SETTLED_OK);
	} else if (strncmp(text, "cancelled", 9) == 0) {
		settler_cancelled(s, d, text);
	} else if (strcmp(text, "lost") == 0) {
		settler_lost(s, d);
	} else if (strcmp(text, "held") == 0) {
		settler_held(s, d);
	} else if (strcmp(text, "held lost") == 0) {
		settler_held_lost(s, d);
	} else if (strcmp(text, "gone") == 0 || strcmp(text, "taken") == 0) {
		settler_end(s, d, settler_gone(d));
	} else if (strcmp(text, "again") == 0) {
		settler_move(s, d, DELIVERY_KEPT);
	} else if (strncmp(text, "deferred", 8) == 0) {
		s->events->warn(text, s->arg);
		settler_end(s, d, SETTLED_DEFERRED);
	} else {
		s->events->warn(text, s->arg);
		settler_refuse(s, d, REPLY_OTHER);
		return false;
	}
	settler_accepted(s);
	return true;
}

/* Nobody else has the message, so an unknown answer must not end it. */
bool
settler_rescued(struct settler *s, struct delivery *d, const char *text)
{
	enum settled how;

	s->rescuing = NULL;
	d->rescue_call = 0;
	if (text == NULL)
		return false;
	if (strcmp(text, "ok") == 0)
		how = SETTLED_RESCUED;
	else if (strcmp(text, "there") == 0)
		how = settler_gone(d);
	else if (strncmp(text, "deferred", 8) == 0)
		how = SETTLED_DEFERRED;
	else
		return false;
	settler_accepted(s);
	settler_end(s, d, how);
	return true;
}

void
settler_checked(struct settler *s, struct delivery *d, const char *text)
{
	settler_end(s, d, strcmp(text, "other") == 0 ? SETTLED_OK : SETTLED_DEFERRED);
}
