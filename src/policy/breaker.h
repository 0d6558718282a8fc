/*
 * Suspension: when the command cannot be run, or fails suspend_after times in
 * a row, a queue is suspended; then one probe at a time, after 1 s, doubling to
 * 1 min; the first success resumes.  Pure: the caller has the clock and timer.
 *
 *	CLOSED --failure--> OPEN --breaker_probe_begun--> PROBING --success--> CLOSED
 *	                     ^-----------failure------------'
 *
 * A result that says nothing about the command (returned, stale) leaves a
 * PROBING breaker OPEN with the same delay.
 */
#ifndef RQD_POLICY_BREAKER_H
#define RQD_POLICY_BREAKER_H

#include <stdbool.h>

#include "base/clock.h"
#include "policy/outcome.h"

enum breaker_state { BREAKER_CLOSED, BREAKER_OPEN, BREAKER_PROBING };
enum breaker_event { BREAKER_NOTHING, BREAKER_SUSPENDED, BREAKER_RESUMED, BREAKER_STILL };

struct breaker {
	enum breaker_state	state;
	int			limit;		/* suspend_after; 0: never for failures */
	int			failures;	/* in a row */
	unsigned		probes;		/* failed since it opened */
	enum reason		reason;		/* valid unless CLOSED */
	usec_t			since;		/* mono; valid unless CLOSED */
	usec_t			probe_at;	/* mono; valid while OPEN */
	usec_t			most;		/* longest wait for a probe: 1 min unless its owner says less */
};

void			breaker_init(struct breaker *, int limit);

/* Tells how a delivery ended; says what changed, for the log. */
enum breaker_event	breaker_success(struct breaker *);
enum breaker_event	breaker_failure(struct breaker *, usec_t now);
/* The command cannot be executed, or Redis refuses this queue. */
enum breaker_event	breaker_trip(struct breaker *, enum reason, usec_t now);
/* The probe brought no message, or a result that proves nothing. */
void			breaker_unproved(struct breaker *, usec_t now);

/* Whether a message may be begun now; *single: one alone, as a probe, which is then begun. */
bool			breaker_allows(const struct breaker *, usec_t now, bool *single);
void			breaker_probe_begun(struct breaker *);

#endif
