/*
 * Counts the results of messages, runs and ticks in a queue's counters.  Events without a
 * result (delivered, suspended, a full backlog) are counted where they happen.
 */
#pragma once

#include <stdbool.h>

#include "base/stats.h"
#include "policy/message.h"
#include "policy/outcome.h"
#include "queue/queue.h"

/* The queue has settled a message, or has given up; see enum settled. */
void	tally_settled(struct stats *, const struct message *, const struct verdict *,
	    const struct result *, enum settled);
/* Whether the messages that the delivery hands over are in their queues. */
bool	tally_was_pushed(const struct verdict *, const struct result *, enum settled);
/* A run has ended, whatever the results of its messages are. */
void	tally_run(struct stats *, const struct result *);
void	tally_ticked(struct stats *, const struct tick_report *);
