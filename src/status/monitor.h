/*
 * The pages of the HTTP listener: /healthz, /readyz, /metrics, /status, and the page that
 * draws /status.
 */
#ifndef RQD_STATUS_MONITOR_H
#define RQD_STATUS_MONITOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "engine/consumer.h"
#include "engine/dispatcher.h"
#include "engine/schedule.h"
#include "loop/loop.h"
#include "policy/config.h"
#include "redis/nodes.h"

/*
 * A snapshot of the daemon for metrics and status.  The server fills it for each
 * request; everything in it is borrowed for the call.
 */
struct view {
	struct config	*config;	/* in force */
	const char	*instance;
	const char	*state;		/* "running" "quiet" "draining" "stopped" */
	wall_t		 started;
	bool		 reload_failed;	/* the last one: what is in the file is not in force */
	const char	*reload_error;	/* the first error of that; "" */
	const char	*beat_refused;	/* why Redis refuses heartbeats; NULL: it takes them */
	struct nodes	*nodes;
	const char	*redis_error;	/* "" while all that the daemon needs is up */
	const struct dispatcher	*dispatcher;
	const struct schedules	*schedules;
	struct consumer	*const *consumers;
	size_t		 nconsumers;
};

struct monitor;

/* look() fills the view each time somebody wants to see it. */
struct monitor	*monitor_new(struct loop *, struct nodes *, const char *host,
		    void (*look)(struct view *, void *), void *arg);
void		 monitor_listen(struct monitor *, const char *where);	/* "": nowhere */
/* From now on answers 503; the view's objects may be freed. */
void		 monitor_stop(struct monitor *);
/* Any time but from its own callbacks. */
void		 monitor_free(struct monitor *);

/*
 * How long a queue has had waiting messages while none was taken; for tests, too.
 *
 * Each survey is compared with the one before.  A queue makes progress when no
 * message is ready, when deliveries were counted since the last survey, or when
 * fewer messages are ready than before.
 * Surveys further apart than STALL_GAP say nothing about the time between them.
 */
#define STALL_GAP	(15 * MINUTE)

/* Zero it to start. */
struct stall {
	bool	 waits;		/* a message was ready at the last survey */
	usec_t	 seen;		/* mono; the last survey; 0: none */
	usec_t	 since;		/* mono; the last progress */
	int64_t	 ready;
	int64_t	 delivered;
};

/* ready: waiting or due; delivered: a count that only grows. */
void	stall_note(struct stall *, usec_t now, int64_t ready, int64_t delivered);
usec_t	stall_length(const struct stall *, usec_t now);	/* 0: it moves */

#endif
