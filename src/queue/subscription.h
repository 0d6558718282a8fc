/*
 * A subscription on a connection of its own, so that a flood of messages delays
 * nothing but itself.  It calls queue_events.listening() once per change.
 */
#ifndef RQD_QUEUE_SUBSCRIPTION_H
#define RQD_QUEUE_SUBSCRIPTION_H

#include <stdbool.h>

#include "loop/timer.h"
#include "queue/queue.h"

/* What listening() has said last. */
enum subscription_report { SUBSCRIPTION_UNREPORTED, SUBSCRIPTION_UP, SUBSCRIPTION_DOWN };

struct subscription {
	const struct queue_env	*env;
	const struct queue	*queue;		/* its events and their argument */
	struct conn		*conn;		/* owned; for conn_subscribe() and conn_probe() */
	/* why it is down; NULL: it is up, or not known yet */
	char			*cause;
	/* why it hears nothing although it is up; NULL: none */
	char			*obstacle;
	enum subscription_report reported;
	/* set: it has time to come up before that is reported */
	struct timer		 connecting;
};

/* what: the end of the connection's name.  queue is borrowed. */
void	subscription_init(struct subscription *, const struct queue_env *, const char *what,
	    const struct queue *);
void	subscription_done(struct subscription *);

/* The command connection is up: connects now, too.  It is down: the log has that already. */
void	subscription_conn_up(struct subscription *);
void	subscription_conn_down(struct subscription *);

/* A reason beyond the connection why it hears nothing; NULL: none.  Call it from the loop. */
void	subscription_set_obstacle(struct subscription *, const char *why);

#endif
