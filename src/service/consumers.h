/*
 * The consumers of the daemon: one for each queue that it serves.  While a reload
 * drains a queue, there is one more for the queue that replaces it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "engine/consumer.h"
#include "queue/slot_route.h"

struct consumers;

/*
 * Copies env, except env.queue, which comes from a route.  closed() of env must call
 * consumers_remove().
 */
struct consumers *consumers_new(const struct consumer_env *env, struct routes *);
/* Frees a closed consumer. */
void		 consumers_remove(struct consumers *, struct consumer *);
void		 consumers_free(struct consumers *);	/* any time; NULL is fine */

/* Opens a consumer for the queue; it is quiet if the others are. */
void		 consumers_add(struct consumers *, struct config *, const struct queue_config *);
/* The consumer with exactly this configuration, or NULL. */
struct consumer	*consumers_find(const struct consumers *, const struct queue_config *);
/* The i-th consumer; NULL beyond the last one. */
struct consumer	*consumers_at(const struct consumers *, size_t i);
/* The array of n, borrowed until one is added or closed. */
struct consumer	*const *consumers_all(const struct consumers *, size_t *n);
/* Calls fn for each consumer with this key; there are two while a reload drains one of them. */
void		 consumers_with_key(const struct consumers *, const char *key,
		    void (*fn)(struct consumer *));

void		 consumers_tick(struct consumers *);	/* those with a server that answers */

void		 consumers_set_quiet(struct consumers *, bool);	/* also those added later */
bool		 consumers_are_quiet(const struct consumers *);
bool		 consumers_are_idle(const struct consumers *);	/* all of them */
unsigned	 consumers_in_flight(const struct consumers *);
