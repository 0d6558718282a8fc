/*
 * Notices that Redis evicts keys from its tracking table.  If there are more armed keys
 * than tracking-table-max-keys, Redis forgets some of them, and reports each as
 * changed.  Arming such a key again evicts another one, and so on: idle daemons would
 * keep Redis busy.
 *
 * QPAUSED rarely changes.  If Redis often reports a change of it while nobody pauses
 * the queue, the owner should poll instead.  It should arm again after a whole round of
 * 10 s without such a report.
 */
#pragma once

#include <stdbool.h>

struct evict {
	/* in this round: changes of QPAUSED without a pause */
	unsigned	reports;
	bool		on;		/* keys are evicted: poll, and arm only with each poll */
};

/*
 * Redis reports that QPAUSED has changed, and the queue is not paused.  Returns a
 * warning to log, or NULL.  The warning comes once in the process, and again only after
 * no queue was affected.
 */
const char	*evict_reported(struct evict *);
void		 evict_round(struct evict *);	/* every 10 s */
void		 evict_done(struct evict *);	/* also when tracking begins anew */
