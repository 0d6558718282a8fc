/*
 * Routes: which server each queue uses now.  A route belongs to one slot of a cluster; the
 * queues whose keys are in that slot share it, and its queue_env.  With one server there is
 * one route, for all queues.
 *
 *	struct queue_env base = { ... };	// all but conn, watch and bulk
 *	struct routes *all = routes_new(&base, nodes);
 *
 *	env = route_join(all, key, &user);	// opens the queue with it
 *	route_begin(&user);			// up(), if the server is READY
 *	...
 *	queue_free(q); route_leave(&user);
 *
 * up() and down() are those of queue.h: after down() nothing of what the queue has sent is
 * outstanding on the old connection, but for calls of the bulk connection.
 */
#ifndef RQD_QUEUE_ROUTE_H
#define RQD_QUEUE_ROUTE_H

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

/* key: the queue's, Q.  The functions and the arg of the user are set. */
const struct queue_env *route_join(struct routes *, const char *key, struct route_user *);
void		 route_begin(struct route_user *);	/* up() from inside, or later */
bool		 route_is_up(const struct route_user *);
void		 route_leave(struct route_user *);	/* once the queue is freed */

/* The connection of a key that need not be in the queue's slot: a totals' key, a schedule's. */
struct conn	*route_conn(const struct queue_env *, const char *key);

/* In a cluster: who wants to know when the masters have changed; embedded. */
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

#endif
