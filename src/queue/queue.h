/*
 * A queue: where messages come from and where results go.  Each kind is one
 * const table of functions; queue_ops() returns it.
 *
 * The engine always takes messages in this order:
 *
 *	queue_want(q, true)	the engine can run a message now
 *	  -> ready()		there may be one (once per want or fetch)
 *	queue_fetch(q, n, turn)	asks for up to n, n >= 1; the turn says which ones first
 *	  -> deliver() x m	m <= n; the engine owns each message
 *	  -> fetched()		exactly once per fetch; one fetch at a time
 *
 * While a queue is wanted and knows of no work, it watches: Redis reports changes, and
 * the queue neither polls nor writes.  While it is not wanted, it does not look for
 * messages.  After a fetch it calls ready() again when there may be more, if it is
 * still wanted.
 *
 * Every delivered message is settled exactly once, also at shutdown.  settle() gives
 * the message to the queue.  The queue keeps it until Redis has confirmed the result,
 * across reconnects.  Then the queue calls settled(), and the engine logs and counts
 * the result.
 *
 * The queue renews the leases of delivered messages until they are settled.
 * lost() says that another daemon may have the message now: the engine ends the
 * handler, and still settles the message (VERDICT_STALE).  cancelled() says that rqctl
 * cancelled it: the engine ends the handler and settles as message.cancel says.
 *
 * No callback comes from inside a call into the queue.
 */
#pragma once

#include <stdbool.h>

#include "base/stats.h"
#include "loop/loop.h"
#include "policy/waited.h"
#include "policy/config.h"
#include "policy/message.h"
#include "policy/outcome.h"
#include "policy/turn.h"
#include "redis/conn.h"
#include "redis/watch.h"

struct queue;
struct routes;
struct words;

/* The objects that all queues of a daemon share; borrowed, outlive them. */
struct queue_env {
	struct loop	*loop;
	struct conn	*conn;
	struct watch	*watch;
	/*
	 * In a cluster the two members above belong to the master of the queue's
	 * slot.  They change between conn_down() and conn_up(); see slot_route.h.  NULL: one
	 * server.
	 */
	struct routes	*routes;
	usec_t		 since;		/* mono: when this master got the slot; 0: always had */
	const struct redis_options *redis;	/* conn's, for further connections of a queue */
	const unsigned	*fleet;		/* number of daemons; NULL or 0: unknown */
	const char	*instance;	/* unique in the fleet and per start; [0-9A-Za-z._-] */
	const char	*host;		/* for QDEAD */
};

/* The outcome of a settle. */
enum settled {
	SETTLED_OK,		/* done as the verdict says, by this call or an earlier one */
	SETTLED_STALE,		/* Redis does not know the delivery: nothing was written */
	SETTLED_DROPPED,	/* not acked, and the kind has no retries: it is lost */
	SETTLED_DEFERRED,	/* the dead letter could not be written: due again in 60 s */
	SETTLED_GAVE_UP		/* Redis cannot be reached: the lease will expire; a message
				 * without a lease may be lost */
};

/*
 * The reason why a fetch brought fewer messages than asked for.  FETCH_OK may bring
 * fewer, too.
 */
enum fetch_status {
	FETCH_OK,
	FETCH_PAUSED,		/* QPAUSED exists */
	FETCH_LIMITED,		/* fleet_concurrency, rate, or results that Redis refuses */
	FETCH_DOWN,		/* no connection to Redis; ready() comes after the reconnect */
	/* Redis refused the pop: `cause` says why; the engine suspends the queue */
	FETCH_ERROR
};

struct fetched {
	unsigned		 got;
	enum fetch_status	 status;
	bool			 more;		/* the queue knows of more: ready() will come */
	const char		*cause;		/* FETCH_ERROR; FETCH_LIMITED: "fleet", "rate",
						 * "memory" (Redis is full), "held" (the
						 * oldest may not be held) or "results"
						 * (refused ones have the slots); borrowed
						 * for the call */
};

/*
 * The findings of a tick, or a warning at any time, for the log and /metrics.  All
 * fields are zero if a look has found only that queue_is_empty() is true now.
 */
struct tick_report {
	unsigned	requeued, promoted, dropped;
	const char	*ids;		/* of some that were requeued; NULL */
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

/*
 * Four operations belong to a trait: a kind without that trait has NULL there, and then the
 * function below does nothing.  Every kind has all others.
 */
struct queue_ops {
	/* key: that of the configuration, or of one of its shards */
	struct queue	*(*open)(const struct queue_env *, const char *key, struct config *,
			    const struct queue_config *, struct stats *,
			    const struct queue_events *, void *arg);
	void		(*reconfigure)(struct queue *, struct config *,
			    const struct queue_config *);
	void		(*conn_up)(struct queue *, const struct conn_server *);
	void		(*conn_down)(struct queue *);
	void		(*want)(struct queue *, bool);
	void		(*fetch)(struct queue *, unsigned, enum turn);
	void		(*defer_fetch)(struct queue *);	/* TRAIT_SHARDS */
	void		(*settle)(struct queue *, struct message *, const struct verdict *,
			    struct result *);
	/* TRAIT_LEASES */
	void		(*save)(struct queue *, struct message *, const char *, size_t);
	void		(*tick)(struct queue *);
	void		(*renew)(struct queue *);	/* TRAIT_LEASES */
	void		(*due)(struct queue *, const char *tag);	/* likewise */
	bool		(*is_empty)(const struct queue *);
	void		(*close)(struct queue *);
	void		(*free)(struct queue *);
};

/* Every kind's struct begins with this. */
struct queue {
	const struct queue_ops		*ops;
	const struct queue_events	*events;
	void				*arg;
	struct waited			 waited;	/* of a list */
};

const struct queue_ops	*queue_ops(enum kind);
extern const struct queue_ops queue_ack;
extern const struct queue_ops queue_list;
extern const struct queue_ops queue_unique;
extern const struct queue_ops queue_stream;
extern const struct queue_ops queue_expired;
extern const struct queue_ops queue_channel;	/* also of kind "pattern" */

/* For the kinds: adds the name of each counter that QSTATS lacks, and what to add to it. */
void			 queue_add_counters(const struct stats *, struct words *);
/* For the kinds: calls ticked() with a warning and nothing else.  Call it from the loop. */
void			 queue_warn(struct queue *, const char *, ...) PRINTF(2, 3);

/* New settings for messages that are popped from now on; key and kind stay the same. */
static inline void
queue_reconfigure(struct queue *q, struct config *c, const struct queue_config *qc)
{
	q->ops->reconfigure(q, c, qc);
}

/*
 * The server calls these for every queue; see conn.h.  After a reconnect a queue first
 * renews leases.  Then it asks about pops whose reply was lost, and sends kept results.
 * After that it pops and ticks.
 */
static inline void
queue_conn_up(struct queue *q, const struct conn_server *s)
{
	q->ops->conn_up(q, s);
}

static inline void
queue_conn_down(struct queue *q)
{
	q->ops->conn_down(q);
}

/* Not between queue_fetch() and fetched(). */
static inline void
queue_want(struct queue *q, bool wanted)
{
	q->ops->want(q, wanted);
}

/*
 * In a queue of batches a message that has failed before counts as a whole batch,
 * because it needs a run of its own.
 */
static inline void
queue_fetch(struct queue *q, unsigned n, enum turn turn)
{
	q->ops->fetch(q, n, turn);
}

/*
 * The caller no longer waits for the fetch under way.  That fetch delivers nothing: the next
 * one delivers its messages.  fetched() comes when Redis has answered.
 */
static inline void
queue_defer_fetch(struct queue *q)
{
	if (q->ops->defer_fetch != NULL)
		q->ops->defer_fetch(q);
}

/*
 * Takes the message back, copies the verdict, and takes what the result owns.  Results
 * of one turn of the loop go to Redis in one call.  Results of quick handlers may wait
 * up to 1 ms for more results; ready() waits with them.
 */
static inline void
queue_settle(struct queue *q, struct message *m, const struct verdict *v, struct result *r)
{
	q->ops->settle(q, m, v, r);
}

/*
 * A handler saves a text for the next delivery of the message, which is not settled; only in a
 * kind with leases.  Redis gets the last one before the result, and before that at once, but
 * at most every 100 ms.
 */
static inline void
queue_save(struct queue *q, struct message *m, const char *text, size_t len)
{
	if (q->ops->save != NULL)
		q->ops->save(q, m, text, len);
}

/* Periodic work: expiry, promotion, counters.  The server calls it every 10 s. */
static inline void
queue_tick(struct queue *q)
{
	q->ops->tick(q);
}

/*
 * A hint that a message in flight was cancelled.  The queue renews its leases now,
 * which tells it of the cancel.  It renews once more a little later, for messages whose
 * pop is not answered yet.  Many hints cost no more than one renewal each 100 ms.
 */
static inline void
queue_renew(struct queue *q)
{
	if (q->ops->renew != NULL)
		q->ops->renew(q);
}

/*
 * The message with this tag becomes due as soon as Redis can be asked; not if the kind has
 * no retries.  Results that were settled before count.
 */
static inline void
queue_due(struct queue *q, const char *tag)
{
	if (q->ops->due != NULL)
		q->ops->due(q, tag);
}

/*
 * If the source is a list: an estimate of how long its oldest message has waited, in seconds; -1:
 * not known, or another source.  *taken: messages that the fleet had taken by then.
 */
double	queue_waited(const struct queue *, int64_t *taken);

/* For --until-empty: the last look found no waiting or due message, and none is in flight. */
static inline bool
queue_is_empty(const struct queue *q)
{
	return q->ops->is_empty(q);
}

/*
 * After queue_close() no message is delivered; closed() comes when none is in flight
 * and all results are confirmed.  queue_free() does not wait for that: it calls
 * settled(SETTLED_GAVE_UP) for each unconfirmed result (the only callback from
 * inside a call), and frees messages that were never settled.
 */
static inline void
queue_close(struct queue *q)
{
	q->ops->close(q);
}
/* Any time, but not from a callback of this queue. */
static inline void
queue_free(struct queue *q)
{
	if (q != NULL)
		q->ops->free(q);
}
