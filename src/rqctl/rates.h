/*
 * How many messages per second a queue has done: differences of the totals in QSTATS between
 * pictures, over HISTORY_RATE_SPAN, or over the time between two pictures if that is longer.  In
 * the first HISTORY_RATE_LEAST they are not known.
 */
#ifndef RQD_RQCTL_RATES_H
#define RQD_RQCTL_RATES_H

#include "rqctl/picture.h"

/* Per second; < 0: not known yet. */
struct rates {
	double	 acked, failed;
};

struct totals;		/* the totals of one queue */

struct rates_log {
	struct totals	**queues;	/* n, in the order of the last picture; owned */
	size_t		 n;
};

/* Adds a picture's totals.  Queues may have come and gone. */
void	rates_add(struct rates_log *, const struct picture *);
/* Of queue i of the last picture. */
struct rates rates_of(const struct rates_log *, size_t i);
void	rates_done(struct rates_log *);

#endif
