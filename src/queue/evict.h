/*
 * Notices that Redis evicts keys from its tracking table.  When there are more
 * armed keys than tracking-table-max-keys, Redis forgets some of them, and
 * reports each as changed.  To arm it again evicts another one, and so on: idle
 * daemons would keep Redis busy.
 *
 * QPAUSED rarely changes.  When Redis reports it as changed again and again while
 * nobody pauses the queue, the owner should poll instead, until a whole round of
 * 10 s has passed without such a report.
 */
#ifndef RQD_QUEUE_EVICT_H
#define RQD_QUEUE_EVICT_H

#include <stdbool.h>

struct evict {
	/* in this round: QPAUSED has changed, and there was no pause */
	unsigned	reports;
	bool		on;		/* keys are evicted: poll, and arm only with each poll */
};

/*
 * Redis reports that QPAUSED has changed, and the queue is not paused.  Returns a
 * warning to log, or NULL.  The warning comes once in the process, until no queue
 * is affected any more.
 */
const char	*evict_reported(struct evict *);
void		 evict_round(struct evict *);	/* every 10 s */
void		 evict_done(struct evict *);	/* also when tracking begins anew */

#endif
