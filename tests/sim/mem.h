/*
 * A queue in memory, for tests of the engine with a simulated loop and no Redis.  No
 * configuration can name it: the test passes its queue_ops to consumer_new().
 *
 * The messages are in a store, which has the queue's key, as in Redis.  So they outlive
 * the queue: a daemon that dies with messages in flight leaves leases, which expire.
 * Several queues on one store act like several daemons.
 */
#pragma once

#include "base/list.h"
#include "queue/queue.h"

enum mem_state {
	MEM_WAITING,		/* in the list */
	MEM_RETRY,		/* due at `due` */
	MEM_LEASED,		/* delivered and not settled */
	MEM_DEAD,
	MEM_ACKED,
	MEM_STATES
};

struct mem_entry {
	TAILQ_ENTRY(mem_entry)	 entry;
	enum mem_state		 state;
	char			*payload;	/* owned */
	size_t			 len;
	char			*id;		/* owned */
	char			*tag;		/* owned */
	usec_t			 due;		/* mono; MEM_RETRY */
	unsigned		 attempts;
	unsigned		 crashes;
	bool			 expired;	/* MEM_RETRY because its lease expired */
	unsigned		 deliveries;	/* how often it was handed out */
	enum reason		 reason;	/* of the last verdict */
	struct mem_delivery	*holder;	/* MEM_LEASED: its delivery; NULL: stolen */
};
TAILQ_HEAD(mem_entries, mem_entry);

struct mem_store;

extern const struct queue_ops	queue_mem;

struct mem_store *mem_store_new(const char *key);	/* before queues with this key are opened */
void		 mem_store_free(struct mem_store *);	/* after they are freed */

struct mem_entry *mem_push(struct mem_store *, const char *payload, size_t len, usec_t delay);
unsigned	 mem_count(const struct mem_store *, enum mem_state);
const struct mem_entries *mem_entries(const struct mem_store *);	/* in order of pushing */

void		 mem_set_up(struct mem_store *, bool);	/* Redis is there; true at first */
void		 mem_set_paused(struct mem_store *, bool);
void		 mem_set_error(struct mem_store *, const char *cause);	/* of pops; NULL: none */
void		 mem_set_hangs(struct mem_store *, bool);	/* pops are not answered */
void		 mem_set_refuses(struct mem_store *, bool);	/* results */
/* Another daemon takes the message, as if its lease had expired: lost() comes. */
void		 mem_steal(struct mem_store *, struct mem_entry *);
