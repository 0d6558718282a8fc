/* Notices that Redis evicts keys from its tracking table; see evict.h. */
#include "queue/evict.h"

#include <stddef.h>

#define REPORTS_MAX	8	/* in a round */

static unsigned	affected;	/* owners whose keys are evicted */

const char *
evict_reported(struct evict *e)
{
	if (++e->reports <= REPORTS_MAX || e->on)
		return NULL;
	e->on = true;
	if (affected++ > 0)
		return NULL;
	return "Redis evicts keys that should wake idle queues: they are polled every second; "
	    "set tracking-table-max-keys of Redis to 0, or to more than 5 for each queue";
}

void
evict_done(struct evict *e)
{
	affected -= e->on;
	*e = (struct evict){ 0 };
}

void
evict_round(struct evict *e)
{
	if (e->reports == 0)
		evict_done(e);
	e->reports = 0;
}
