/*
 * A queue: where messages come from and where results go.  Each kind is one
 * const table of functions; queue_ops() returns it.
 *
 * The engine takes messages always in this order:
 *
 *	queue_want(q, true)	the engine could run a message now
 *	  -> ready()		there may be one (once per want or fetch)
 *	queue_fetch(q, n, turn)	asks for up to n, n >= 1; the turn says which ones first
 *	  -> deliver() x m	m <= n; the engine owns each message
 *	  -> fetched()		exactly once per fetch; one fetch at a time
 *
 * While a queue is wanted and knows of no work, it watches: it neither polls nor
 * writes.  While it is not wanted, it does not look for messages.  After a fetch it
 * calls ready() again when there may be more, if it is still wanted.
 *
 * Every delivered message is settled exactly once, also at shutdown.  settle()
 * gives the message back.  The queue keeps it until Redis has confirmed the
 * result, across reconnects; then it calls settled(), and the engine logs and counts.
 *
 * The queue renews the leases of delivered messages until they are settled.
 * lost() says that another daemon may have the message now: the engine ends the
 * handler, and still settles the message (VERDICT_STALE).  cancelled() says that rqctl
 * cancelled it: the engine ends the handler and settles as message.cancel says.
 *
 * No callback comes from inside a call into the queue.
 */
#ifndef RQD_QUEUE_QUEUE_H
#define RQD_QUEUE_QUEUE_H

#include <stdbool.h>

#include "base/stats.h"
#include "loop/loop.h"
#include "policy/arrivals.h"
#include "policy/config.h"
#include "policy/message.h"
#include "policy/outcome.h"
#include "policy/turn.h"
#include "redis/bulk.h"
#include "redis/conn.h"
#include "redis/watch.h"

struct queue;
struct routes;

/* The objects that all queues of a daemon share; borrowed, outlive them. */
struct queue_env {
	struct loop	*loop;
	struct conn	*conn;
	struct watch	*watch;
	struct bulk	*bulk;		/* for large payloads; NULL: conn takes all */
	/*
	 * In a cluster the three above are those of the master of the queue's slot, and
	 * change between conn_down() and conn_up(); see route.h.  NULL: one server.
	 */
	struct routes	*routes;
	usec_t		 since;		/* mono: the slot is there since then; 0: always was */
	const struct redis_options *redis;	/* of conn, for connections of a queue's own */
	const unsigned	*fleet;		/* how many daemons there are; NULL or 0: not known */
	const char	*instance;	/* unique in the fleet and per start; [0-9A-Za-z._-] */
	const char	*host;		/* for QDEAD */
};

/* The outcome of a settle. */
enum settled {
	SETTLED_OK,		/* done as the verdict says, by this call or an earlier one */
	SETTLED_STALE,		/* another delivery holds it, or it was settled elsewhere */
	SETTLED_RESCUED,	/* Redis had lost the delivery: pushed again from our copy */
	SETTLED_DROPPED,	/* not acked, and the kind has no retries: it is gone */
	SETTLED_DEFERRED,	/* the dead letter could not be written: due again in 60 s */
	SETTLED_GAVE_UP		/* Redis cannot be reached: the lease will expire; a message
				 * without a lease may be lost */
};

/* Why a fetch brought fewer messages than asked for; also FETCH_OK may bring fewer. */
enum fetch_status {
	FETCH_OK,
	FETCH_PAUSED,		/* QPAUSED exists */
	FETCH_LIMITED,		/* fleet_concurrency, rate, or results that Redis refuses */
	FETCH_DOWN,		/* Redis is away; ready() comes when it is back */
	/* Redis refused it: cause says why; the engine suspends the queue */
	FETCH_ERROR
};

struct fetched {
	unsigned		 got;
	enum fetch_status	 status;
	bool			 more;		/* the queue knows of more: ready() will come */
	const char		*cause;		/* FETCH_ERROR; FETCH_LIMITED: "fleet", "rate", or
						 * "results" (refused ones have the slots);
						 * borrowed for the call */
};

/*
 * The findings of a tick, or a warning at any time, for the log and /metrics.  All
 * fields are zero if a look has found only that queue_is_empty() is true now.
 */
struct tick_report {
	unsigned	requeued, promoted, dropped;
	const char	*warning;	/* NULL, or a sentence: once per change of state */
	const char	*refused;	/* why Redis refuses results; "": it accepts them again */
};

struct queue_events {
	void	(*ready)(void *);
	void	(*deliver)(struct message *, void *);
	void	(*fetched)(const struct fetched *, void *);
	void	(*lost)(struct message *, void *);
	void	(*cancelled)(struct message *, void *);
	void	(*settled)(struct message *, const struct verdict *, const struct result *,
		    enum settled, void *);	/* the message is freed after it */
	void	(*ticked)(const struct tick_report *, void *);
	void	(*paused)(bool, const char *why, void *);	/* QPAUSED appeared, or is gone */
	/* Kinds that subscribe: the subscription is up, or down and why; once per change. */
	void	(*listening)(bool, const char *why, void *);
	void	(*closed)(void *);		/* after queue_close(); the last one */
};

struct queue_ops {
	struct queue	*(*open)(const struct queue_env *, struct config *,
			    const struct queue_config *, struct stats *,
			    const struct queue_events *, void *arg);
	void		(*reconfigure)(struct queue *, struct config *,
			    const struct queue_config *);
	void		(*conn_up)(struct queue *, const struct conn_server *);
	void		(*conn_down)(struct queue *);
	void		(*want)(struct queue *, bool);
	void		(*fetch)(struct queue *, unsigned, enum turn);
	void		(*defer_fetch)(struct queue *);	/* NULL: a kind without shards */
	void		(*settle)(struct queue *, struct message *, const struct verdict *,
			    struct result *);
	void		(*tick)(struct queue *);
	void		(*renew)(struct queue *);	/* NULL: a kind without leases */
	unsigned	(*held)(const struct queue *);	/* NULL: a kind without large payloads */
	const struct arrivals *(*arrivals)(const struct queue *);	/* NULL: not a list */
	bool		(*is_empty)(const struct queue *);
	bool		(*is_up)(const struct queue *);	/* NULL: conn_up() says it */
	void		(*close)(struct queue *);
	void		(*free)(struct queue *);
};

/* Every kind's struct begins with this. */
struct queue {
	const struct queue_ops		*ops;
	const struct queue_events	*events;
	void				*arg;
};

const struct queue_ops	*queue_ops(enum kind);
/* The same, or those of shards.h where the queue has several keys. */
const struct queue_ops	*queue_ops_of(const struct queue_config *);
void			 queue_check_ops(void);		/* fatal when a slot of any kind is empty */
extern const struct queue_ops queue_ack;
extern const struct queue_ops queue_shards;
extern const struct queue_ops queue_list;
extern const struct queue_ops queue_unique;
extern const struct queue_ops queue_stream;
extern const struct queue_ops queue_expired;
extern const struct queue_ops queue_channel;	/* also of kind "pattern" */

/* For the kinds: ticked() with a warning and nothing else.  Call it from the loop. */
void			 queue_warn(struct queue *, const char *, ...) PRINTF(2, 3);

/* New settings for what is popped from now on; key and kind are the same. */
void	queue_reconfigure(struct queue *, struct config *, const struct queue_config *);

/*
 * The server calls these for every queue; see conn.h.  When Redis is back, a queue
 * first renews leases, then asks for pops whose reply was lost, then sends kept
 * results; after that it pops and ticks.
 */
void	queue_conn_up(struct queue *, const struct conn_server *);
void	queue_conn_down(struct queue *);

void	queue_want(struct queue *, bool);	/* not between queue_fetch() and fetched() */

/*
 * Of a queue of batches, a message that has failed before counts as a whole batch: it needs
 * a run for itself.
 */
void	queue_fetch(struct queue *, unsigned n, enum turn);

/*
 * The caller waits no longer for the fetch under way.  It delivers nothing: what it takes
 * counts as held, and the next fetch delivers it.  fetched() comes when Redis has answered.
 */
void	queue_defer_fetch(struct queue *);

/*
 * Takes the message back and copies the verdict; takes what the result owns.
 * Results of one turn of the loop go to Redis in one call.  Results of quick
 * handlers may wait up to 1 ms for more results, and ready() with them.
 */
void	queue_settle(struct queue *, struct message *, const struct verdict *, struct result *);

/* Periodic work: expiry, promotion, counters.  The server calls it every 10 s. */
void	queue_tick(struct queue *);

/*
 * A hint that a message in flight was cancelled: leases are renewed now, and once more a
 * little later, for a message whose pop is not answered yet.  Many hints cost no more
 * than one renewal each 100 ms.
 */
void	queue_renew(struct queue *);

/*
 * The room of a fetch that messages take which the queue has, and has not delivered: their
 * payloads are on the way, or no fetch has asked for them.
 */
unsigned	queue_held(const struct queue *);

/* Of a list, for how long its oldest message has waited; NULL for other sources. */
const struct arrivals *queue_arrivals(const struct queue *);

/*
 * Of a queue with keys on several masters: one of them is READY.  Others are never up in this
 * sense: what queue_conn_up() and queue_conn_down() said is all there is.
 */
bool	queue_is_up_in_part(const struct queue *);

/* For --until-empty: the last look found no message waiting or due, and none is in flight. */
bool	queue_is_empty(const struct queue *);

/*
 * After queue_close() no message is delivered; closed() comes when none is in flight
 * and all results are confirmed.  queue_free() does not wait for that: it calls
 * settled(SETTLED_GAVE_UP) for each unconfirmed result (the only callback from
 * inside a call), and frees messages that were never settled.
 */
void	queue_close(struct queue *);
void	queue_free(struct queue *);	/* any time, but not from a callback of this queue */

#endif
