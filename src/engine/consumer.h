/*
 * A consumer: the life of one queue's messages in this daemon.  No other file leads
 * a message through queue, policy and handler.
 *
 *	ready -> slot granted -> fetch -> deliver -> handler -> verdict
 *	      -> settle -> settled (logged and counted)
 *
 * With batches, or without a free slot, a message waits between deliver and handler:
 *
 *	deliver -> WAITING -> batch is full, batch_wait is over, or it must run alone,
 *	                      and there is a slot -> handler
 *	                   -> no slot for a second, a lease that may have ended, suspended,
 *	                      paused, quiet, draining, or a reload -> given back
 *
 *	RUNNING <-> QUIET		no new messages; handlers go on
 *	RUNNING | QUIET -> DRAINING	no new message any more; with no run or fetch left ->
 *	CLOSING				processes have ended, Redis has confirmed results ->
 *	CLOSED				closed(); the owner may free it
 *
 * Suspension (suspension.h), QPAUSED and a lost connection block a RUNNING consumer
 * without changing its state.
 */
#pragma once

#include <stdbool.h>

#include "base/stats.h"
#include "engine/dispatcher.h"
#include "engine/last_errors.h"
#include "engine/suspension.h"
#include "handler/handler.h"
#include "policy/stall.h"
#include "queue/queue.h"
#include "queue/slot_route.h"

enum consumer_state {
	CONSUMER_RUNNING, CONSUMER_QUIET, CONSUMER_DRAINING, CONSUMER_CLOSING,
	CONSUMER_CLOSED
};

/* The reason why a running consumer starts nothing. */
enum consumer_block {
	BLOCK_NONE, BLOCK_FULL, BLOCK_SUSPENDED, BLOCK_PAUSED, BLOCK_LIMITED,
	BLOCK_REFUSED,		/* Redis refuses results, which keep their slots */
	BLOCK_REDIS		/* no connection, not even of one shard; or no subscription */
};

struct consumer;

/* Shared by all consumers; borrowed, outlives them. */
struct consumer_env {
	struct loop	*loop;
	struct dispatcher	*dispatcher;
	struct routes	*routes;	/* the queues' ways to Redis; NULL: a simulation */
	const struct queue_env	*queue;
	const struct handler_env	*handler;
	void	(*closed)(struct consumer *, void *);	/* in CLOSED; from the loop */
	/* A consumer has nothing in flight, and its queue is empty. */
	void	(*idle)(void *);
	/*
	 * A consumer was suspended, resumed, paused or unpaused, or Redis refuses its
	 * results.
	 */
	void	(*blocked)(void *);
	void	*arg;
};

/* The queue's ops are a parameter, so that simulations can pass those of a queue in memory. */
struct consumer	*consumer_new(const struct consumer_env *, struct config *,
		    const struct queue_config *, const struct queue_ops *);
void		 consumer_free(struct consumer *);	/* any time; NULL is fine */

/* same: the queue's settings have not changed, only the object that has them. */
void		 consumer_reconfigure(struct consumer *, struct config *,
		    const struct queue_config *, bool same);
void		 consumer_set_quiet(struct consumer *, bool);
void		 consumer_drain(struct consumer *);
/* Ends the handlers that still run (STOP_DRAIN); hasten: by SIGKILL. */
void		 consumer_stop_handlers(struct consumer *, bool hasten);

void		 consumer_tick(struct consumer *);	/* about every 10 s */

void		 consumer_renew(struct consumer *);	/* see queue_renew() */

/* For status, heartbeat, metrics. */
const struct queue_config *consumer_config(const struct consumer *);
const char		*consumer_state_name(const struct consumer *);
enum consumer_block	 consumer_block(const struct consumer *);
const char		*consumer_block_name(enum consumer_block);
/* Why it is suspended, or why Redis refuses its results. */
const struct suspension	*consumer_suspension(const struct consumer *);
const struct last_errors	*consumer_last_errors(const struct consumer *);
const struct stats	*consumer_stats(const struct consumer *);
struct stall		*consumer_stall(struct consumer *);	/* the pages note and read it */
/* See queue_waited(). */
double			 consumer_waited(const struct consumer *, int64_t *taken);
unsigned		 consumer_in_flight(const struct consumer *);
/* Runs that are not over: also of a batch whose messages all have results. */
unsigned		 consumer_runs(const struct consumer *);
/* Redis has all results. */
bool			 consumer_is_confirmed(const struct consumer *);
bool			 consumer_is_idle(const struct consumer *);	/* see idle() */

/*
 * Calls fn for each message in flight.  pid 0: no process yet; progress: the last that
 * its handler reported, visible UTF-8, or NULL; age: since delivery.  For a batch whose
 * messages all have results, and whose process goes on, the message is NULL, and age is
 * since then.
 */
void	consumer_each(const struct consumer *, void (*fn)(const struct message *, pid_t,
	    const char *progress, usec_t age, void *), void *);
