/*
 * Shared by shards.c and shards_fetch.c only: the shards of a queue, and the state of
 * its fetches.
 */
#ifndef RQD_QUEUE_SHARDS_PRIVATE_H
#define RQD_QUEUE_SHARDS_PRIVATE_H

#include "loop/timer.h"
#include "queue/route.h"
#include "queue/shards.h"

struct shards;

struct shard {
	struct shards	*all;
	const char	*key;		/* borrowed from the configuration */
	struct queue	*queue;
	const struct queue_env *env;
	struct route_user user;		/* in a cluster: each shard has a slot of its own */
	struct stats	 stats;		/* what its ticks add to QSTATS */
	bool		 wanted;	/* as it was told */
	bool		 ready;		/* it has said so, and was not asked since */
	bool		 has_more;	/* the last fetch said so */
	bool		 paused;
	bool		 failed;	/* Redis refused its last pop */
	bool		 refusing;	/* Redis refuses its results */
	bool		 closed;
	unsigned	 share;		/* messages that it is asked for */
	unsigned	 asked;		/* a fetch is on its way; 0: none */
	bool		 late;		/* nobody waits for that fetch any more */
};

/* Whether it is the engine's turn, or ours. */
enum shards_state {
	SHARDS_UNWANTED,	/* the engine wants nothing */
	SHARDS_WANTED,		/* ready() is due when a shard is ready */
	SHARDS_READY,		/* the engine was told */
	SHARDS_FETCHING,	/* shards were asked: npending are waited for */
	SHARDS_CLOSING
};

struct shards {
	struct queue	 queue;		/* first */
	const struct queue_env *env;
	struct config	*config;	/* reference */
	const struct queue_config *cfg;
	struct stats	*stats;		/* the engine's */
	struct shard	*shard;
	size_t		 n;
	struct shard	*counting;	/* its ticks have the engine's counters */
	size_t		 next;		/* the next fetch begins there */
	struct shard	*staying;	/* the last one that was asked; or NULL */
	usec_t		 stay_until;	/* mono */
	enum shards_state state;
	/* A fetch found that held messages take its room: ready() waits for a change. */
	bool		 no_room;
	struct defer	 turn;
	struct timer	 patience;	/* set: ready() waits for the shard `staying` */
	struct timer	 late;		/* set: the end of waiting for those that were asked */
	unsigned	 nlate;

	/* The fetch under way. */
	unsigned	 npending;
	bool		 unasked;	/* no shard could be asked: fetched() is due */
	struct fetched	 sum;		/* cause: see there */
	char		*cause;		/* owned */

	unsigned	 outstanding;	/* delivered, and not settled */
	size_t		 npaused, nrefusing, nclosed;
	bool		 warned_partly;	/* some were paused at the last tick: it was said */
	bool		 was_partly;
	char		*warning;	/* the last one; owned */
	usec_t		 warned_at;	/* mono */
	struct arrivals	*worst;		/* a copy, for shards_arrivals() */
};

/* All shards; `d` is each of them. */
#define EACH_SHARD(d, s) \
	for (struct shard *d = (s)->shard; d < (s)->shard + (s)->n; d++)

/* Of a queue that shards_new() made. */
static inline struct shards *
shards_of(struct queue *q)
{
	return (struct shards *)q;
}

/* -- shards_fetch.c ------------------------------------------------------------- */

void	shards_touch(struct shards *);		/* something has changed: looks at the turn's end */
void	shards_set_state(struct shards *, enum shards_state);
void	shards_fetch(struct queue *, unsigned, enum turn);	/* see struct queue_ops */
/* The shard that fetches stay with, unless it has no more, or its time is over. */
struct shard	*shards_staying(const struct shards *);
void	shards_out_of_patience(void *);		/* struct shards: its timer has run out */
void	shards_are_late(void *);		/* the same of its timer `late` */
void	shard_fetched(const struct fetched *, void *);	/* struct shard; see struct queue_events */

/* -- shards.c ------------------------------------------------------------------- */

void	shard_warn(struct shard *, const char *);	/* ticked(), unless it was just said */

#endif
