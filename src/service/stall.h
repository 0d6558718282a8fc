/*
 * How long messages of a queue have waited with none being taken.
 *
 * Judged from surveys: a queue makes progress where nothing is ready, where a
 * delivery was counted since the last look, or where fewer are ready than before.
 * Looks that are further apart than STALL_GAP say nothing about the time between.
 */
#ifndef RQD_SERVICE_STALL_H
#define RQD_SERVICE_STALL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define STALL_GAP	(15 * MINUTE)

/* Zero it to start. */
struct stall {
	bool	 waits;		/* something was ready at the last look */
	usec_t	 seen;		/* the last look; 0: none */
	usec_t	 since;		/* the last progress */
	int64_t	 ready;
	int64_t	 delivered;
};

/* ready: waiting or due; delivered: a count that only grows. */
void	stall_note(struct stall *, usec_t now, int64_t ready, int64_t delivered);
usec_t	stall_length(const struct stall *, usec_t now);	/* 0: it moves */

#endif
