/*
 * Counts the results of messages and runs in a queue's counters.
 */
#ifndef RQD_ENGINE_TALLY_H
#define RQD_ENGINE_TALLY_H

#include <stdbool.h>

#include "base/stats.h"
#include "policy/message.h"
#include "policy/outcome.h"
#include "queue/queue.h"

/* Redis has confirmed the result of a message. */
void	tally_settled(struct stats *, const struct message *, const struct verdict *,
	    const struct result *, enum settled);
/* Whether the messages that the delivery hands over are in their queues. */
bool	tally_was_pushed(const struct verdict *, const struct result *, enum settled);
/* A run has ended, whatever the results of its messages are. */
void	tally_run(struct stats *, const struct result *);
void	tally_ticked(struct stats *, const struct tick_report *);

#endif
