/*
 * The heartbeat of a daemon: the JSON in rqd:daemon:INSTANCE,
 * which lives for three beats, and its place in the index rqd:daemons.  Now and then it also
 * writes the daemon's queues to rqd:daemons:queues, from which rqctl finds queues that no
 * configuration names.
 */
#pragma once

#include "base/buf.h"
#include "base/clock.h"
#include "engine/consumer.h"
#include "policy/config.h"
#include "redis/nodes.h"
#include "redis/reply.h"

#define HEARTBEAT_EVERY	(10 * SEC)

/* The keys whose errors are kept. */
enum beat_write { BEAT_KEY, BEAT_INDEX, BEAT_WRITES };

struct heartbeat {
	const char	*instance;	/* borrowed */
	wall_t		 started;
	const char	*reload_error;	/* borrowed; "": the last reload has not failed */
	unsigned	 fleet;		/* daemons in the index, as of the last beat; 0: unknown */
	usec_t		 indexed;	/* mono: when the queues were written to KEYS_QUEUES; */
	uint64_t	 generation;	/* over this connection, */
	char		 hash[17];	/* for this configuration */
	char		 refused[BEAT_WRITES][REPLY_CAUSE];	/* by Redis, and why; "": taken */
};

/* A new instance's name: NAME.RANDOM, of characters that keys and tokens can hold; caller frees. */
char	*heartbeat_instance(const char *name);

/*
 * Sends a heartbeat, and does not wait for the answers; h must live as long as the
 * nodes.  Consumers: an array of n.
 */
void	heartbeat_send(struct heartbeat *, struct nodes *, const struct config *,
	    struct consumer *const *, size_t n);

/*
 * Appends the heartbeat as it would be now; without lists and causes if readers would not accept
 * it with them.  now: Redis' time; not > 0: not known.
 */
void	heartbeat_write(const struct heartbeat *, const struct config *, double now,
	    struct consumer *const *, size_t n, struct buf *);

/* Why Redis refused the last heartbeat; NULL: it did not.  Begin and end were logged. */
const char *heartbeat_refused(const struct heartbeat *);

/* At a clean end: deletes the heartbeat, and its place in the index. */
void	heartbeat_end(const struct heartbeat *, struct nodes *);
