/*
 * Does Redis keep the keys that it was asked to track?  Where
 * tracking-table-max-keys is smaller than the number of armed keys, Redis forgets
 * some of them, and says of each that it has changed.  To arm it again evicts another
 * one, and so on: daemons without work would keep Redis busy.
 *
 * QPAUSED tells: it rarely changes.  Where it is said to change again and again,
 * and nobody pauses the queue, the owner should poll instead, until a whole round of
 * the janitor has passed without such a message.
 */
#ifndef RQD_QUEUE_EVICT_H
#define RQD_QUEUE_EVICT_H

#include <stdbool.h>

struct evict {
	unsigned	told;	/* in this round: QPAUSED has changed, and there was no pause */
	bool		on;	/* keys are evicted: poll, and arm with each poll only */
};

/*
 * Redis says that QPAUSED has changed, and the queue is not paused.  Returns a
 * warning to log, or NULL: once in the process until no queue is affected any more.
 */
const char	*evict_told(struct evict *);
void		 evict_round(struct evict *);	/* the janitor's, every 10 s */
void		 evict_done(struct evict *);	/* also where tracking begins anew */

#endif
