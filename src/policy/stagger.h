/*
 * In a fleet one daemon is enough for a message that falls due.  So each waits for a random
 * part of a span, and the others see that the first one has taken it.
 *
 * The span grows with the number of daemons that compete.  That is not known: some of the fleet
 * have no free handler, and do not look.  So each daemon estimates it: it begins with the whole
 * fleet; a message that is still there after half of the span halves the estimate; one that
 * another daemon took ends it.  If many daemons become free that were alone, they come at the
 * same time once, and all but one of them then count the fleet again.
 */
#pragma once

#include "base/clock.h"

#define STAGGER_EACH	(50 * MSEC)	/* of the span, for each daemon that competes */
#define STAGGER_MAX	(2 * SEC)	/* the longest span */

/* Zero it to start. */
struct stagger {
	unsigned	 rivals;	/* that compete, with this daemon; 0: the fleet */
};

usec_t	stagger_span(const struct stagger *, unsigned fleet);
/* A message that was due for so long is still there. */
void	stagger_saw_left(struct stagger *, unsigned fleet, usec_t waited);
/* Another daemon has taken one that was due. */
void	stagger_saw_taken(struct stagger *);
