/*
 * A subscription on a connection of its own, so that a flood delays nothing but
 * itself.  Says once per change whether it hears: queue_events.listening().
 */
#ifndef RQD_QUEUE_SUBSCRIPTION_H
#define RQD_QUEUE_SUBSCRIPTION_H

#include <stdbool.h>

#include "loop/timer.h"
#include "queue/queue.h"

enum listener_told { LISTENER_UNTOLD, LISTENER_HEARS, LISTENER_DEAF };

struct listener {
	const struct queue_env	*env;
	const struct queue_events *events;	/* the engine's */
	void			*arg;
	struct conn		*conn;		/* a subscriber; owned */
	char			*cause;		/* why it is down; NULL: it is up, or not known yet */
	char			*obstacle;	/* why it hears nothing although it is up; NULL: none */
	enum listener_told	 told;
	struct timer		 patience;	/* set: it may yet come up by itself */
};

/* events and arg are those of queue_ops.open(). */
void	listener_init(struct listener *, const struct queue_env *, const char *what,
	    const struct queue_events *, void *arg);
void	listener_done(struct listener *);

/* Before or after it is up; see conn_subscribe(). */
void	listener_add(struct listener *, bool pattern, const char *name, conn_message_fn *,
	    void *arg);

/* Redis is there: it tries now.  Away: that has been said, and counts for it, too. */
void	listener_conn_up(struct listener *);
void	listener_conn_down(struct listener *);
void	listener_probe(struct listener *);

/* A reason beyond the connection why nothing can be heard; NULL: none.  From the loop. */
void	listener_set_obstacle(struct listener *, const char *why);

#endif
