/*
 * Suspension.  A queue is suspended when its command cannot be executed, when it
 * fails suspend_after times in a row, or when Redis refuses the pops.  It is then
 * probed with one message at a time; the first success resumes it.  The caller has
 * the clock and the timer.
 *
 *	CLOSED --failure--> OPEN --breaker_turn--> PROBING --success--> CLOSED
 *	                     ^-----------failure-----'
 *
 * The first probe comes after 1 s, the next ones 2 s, 4 s and so on after the last has
 * failed, up to 5 s; up to 1 min if the command cannot be executed.
 */
#pragma once

#include <stdbool.h>

#include "base/clock.h"
#include "policy/outcome.h"
#include "policy/turn.h"

enum breaker_state { BREAKER_CLOSED, BREAKER_OPEN, BREAKER_PROBING };
enum breaker_event { BREAKER_NOTHING, BREAKER_SUSPENDED, BREAKER_RESUMED, BREAKER_STILL };

struct breaker {
	enum breaker_state	state;
	int			limit;		/* suspend_after; 0: never for failures */
	int			failures;	/* in a row */
	unsigned		probes;		/* failed in a row for this reason */
	unsigned		turns;		/* probes begun, ever */
	enum reason		reason;		/* valid unless CLOSED */
	bool			refused;	/* suspended because Redis refuses the pops */
	usec_t			since;		/* mono; valid unless CLOSED */
	usec_t			probe_at;	/* mono; valid while OPEN */
	usec_t			most;		/* longest wait for a probe; valid unless CLOSED */
};

void			breaker_init(struct breaker *, int limit);

/* A delivery or a pop has ended.  These return the change, for the log. */
enum breaker_event	breaker_success(struct breaker *);
enum breaker_event	breaker_failure(struct breaker *, usec_t now);
enum breaker_event	breaker_cannot_execute(struct breaker *, usec_t now);
/* Redis refuses the pops of this queue; most: the longest wait for a probe. */
enum breaker_event	breaker_refused(struct breaker *, usec_t most, usec_t now);
/* Redis has answered a pop: resumes a queue that was suspended for the pops alone. */
enum breaker_event	breaker_accepted(struct breaker *);
/*
 * The handler gave a verdict on its message (dead_status, "dead", "defer").  So it can
 * be executed, but others need not succeed: a queue that is suspended for failures
 * stays so, and the next probe may follow at once.
 */
enum breaker_event	breaker_judged(struct breaker *, usec_t now);

/* A probe ended without a result: the message was returned, or settled elsewhere. */
void			breaker_unproved(struct breaker *, usec_t now);
/* A probe found nothing to run: the next one may follow at once. */
void			breaker_idle(struct breaker *, usec_t now);

/* The next probe may begin now: an operator has asked for it. */
void			breaker_hurry(struct breaker *, usec_t now);

/* Whether a message may begin now; *single: only one, as a probe. */
bool			breaker_allows(const struct breaker *, usec_t now, bool *single);
/* Begins a probe if one is due, and returns the turn for the fetch. */
enum turn		breaker_turn(struct breaker *);
