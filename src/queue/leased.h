/*
 * A queue that delivers at least once; the kinds in ack.c, unique.c, stream.c and
 * expired.c are built on it.  A kind says where its messages come from; its scripts are made
 * for that source (see build-aux/embed-lua.awk).
 *
 * It is one object in six files:
 *
 *	leased.c		life, turns of the loop, calls of scripts
 *	leased_delivery.c	the deliveries, each on the list of its state
 *	leased_watch.c		is there work?
 *	leased_fetch.c		fetches: pops, and what is done about lost ones
 *	leased_settle.c		results, until Redis has confirmed each
 *	leased_tend.c		renewals and ticks
 *
 * Every event that may allow a next step ends in leased_wake(); at the end of the turn
 * leased_turn() takes the step.  Calls from the engine only change fields and wake.
 *
 * A call of a script ends in one of these ways:
 *
 *			pop			settle			renew, tick
 *
 *	reply		FETCHED, RUNNING	GONE			see renew.lua, tick.lua
 *	not written	asked again		DONE			later
 *	OOM, BUSY ...	asked again		REFUSED			later
 *	other error	reclaim, suspended	REFUSED, doubted	later
 *	lost		reclaim			DONE, doubted		counters count as added
 *
 * After NOSCRIPT the connection sends the same words again.  All calls of a connection have
 * ended before the next one is up.  While the queue closes, FETCHED messages and refused
 * hand-overs are given back, nothing is popped, and no leases are judged.  A reload counts
 * from the next call on; messages keep their configuration.
 */
#pragma once

#include "base/list.h"
#include "loop/timer.h"
#include "policy/stagger.h"
#include "queue/evict.h"
#include "queue/keys.h"
#include "queue/queue.h"
#include "redis/reply.h"
#include "redis/request.h"
#include "redis/script.h"
#include "redis/words.h"

struct leased;
struct call;

enum leased_script {
	LEASED_POP, LEASED_SETTLE, LEASED_RENEW, LEASED_TICK, LEASED_ARM, LEASED_RECLAIM,
	LEASED_DUE, LEASED_LEAVE, LEASED_SCRIPTS
};

/*
 * A kind.  The arguments and answers of a script are the same for all sources; the heads of
 * pop.lua, settle.lua and so on describe them.
 */
struct leased_kind {
	const struct queue_ops	*ops;
	/* In front of the names of the scripts pop, settle, tick and arm; "": a list. */
	const char		*source;
	const char		*pop;	/* the pop, if it is another than that; or NULL */
	/* Extra ARGV of such a script: after the common ones, before a list; NULL: none. */
	void			(*words)(enum leased_script, const struct leased *, struct words *);
	/*
	 * Messages in the source itself may fall due later (arm's "delayed").  True:
	 * the tick moves them to where pops find them.  False: pops find them in the
	 * source.
	 */
	bool			 promotes;
	size_t			 size;	/* of the object, a struct leased first; 0: that alone */
};

/*
 *	FETCHED -> RUNNING -> DONE <-> SENT -> GONE
 *	   |                  ^        ^|
 *	   '---- given back --'        |v
 *	                             REFUSED
 *
 * A stale delivery goes from DONE to GONE.  When the queue is freed, every delivery does.
 */
enum delivery_state {
	DELIVERY_FETCHED,	/* ours; not handed to the engine yet */
	DELIVERY_RUNNING,	/* the engine has it */
	DELIVERY_DONE,		/* has a result that must be sent */
	DELIVERY_SENT,		/* the result is on its way */
	DELIVERY_REFUSED,	/* has a result that Redis refused: sent again when due */
	DELIVERY_GONE		/* confirmed or given up: msg is NULL, no list has it */
};
#define DELIVERY_LISTS	DELIVERY_GONE

/* A delivery: its state, and facts about it. */
struct delivery {
	TAILQ_ENTRY(delivery)	 entry;		/* on the list of its state; not GONE */
	enum delivery_state	 state;		/* read only: see delivery_move() */
	unsigned		 calls;		/* that name it; the last one frees it */
	struct message		*msg;		/* owned */
	size_t			 taglen;	/* a tag written by hand may hold NUL */
	size_t			 bytes;		/* its part of leased.bytes */

	bool			 unproven;	/* FETCHED: to be renewed before it is handed out */
	bool			 from_engine;	/* from DONE on: the engine gave its result */
	/* from RUNNING on: the engine knows that it is no longer ours */
	bool			 lost;
	bool			 taken;		/* a renewal said that a foreign consumer took it */
	bool			 keeps_slot;	/* it was REFUSED, and is not GONE */

	/* The last text that the handler has saved, until Redis has it; owned; NULL: none. */
	char			*saved;
	bool			 unsent;	/* RUNNING: no call has it */
	bool			 saving;	/* a call on its way has it, or an earlier one */
	bool			 late;		/* one was lost, and may still arrive */
	usec_t			 save_at;	/* mono: not before */

	/* From DONE on: */
	struct verdict		 verdict;
	struct result		 result;	/* owned */
	bool			 doubted;	/* sent before; the answer was lost, or an error */
	unsigned		 refusals;	/* in a row, of it alone */
	bool			 alone;		/* Redis refused its hand-over: a call of its own */
	usec_t			 due;		/* mono: REFUSED: not sent before */
};
TAILQ_HEAD(deliveries, delivery);

/* See leased_watch.c. */
enum leased_watch {
	WATCH_IDLE,		/* no change will be reported: the next look arms the keys */
	WATCH_ARMING,		/* the arm script is on its way */
	WATCH_OUTDATED,		/* the arm script is on its way, and a key has changed since */
	WATCH_ARMED		/* Redis reports the next change, or the poll timer is set */
};

struct leased {
	struct queue		  queue;	/* first */
	const struct leased_kind *kind;
	const struct queue_env	 *env;
	struct config		 *config;	/* reference; of the next pop */
	const struct queue_config *cfg;
	struct stats		 *stats;
	struct keys		  keys;
	const struct script	 *script[LEASED_SCRIPTS];
	TAILQ_HEAD(, call)	  calls;	/* on their way */
	struct defer		  turn;
	bool			  closing;
	bool			  left;		/* the call of leave has ended */
	bool			  leaving;	/* it is on its way */
	bool			  closed;	/* closed() was called */
	bool			  was_empty;	/* in the last turn */
	/* a warning was logged, and is not over */
	bool			  complained[LEASED_SCRIPTS];

	/* Deliveries, by state. */
	struct deliveries	  list[DELIVERY_LISTS];
	unsigned		  count[DELIVERY_LISTS];
	unsigned		  refused;	/* that keep a slot: Redis refused their results */
	/*
	 * Bytes of the payloads of batches' messages, and of the messages that kept
	 * results hand over.  Each payload counts as CONFIG_RUN_BYTES at most.
	 */
	uint64_t		  bytes;

	/* Looking for work. */
	enum leased_watch	  watch;
	struct leased_key {
		struct watch_key  key;
		struct leased	 *queue;
		enum key	  which;
	} key[5];				/* that the arm script reads */
	bool			  wanted;
	bool			  offered;	/* ready() was called, and no fetch since */
	bool			  work;		/* a pop may find messages */
	bool			  empty;	/* the last look found nothing waiting or due */
	bool			  paused;	/* by the last answer of Redis */
	bool			  full;		/* likewise: fleet_concurrency is reached */
	bool			  no_room;	/* FETCHED messages took all the room of a fetch */
	bool			  woken;	/* by a push, and no pop since */
	unsigned		  misses;	/* wake-ups in a row whose pop found nothing */
	usec_t			  skip_after;	/* mono: from then on it may skip the backoff */
	unsigned		  arm_refusals;	/* in a row */
	struct evict		  evict;	/* whether Redis keeps the armed keys */
	struct timer		  retry;	/* QRETRY's first */
	usec_t			  retry_at;	/* mono: due; the timer may be set for later */
	struct timer		  delayed;	/* the first in QDELAYED, or in the source */
	usec_t			  delayed_at;	/* as retry_at */
	usec_t			  overdue;	/* mono: as delayed_at; 0: no look waits for it */
	struct stagger		  stagger;
	struct timer		  retry_look;	/* set: a change for later waits for a look */
	struct timer		  rate;		/* set: no pop before, by the rate, or for others */
	bool			  crowded;	/* it is set until a message is done: Redis is full,
						 * or no group has a place */
	struct timer		  backoff;	/* set: a push waits for other daemons */
	struct timer		  poll;		/* polling, the end of a pause, after errors */

	/* Fetching. */
	unsigned		  asked;	/* by queue_fetch(); 0: no fetch */
	bool			  deferred;	/* see queue_defer_fetch() */
	unsigned		  got;
	enum turn		  fetch_turn;
	double			  gap;		/* seconds between messages of the rate; 0: none */
	bool			  new_first;	/* TURN_SHARE: the next pop prefers new messages */
	unsigned		  due_first;	/* messages before the turns begin: retries first */
	struct pop_call		 *pop;		/* on its way; NULL: none */
	unsigned		  pop_losses;	/* replies lost in a row */
	unsigned		  pop_most;	/* messages of a pop; few after lost replies */
	char			 *pop_error;	/* of the last pop; NULL: none since an answer */
	TAILQ_HEAD(, pop_call)	  doubted;	/* pops of unknown outcome */
	struct timer		  reclaim;
	unsigned		  reclaim_failures;	/* in a row */

	/* Renewals and ticks. */
	struct timer		  renew, tick;
	usec_t			  renewed_at;	/* mono: the last renewal began */
	bool			  renew_again;	/* after a hint: once more, soon */
	bool			  ticking;	/* a tick is on its way */
	usec_t			  ticked_at;	/* mono: the last one was sent */
	usec_t			  tick_not_before;	/* mono: after an error */
	unsigned		  tick_failures;	/* in a row */
	struct tick_report	  round;	/* what its ticks have moved */
	char			 *round_ids;	/* of its first ones that were requeued; NULL */
	uint64_t		  counted[STAT_MAX];	/* what a tick on its way adds to QSTATS */
	/* Where the next tick goes on: in QBACKUP, QDELIVERY, and the source. */
	int64_t			  tick_rank;
	char			  tick_cursor[24], tick_scan[48];

	/* Results; see leased_settle.c. */
	usec_t			  result_at;	/* mono: the last result came */
	usec_t			  pace;		/* between two results, smoothed */
	struct timer		  batch_timer;	/* set: results wait for others */
	struct timer		  save;		/* set: texts are to be saved then */
	struct timer		  hold;		/* set: send no refused result before it fires */
	struct timer		  again;	/* set: the first refused result is due then */
	bool			  retrying;	/* a call with refused results is on its way */
	unsigned		  failures;	/* settle calls in a row, nothing was accepted */
	bool			  refusing;	/* Redis refuses some results; that was reported */
	char			 *cause;	/* of the last complaint; owned; or NULL */

	/* Tags of messages to be made due; the first due_sent of them are in a call. */
	char			**due;
	size_t			  ndue, due_sent;
	struct timer		  due_again;	/* set: the last call failed */
};

/* key: Q, the key of the configuration or of one shard. */
struct queue	*leased_new(const struct leased_kind *, const struct queue_env *, const char *key,
		    struct config *, const struct queue_config *, struct stats *,
		    const struct queue_events *, void *arg);
void		 leased_reconfigure(struct queue *, struct config *, const struct queue_config *);
void		 leased_conn_up(struct queue *, const struct conn_server *);
void		 leased_conn_down(struct queue *);
void		 leased_want(struct queue *, bool);
void		 leased_fetch(struct queue *, unsigned, enum turn);
void		 leased_defer_fetch(struct queue *);
void		 leased_settle(struct queue *, struct message *, const struct verdict *,
		    struct result *);
void		 leased_save(struct queue *, struct message *, const char *, size_t);
void		 leased_due(struct queue *, const char *tag);
void		 leased_tick_round(struct queue *);
void		 leased_renew_hint(struct queue *);
bool		 leased_is_empty(const struct queue *);
void		 leased_close(struct queue *);
void		 leased_free(struct queue *);
/* What is the same in all kinds that are built on it. */
#define LEASED_MESSAGE_OPS \
	.conn_down = leased_conn_down, .want = leased_want, .fetch = leased_fetch, \
	.defer_fetch = leased_defer_fetch, .settle = leased_settle, .save = leased_save, \
	.renew = leased_renew_hint, .due = leased_due
/* All members of a struct queue_ops but open, which calls leased_new(). */
#define LEASED_OPS \
	LEASED_MESSAGE_OPS, \
	.reconfigure = leased_reconfigure, .conn_up = leased_conn_up, \
	.tick = leased_tick_round, .is_empty = leased_is_empty, .close = leased_close, \
	.free = leased_free

/* -- the rest is for leased*.c -------------------------------- */

/* Takes the message and sets its queue_data.  The new delivery is FETCHED. */
struct delivery	*delivery_add(struct leased *, struct message *, size_t taglen, boot_t ours_at);
/*
 * The only function that changes the state.  GONE: frees the message and the result,
 * and the delivery unless a call names it.  Wakes the queue if a result is to be sent.
 */
void		 delivery_move(struct leased *, struct delivery *, enum delivery_state);
/* Copies the verdict, takes what the result owns, and moves to DONE. */
void		 delivery_done(struct leased *, struct delivery *, const struct verdict *,
		    struct result *);
/* The same for a delivery that the engine has never seen: returned uncounted, or stale. */
void		 delivery_done_unrun(struct leased *, struct delivery *, enum verdict_op);
/* Returns all FETCHED ones. */
void		 delivery_give_back(struct leased *);
bool		 delivery_any(const struct leased *);
/* Whether it has messages for other queues, which are pushed when it is acked. */
bool		 delivery_hands_over(const struct delivery *);

typedef void	leased_answer_fn(struct leased *, struct call *, enum conn_answer,
		    const struct redisReply *);

/* A call of a script, from leased_call_new() until its function was called. */
struct call {
	TAILQ_ENTRY(call)	  entry;
	struct leased		 *queue;
	enum leased_script	  script;
	leased_answer_fn	 *answered;
	struct delivery		**v;		/* the deliveries that it is about */
	size_t			  n;
	bool			  retry;	/* settle: Redis has refused these before */
	struct pop_call		 *pop;		/* reclaim: the pop that it is about */
	struct request		  request;
	struct words		  words;	/* until leased_send() */
	bool			  armed;	/* arm: tracking was on */
};

/* Looks at everything that has changed, at the end of this turn. */
void		 leased_wake(void *leased);
/*
 * The new call's words are the script's KEYS.  The caller adds the common ones, calls
 * leased_words(), then adds a list.
 */
struct call	*leased_call_new(struct leased *, enum leased_script, leased_answer_fn *);
/* The call is about this delivery, too. */
void		 leased_call_add(struct call *, struct delivery *);
void		 leased_words(struct call *);		/* adds ARGV of the source */
void		 leased_send(struct call *);
bool		 leased_is_up(const struct leased *);
/*
 * Handles an error reply, or a reply that the script never gives: complains, and
 * connects anew if the server is no longer the right one.  Returns the kind of error.
 */
enum reply_error leased_failed(struct leased *, enum leased_script, const struct redisReply *);
/* Reports a script's warning once, until a call with NULL says that it is over. */
void		 leased_complain(struct leased *, enum leased_script, const char *);
/* Redis' time, in a reply. */
double		 leased_saw_now(struct leased *, const struct redisReply *);
/*
 * Takes the figures of a list from a reply: messages taken so far (-1: the reply does
 * not say) and waiting.
 */
void		 leased_saw_list(struct leased *, const struct redisReply *taken,
		    const struct redisReply *waiting);
usec_t		 leased_usec(double seconds);	/* from now, within what a timer can hold */
/* Until a time in a reply; -1: there is none. */
usec_t		 leased_until(const struct redisReply *, double now);

/* leased_fetch.c */
void		 leased_fetch_init(struct leased *);
void		 leased_fetch_step(struct leased *);
void		 leased_fetch_free(struct leased *);
/*
 * The first FETCHED delivery that may be handed out; NULL: none.  A daemon that was
 * stopped finds the reply of its pop in the socket.  Another daemon may have finished that
 * message.  So if the reply is older than a third of the lease, it is renewed first.
 */
struct delivery	*leased_fetched(const struct leased *);
/* Whether a fetch could deliver messages now.  found: it needs no pop for that. */
bool		 leased_may_fetch(const struct leased *, bool found);
void		 leased_reclaim_anew(struct leased *);	/* connected */
bool		 leased_is_unsure(const struct leased *);	/* until then no pop may be sent */
/*
 * Whether a pop's outcome is unknown, and Redis may still tell it soon: closing waits for that.
 * What Redis refuses to reclaim is due when its lease ends.
 */
bool		 leased_reclaims(const struct leased *);
void		 leased_fetch_close(struct leased *);	/* tries once more */
/*
 * A pop is on its way whose reply should be here by now: adds CALL FROM, for renew, and
 * returns true.
 */
bool		 leased_pop_is_late(const struct leased *);
void		 leased_add_late_pop(const struct leased *, struct words *);

/* leased_settle.c */
void		 leased_settle_init(struct leased *);
void		 leased_settle_up(struct leased *);	/* refused results may be sent at once */
void		 leased_settle_close(struct leased *);
/* Ends stale results, of which Redis need not know. */
void		 leased_put_away(struct leased *);
bool		 leased_results_wait(struct leased *);	/* for others, to go in one call */
void		 leased_flush(struct leased *);	/* sends the results; makes no callbacks */
/* A REFUSED hand-over was cancelled: ends it as msg->cancel says. */
void		 leased_cancel_hand_over(struct leased *, struct delivery *);
void		 leased_settle_free(struct leased *);	/* ends all with SETTLED_GAVE_UP */

/* leased_tend.c */
void		 leased_tend_init(struct leased *);
void		 leased_tend_up(struct leased *);	/* a tick is due now */
usec_t		 leased_renew_interval(const struct leased *);
/* The longest pause after Redis has refused a call: one interval, at least 1 s. */
usec_t		 leased_patience(const struct leased *);
/* Sets the time of the next renewal, unless it is set: call it for a pop that is sent. */
void		 leased_expect_renewal(struct leased *);
void		 leased_renew_all(struct leased *);
/* at_once: not 100 ms after the last one, but now, unless after an error. */
void		 leased_tick(struct leased *, bool at_once);
void		 leased_tick_due(void *);

/* leased_watch.c */
void		 leased_watch_init(struct leased *);
void		 leased_watch_up(struct leased *);
void		 leased_watch_down(struct leased *);
void		 leased_watch_anew(struct leased *);	/* settings have changed */
void		 leased_look(struct leased *);	/* once, at the end of a turn */
/* Redis has refused the pop: no fetch for a second. */
void		 leased_watch_pop_refused(struct leased *);
/* There may be work: the next look calls ready(). */
void		 leased_saw_work(struct leased *);
/*
 * A script has seen when QRETRY's first is due (0: now; -1: there is none); returns true
 * if it is due.  ours: this daemon put it there, so other daemons may not know it.
 */
bool		 leased_saw_retry(struct leased *, usec_t in, bool ours);
/* The first message in QDELAYED, or in the source, is due after this time. */
void		 leased_saw_delayed(struct leased *, usec_t in);
void		 leased_set_paused(struct leased *, bool, const char *why);
/* The first look since a push.  missed: other daemons took all of it. */
void		 leased_count_miss(struct leased *, bool missed);
void		 leased_disarm(struct leased *);
void		 leased_poll(struct leased *);	/* looks again in a second at the latest */
