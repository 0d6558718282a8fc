/*
 * The inside of a connection, for conn.c, commands.c and deadline.c only.
 */
#pragma once

#include "base/list.h"
#include "loop/timer.h"
#include "redis/address_walk.h"
#include "redis/conn.h"
#include "redis/greet.h"
#include "redis/hiredis_loop.h"
#include "redis/pending.h"

struct redisAsyncContext;

struct conn_sub {
	TAILQ_ENTRY(conn_sub) entry;
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
	unsigned	  busy;		/* functions on the stack that may call the owner */
	bool		  freed;	/* by conn_free(): gone when busy is 0 */
	struct redisAsyncContext *ac;	/* NULL: none */
	struct reply_rules rules;	/* for its replies */
	struct address_walk	  route;
	struct greet	  greet;
	bool		  greeted;	/* GREETING: only confirmations of SUBSCRIBE are missing */
	unsigned	  failures;	/* rounds since a connection worked; see conn_lost() */
	usec_t		  backoff_max;
	bool		  worked;	/* READY: a caller's command has succeeded */
	bool		  unproven;	/* the last connection ended without having worked */
	/*
	 * DOWN: the next attempt.  RESOLVING to GREETING: the attempt's deadline.
	 * READY: when to look at the oldest command again.
	 */
	struct timer	  timer;
	bool		  grace;	/* the deadline has passed once */

	struct pending_list pending;
	unsigned	  outstanding;	/* callers' commands in it */
	uint64_t	  replies;	/* ever */
	uint64_t	  seen_replies, seen_moved;	/* at the last progress that was found */
	usec_t		  still_since;	/* mono; the time of that look */
	const struct script *loading;	/* SCRIPT LOAD is on its way */
	TAILQ_HEAD(, conn_sub) subs;
	void		(*caching_refused)(const struct redisReply *, void *);	/* or NULL */
	void		 *caching_arg;
	void		(*slot_ended)(unsigned, void *);	/* or NULL */
	void		 *slot_arg;
	conn_redirected_fn *redirected;	/* or NULL: not in a cluster */
	void		 *redirected_arg;

	struct defer	  turn;
	char		 *down_cause;	/* of the last failure; NULL: READY, or none yet */
	bool		  down_due;	/* events->down() must be called with it */
	struct timer	  closing;	/* conn_close(): its end */
	void		(*closed)(void *);
	void		 *closed_arg;

	struct conn_server server;	/* of the last READY */
	char		  replid[48];
	int64_t		  id;
	uint64_t	  generation;
	usec_t		  ready_at;	/* mono; the last READY */
	usec_t		  bytes_at;	/* mono; the last bytes */
	usec_t		  heard_at;	/* mono; the last whole reply, of any connection */
	usec_t		  silence_max;	/* a longer one begins timely_since anew; 0: no limit */
	struct timer	  idle;		/* READY: the next PING of an idle connection */
	bool		  probing;	/* the answer to a PING is outstanding */
	uint64_t	  probes;	/* PINGs, ever */
	char		  probe[28];	/* the word of the last one */
	usec_t		  timely_since;	/* mono; 0: begins with the next READY */
	double		  redis_time;	/* Redis' time at redis_time_at; 0: unknown */
	usec_t		  redis_time_at;
};

/* conn.c */
void	conn_leave(struct conn *);		/* ends what busy++ began; may free c */
void	conn_want_turn(struct conn *);		/* owners must be called at the end of the turn */
void	conn_greet(struct conn *, const struct redisReply *);	/* a reply of the greeting; busy */
void	conn_ready(struct conn *);		/* the greeting is over; busy */

/* deadline.c */
usec_t	conn_grace(const struct conn *);	/* extra time after a deadline, once */
/* "WHAT within TIMEOUT"; the caller frees it. */
char	*conn_timeout_text(const struct conn *, const char *what);
void	conn_look_begin(struct conn *);		/* the first outstanding command was sent */
/* The timer in READY; false if the oldest command is overdue. */
bool	conn_look(struct conn *);
usec_t	conn_timely_limit(const struct conn *);	/* a reply that stands still for longer is late */
bool	conn_is_timely(const struct conn *);	/* no reply is late, nor the server silent */
void	conn_untimely(struct conn *);		/* the period of timely replies ends */
void	conn_received_bytes(void *);		/* from the connection */
void	conn_received_reply(struct conn *);	/* a whole reply or message */
void	conn_ping_idle(void *);			/* the timer `idle` */

/* commands.c */
void	conn_answer(struct conn *, struct pending *, enum conn_answer,
	    const struct redisReply *);		/* takes it off the list; busy */
void	conn_flush(struct conn *);		/* answers what was lost or not sent; busy */
void	conn_send(struct conn *, struct pending *,
	    void (*)(struct redisAsyncContext *, void *, void *),
	    const struct words *);
void	conn_reply(struct redisAsyncContext *, void *, void *);	/* hiredis' callback of commands */
void	conn_send_subscribe(struct conn *, const struct conn_sub *);
bool	conn_has_subscription(bool pattern, const char *name, size_t len, void *);
bool	conn_may_refuse(void *);		/* an unasked error answers conn_subscribe_slot() */
