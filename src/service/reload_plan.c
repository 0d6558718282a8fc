/*
 * The plan of a reload.  Queues are compared by name.  A queue counts as another one if
 * its keys, kind or consumer group have changed.  For all other options the row in the
 * table decides (OPTION_RESTART, its section).
 */
#include "service/reload_plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "config/options.h"
#include "config/load.h"

static void
add_step(struct reload_plan *plan, enum reload_op op, const struct queue_config *from,
    const struct queue_config *to)
{
	plan->steps[plan->nsteps++] = (struct reload_step){ op, from, to };
}

static bool
is_same_queue(const struct queue_config *a, const struct queue_config *b)
{
	size_t i;

	if (b == NULL || a->kind != b->kind || strcmp(a->key, b->key) != 0 ||
	    a->shards != b->shards || a->shards_drain != b->shards_drain ||
	    strcmp(a->delayed_key, b->delayed_key) != 0 ||
	    (kind_has(a->kind, TRAIT_CONSUMER_GROUP) &&
	    strcmp(a->consumer_group, b->consumer_group) != 0) ||
	    (kind_has(a->kind, TRAIT_KEY_EVENTS) && a->database != b->database))
		return false;
	for (i = 0; a->keys[i] != NULL && b->keys[i] != NULL; i++) {
		if (strcmp(a->keys[i], b->keys[i]) != 0)
			return false;
	}
	return a->keys[i] == b->keys[i];
}

/* Whether the queue of this name has other keys or limits now. */
static bool
is_elsewhere(const char *name, const struct config *from, const struct config *to)
{
	const struct queue_config *a = config_queue(from, name), *b = config_queue(to, name);

	return a == NULL || b == NULL || strcmp(a->key, b->key) != 0 || a->shards != b->shards ||
	    a->message_max != b->message_max || a->pop != b->pop;
}

/* Whether one of the queues that it pushes to is elsewhere. */
static bool
pushes_elsewhere(const struct queue_config *q, const struct config *from, const struct config *to)
{
	for (size_t i = 0; q->pushes[i] != NULL; i++) {
		if (is_elsewhere(q->pushes[i], from, to))
			return true;
	}
	return config_pushed_queue(q->on_dead) != NULL &&
	    is_elsewhere(config_pushed_queue(q->on_dead), from, to);
}

/* The queue of this name, mostly the i-th too, that this daemon consumes, or NULL. */
static const struct queue_config *
find_queue(const struct config *c, size_t i, const char *name)
{
	const struct queue_config *q = i < c->nqueues && strcmp(c->queues[i]->name, name) == 0 ?
	    c->queues[i] : config_queue(c, name);

	return q != NULL && config_consumes(q) ? q : NULL;
}

/* Removals first, so that a key that moves to another queue is free by then. */
static void
plan_queues(struct reload_plan *plan, const struct config *from, const struct config *to)
{
	const struct queue_config *a, *b;

	plan->steps = xcalloc(from->nqueues + to->nqueues + 1, sizeof(*plan->steps));
	for (size_t i = 0; i < from->nqueues; i++) {
		a = from->queues[i];
		if (config_consumes(a) && !is_same_queue(a, find_queue(to, i, a->name)))
			add_step(plan, RELOAD_REMOVE, a, NULL);
	}
	for (size_t i = 0; i < to->nqueues; i++) {
		b = to->queues[i];
		if (!config_consumes(b))
			continue;
		a = find_queue(from, i, b->name);
		if (a == NULL || !is_same_queue(a, b))
			add_step(plan, RELOAD_ADD, NULL, b);
		else if (config_same_queue(a, b) && !pushes_elsewhere(b, from, to))
			add_step(plan, RELOAD_KEEP, a, b);
		else
			add_step(plan, RELOAD_CHANGE, a, b);
	}
}

/* Notes a section (or an option outside of all) that needs a restart, once. */
static void
add_restart(struct reload_plan *plan, const struct option *o)
{
	const char *what = o->section == SECTION_GLOBAL ? o->name : section_name(o->section);

	for (size_t i = 0; i < ARRAY_LEN(plan->restart) - 1; i++) {
		if (plan->restart[i] == NULL) {
			plan->restart[i] = what;
			return;
		}
		if (strcmp(plan->restart[i], what) == 0)
			return;
	}
}

void
reload_plan(struct reload_plan *plan, const struct config *from, const struct config *to)
{
	*plan = (struct reload_plan){ .steps = NULL };
	plan_queues(plan, from, to);
	EACH_OPTION(o) {
		if (section_has_title(o->section) || config_same_option(o, from, to))
			continue;
		if ((o->flags & OPTION_RESTART) != 0)
			add_restart(plan, o);
		plan->log |= o->section == SECTION_LOG;
		plan->http |= o->section == SECTION_HTTP;
	}
}

void
reload_plan_done(struct reload_plan *plan)
{
	free(plan->steps);
	*plan = (struct reload_plan){ .steps = NULL };
}
