/*
 * The totals of the fleet, QSTATS, for kinds whose tick does nothing else:
 * one small script adds what was counted since the last time.
 */
#ifndef RQD_QUEUE_COUNT_H
#define RQD_QUEUE_COUNT_H

#include <stdbool.h>

#include "queue/keys.h"
#include "queue/queue.h"
#include "redis/request.h"

/* Whether something was counted that was not sent; and the words for it: names, differences. */
bool	count_has(const struct stats *);
void	count_words(const struct stats *, struct words *);

struct count {
	const struct queue_env	*env;
	const struct keys	*keys;
	struct stats		*stats;
	struct request		 request;
	uint64_t		 n[STAT_MAX];	/* the request: stats->n as sent */
	bool			 failed;	/* the last one was refused */
	void			(*answered)(void *);
	void			 *arg;
};

/* answered() comes from the loop after each request; keys and stats are borrowed. */
void	count_init(struct count *, const struct queue_env *, const struct keys *, struct stats *,
	    void (*answered)(void *), void *arg);
void	count_done(struct count *);

/* Sends what there is to add, unless a request is in flight. */
void	count_send(struct count *);

/* At the end: true while the totals are not written and may yet be; sends them. */
bool	count_finish(struct count *);

#endif
