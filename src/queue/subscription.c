/*
 * Subscriptions; see subscription.h.  While Redis itself is away nothing is
 * reported.  A subscriber that does not come up within a second after Redis has
 * a reason of its own, mostly a missing permission: that is reported.
 */
#include "queue/subscription.h"

#include <stdlib.h>
#include <string.h>

#define CONNECT_TIME	SEC

static void
subscription_report(struct subscription *s)
{
	bool up = conn_is_ready(s->conn) && s->obstacle == NULL;
	enum subscription_report report = up ? SUBSCRIPTION_UP : SUBSCRIPTION_DOWN;
	const char *why = s->cause != NULL ? s->cause :
	    s->obstacle != NULL ? s->obstacle : "not connected";

	if (s->reported == report)
		return;
	s->reported = report;
	s->queue->events->listening(up, up ? NULL : why, s->queue->arg);
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
	/* From now on messages are missed; each new cause is reported. */
	s->reported = SUBSCRIPTION_UNREPORTED;
	if (conn_is_ready(s->env->conn))
		subscription_report(s);
}

void
subscription_init(struct subscription *s, const struct queue_env *env, const char *what,
    const struct queue *queue)
{
	static const struct conn_events events = {
		.up = subscription_up, .down = subscription_down
	};
	char *name = xasprintf("%s-%s", env->instance, what);

	*s = (struct subscription){ .env = env, .queue = queue };
	timer_init(&s->connecting, env->loop, subscription_connect_time_over, s);
	s->conn = conn_new(env->loop, env->redis, name, CONN_SUBSCRIBER, &events, s);
	free(name);
}

void
subscription_done(struct subscription *s)
{
	conn_free(s->conn);
	timer_stop(&s->connecting);
	free(s->cause);
	free(s->obstacle);
}

void
subscription_conn_up(struct subscription *s)
{
	conn_start(s->conn);
	if (!conn_is_ready(s->conn))
		timer_set(&s->connecting, CONNECT_TIME);
}

void
subscription_conn_down(struct subscription *s)
{
	timer_stop(&s->connecting);
}

void
subscription_set_obstacle(struct subscription *s, const char *why)
{
	if (why == NULL ? s->obstacle == NULL :
	    s->obstacle != NULL && strcmp(why, s->obstacle) == 0)
		return;
	xreplace(&s->obstacle, why);
	if (!conn_is_ready(s->conn))
		return;
	if (why != NULL)
		s->reported = SUBSCRIPTION_UNREPORTED;
	subscription_report(s);
}
