/*
 * --until-empty: whether a daemon whose queues are not empty has a chance.
 *
 * It gives up if for UNTIL_EMPTY_WAIT no message has begun and none has run,
 * and the reason may last: Redis is down, queues are suspended or paused, or
 * the daemon is quiet.  If commands cannot be executed, it gives up after
 * UNTIL_EMPTY_WAIT_EXEC.  The probes of a suspended queue are no progress
 * until one succeeds, but their ends are waited for.
 */
#pragma once

#include <stdint.h>

#include "base/units.h"
#include "engine/consumer.h"

#define UNTIL_EMPTY_WAIT	MINUTE
#define UNTIL_EMPTY_WAIT_EXEC	(10 * SEC)

/* Zero it to start. */
struct until_empty {
	usec_t	 since;		/* mono: nothing has moved since then */
	usec_t	 asked;		/* mono: the last time; 0: not yet */
	uint64_t delivered;	/* by consumers that are not suspended */
	char	*cause;		/* why it gives up; owned; NULL: it does not */
};

/*
 * Call it each second.  down: why Redis is not reachable, or not all of it;
 * "": it is.  Returns 0 to go on, or an exit status with the cause.
 */
int	until_empty_judge(struct until_empty *, struct consumer *const *,
	    size_t n, bool quiet, const char *down) MUSTCHECK;
