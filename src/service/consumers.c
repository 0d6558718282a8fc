/* The consumers of the daemon; see consumers.h. */
#include "service/consumers.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"

struct consumers {
	struct consumer_env	 env;
	struct conn		*conn;
	const struct consumers_events	*events;
	void			*arg;
	struct consumer		**all;	/* those not CLOSED */
	size_t			 n;
	bool			 quiet;
};

static void
consumers_closed(struct consumer *c, void *arg)
{
	struct consumers *s = arg;
	size_t i;

	for (i = 0; s->all[i] != c; i++)
		continue;
	/* Keeps the order: of two with one name, after a change of the key, the newer is last. */
	memmove(&s->all[i], &s->all[i + 1], (--s->n - i) * sizeof(struct consumer *));
	consumer_free(c);
	s->events->closed(s->arg);
}

static void
consumers_idle(void *arg)
{
	struct consumers *s = arg;

	s->events->idle(s->arg);
}

static void
consumers_blocked(void *arg)
{
	struct consumers *s = arg;

	s->events->blocked(s->arg);
}

struct consumers *
consumers_new(const struct consumer_env *env, struct conn *conn,
    const struct consumers_events *events, void *arg)
{
	struct consumers *s = xcalloc(1, sizeof(*s));

	*s = (struct consumers){ .env = *env, .conn = conn, .events = events, .arg = arg };
	s->env.closed = consumers_closed;
	s->env.idle = consumers_idle;
	s->env.blocked = consumers_blocked;
	s->env.arg = s;
	return s;
}

void
consumers_free(struct consumers *s)
{
	if (s == NULL)
		return;
	for (size_t i = 0; i < s->n; i++)
		consumer_free(s->all[i]);
	free(s->all);
	free(s);
}

void
consumers_add(struct consumers *s, struct config *config, const struct queue_config *cfg)
{
	struct consumer *c = consumer_new(&s->env, config, cfg, queue_ops_of(cfg));

	*APPEND(s->all, s->n) = c;
	if (conn_is_ready(s->conn))
		consumer_conn_up(c, conn_server(s->conn));
	if (s->quiet)
		consumer_set_quiet(c, true);
}

struct consumer *
consumers_find(const struct consumers *s, const struct queue_config *cfg)
{
	for (size_t i = 0; i < s->n; i++) {
		if (consumer_config(s->all[i]) == cfg)
			return s->all[i];
	}
	return NULL;
}

struct consumer *const *
consumers_all(const struct consumers *s, size_t *n)
{
	*n = s->n;
	return s->all;
}

void
consumers_with_key(const struct consumers *s, const char *key, void (*fn)(struct consumer *))
{
	for (size_t i = 0; i < s->n; i++)
		if (config_has_key(consumer_config(s->all[i]), key))
			fn(s->all[i]);
}

void
consumers_conn_up(struct consumers *s, const struct conn_server *info)
{
	for (size_t i = 0; i < s->n; i++)
		consumer_conn_up(s->all[i], info);
}

void
consumers_conn_down(struct consumers *s)
{
	for (size_t i = 0; i < s->n; i++)
		consumer_conn_down(s->all[i]);
}

void
consumers_tick(struct consumers *s)
{
	for (size_t i = 0; i < s->n; i++)
		consumer_tick(s->all[i]);
}

void
consumers_set_quiet(struct consumers *s, bool quiet)
{
	s->quiet = quiet;
	for (size_t i = 0; i < s->n; i++)
		consumer_set_quiet(s->all[i], quiet);
}

bool
consumers_are_quiet(const struct consumers *s)
{
	return s->quiet;
}

bool
consumers_are_idle(const struct consumers *s)
{
	for (size_t i = 0; i < s->n; i++) {
		if (!consumer_is_idle(s->all[i]))
			return false;
	}
	return true;
}

unsigned
consumers_in_flight(const struct consumers *s)
{
	unsigned n = 0;

	for (size_t i = 0; i < s->n; i++)
		n += consumer_in_flight(s->all[i]);
	return n;
}
