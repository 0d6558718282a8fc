/*
 * A snapshot of the daemon for its pages.
 */
#pragma once

#include <stddef.h>

#include "base/clock.h"
#include "engine/consumer.h"
#include "engine/dispatcher.h"
#include "engine/schedule.h"
#include "policy/config.h"
#include "redis/nodes.h"
#include "status/judge.h"

/*
 * A snapshot of the daemon for metrics and status.  The daemon fills it for each
 * request; everything in it is borrowed for the call.
 */
struct view {
	struct config	*config;	/* in force */
	bool		 details;	/* the reader may see ids, progress, and handlers' texts */
	const char	*instance;
	const char	*state;		/* "running" "quiet" "draining" "stopped" */
	wall_t		 started;
	/* The first error of the last reload, so that the file is not in force; "": none. */
	const char	*reload_error;
	const char	*beat_refused;	/* why Redis refuses heartbeats; NULL: it takes them */
	struct nodes	*nodes;
	const char	*redis_error;	/* "" while all that the daemon needs is up */
	const struct dispatcher	*dispatcher;
	const struct schedules	*schedules;
	struct consumer	*const *consumers;
	size_t		 nconsumers;
};

/* Redis' error if it refuses not only heartbeats but all writes; NULL: it does not. */
static inline const char *
view_refuses(const struct view *v)
{
	return judge_is_refusal(v->beat_refused) ? v->beat_refused : NULL;
}
