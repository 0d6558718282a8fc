/*
 * The consumers of the daemon: one for each queue that it serves, and, while a reload drains
 * a queue, one more for what took its place.  Each is freed when it is closed.
 */
#ifndef RQD_SERVICE_CONSUMERS_H
#define RQD_SERVICE_CONSUMERS_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/consumer.h"
#include "queue/route.h"

struct consumers;

/* From the loop. */
struct consumers_events {
	void	(*closed)(void *);	/* one is closed and no longer among them */
	void	(*idle)(void *);	/* see struct consumer_env */
	void	(*blocked)(void *);	/* see struct consumer_env */
};

/* Copies env, but for its callbacks and their arg, and for its queue: that is a route's. */
struct consumers *consumers_new(const struct consumer_env *env, struct routes *,
		    const struct consumers_events *, void *arg);
void		 consumers_free(struct consumers *);	/* any time; NULL is fine */

/* It is quiet where the others are. */
void		 consumers_add(struct consumers *, struct config *, const struct queue_config *);
/* The one with exactly this configuration, or NULL. */
struct consumer	*consumers_find(const struct consumers *, const struct queue_config *);
/* The array of n, borrowed until one is added or closed. */
struct consumer	*const *consumers_all(const struct consumers *, size_t *n);
/* Calls fn for each with this key: two, while a reload drains one of them. */
void		 consumers_with_key(const struct consumers *, const char *key,
		    void (*fn)(struct consumer *));

void		 consumers_tick(struct consumers *);	/* those with a server that answers */

void		 consumers_set_quiet(struct consumers *, bool);	/* also those added later */
bool		 consumers_are_quiet(const struct consumers *);
bool		 consumers_are_idle(const struct consumers *);	/* all of them */
unsigned	 consumers_in_flight(const struct consumers *);

#endif
