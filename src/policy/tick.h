/*
 * The ticks of a schedule: the nominal seconds, since 1970, at which it runs.
 */
#ifndef RQD_POLICY_TICK_H
#define RQD_POLICY_TICK_H

#include <stdint.h>

#include "policy/config.h"

#define TICK_NEVER	CRON_NEVER

int64_t	 tick_next(const struct schedule_config *, int64_t after);	/* the first one after it */
int64_t	 tick_last(const struct schedule_config *, int64_t until);	/* the last one not after it */
int64_t	 tick_period(const struct schedule_config *, int64_t tick);	/* to the one after this one */

/*
 * How late, in seconds, a run may still be made: by a daemon that was there when
 * it was due, for hiccups and for a Redis that was away for a moment; or by a
 * fresh one, for what comes to pass while it connects.  -1: ever so late.
 */
#define TICK_GRACE_FRESH	2
#define TICK_GRACE_MIN		10
#define TICK_GRACE_MAX		60
int64_t	 tick_grace(const struct schedule_config *, int64_t tick, bool fresh);

/*
 * What is pushed at a tick.  Where the schedule says nothing: an object with an
 * id of its own, or for a queue of ids, whose elements are ids, the schedule's
 * name.  The caller frees it.
 */
char	*tick_message(const struct schedule_config *, int64_t tick, bool of_ids);

/* "2026-11-21T08:00:00Z" into buf. */
#define TICK_TEXT_MAX	32
char	*tick_text(int64_t tick, char *buf);

#endif
