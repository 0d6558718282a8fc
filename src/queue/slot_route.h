/*
 * The node that serves a queue's slot now.  A route belongs to one slot of a cluster; the
 * queues whose keys are in that slot share it, and its queue_env.  With one server there is
 * one route, for all queues.
 *
 *	struct queue_env base = { ... };	// all but conn and watch
 *	struct routes *all = routes_new(&base, nodes);
 *
 *	env = route_join(all, key, &user);	// opens the queue with it
 *	route_begin(&user);			// up(), if the server is READY
 *	...
 *	queue_free(q); route_leave(&user);
 *
 * up() and down() stand for queue_conn_up() and queue_conn_down().  After down() the
 * old connection has no unanswered call of the queue.
 */
#pragma once

#include <stdbool.h>

#include "base/list.h"
#include "queue/queue.h"
#include "redis/nodes.h"

struct route;
struct routes;

/* A user of a route, embedded in its struct. */
struct route_user {
	TAILQ_ENTRY(route_user)	 entry;
	void			(*up)(const struct conn_server *, void *);
	void			(*down)(void *);
	void			*arg;
	struct route		*route;		/* private; NULL: none */
};

/* Copies the base.  The nodes are borrowed. */
struct routes	*routes_new(const struct queue_env *base, struct nodes *);
void		 routes_free(struct routes *);		/* after all users have left */

/* key: Q of the queue.  The caller has set the functions and the arg of the user. */
const struct queue_env *route_join(struct routes *, const char *key, struct route_user *);
void		 route_begin(struct route_user *);	/* calls up() at once, or later */
void		 route_leave(struct route_user *);	/* after the queue is freed */

/*
 * The connection for a key that may be outside the queue's slot: that of totals, or a
 * schedule's.
 */
struct conn	*route_conn(const struct queue_env *, const char *key);

/* In a cluster: a listener to changes of the masters; embedded. */
struct route_listener {
	TAILQ_ENTRY(route_listener) entry;
	void			(*changed)(void *);	/* from the loop */
	void			*arg;
};

void		 route_listen(const struct queue_env *, struct route_listener *);
void		 route_unlisten(const struct queue_env *, struct route_listener *);
/* The address of the i-th master, and its connection; NULL beyond the last one. */
const char	*route_master(const struct queue_env *, size_t i);
struct conn	*route_master_conn(const struct queue_env *, size_t i);
bool		 route_is_master(const struct queue_env *, const char *address);

/* The owner of the nodes passes their events on. */
void		 routes_node_up(struct routes *, struct node *, const struct conn_server *);
void		 routes_node_down(struct routes *, struct node *);
void		 routes_changed(struct routes *);
void		 routes_redirected(struct routes *, const struct node *, unsigned slot, bool later);
