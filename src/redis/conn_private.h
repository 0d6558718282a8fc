/*
 * The inside of a connection, for conn.c and commands.c only.
 */
#ifndef RQD_REDIS_CONN_PRIVATE_H
#define RQD_REDIS_CONN_PRIVATE_H

#include "base/list.h"
#include "loop/timer.h"
#include "redis/attach.h"
#include "redis/conn.h"
#include "redis/greet.h"
#include "redis/pending.h"
#include "redis/route.h"

struct redisAsyncContext;

struct subscription {
	TAILQ_ENTRY(subscription) entry;
	char		*name;
	size_t		 len;
	bool		 pattern;
	conn_message_fn	*fn;
	void		*arg;
};

struct conn {
	struct loop	 *loop;
	const struct redis_options *opt;
	char		 *name;
	unsigned	  flags;
	const struct conn_events *events;
	void		 *arg;

	enum conn_state	  state;
	unsigned	  busy;		/* calls of ours on the stack that may call the owner */
	bool		  freed;	/* by conn_free(): gone when busy is 0 */
	struct redisAsyncContext *ac;	/* NULL: none */
	struct attach_rules rules;	/* for its replies */
	struct route	  route;
	struct greet	  greet;
	bool		  greeted;	/* GREETING: only subscriptions are still to be confirmed */
	unsigned	  failures;	/* rounds since the last READY */
	usec_t		  backoff_max;
	/* DOWN: the next attempt.  Connecting: its deadline.  READY: the oldest command's. */
	struct timer	  timer;
	bool		  grace;	/* connecting: the deadline has passed once */

	struct pending_list pending;
	unsigned	  outstanding;	/* callers' commands in it */
	uint64_t	  replies;	/* ever */
	usec_t		  overdue;	/* mono; since when the oldest one is; 0: it is not */
	uint64_t	  overdue_replies; /* as of the last look */
	const struct script *loading;	/* SCRIPT LOAD is on its way */
	TAILQ_HEAD(, subscription) subs;

	struct defer	  turn;
	char		 *down_cause;	/* the last one; NULL: READY, or none yet */
	bool		  down_news;	/* it is still to be told */
	struct timer	  closing;	/* conn_close(): its end */
	void		(*closed)(void *);
	void		 *closed_arg;

	struct conn_server server;	/* of the last READY */
	char		  replid[48];
	int64_t		  id;
	uint64_t	  generation;
	usec_t		  timely_since;
	double		  redis_time;	/* Redis' time at redis_time_at; 0: unknown */
	usec_t		  redis_time_at;
};

/* conn.c */
void	conn_leave(struct conn *);		/* ends what begins with busy++; c may be gone after it */
void	conn_want_turn(struct conn *);		/* there is something to tell at the end of this turn */
void	conn_greet(struct conn *, const struct redisReply *);	/* a reply of the greeting; busy */
void	conn_ready(struct conn *);		/* the greeting is over; busy */

/* commands.c */
bool	conn_is_up(const struct conn *);	/* past the greeting */
usec_t	conn_timely_limit(const struct conn *);	/* a slower reply is late */
void	conn_answer(struct conn *, struct pending *, enum conn_answer,
	    const struct redisReply *);		/* takes it off the list; busy */
void	conn_flush(struct conn *);		/* answers what was lost or not sent; busy */
void	conn_send(struct conn *, struct pending *,
	    void (*)(struct redisAsyncContext *, void *, void *),
	    int argc, const char *const *argv, const size_t *argvlen);
void	conn_reply(struct redisAsyncContext *, void *, void *);	/* hiredis' callback of commands */
void	conn_send_subscribe(struct conn *, const struct subscription *);
bool	conn_knows(bool pattern, const char *name, size_t len, void *);	/* it is subscribed to */

#endif
