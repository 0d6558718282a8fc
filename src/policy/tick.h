/*
 * The ticks of a schedule: the nominal seconds, since 1970, at which it runs.
 */
#pragma once

#include <stdint.h>

#include "policy/config.h"

#define TICK_NEVER	CRON_NEVER

int64_t	 tick_next(const struct schedule_config *, int64_t after);	/* the first one after it */
/* The last tick that is not after until. */
int64_t	 tick_last(const struct schedule_config *, int64_t until);
/* The seconds from this tick to the next one. */
int64_t	 tick_period(const struct schedule_config *, int64_t tick);

/*
 * How late, in seconds, a run may still be made; -1: without limit.  A daemon that
 * was running when the tick was due allows for a short outage of Redis.  A fresh
 * daemon allows for ticks that fall due while it connects.
 */
#define TICK_GRACE_FRESH	2
#define TICK_GRACE_MIN		10
#define TICK_GRACE_MAX		60
int64_t	 tick_grace(const struct schedule_config *, int64_t tick, bool fresh);

/*
 * The message that is pushed at a tick; the caller frees it.  Default: a JSON object
 * with an id of its own; for a queue of kind unique, the schedule's name.
 */
char	*tick_message(const struct schedule_config *, int64_t tick, bool of_ids);

/* "2026-11-21T08:00:00Z" into buf. */
#define TICK_TEXT_MAX	32
char	*tick_text(int64_t tick, char *buf);
