/*
 * Measures for how long a queue has had waiting messages while none was taken.
 *
 * Each survey is compared with the one before.  A queue makes progress when no message
 * is ready, when deliveries were counted since the last survey, or when fewer messages
 * are ready than before.  If surveys are further apart than STALL_GAP, the time between
 * them does not count.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define STALL_GAP	(15 * MINUTE)

/* Zero it to start. */
struct stall {
	bool	 waits;		/* a message was ready at the last survey */
	usec_t	 seen;		/* mono; the last survey; 0: none */
	usec_t	 since;		/* mono; the last progress */
	int64_t	 ready;
	int64_t	 delivered;
};

/* ready: waiting or due; delivered: a count that only grows. */
void	stall_note(struct stall *, usec_t now, int64_t ready, int64_t delivered);
usec_t	stall_length(const struct stall *, usec_t now);	/* 0: it moves */
