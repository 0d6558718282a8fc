/*
 * Surveys ask Redis about queues and daemons, for /metrics and /status.  A request for one of
 * these starts a survey; its result serves all requests of the next SURVEY_FRESH.
 *
 * A survey sends its commands in small groups, each when the one before is answered.
 * So a survey of hundreds of queues does not delay the loop, and at most a handful of
 * O(1) commands come before those for a message.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "policy/config.h"
#include "queue/depth.h"
#include "queue/keys.h"
#include "redis/nodes.h"
#include "status/judge.h"

#define SURVEY_FRESH	(1500 * MSEC)	/* answers are used again for so long */
#define SURVEY_WITHIN	(3 * SEC)	/* a waiter waits no longer */
#define SURVEY_QUEUES	1000		/* of other daemons, at most */

enum survey_scope {
	SURVEY_OWN,	/* depths of this daemon's queues */
	/* heartbeats, and depths of all queues that a daemon serves, or has served */
	SURVEY_FLEET
};
enum { SURVEY_SCOPES = SURVEY_FLEET + 1 };

struct survey_queue {
	char		*name;
	struct keys	 keys;
	enum kind	 kind;
	bool		 own;		/* this daemon consumes it */
	char		**shards;	/* nshards other keys, whose figures are in depth, too */
	size_t		 nshards;
	struct depth	 depth;
	/* While it is asked about: this is a shard of the queue with that key, which owns it. */
	const char	*shard_of;
};

/* The result of one survey. */
struct survey_result {
	enum survey_scope scope;
	wall_t		 taken;
	usec_t		 at;
	struct fleet	 fleet;		/* these four: empty in SURVEY_OWN */
	bool		 seen;		/* this daemon's heartbeat was in Redis */
	uint64_t	 memory;	/* of Redis, in bytes; 0: not known */
	uint64_t	 memory_max;	/* 0: not known, or not limited */
	struct survey_queue *queues;	/* sorted by key */
	size_t		 n;
	size_t		 nkeys;		/* that were asked about: shards, too */
};

struct survey;

struct survey	*survey_new(struct loop *, struct nodes *);
/*
 * Own figures are younger than those of the heartbeat: fn appends it as it would be now, or
 * nothing.
 */
void		 survey_set_beat(struct survey *, const char *instance,
		    void (*fn)(struct buf *, void *), void *arg);
/* Any time but from a waiter's function.  Waiters get NULL. */
void		 survey_free(struct survey *);

/*
 * fn gets a result that is SURVEY_FRESH, or NULL if Redis is down or does not answer
 * SURVEY_WITHIN.  It comes exactly once, never from inside this call.  The result is
 * borrowed for the call; the queues of the configuration are copied.
 */
typedef void survey_fn(const struct survey_result *, void *);
void		 survey_ask(struct survey *, enum survey_scope, struct config *,
		    survey_fn *, void *);

/*
 * The facts that the survey has about one of its queues; all is borrowed, and service
 * is filled.  refuses: see struct facts.
 */
struct facts	 survey_facts(const struct survey_queue *, const struct survey_result *,
		    const char *refuses, struct service *);

/* The queue of that key; NULL: not in it, or there is no result. */
struct survey_queue *survey_find(const struct survey_result *, const char *key);
