/*
 * The words that add to the totals of the fleet, QSTATS.
 */
#ifndef RQD_QUEUE_COUNT_H
#define RQD_QUEUE_COUNT_H

#include <stdbool.h>

#include "base/stats.h"
#include "redis/words.h"

/* Whether a counter has a part that was not sent yet. */
bool	count_has(const struct stats *);

/* Adds the name of each such counter, and that part. */
void	count_words(const struct stats *, struct words *);

#endif
