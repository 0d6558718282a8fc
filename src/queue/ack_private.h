/*
 * The machine behind the kinds that deliver at least once, and what its files
 * share.  The kinds differ in which script plays which part: struct ack_kind.
 *
 *	ack.c		life, turns of the loop; kind "ack"
 *	ack_call.c	script calls, sent and answered
 *	ack_fetch.c	fetches: sends pops, and takes the messages of their replies
 *	ack_settle.c	sends results, and rescues of messages that Redis has lost
 *	ack_renew.c	renews leases
 *
 * Below them are objects that know nothing of struct ack: ledger.c (deliveries),
 * loader.c (large payloads), pop.c (pops, and those whose outcome is unknown), settler.c
 * (results), ticker.c (expiry, delayed messages, counters) and watcher.c (is there work?).
 *
 * Whatever changes what could be done next ends in ack_wake(); at the end of
 * the turn ack_turn() does it.  Calls from above only change fields and wake.
 */
#ifndef RQD_QUEUE_ACK_PRIVATE_H
#define RQD_QUEUE_ACK_PRIVATE_H

#include <stdint.h>

#include "base/list.h"
#include "loop/timer.h"
#include "queue/keys.h"
#include "queue/ledger.h"
#include "queue/loader.h"
#include "queue/pop.h"
#include "queue/queue.h"
#include "queue/settler.h"
#include "queue/ticker.h"
#include "queue/watcher.h"
#include "redis/reply.h"
#include "redis/request.h"
#include "redis/script.h"

#define ACK_BYTES	(1024 * 1024)	/* of payload or results per call */
#define ACK_POP_MAX	100

enum ack_script {
	ACK_POP, ACK_SETTLE, ACK_RENEW, ACK_TICK, ACK_ARM, ACK_MINE, ACK_RESCUE, ACK_BODY,
	ACK_SCRIPTS
};

struct ack;
struct call;

/* A script's part in a kind. */
struct ack_role {
	const char	*script;	/* its name: src/queue/lua/NAME.lua */
	/*
	 * Words of the kind's own, which the script finds behind those that are
	 * the same for all kinds, and before a list (of results, of counters).
	 */
	void		(*words)(const struct ack *, struct words *);
	enum key	 keys[KEY_MAX];	/* its KEYS; KEY_MAX ends them */
};
#define ACK_ROLE(script, words, ...)	{ script, words, { __VA_ARGS__, KEY_MAX } }

/* KEYS of parts that more than one kind's script plays. */
#define ACK_KEYS_POP	KEY_QUEUE, KEY_BACKUP, KEY_CONTEXT, KEY_RETRY, KEY_DELIVERY, KEY_PAUSED, \
			KEY_RATE
#define ACK_KEYS_SETTLE	KEY_BACKUP, KEY_CONTEXT, KEY_RETRY, KEY_DELIVERY, KEY_DEAD
#define ACK_KEYS_RENEW	KEY_BACKUP, KEY_RETRY, KEY_DELIVERY
#define ACK_KEYS_TICK	KEY_QUEUE, KEY_BACKUP, KEY_CONTEXT, KEY_RETRY, KEY_DELIVERY, KEY_DELAYED, \
			KEY_STATS
#define ACK_KEYS_ARM	KEY_QUEUE, KEY_RETRY, KEY_DELAYED, KEY_PAUSED

/* Parts that are played by the same script in every kind. */
#define ACK_ROLES_ANY \
	[ACK_MINE] = ACK_ROLE("mine", NULL, KEY_BACKUP, KEY_CONTEXT, KEY_DELIVERY), \
	[ACK_RESCUE] = ACK_ROLE("rescue", NULL, ACK_KEYS_SETTLE), \
	[ACK_BODY] = ACK_ROLE("body", NULL, KEY_CONTEXT, KEY_DELIVERY)
/* All parts of a kind whose source is a list. */
#define ACK_ROLES_LIST(pop) \
	[ACK_POP] = ACK_ROLE(pop, NULL, ACK_KEYS_POP), \
	[ACK_SETTLE] = ACK_ROLE("settle", NULL, ACK_KEYS_SETTLE), \
	[ACK_RENEW] = ACK_ROLE("renew", NULL, ACK_KEYS_RENEW), \
	[ACK_TICK] = ACK_ROLE("tick", NULL, ACK_KEYS_TICK), \
	[ACK_ARM] = ACK_ROLE("arm", NULL, ACK_KEYS_ARM), \
	ACK_ROLES_ANY

/*
 * A kind.  All that a script of a part is given and answers is the same for
 * all kinds; the heads of pop.lua, settle.lua and so on say what.
 */
struct ack_kind {
	const struct queue_ops	*ops;
	struct ack_role		 role[ACK_SCRIPTS];
	/*
	 * What falls due later in the source itself (arm's "delayed"): the tick
	 * must put it where pops find it, or else pops find it themselves.
	 */
	bool			 promotes;
};

struct ack {
	struct queue		  queue;	/* first */
	const struct ack_kind	 *kind;
	const struct queue_env	 *env;
	struct config		 *config;	/* reference; of the next pop */
	const struct queue_config *cfg;
	struct keys		  keys;
	const struct script	 *script[ACK_SCRIPTS];
	TAILQ_HEAD(, call)	  calls;	/* on their way */
	struct defer		  turn;
	void			(*on_turn)(void *);	/* does it: see ack_wake() */
	bool			  closing;
	bool			  closed;	/* closed() was called */
	bool			  complained[ACK_SCRIPTS];	/* it was told, and still holds */
	double			  gap;		/* seconds between messages of the rate; 0: none */

	/* Looking for work. */
	struct watcher		 *watcher;
	struct ack_key {
		struct watch_key  key;
		struct ack	 *ack;
		enum key	  which;
	} watch[5];				/* the keys that the arm script reads */

	/* Fetching. */
	unsigned		  asked;	/* by queue_fetch(); 0: no fetch */
	unsigned		  got;
	enum turn		  fetch_turn;
	unsigned		  no_room_at;	/* the ledger's departures then */
	struct loader		 *loader;
	usec_t			  bulk_after;	/* mono: a large rescue may try that connection */
	struct pops		 *pops;
	bool			  leaving;	/* the call that ends their note is on its way */

	/* Deliveries and results. */
	struct ledger		 *ledger;
	struct settler		 *settler;
	bool			  refusing;	/* the warning about them has not been taken back */
	struct ticker		 *ticker;
};

typedef void	ack_answer_fn(struct ack *, struct call *, enum conn_answer,
		    const struct redisReply *);

/* A call of a script, from ack_call_new() until its function was called. */
struct call {
	TAILQ_ENTRY(call)	  entry;
	struct ack		 *ack;
	enum ack_script		  script;
	ack_answer_fn		 *answered;
	struct delivery_batch	  batch;	/* the deliveries about which it is */
	struct pop_call		 *pop;		/* mine: about this one */
	struct request		  request;
	bool			  bulky;	/* it has the bulk connection */
	bool			  armed;	/* arm: tracking was on */
};

/* ack.c: what the tables of kinds are made of */
struct queue	*ack_new(const struct ack_kind *, const struct queue_env *, struct config *,
		    const struct queue_config *, struct stats *,
		    const struct queue_events *, void *arg);
void		 ack_reconfigure(struct queue *, struct config *, const struct queue_config *);
void		 ack_conn_up(struct queue *, const struct conn_server *);
void		 ack_conn_down(struct queue *);
void		 ack_want(struct queue *, bool);
void		 ack_fetch(struct queue *, unsigned, enum turn);
void		 ack_settle(struct queue *, struct message *, const struct verdict *,
		    struct result *);
void		 ack_tick_round(struct queue *);
bool		 ack_is_empty(const struct queue *);
void		 ack_close(struct queue *);
void		 ack_free(struct queue *);
/* All of a struct queue_ops but name and open, which calls ack_new(). */
#define ACK_OPS \
	.reconfigure = ack_reconfigure, .conn_up = ack_conn_up, \
	.conn_down = ack_conn_down, .want = ack_want, .fetch = ack_fetch, \
	.settle = ack_settle, .tick = ack_tick_round, .is_empty = ack_is_empty, \
	.close = ack_close, .free = ack_free

/* ack_call.c */
void		 ack_wake(void *ack);	/* what changed is looked at, at the end of this turn */
struct call	*ack_call_new(struct ack *, enum ack_script, ack_answer_fn *);
/* A call's words: KEYS, what all kinds give, the kind's own, a list. */
void		 ack_cancel_calls(struct ack *);	/* all: their functions are not called */
void		 ack_keys(const struct ack *, const struct call *, struct words *);
void		 ack_words(const struct ack *, const struct call *, struct words *);
void		 ack_send(struct ack *, struct call *, struct words *);	/* words_done() too */
bool		 ack_is_up(const struct ack *);
/*
 * An error reply, or none that the script gives: complains, and connects anew
 * where the server is no longer the right one.  Says what kind of error.
 */
enum reply_error ack_failed(struct ack *, enum ack_script, const struct redisReply *);
/* A warning, once until it is taken back by NULL. */
void		 ack_complain(struct ack *, enum ack_script, const char *);
double		 ack_saw_now(struct ack *, const struct redisReply *);	/* Redis' time, in a reply */
/* A time in a reply, "" for none. */
bool		 ack_time(const struct redisReply *, double *);
/*
 * The first time in QRETRY, as a reply has it: true if that is due.  ours: it was
 * this daemon's call that brought it there, so that others may not know it.
 */
bool		 ack_saw_due(struct ack *, double now, const struct redisReply *, bool ours);

usec_t		 ack_usec(double seconds);	/* from now, within what a timer can hold */
/* Until a time in a reply; -1: there is none. */
usec_t		 ack_until(const struct redisReply *, double now);

/* ack_fetch.c */
void		 ack_fetch_step(struct ack *);
void		 ack_ask(void *);	/* mine, about pops of unknown outcome */
bool		 ack_is_full(const struct ack *);	/* refused results have all the slots */
void		 ack_load(void *);	/* asks for large payloads again */

/* ack_settle.c */
void		 ack_settler_init(struct ack *);
/* What a pop or a rescue did is unknown: no pop may be sent. */
bool		 ack_is_unsure(const struct ack *);
void		 ack_flush(struct ack *);	/* sends what is kept; calls nobody */
void		 ack_leave(struct ack *);	/* nothing is in hand: Redis forgets our pops */
/* Asks whether our message has the tag that another delivery holds: "there" or "other". */
void		 ack_check(struct ack *, struct delivery *, ack_answer_fn *);

/* ack_renew.c */
void		 ack_renew_all(struct ack *);
void		 ack_renew(void *);		/* the ledger's: a renewal is due */

#endif
