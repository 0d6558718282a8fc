/*
 * A queue of kind "ack" with all that it needs, and a stand-in for the engine that
 * records the callbacks.  Each box has a loop of its own: a box whose loop does not
 * turn is a daemon that hangs.
 */
#pragma once

#include "../unit/unit.h"

#include "loop/loop.h"
#include "queue/queue.h"
#include "redis/conn.h"
#include "redis/watch.h"
#include "server.h"

#define BOX_MAX		4096
#define BOX_WAIT	(2 * MINUTE)	/* only what fails waits so long */

/* Turns the box's loop until the condition holds; the test fails if it never does. */
#define WAIT(b, cond) do {						\
	usec_t end_ = clock_mono() + BOX_WAIT;				\
	bool is_;							\
	while (!(is_ = (cond)) && clock_mono() < end_)			\
		loop_turn((b)->loop, 20 * MSEC);			\
	if (!is_)							\
		fail_msg("never: %s (cause: %s, warning: %s)", #cond,	\
		    (b)->cause, (b)->warning);				\
} while (0)

struct box {
	struct loop	*loop;
	struct config	*config;
	struct queue_config *cfg;	/* may be changed before box_start() */
	char		 instance[32];
	struct conn	*conn;
	struct watch	*watch;
	struct bulk	*bulk;
	struct queue_env env;
	struct stats	 stats;
	struct queue	*queue;		/* NULL after box_free_queue() */

	unsigned	 slots;		/* fetches whenever it may, up to this */
	bool		 wanted;
	bool		 ready;
	unsigned	 asked;		/* by the last fetch */
	bool		 fetching;

	struct message	*msgs[BOX_MAX];	/* in flight, oldest first */
	unsigned	 n;
	struct defer	 update;

	/* Counts of callbacks: */
	unsigned	 ups, watching;
	unsigned	 readies, fetches, delivered, losts, cancels, closes;
	unsigned	 fetched[FETCH_ERROR + 1];	/* by status */
	unsigned	 settled[SETTLED_GAVE_UP + 1];
	unsigned	 ticks, requeued, promoted, dropped, warnings;
	bool		 paused;
	unsigned	 hears, deafs;	/* listening() */
	char		 why[256], cause[256], warning[256];
	struct message	*lost;
	usec_t		 last_delivery;
	enum settled	 last_settled;
	/* Called beside, where not NULL. */
	void		(*on_deliver)(struct box *, const struct message *);
	void		(*on_settled)(struct box *, const struct message *, enum verdict_op,
			    enum settled);
};

void	box_init(struct box *, const struct server *, const char *name);
void	box_start(struct box *, unsigned slots);	/* and waits until it is up and watches */
void	box_take(struct box *, unsigned slots);		/* and waits for as many messages */
void	box_ack_until(struct box *, unsigned delivered);
void	box_set_slots(struct box *, unsigned);
void	box_free_queue(struct box *);
void	box_done(struct box *);

/* Ends the delivery with index i. */
void	box_settle(struct box *, unsigned i, enum verdict_op, bool failed, usec_t delay);
/* Ends the five oldest ones: ack, failed retry, return, dead letter, deferral; by an hour. */
void	box_settle_each_way(struct box *);
void	box_turn(struct box *, usec_t);		/* for this long */
/* Acks whatever these are given, until nothing is left; calls each() between turns. */
void	box_drain(struct box *const *, unsigned n, void (*each)(void));

/*
 * Nothing that Redis answers from now on arrives; box_cut() then closes the
 * connection, so that the commands since are LOST although they have acted.
 */
void	box_deafen(struct box *);
void	box_cut(struct box *, struct server *);

/* A server with one box, for each test anew. */
extern struct server	server;
extern struct box	box;
int	 fixture_setup(void **);
int	 fixture_teardown(void **);
#define FIXTURE_TEST(name)	TEST_WITH(name, fixture_setup, fixture_teardown)

void	 push(const char *payload);
void	 push_numbers(int n);		/* messages with the ids 0 to n - 1 */
/* How many there are in Redis, but for QSTATS, which a tick may have written by now. */
long long keys(void);
/*
 * Whether something of deliveries is left.  What Redis has seen of the pops of daemons
 * that died with messages in hand does not count.
 */
bool	 left_over(void);
unsigned total_settled(const struct box *);
/* Ends the delivery with index i, and waits until that is confirmed, and how. */
void	 finish(struct box *, unsigned i, enum verdict_op, bool failed, usec_t delay,
	    enum settled);
/* Is given a message larger than message_max, without its payload, and buries it. */
void	 bury_too_large(enum settled);
