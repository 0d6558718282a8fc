/*
 * A queue of kind "ack" with all that it needs, and a stand-in for the engine that
 * records the callbacks.  Each box has a loop of its own: a box whose loop the test does
 * not turn behaves as a daemon that hangs.
 */
#pragma once

#include "../unit/unit.h"

#include "loop/loop.h"
#include "queue/queue.h"
#include "redis/conn.h"
#include "redis/watch.h"
#include "server.h"

#define BOX_MAX		4096
#define BOX_WAIT	(2 * MINUTE)	/* only a test that fails waits so long */

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
	struct queue_env env;
	struct stats	 stats;
	struct queue	*queue;		/* NULL after box_free_queue() */

	unsigned	 slots;		/* the box fetches until it has so many messages */
	bool		 wanted;
	bool		 ready;
	unsigned	 asked;		/* messages that the last fetch asked for */
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
	unsigned	 hears, deafs;	/* listening(): on, off */
	char		 why[256], cause[256], warning[256];
	struct message	*lost;
	usec_t		 last_delivery;
	enum settled	 last_settled;
	/* The box calls these after it has recorded the event; NULL: nothing. */
	void		(*on_deliver)(struct box *, const struct message *);
	void		(*on_settled)(struct box *, const struct message *, enum verdict_op,
			    enum settled);
};

void	box_init(struct box *, const struct server *, const char *name);
void	box_start(struct box *, unsigned slots);	/* waits until it is up and watches */
void	box_take(struct box *, unsigned slots);		/* and waits for so many messages */
void	box_ack_until(struct box *, unsigned delivered);
void	box_set_slots(struct box *, unsigned);
void	box_free_queue(struct box *);
void	box_done(struct box *);

/* Settles the delivery with index i. */
void	box_settle(struct box *, unsigned i, enum verdict_op, bool failed, usec_t delay);
/*
 * Settles the five oldest deliveries: ack, failed retry, return, dead, defer.  Each delay
 * is an hour.
 */
void	box_settle_each_way(struct box *);
void	box_turn(struct box *, usec_t);		/* turns the loop for this long */
/*
 * Acks all messages that the n boxes get, until Redis has none left.  Calls each() between
 * turns, unless it is NULL.
 */
void	box_drain(struct box *const *, unsigned n, void (*each)(void));

/*
 * After box_deafen() Redis runs the box's commands, but sends no replies. box_cut() then
 * closes the connection, and waits for a new one: the commands since box_deafen() are
 * lost although they have acted.
 */
void	box_deafen(struct box *);
void	box_cut(struct box *, struct server *);

/* Each FIXTURE_TEST has a new server, and a new box, which the test starts. */
extern struct server	server;
extern struct box	box;
int	 fixture_setup(void **);
int	 fixture_teardown(void **);
#define FIXTURE_TEST(name)	TEST_WITH(name, fixture_setup, fixture_teardown)

void	 push(const char *payload);
void	 push_numbers(int n);		/* pushes messages with the ids 0 to n - 1 */
/* The number of keys in Redis.  QSTATS does not count: a tick may have written it. */
long long keys(void);
/*
 * Whether Redis still has data of a delivery.  Records of the last pops of daemons do not
 * count: they stay if a daemon dies with messages in flight.
 */
bool	 left_over(void);
unsigned total_settled(const struct box *);
/*
 * Settles the delivery with index i, and waits for the confirmation, which must be this
 * one.
 */
void	 finish(struct box *, unsigned i, enum verdict_op, bool failed, usec_t delay,
	    enum settled);
/*
 * Takes a message larger than message_max, which must come without its payload, and
 * settles it as dead.  The confirmation must be this one.
 */
void	 bury_too_large(enum settled);
