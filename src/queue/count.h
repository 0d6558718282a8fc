/*
 * The totals of the fleet, QSTATS, for kinds whose tick has nothing else to do:
 * what was counted since the last time is added by one small script.
 */
#ifndef RQD_QUEUE_COUNT_H
#define RQD_QUEUE_COUNT_H

#include <stdbool.h>

#include "queue/keys.h"
#include "queue/queue.h"
#include "queue/script_args.h"

/* Has something been counted that was not sent yet?  What: names and differences. */
bool	count_has(const struct stats *);
void	count_words(const struct stats *, struct args *);

struct count {
	const struct queue_env	*env;
	const struct keys	*keys;
	struct stats		*stats;
	struct count_call	*call;		/* on its way; NULL: none */
	bool			 failed;	/* the last one was refused */
	void			(*answered)(void *);
	void			 *arg;
};

/* answered() comes from the loop after each; keys and stats are borrowed. */
void	count_init(struct count *, const struct queue_env *, const struct keys *, struct stats *,
	    void (*answered)(void *), void *arg);
void	count_done(struct count *);

/* Sends what there is to add, unless something is on its way. */
void	count_send(struct count *);

/* At the end: true while the totals are not written and may yet be; sends them. */
bool	count_finish(struct count *);

#endif
