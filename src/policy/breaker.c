/*
 * When a queue is suspended, and when it may try again: a state machine
 * without clock or timer.
 *
 * Results of deliveries that had begun before the breaker opened still come
 * in while it is OPEN.  Their failures change nothing, so that they do not put
 * off the probe; their success proves that the command works, and resumes.
 */
#include "policy/breaker.h"

#include "policy/backoff.h"

#define PROBE_FIRST	(1 * SEC)
#define PROBE_MOST	(1 * MINUTE)

void
breaker_init(struct breaker *b, int limit)
{
	*b = (struct breaker){
		.state = BREAKER_CLOSED, .limit = limit, .most = PROBE_MOST
	};
}

enum breaker_event
breaker_success(struct breaker *b)
{
	bool was_open = b->state != BREAKER_CLOSED;

	b->state = BREAKER_CLOSED;
	b->failures = 0;
	b->probes = 0;
	b->most = PROBE_MOST;
	return was_open ? BREAKER_RESUMED : BREAKER_NOTHING;
}

/* The next probe comes after 1 s, 2 s, 4 s .. most; no jitter (unit 1). */
static void
breaker_wait(struct breaker *b, usec_t now)
{
	b->state = BREAKER_OPEN;
	b->probe_at = now + backoff_delay(PROBE_FIRST, b->most, b->probes + 1, 1);
}

enum breaker_event
breaker_trip(struct breaker *b, enum reason reason, usec_t now)
{
	switch (b->state) {
	case BREAKER_CLOSED:
		b->reason = reason;
		b->since = now;
		b->probes = 0;
		breaker_wait(b, now);
		return BREAKER_SUSPENDED;
	case BREAKER_PROBING:
		b->reason = reason;
		b->probes++;
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
	if (b->state == BREAKER_PROBING)
		return breaker_trip(b, b->reason, now);
	if (b->state == BREAKER_OPEN)
		return BREAKER_NOTHING;
	b->failures++;
	if (b->limit == 0 || b->failures < b->limit)
		return BREAKER_NOTHING;
	return breaker_trip(b, REASON_FAILING, now);
}

void
breaker_unproved(struct breaker *b, usec_t now)
{
	if (b->state == BREAKER_PROBING)
		breaker_wait(b, now);
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

void
breaker_probe_begun(struct breaker *b)
{
	if (b->state == BREAKER_OPEN)
		b->state = BREAKER_PROBING;
}
