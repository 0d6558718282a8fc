/*
 * Listening; see listener.h.  While Redis itself is away nothing is said: the
 * log has it.  A subscriber that does not come up within a second of Redis has
 * a reason of its own, a missing permission mostly.
 */
#include "queue/subscription.h"

#include <stdlib.h>
#include <string.h>

#define PATIENCE	SEC

/* Says what has changed, if something has. */
static void
listener_tell(struct listener *l)
{
	bool hears = conn_is_ready(l->conn) && l->obstacle == NULL;
	enum listener_told told = hears ? LISTENER_HEARS : LISTENER_DEAF;
	const char *why = l->cause != NULL ? l->cause :
	    l->obstacle != NULL ? l->obstacle : "not connected";

	if (l->told == told)
		return;
	l->told = told;
	l->events->listening(hears, hears ? NULL : why, l->arg);
}

static void
listener_impatient(void *arg)
{
	struct listener *l = arg;

	if (conn_is_ready(l->env->conn))
		listener_tell(l);
}

static void
listener_up(const struct conn_server *server UNUSED, void *arg)
{
	struct listener *l = arg;

	free(l->cause);
	l->cause = NULL;
	timer_stop(&l->patience);
	listener_tell(l);
}

static void
listener_down(const char *cause, void *arg)
{
	struct listener *l = arg;

	free(l->cause);
	l->cause = xstrdup(cause);
	if (l->told == LISTENER_UNTOLD) {
		if (!timer_is_set(&l->patience))
			timer_set(&l->patience, PATIENCE);
		return;
	}
	/* What is said from now on is missed; another cause is worth another line. */
	l->told = LISTENER_UNTOLD;
	if (conn_is_ready(l->env->conn))
		listener_tell(l);
}

void
listener_init(struct listener *l, const struct queue_env *env, const char *what,
    const struct queue_events *events, void *arg)
{
	static const struct conn_events conn_events = {
		.up = listener_up, .down = listener_down
	};
	char *name = xasprintf("%s-%s", env->instance, what);

	*l = (struct listener){ .env = env, .events = events, .arg = arg };
	timer_init(&l->patience, env->loop, listener_impatient, l);
	l->conn = conn_new(env->loop, env->redis, name, CONN_SUBSCRIBER, &conn_events, l);
	free(name);
}

void
listener_done(struct listener *l)
{
	conn_free(l->conn);
	timer_stop(&l->patience);
	free(l->cause);
	free(l->obstacle);
}

void
listener_add(struct listener *l, bool pattern, const char *name, conn_message_fn *fn, void *arg)
{
	if (pattern)
		conn_psubscribe(l->conn, name, fn, arg);
	else
		conn_subscribe(l->conn, name, fn, arg);
}

void
listener_conn_up(struct listener *l)
{
	conn_start(l->conn);
	if (!conn_is_ready(l->conn))
		timer_set(&l->patience, PATIENCE);
}

void
listener_conn_down(struct listener *l)
{
	timer_stop(&l->patience);
}

void
listener_probe(struct listener *l)
{
	conn_probe(l->conn);
}

void
listener_set_obstacle(struct listener *l, const char *why)
{
	if (why == NULL ? l->obstacle == NULL :
	    l->obstacle != NULL && strcmp(why, l->obstacle) == 0)
		return;
	free(l->obstacle);
	l->obstacle = why != NULL ? xstrdup(why) : NULL;
	if (!conn_is_ready(l->conn))
		return;
	if (why != NULL)
		l->told = LISTENER_UNTOLD;
	listener_tell(l);
}
