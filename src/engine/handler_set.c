/*
 * The handlers of one queue; see handler_set.h.
 */
#include "engine/handler_set.h"

#include <stdlib.h>

#include "base/list.h"
#include "base/util.h"

struct handler_entry {
	TAILQ_ENTRY(handler_entry)	 entry;
	struct handler_set	*set;
	struct handler	*handler;
};

struct handler_set {
	const struct handler_env	*env;
	const struct handler_events	*events;
	void	(*fewer)(void *);
	void	*arg;
	TAILQ_HEAD(, handler_entry)	 entries;
	struct handler_entry	*current;	/* also on entries; NULL: all are closing */
};

struct handler_set *
handler_set_new(const struct handler_env *env, const struct handler_events *events,
    void (*fewer)(void *), void *arg)
{
	struct handler_set *s = xcalloc(1, sizeof(*s));

	*s = (struct handler_set){ .env = env, .events = events, .fewer = fewer, .arg = arg };
	TAILQ_INIT(&s->entries);
	return s;
}

static void
entry_free(struct handler_entry *e)
{
	TAILQ_REMOVE(&e->set->entries, e, entry);
	handler_free(e->handler);
	free(e);
}

void
handler_set_free(struct handler_set *s)
{
	struct handler_entry *e;

	while ((e = TAILQ_FIRST(&s->entries)) != NULL)
		entry_free(e);
	free(s);
}

static void
entry_closed(void *arg)
{
	struct handler_entry *e = arg;
	struct handler_set *s = e->set;

	entry_free(e);
	s->fewer(s->arg);
}

void
handler_set_close(struct handler_set *s)
{
	struct handler_entry *e = s->current;

	s->current = NULL;
	if (e != NULL)
		handler_close(e->handler, entry_closed, e);
}

void
handler_set_open(struct handler_set *s, struct config *config, const struct queue_config *cfg)
{
	struct handler_entry *e = NEW(struct handler_entry, .set = s,
	    .handler = handler_open(s->env, config, cfg, s->events, s->arg));

	TAILQ_INSERT_TAIL(&s->entries, e, entry);
	handler_set_close(s);
	s->current = e;
}

struct handler *
handler_set_current(const struct handler_set *s)
{
	return s->current->handler;
}

bool
handler_set_is_empty(const struct handler_set *s)
{
	return TAILQ_EMPTY(&s->entries);
}
