/*
 * Decides when a queue is suspended, and when it may try again.  It is a state machine
 * without clock or timer; see breaker.h.
 *
 * Deliveries that began before the breaker opened may end while it is OPEN.  Their
 * failures change nothing, so that they do not delay the probe.  A success proves
 * that the command works: the queue resumes.
 */
#include "policy/breaker.h"

#include "base/backoff.h"
#include "base/util.h"

#define PROBE_FIRST		(1 * SEC)
#define PROBE_FAILING		(5 * SEC)	/* the longest wait; a failing command can be run */
#define PROBE_CANNOT_EXECUTE	(1 * MINUTE)

/* The only place that changes the state.  probe_at counts while OPEN. */
static void
breaker_set_state(struct breaker *b, enum breaker_state state, usec_t probe_at)
{
	b->state = state;
	b->probe_at = probe_at;
}

void
breaker_init(struct breaker *b, int limit)
{
	*b = (struct breaker){ .state = BREAKER_CLOSED, .limit = limit };
}

enum breaker_event
breaker_success(struct breaker *b)
{
	bool was_open = b->state != BREAKER_CLOSED;

	breaker_set_state(b, BREAKER_CLOSED, 0);
	b->failures = 0;
	b->probes = 0;
	b->refused = false;
	return was_open ? BREAKER_RESUMED : BREAKER_NOTHING;
}

/* The next probe comes after 1 s, 2 s, 4 s .. most; no jitter (unit 1). */
static void
breaker_wait(struct breaker *b, usec_t now)
{
	breaker_set_state(b, BREAKER_OPEN,
	    now + backoff_delay(PROBE_FIRST, b->most, b->probes + 1, 1));
}

static enum breaker_event
breaker_trip(struct breaker *b, enum reason reason, usec_t most, usec_t now)
{
	bool same = b->reason == reason, probing = b->state == BREAKER_PROBING;

	if (b->state == BREAKER_OPEN)	/* the delivery began earlier */
		return BREAKER_NOTHING;
	b->reason = reason;
	b->most = most;
	b->probes = probing && same ? b->probes + 1 : 0;
	if (!probing)
		b->since = now;
	breaker_wait(b, now);
	return probing ? BREAKER_STILL : BREAKER_SUSPENDED;
}

enum breaker_event
breaker_failure(struct breaker *b, usec_t now)
{
	switch (b->state) {
	case BREAKER_OPEN:
		return BREAKER_NOTHING;
	case BREAKER_PROBING:
		/*
		 * The command can be executed again, and failures alone do not suspend
		 * this queue.
		 */
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
	if (b->state == BREAKER_PROBING)
		breaker_set_state(b, BREAKER_OPEN, now);
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
	return b->state == BREAKER_CLOSED || (b->state == BREAKER_OPEN && now >= b->probe_at);
}

enum turn
breaker_turn(struct breaker *b)
{
	static const enum turn turns[] = {
		TURN_OLDEST, TURN_NEWEST, TURN_FEWEST, TURN_LONGEST
	};

	if (b->state != BREAKER_OPEN)
		return TURN_SHARE;
	breaker_set_state(b, BREAKER_PROBING, 0);
	return turns[b->turns++ % ARRAY_LEN(turns)];
}
