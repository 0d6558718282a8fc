/*
 * A subscription on a connection of its own, so that a flood of messages delays only
 * itself.  It calls queue_events.listening() once per change.
 *
 * In a cluster each master reports only its own keys.  So there is one connection to
 * each master, and the subscription is up when all of them are.
 */
#pragma once

#include <stdbool.h>

#include "loop/timer.h"
#include "queue/queue.h"
#include "queue/slot_route.h"

/* The last report to listening(). */
enum subscription_report { SUBSCRIPTION_UNREPORTED, SUBSCRIPTION_UP, SUBSCRIPTION_DOWN };

/* One of its connections. */
struct listener {
	TAILQ_ENTRY(listener)	 entry;
	struct conn		*conn;
	char			*servers[2];	/* the master; owned; { NULL }: any server */
	struct redis_options	 options;
};

struct subscription {
	const struct queue_env	*env;
	const struct queue	*queue;		/* for its events and their argument */
	char			*name;		/* of the connections */
	bool			 everywhere;	/* one to each master */
	bool			 started;
	struct route_listener	 changed;	/* everywhere */
	TAILQ_HEAD(, listener)	 listeners;
	/* If everywhere: the one subscription, kept for masters that come later. */
	char			*channel;
	conn_message_fn		*heard;
	void			*heard_arg;
	/* why it is down; NULL: it is up, or that is unknown */
	char			*cause;
	/* why it hears nothing although it is up; NULL: none */
	char			*obstacle;
	enum subscription_report reported;
	/* set: it may still come up; then report it as down */
	struct timer		 connecting;
};

/* what: the end of the connection's name.  queue is borrowed. */
void	subscription_init(struct subscription *, const struct queue_env *, const char *what,
	    const struct queue *);
void	subscription_done(struct subscription *);
/*
 * See conn_subscribe().  _everywhere: at every master of a cluster; such a subscription
 * has no other channel.
 */
void	subscription_add(struct subscription *, bool pattern, const char *channel,
	    conn_message_fn *, void *arg);
void	subscription_add_everywhere(struct subscription *, const char *channel,
	    conn_message_fn *, void *arg);
void	subscription_probe(struct subscription *);	/* every 10 s */

/* The command connection is up: connects now, too.  While it is down nothing is reported. */
void	subscription_conn_up(struct subscription *);

/*
 * Another reason, not the connection, why it hears nothing; NULL: none.  Call it from
 * the loop.
 */
void	subscription_set_obstacle(struct subscription *, const char *why);
