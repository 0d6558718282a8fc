/*
 * Asks Redis Sentinel which server is the master.
 *
 * A connection asks before each attempt.  The question goes to one Sentinel at a time.
 * The first that answers becomes the head of the list, until it fails, or until an
 * attempt proves that its answer is stale.  Each Sentinel has a second to answer, or a
 * tenth of redis.timeout if that is more.  While none answers, the answer is the last
 * known master: its own ROLE tells whether it still is one.
 *
 * Once a master is known, another address counts only after ROLE has confirmed it.  So
 * a Sentinel with an old configuration does not end a connection that works.
 *
 * A second connection subscribes to +switch-master.  After a failover the old master
 * accepts commands for seconds, and all of them will be lost.  So every client hears of
 * the new master at once.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "loop/loop.h"
#include "redis/redis_options.h"

struct redisReply;
struct sentinel;

/*
 * A client that asks, and hears of a switch; embedded.  Both functions are called from
 * the loop.
 */
struct sentinel_client {
	TAILQ_ENTRY(sentinel_client) entry;
	/* "host:port" of the master, or NULL and why there is none. */
	void		(*told)(const char *master, const char *cause, void *);
	/* The master is now this server. */
	void		(*switched)(const char *master, void *);
	void		*arg;
	/* private: */
	uint64_t	 asked;		/* the round of its question; 0: none */
};

/*
 * The options are those of the data servers; they are copied, their strings borrowed.
 * name is for CLIENT SETNAME.  It connects at the first question.  forbidden(), which may
 * be NULL, is called once, from the loop: a Sentinel forbids the subscription, so switches
 * are noticed late.
 */
struct sentinel	*sentinel_new(struct loop *, const struct redis_options *, const char *name,
		    void (*forbidden)(const char *cause));
void		 sentinel_free(struct sentinel *);	/* when all clients have left; or NULL */

void		 sentinel_join(struct sentinel *, struct sentinel_client *);
void		 sentinel_leave(struct sentinel *, struct sentinel_client *);

/*
 * told() follows within the time of two Sentinels, and within redis.timeout, unless the
 * question is cancelled.
 */
void		 sentinel_ask(struct sentinel *, struct sentinel_client *);
void		 sentinel_cancel(struct sentinel_client *);

/* The named server was no master: asks another Sentinel next time. */
void		 sentinel_doubt(struct sentinel *, const char *master);

/* Every 10 s: finds out whether the connections still work. */
void		 sentinel_probe(struct sentinel *);
