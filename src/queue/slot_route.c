/*
 * Routes; see slot_route.h.
 *
 *	        join                 the node is READY
 *	AWAY -----------> JOINED ----------------------> UP
 *	  ^                 ^ '--- the node is down <-----'|
 *	  |                                               | the slot has moved, or a command
 *	  '------ everything sent is answered: LEAVING <--' of it did not run
 *
 * The queues are down in every state but UP and LEAVING; down() comes when LEAVING
 * ends.  In LEAVING and AWAY their environment has connections that are never READY, so
 * they send nothing.
 *
 * When Redis has answered a PING, it has answered all commands before it.  A call that
 * it answered with NOSCRIPT was sent again after that PING, perhaps twice: so two more PINGs
 * follow.
 *
 * The route stays AWAY for a while if a command did not run for another reason than
 * MOVED, or if the slot moves twice in a second.
 */
#include "queue/slot_route.h"

#include <stdlib.h>
#include <string.h>

#include "base/backoff.h"
#include "base/util.h"
#include "loop/timer.h"
#include "queue/keys.h"
#include "redis/request.h"
#include "redis/slots.h"

#define RETRY_MIN	(100 * MSEC)
#define RETRY_MAX	SEC
#define SETTLED		(2 * SEC)	/* UP for longer: the next pause is RETRY_MIN again */
#define MOVED_AGAIN	SEC
#define PINGS		3

enum route_state { ROUTE_AWAY, ROUTE_JOINED, ROUTE_UP, ROUTE_LEAVING };

struct route {
	TAILQ_ENTRY(route)	 entry;
	struct routes		*all;
	unsigned		 slot;
	struct queue_env	 env;
	struct node		*node;		/* NULL: AWAY */
	enum route_state	 state;
	struct request		 ping;		/* LEAVING */
	int			 pings;
	usec_t			 up_at;		/* mono; the last UP */
	bool			 displaced;	/* it is new, or has left a node since */
	unsigned		 failures;	/* pauses in a row */
	struct timer		 retry;		/* AWAY: if set, joins later */
	TAILQ_HEAD(, route_user) users;
};

struct routes {
	struct queue_env	 base;
	struct nodes		*nodes;
	TAILQ_HEAD(, route)	 routes;
	TAILQ_HEAD(, route_listener) listeners;
};

static void
route_set_state(struct route *r, enum route_state state)
{
	r->state = state;
}

/* -- up and down ------------------------------------------------------------------ */

static void
route_up(struct route *r, const struct conn_server *server)
{
	struct route_user *u, *next;

	route_set_state(r, ROUTE_UP);
	r->up_at = clock_mono();
	if (r->displaced)
		r->env.since = r->up_at;
	r->displaced = false;
	TAILQ_FOREACH_SAFE(u, &r->users, entry, next)
		u->up(server, u->arg);
}

static void
route_down(struct route *r, enum route_state state)
{
	struct route_user *u, *next;

	route_set_state(r, state);
	TAILQ_FOREACH_SAFE(u, &r->users, entry, next)
		u->down(u->arg);
}

/* From now on the queues use this node's connections. */
static void
route_use(struct route *r, struct node *node)
{
	if (r->env.watch != NULL && r->env.watch != node->watch)
		watch_move(r->env.watch, node->watch, r->slot);
	r->env.conn = node->conn;
	r->env.watch = node->watch;
}

static void
route_set_node(struct route *r, struct node *node)
{
	if (r->node != NULL)
		r->node->users--;
	if (node != NULL)
		node->users++;
	r->node = node;
}

/* AWAY: joins the slot's node, if it is known. */
static void
route_go(struct route *r)
{
	struct node *node = nodes_of(r->all->nodes, r->slot);

	if (node == NULL)
		return;		/* routes_changed() comes */
	route_set_node(r, node);
	route_use(r, node);
	route_set_state(r, ROUTE_JOINED);
	if (conn_is_ready(node->conn))
		route_up(r, conn_server(node->conn));
}

/* AWAY: tries to join.  LEAVING: the node has not answered yet; route_pinged() goes on. */
static void
route_retry(void *arg)
{
	struct route *r = arg;

	if (r->state == ROUTE_AWAY)
		route_go(r);
}

/* -- leaving a node ------------------------------------------------------------------ */

static void
route_pinged(enum conn_answer answer UNUSED, const struct redisReply *reply UNUSED, void *arg)
{
	struct route *r = arg;

	if (++r->pings < PINGS) {
		request_words(&r->ping, r->node->conn, "PING", NULL);
		return;
	}
	route_set_node(r, NULL);
	route_down(r, ROUTE_AWAY);
	if (!timer_is_set(&r->retry))
		route_go(r);
}

static void
route_quit(struct route *r)
{
	route_use(r, nodes_nowhere(r->all->nodes));
	r->displaced = true;
	if (r->state == ROUTE_UP) {
		route_set_state(r, ROUTE_LEAVING);
		r->pings = 0;
		request_words(&r->ping, r->node->conn, "PING", NULL);
		return;
	}
	route_set_node(r, NULL);
	route_set_state(r, ROUTE_AWAY);
}

/* -- events of the nodes ---------------------------------------------------------------- */

void
routes_node_up(struct routes *all, struct node *node, const struct conn_server *server)
{
	struct route *r, *next;

	TAILQ_FOREACH_SAFE(r, &all->routes, entry, next) {
		if (r->node == node && r->state == ROUTE_JOINED)
			route_up(r, server);
	}
}

void
routes_node_down(struct routes *all, struct node *node)
{
	struct route *r, *next;

	TAILQ_FOREACH_SAFE(r, &all->routes, entry, next) {
		if (r->node == node && r->state == ROUTE_UP)
			route_down(r, ROUTE_JOINED);
	}
}

void
routes_changed(struct routes *all)
{
	struct route *r, *next;
	struct route_listener *l;

	TAILQ_FOREACH(l, &all->listeners, entry)
		l->changed(l->arg);
	TAILQ_FOREACH_SAFE(r, &all->routes, entry, next) {
		if ((r->state == ROUTE_UP || r->state == ROUTE_JOINED) &&
		    nodes_of(all->nodes, r->slot) != r->node)
			route_quit(r);
		if (r->state == ROUTE_AWAY) {
			timer_stop(&r->retry);
			route_go(r);
		}
	}
}

static struct route *
routes_find(const struct routes *all, unsigned slot)
{
	struct route *r;

	TAILQ_FOREACH(r, &all->routes, entry) {
		if (r->slot == slot)
			return r;
	}
	return NULL;
}

void
routes_redirected(struct routes *all, const struct node *node, unsigned slot, bool later)
{
	struct route *r = routes_find(all, slot);
	usec_t lasted;

	if (r == NULL || r->state != ROUTE_UP || r->node != node)
		return;
	lasted = clock_mono() - r->up_at;
	if (lasted > SETTLED)
		r->failures = 0;
	if (later || lasted < MOVED_AGAIN)
		timer_set(&r->retry, backoff_delay(RETRY_MIN, RETRY_MAX, ++r->failures,
		    random_unit()));
	route_quit(r);
}

/* -- users --------------------------------------------------------------------------------- */

/*
 * Uses the slot of QPAUSED.  If Q has a hash tag, all keys have that slot.  Only a kind
 * that subscribes may have no tag, and QPAUSED is the key that it looks at.
 */
const struct queue_env *
route_join(struct routes *all, const char *key, struct route_user *u)
{
	char *paused = xasprintf("%s%s", key, keys_suffix(KEY_PAUSED));
	unsigned slot = nodes_slot(all->nodes, paused, strlen(paused));
	struct route *r = routes_find(all, slot);

	free(paused);
	if (r == NULL) {
		r = xcalloc(1, sizeof(*r));
		/* Since when the node has the slot is unknown: others may not have renewed yet. */
		*r = (struct route){ .all = all, .slot = slot, .env = all->base,
			.displaced = nodes_is_cluster(all->nodes) };
		r->env.routes = nodes_is_cluster(all->nodes) ? all : NULL;
		TAILQ_INIT(&r->users);
		timer_init(&r->retry, all->base.loop, route_retry, r);
		request_init(&r->ping, route_pinged, r);
		TAILQ_INSERT_TAIL(&all->routes, r, entry);
		if (nodes_nowhere(all->nodes) != NULL)
			route_use(r, nodes_nowhere(all->nodes));
		route_go(r);
	}
	u->route = r;
	return &r->env;
}

void
route_begin(struct route_user *u)
{
	struct route *r = u->route;

	TAILQ_INSERT_TAIL(&r->users, u, entry);
	if (r->state == ROUTE_UP)
		u->up(conn_server(r->node->conn), u->arg);
}

void
route_leave(struct route_user *u)
{
	struct route *r = u->route;

	TAILQ_REMOVE(&r->users, u, entry);
	u->route = NULL;
	if (!TAILQ_EMPTY(&r->users))
		return;
	TAILQ_REMOVE(&r->all->routes, r, entry);
	request_cancel(&r->ping);
	timer_stop(&r->retry);
	route_set_node(r, NULL);
	free(r);
}

struct conn *
route_conn(const struct queue_env *env, const char *key)
{
	return env->routes == NULL ? env->conn : nodes_conn(env->routes->nodes, key);
}

/* -- all masters ------------------------------------------------------------------------ */

void
route_listen(const struct queue_env *env, struct route_listener *l)
{
	TAILQ_INSERT_TAIL(&env->routes->listeners, l, entry);
}

void
route_unlisten(const struct queue_env *env, struct route_listener *l)
{
	TAILQ_REMOVE(&env->routes->listeners, l, entry);
}

const char *
route_master(const struct queue_env *env, size_t i)
{
	return nodes_master(env->routes->nodes, i);
}

struct conn *
route_master_conn(const struct queue_env *env, size_t i)
{
	if (env->routes == NULL)
		return i == 0 ? env->conn : NULL;
	return nodes_master_conn(env->routes->nodes, i);
}

bool
route_is_master(const struct queue_env *env, const char *address)
{
	const char *master;

	for (size_t i = 0; (master = route_master(env, i)) != NULL; i++) {
		if (strcmp(master, address) == 0)
			return true;
	}
	return false;
}

struct routes *
routes_new(const struct queue_env *base, struct nodes *nodes)
{
	struct routes *all = NEW(struct routes, .base = *base, .nodes = nodes);

	TAILQ_INIT(&all->routes);
	TAILQ_INIT(&all->listeners);
	return all;
}

void
routes_free(struct routes *all)
{
	free(all);
}
