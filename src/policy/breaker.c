/*
 * When a queue is suspended, and when it may try again: a state machine
 * without clock or timer.
 *
 * Results of deliveries that had begun before the breaker opened still come
 * in while it is OPEN.  Their failures change nothing, so that they do not put
 * off the probe; their success proves that the command works, and resumes.
 */
#include "policy/breaker.h"

#include "base/util.h"
#include "policy/backoff.h"

#define PROBE_FIRST		(1 * SEC)
#define PROBE_FAILING		(5 * SEC)	/* the longest wait; a failing command can be run */
#define PROBE_CANNOT_EXECUTE	(1 * MINUTE)

void
breaker_init(struct breaker *b, int limit)
{
	*b = (struct breaker){ .state = BREAKER_CLOSED, .limit = limit };
}

enum breaker_event
breaker_success(struct breaker *b)
{
	bool was_open = b->state != BREAKER_CLOSED;

	b->state = BREAKER_CLOSED;
	b->failures = 0;
	b->probes = 0;
	b->refused = false;
	return was_open ? BREAKER_RESUMED : BREAKER_NOTHING;
}

/* The next probe comes after 1 s, 2 s, 4 s .. most; no jitter (unit 1). */
static void
breaker_wait(struct breaker *b, usec_t now)
{
	b->state = BREAKER_OPEN;
	b->probe_at = now + backoff_delay(PROBE_FIRST, b->most, b->probes + 1, 1);
}

static enum breaker_event
breaker_trip(struct breaker *b, enum reason reason, usec_t most, usec_t now)
{
	bool same = b->reason == reason;

	switch (b->state) {
	case BREAKER_CLOSED:
		b->reason = reason;
		b->most = most;
		b->since = now;
		b->probes = 0;
		breaker_wait(b, now);
		return BREAKER_SUSPENDED;
	case BREAKER_PROBING:
		b->reason = reason;
		b->most = most;
		b->probes = same ? b->probes + 1 : 0;
		breaker_wait(b, now);
		return BREAKER_STILL;
	case BREAKER_OPEN:
		/* One that was begun before the queue was suspended. */
		return BREAKER_NOTHING;
	}
	return BREAKER_NOTHING;
}

enum breaker_event
breaker_failure(struct breaker *b, usec_t now)
{
	switch (b->state) {
	case BREAKER_OPEN:
		return BREAKER_NOTHING;
	case BREAKER_PROBING:
		/* It can be executed again, and failures alone suspend nothing here. */
		if (b->limit == 0)
			return breaker_success(b);
		break;
	case BREAKER_CLOSED:
		b->failures++;
		if (b->limit == 0 || b->failures < b->limit)
			return BREAKER_NOTHING;
		break;
	}
	return breaker_trip(b, REASON_FAILING, PROBE_FAILING, now);
}

enum breaker_event
breaker_cannot_execute(struct breaker *b, usec_t now)
{
	return breaker_trip(b, REASON_CANNOT_EXECUTE, PROBE_CANNOT_EXECUTE, now);
}

enum breaker_event
breaker_refused(struct breaker *b, usec_t most, usec_t now)
{
	if (b->state == BREAKER_CLOSED)
		b->refused = true;
	return breaker_trip(b, b->refused ? REASON_FAILING : b->reason, most, now);
}

enum breaker_event
breaker_accepted(struct breaker *b)
{
	return b->refused ? breaker_success(b) : BREAKER_NOTHING;
}

enum breaker_event
breaker_judged(struct breaker *b, usec_t now)
{
	if (b->state == BREAKER_PROBING && b->reason == REASON_CANNOT_EXECUTE)
		return breaker_success(b);
	breaker_idle(b, now);
	return BREAKER_NOTHING;
}

void
breaker_unproved(struct breaker *b, usec_t now)
{
	if (b->state == BREAKER_PROBING)
		breaker_wait(b, now);
}

void
breaker_idle(struct breaker *b, usec_t now)
{
	if (b->state != BREAKER_PROBING)
		return;
	b->state = BREAKER_OPEN;
	b->probe_at = now;
}

void
breaker_hurry(struct breaker *b, usec_t now)
{
	if (b->state == BREAKER_OPEN)
		b->probe_at = now;
}

bool
breaker_allows(const struct breaker *b, usec_t now, bool *single)
{
	*single = b->state != BREAKER_CLOSED;
	switch (b->state) {
	case BREAKER_CLOSED:
		return true;
	case BREAKER_OPEN:
		return now >= b->probe_at;
	case BREAKER_PROBING:
		return false;
	}
	return false;
}

enum turn
breaker_turn(struct breaker *b)
{
	static const enum turn turns[] = {
		TURN_OLDEST, TURN_NEWEST, TURN_FEWEST, TURN_LONGEST
	};

	if (b->state != BREAKER_OPEN)
		return TURN_SHARE;
	b->state = BREAKER_PROBING;
	return turns[b->turns++ % ARRAY_LEN(turns)];
}
