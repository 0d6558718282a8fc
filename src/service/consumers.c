/* The consumers of the daemon; see consumers.h. */
#include "service/consumers.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"

/* A consumer, and its queue's way to Redis. */
struct routed {
	struct route_user	 user;
	struct consumer		*consumer;
};

struct consumers {
	struct consumer_env	 env;		/* env.queue: of the one that is made */
	struct routes		*routes;
	struct consumer		**all;	/* those not CLOSED */
	struct routed		**routed;	/* of each */
	size_t			 n;
	bool			 quiet;
};

static void
routed_up(const struct conn_server *server, void *arg)
{
	consumer_conn_up(((struct routed *)arg)->consumer, server);
}

static void
routed_down(void *arg)
{
	consumer_conn_down(((struct routed *)arg)->consumer);
}

static void
routed_free(struct routed *p)
{
	consumer_free(p->consumer);
	route_leave(&p->user);
	free(p);
}

void
consumers_remove(struct consumers *s, struct consumer *c)
{
	struct routed *p;
	size_t i;

	for (i = 0; s->all[i] != c; i++)
		continue;
	p = s->routed[i];
	/*
	 * Keep the order: of two with one name, after a change of the key, the newer
	 * must be last.
	 */
	memmove(&s->all[i], &s->all[i + 1], (--s->n - i) * sizeof(struct consumer *));
	memmove(&s->routed[i], &s->routed[i + 1], (s->n - i) * sizeof(struct routed *));
	routed_free(p);
}

struct consumers *
consumers_new(const struct consumer_env *env, struct routes *routes)
{
	struct consumers *s = NEW(struct consumers, .env = *env, .routes = routes);

	return s;
}

void
consumers_free(struct consumers *s)
{
	if (s == NULL)
		return;
	for (size_t i = 0; i < s->n; i++)
		routed_free(s->routed[i]);
	free(s->all);
	free(s->routed);
	free(s);
}

void
consumers_add(struct consumers *s, struct config *config, const struct queue_config *cfg)
{
	struct routed *p = xcalloc(1, sizeof(*p));

	p->user = (struct route_user){ .up = routed_up, .down = routed_down, .arg = p };
	s->env.queue = route_join(s->routes, cfg->key, &p->user);
	p->consumer = consumer_new(&s->env, config, cfg, queue_ops_of(cfg));
	s->routed = xreallocarray(s->routed, s->n + 1, sizeof(*s->routed));
	s->routed[s->n] = p;
	*APPEND(s->all, s->n) = p->consumer;
	route_begin(&p->user);
	if (s->quiet)
		consumer_set_quiet(p->consumer, true);
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

struct consumer *
consumers_at(const struct consumers *s, size_t i)
{
	return i < s->n ? s->all[i] : NULL;
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
consumers_tick(struct consumers *s)
{
	for (size_t i = 0; i < s->n; i++) {
		if (route_is_up(&s->routed[i]->user) ||
		    config_is_sharded(consumer_config(s->all[i])))
			consumer_tick(s->all[i]);
	}
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
