/*
 * Shared by shards.c and shards_fetch.c only: the shards of a queue, and the state of
 * its fetches.
 */
#pragma once

#include "loop/timer.h"
#include "queue/slot_route.h"
#include "queue/shards.h"

struct shards;

struct shard {
	struct shards	*all;
	const char	*key;		/* borrowed from the configuration */
	struct queue	*queue;
	const struct queue_env *env;
	struct route_user user;		/* in a cluster: each shard has a slot of its own */
	struct stats	 stats;		/* its ticks add these to QSTATS */
	bool		 wanted;	/* the last want() to it */
	bool		 ready;		/* ready() came, and no fetch since */
	bool		 has_more;	/* by its last fetch */
	bool		 paused;
	bool		 failed;	/* Redis refused its last pop */
	bool		 refusing;	/* Redis refuses its results */
	bool		 closed;
	unsigned	 share;		/* messages to ask it for */
	unsigned	 asked;		/* by the fetch on its way; 0: none */
	bool		 late;		/* no fetch of the queue waits for it */
};

/* The state of the queue's fetches. */
enum shards_state {
	SHARDS_UNWANTED,	/* the engine wants nothing */
	SHARDS_WANTED,		/* ready() is due when a shard is ready */
	SHARDS_READY,		/* ready() was called */
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
	struct shard	*counting;	/* its ticks send the engine's counters */
	size_t		 next;		/* the next fetch begins there */
	struct shard	*staying;	/* the last one that was asked; or NULL */
	usec_t		 stay_until;	/* mono */
	enum shards_state state;
	/* Held messages took all the room of a fetch: ready() waits for a change. */
	bool		 no_room;
	struct defer	 turn;
	struct timer	 patience;	/* set: ready() waits for the shard `staying` */
	struct timer	 late;		/* set: a fetch waits for shards until then */
	unsigned	 nlate;

	/* The fetch under way. */
	unsigned	 npending;
	bool		 unasked;	/* no shard could be asked: fetched() is due */
	struct fetched	 sum;		/* cause: see the next member */
	char		*cause;		/* owned */

	/* Results since the last fetch, and how fast they come: see shards_saw_result(). */
	unsigned	 in_hand;	/* delivered, without a result */
	unsigned	 results;
	usec_t		 first_result, last_result;	/* mono */
	usec_t		 pace;		/* between two of them, smoothed; at most PACE_MAX */
	struct timer	 batch_timer;	/* set: ready() waits for more of them */

	unsigned	 outstanding;	/* delivered, and not settled */
	size_t		 npaused, nrefusing, nclosed;
	bool		 warned_partly;	/* that some shards are paused */
	bool		 was_partly;
	char		*warning;	/* the last one; owned */
	usec_t		 warned_at;	/* mono */
	struct arrivals	*worst;		/* a copy, for shards_arrivals() */
};

/* All shards; `d` is each of them. */
#define EACH_SHARD(d, s) \
	for (struct shard *d = (s)->shard; d < (s)->shard + (s)->n; d++)

/* q: a queue that shards_new() has made. */
static inline struct shards *
shards_of(struct queue *q)
{
	return (struct shards *)q;
}

/* -- shards_fetch.c ------------------------------------------------------------- */

void	shards_touch(struct shards *);		/* a change: look at the turn's end */
void	shards_set_state(struct shards *, enum shards_state);
void	shards_fetch(struct queue *, unsigned, enum turn);	/* see struct queue_ops */
/* The shard that fetches stay with; NULL: none, it has no more, or its time is over. */
struct shard	*shards_staying(const struct shards *);
void	shards_out_of_patience(void *);		/* struct shards: its timer `patience` has fired */
void	shards_are_late(void *);		/* likewise for its timer `late` */
void	shards_batch_due(void *);		/* likewise for its timer `batch_timer` */
void	shards_saw_result(struct shards *);
void	shard_fetched(struct shard *, const struct fetched *);	/* its fetch is over */
bool	shards_all_failed(const struct shards *);		/* the last fetch of each one */
