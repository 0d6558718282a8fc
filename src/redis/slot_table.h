/*
 * The table of slots of a cluster, kept up to date by questions to its servers.
 *
 * The first table comes from one of the seeds; later ones from any node.  A table of an
 * older epoch than the last one is ignored: it comes from a server that was cut off.
 */
#pragma once

#include <stdbool.h>

#include "loop/loop.h"
#include "redis/conn.h"
#include "redis/slots.h"

struct slot_table;

/* All from the loop, and each with the argument. */
struct slot_table_events {
	/* The connection of a READY node, another one each time; NULL: none is READY. */
	struct conn	*(*ask)(void *);
	/* A needed node does not answer: another question must follow soon. */
	bool		(*is_in_trouble)(void *);
	/* A table has come.  changed: a slot has another owner than before. */
	void		(*came)(bool changed, void *);
	/* The reason why no table comes.  NULL: there is one again. */
	void		(*none)(const char *cause, void *);
};

/* The options name the seeds; they are borrowed.  name is for CLIENT SETNAME. */
struct slot_table *slot_table_new(struct loop *, const struct redis_options *, const char *name,
		    const struct slot_table_events *, void *arg);
void		 slot_table_free(struct slot_table *);	/* NULL is fine */

/* Asks now, but at most once a second. */
void		 slot_table_want(struct slot_table *);
void		 slot_table_stop(struct slot_table *);	/* asks no more */
/* The owner may change it after MOVED errors. */
struct slots	*slot_table_slots(struct slot_table *);
/* Why there is no table; NULL: there is one. */
const char	*slot_table_cause(const struct slot_table *);

/* Options to connect to any server that was ever known, also a replica. */
const struct redis_options *slot_table_any(const struct slot_table *);
