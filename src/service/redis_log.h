/*
 * The log records about the connection to Redis: redis_up and redis_down, or
 * redis_warning if these were too many; and those about the server's settings.
 */
#pragma once

#include <stdbool.h>

#include "loop/timer.h"
#include "redis/conn.h"

struct redis_log {
	double		 tokens;	/* records that may be written now */
	usec_t		 filled_at;	/* mono; when that was true */
	bool		 up;		/* the connection is */
	unsigned	 unlogged;	/* changes since the last record */
	const struct conn_server *server;	/* borrowed; up: of the connection */
	char		*cause;		/* why it was down last; NULL: not connected yet; owned */
	struct timer	 settled;	/* set: unlogged changes, the last one recent */
	struct timer	 summary;	/* set: unlogged changes */
};

void	redis_log_init(struct redis_log *, struct loop *);
void	redis_log_done(struct redis_log *);
void	redis_log_up(struct redis_log *, const struct conn_server *);	/* which outlives the log */
void	redis_log_down(struct redis_log *, const char *cause);

/* Warns of settings with which the server may lose messages. */
void	redis_log_server(const struct conn_server *);
/* For watch_new(): warns where the server refuses wake-ups; arg is not used. */
void	redis_log_watch(bool on, const char *why, void *arg);
/* For sentinel_new(): warns where a Sentinel refuses the subscription. */
void	redis_log_sentinel(const char *why);
