/*
 * Subscriptions; see subscription.h.  While Redis itself is away, nothing is reported.
 * If the subscriber does not come up within a second after Redis, it has a reason of
 * its own, mostly a missing permission: that is reported.
 */
#include "queue/subscription.h"

#include <stdlib.h>
#include <string.h>

#define CONNECT_TIME	SEC

/* Whether all connections are READY. */
static bool
subscription_is_ready(const struct subscription *s)
{
	const struct listener *l;

	TAILQ_FOREACH(l, &s->listeners, entry) {
		if (!conn_is_ready(l->conn))
			return false;
	}
	return !TAILQ_EMPTY(&s->listeners);
}

static void
subscription_report(struct subscription *s)
{
	bool up = subscription_is_ready(s) && s->obstacle == NULL;
	enum subscription_report report = SUBSCRIPTION_DOWN;
	const char *why = NULL;

	if (up)
		report = SUBSCRIPTION_UP;
	else if (s->cause != NULL)
		why = s->cause;
	else if (s->obstacle != NULL)
		why = s->obstacle;
	else
		why = "not connected";
	if (s->reported == report)
		return;
	s->reported = report;
	s->queue->events->listening(up, why, s->queue->arg);
}

static void
subscription_connect_time_over(void *arg)
{
	struct subscription *s = arg;

	if (conn_is_ready(s->env->conn))
		subscription_report(s);
}

static void
subscription_up(const struct conn_server *server UNUSED, void *arg)
{
	struct subscription *s = arg;

	if (!subscription_is_ready(s))
		return;
	xreplace(&s->cause, NULL);
	timer_stop(&s->connecting);
	subscription_report(s);
}

static void
subscription_down(const char *cause, void *arg)
{
	struct subscription *s = arg;

	xreplace(&s->cause, cause);
	if (s->reported == SUBSCRIPTION_UNREPORTED) {
		if (!timer_is_set(&s->connecting))
			timer_set(&s->connecting, CONNECT_TIME);
		return;
	}
	/* From now on it misses messages: report each new cause. */
	s->reported = SUBSCRIPTION_UNREPORTED;
	if (conn_is_ready(s->env->conn))
		subscription_report(s);
}

/* -- connections ---------------------------------------------------------------- */

/* master: the address of one; NULL: any server. */
static struct listener *
listener_new(struct subscription *s, const char *master)
{
	static const struct conn_events events = {
		.up = subscription_up, .down = subscription_down
	};
	struct listener *l = xcalloc(1, sizeof(*l));
	const struct redis_options *options = s->env->redis;

	if (master != NULL) {
		l->servers[0] = xstrdup(master);
		l->options = *options;
		l->options.servers = l->servers;
		l->options.any_role = false;
		options = &l->options;
	}
	l->conn = conn_new(s->env->loop, options, s->name, CONN_SUBSCRIBER, &events, s);
	if (s->channel != NULL)
		conn_subscribe(l->conn, false, s->channel, s->heard, s->heard_arg);
	if (s->started)
		conn_start(l->conn);
	TAILQ_INSERT_TAIL(&s->listeners, l, entry);
	return l;
}

static void
listener_free(struct subscription *s, struct listener *l)
{
	TAILQ_REMOVE(&s->listeners, l, entry);
	conn_free(l->conn);
	free(l->servers[0]);
	free(l);
}

/* The masters may have changed: opens and closes connections. */
static void
subscription_follow(void *arg)
{
	struct subscription *s = arg;
	struct listener *l, *next;
	const char *master;

	TAILQ_FOREACH_SAFE(l, &s->listeners, entry, next) {
		if (!route_is_master(s->env, l->servers[0]))
			listener_free(s, l);
	}
	for (size_t i = 0; (master = route_master(s->env, i)) != NULL; i++) {
		TAILQ_FOREACH(l, &s->listeners, entry) {
			if (strcmp(l->servers[0], master) == 0)
				break;
		}
		if (l == NULL)
			(void)listener_new(s, master);
	}
	/* The connection that was down may be gone. */
	if (subscription_is_ready(s))
		subscription_up(NULL, s);
}

void
subscription_add(struct subscription *s, bool pattern, const char *channel,
    conn_message_fn *fn, void *arg)
{
	struct listener *l = TAILQ_FIRST(&s->listeners);

	if (l == NULL)
		l = listener_new(s, NULL);
	conn_subscribe(l->conn, pattern, channel, fn, arg);
}

void
subscription_add_everywhere(struct subscription *s, const char *channel, conn_message_fn *fn,
    void *arg)
{
	if (s->env->routes == NULL) {
		subscription_add(s, false, channel, fn, arg);
		return;
	}
	s->everywhere = true;
	s->channel = xstrdup(channel);
	s->heard = fn;
	s->heard_arg = arg;
	s->changed = (struct route_listener){ .changed = subscription_follow, .arg = s };
	route_listen(s->env, &s->changed);
	subscription_follow(s);
}

void
subscription_probe(struct subscription *s)
{
	struct listener *l;

	TAILQ_FOREACH(l, &s->listeners, entry)
		conn_probe(l->conn);
}

/* -- life -------------------------------------------------------------------------- */

void
subscription_init(struct subscription *s, const struct queue_env *env, const char *what,
    const struct queue *queue)
{
	*s = (struct subscription){ .env = env, .queue = queue,
		.name = xasprintf("%s-%s", env->instance, what) };
	TAILQ_INIT(&s->listeners);
	timer_init(&s->connecting, env->loop, subscription_connect_time_over, s);
}

void
subscription_done(struct subscription *s)
{
	struct listener *l;

	if (s->everywhere)
		route_unlisten(s->env, &s->changed);
	while ((l = TAILQ_FIRST(&s->listeners)) != NULL)
		listener_free(s, l);
	timer_stop(&s->connecting);
	free(s->channel);
	free(s->name);
	free(s->cause);
	free(s->obstacle);
}

void
subscription_conn_up(struct subscription *s)
{
	struct listener *l;

	s->started = true;
	TAILQ_FOREACH(l, &s->listeners, entry)
		conn_start(l->conn);
	if (!subscription_is_ready(s))
		timer_set(&s->connecting, CONNECT_TIME);
}

void
subscription_set_obstacle(struct subscription *s, const char *why)
{
	if (why == NULL ? s->obstacle == NULL :
	    s->obstacle != NULL && strcmp(why, s->obstacle) == 0)
		return;
	xreplace(&s->obstacle, why);
	if (!subscription_is_ready(s))
		return;
	if (why != NULL)
		s->reported = SUBSCRIPTION_UNREPORTED;
	subscription_report(s);
}
