/*
 * Shared by the leased*.c files, and expired.c, which begins with the struct: the struct, and
 * calls of scripts.
 *
 *	leased.c	life, turns of the loop, ticks, arming
 *	leased_call.c	script calls, sent and answered
 *	leased_fetch.c	fetches: sends pops, and takes the messages of their replies
 *	leased_settle.c	sends results, and rescues of messages that Redis has lost
 *	leased_renew.c	renews leases
 *
 * The files use objects that know nothing of struct leased: ledger.c (deliveries),
 * loader.c (large payloads), pop.c (pops, and those of unknown outcome), settler.c
 * (results), ticker.c (expiry, delayed messages, counters) and watcher.c (is there
 * work?).
 *
 * Every event that may allow a next step ends in leased_wake(); at the end of the turn
 * leased_turn() takes the step.  Calls from the engine only change fields and wake.
 */
#pragma once

#include "base/list.h"
#include "policy/arrivals.h"
#include "queue/leased.h"
#include "queue/ledger.h"
#include "queue/loader.h"
#include "queue/pop.h"
#include "queue/settler.h"
#include "queue/ticker.h"
#include "queue/watcher.h"
#include "redis/reply.h"
#include "redis/request.h"
#include "redis/script.h"

struct leased;
struct call;

struct leased {
	struct queue		  queue;	/* first */
	const struct leased_kind	 *kind;
	const struct queue_env	 *env;
	struct config		 *config;	/* reference; of the next pop */
	const struct queue_config *cfg;
	struct keys		  keys;
	const struct script	 *script[LEASED_SCRIPTS];
	TAILQ_HEAD(, call)	  calls;	/* on their way */
	struct defer		  turn;
	void			(*on_turn)(void *);	/* leased_turn(): see leased_wake() */
	bool			  closing;
	bool			  closed;	/* closed() was called */
	bool			  was_empty;	/* in the last turn */
	/* a warning was logged, and is not over */
	bool			  complained[LEASED_SCRIPTS];
	double			  gap;		/* seconds between messages of the rate; 0: none */

	/* Looking for work. */
	struct watcher		 *watcher;
	struct leased_key {
		struct watch_key  key;
		struct leased	 *ack;
		enum key	  which;
	} watch[5];				/* the keys that the arm script reads */

	/* Fetching. */
	unsigned		  asked;	/* by queue_fetch(); 0: no fetch */
	bool			  deferred;	/* see queue_defer_fetch() */
	unsigned		  got;
	enum turn		  fetch_turn;
	unsigned		  no_room_at;	/* the ledger's departures when there was no room */
	struct loader		 *loader;
	usec_t			  bulk_after;	/* mono: then a large rescue may use bulk again */
	struct pops		 *pops;
	bool			  leaving;	/* a call asks Redis to forget our pops */

	/* Deliveries and results. */
	struct ledger		 *ledger;
	struct settler		 *settler;
	bool			  refusing;	/* Redis refuses some results; that was reported */
	char			  *cause;	/* of the last complaint; owned; or NULL */
	struct ticker		 *ticker;
	struct arrivals		 *arrivals;	/* of a list; NULL: another source */
};

typedef void	leased_answer_fn(struct leased *, struct call *, enum conn_answer,
		    const struct redisReply *);

/* A call of a script, from leased_call_new() until its function was called. */
struct call {
	TAILQ_ENTRY(call)	  entry;
	struct leased		 *ack;
	enum leased_script		  script;
	leased_answer_fn		 *answered;
	struct delivery_batch	  batch;	/* the deliveries that it is about */
	struct pop_call		 *pop;		/* mine: the pop that it asks about */
	struct request		  request;
	struct words		  words;	/* until leased_send() */
	bool			  bulky;	/* it uses the bulk connection */
	bool			  armed;	/* arm: tracking was on */
};

/* leased_call.c */
/* Looks at everything that has changed, at the end of this turn. */
void		 leased_wake(void *leased);
/*
 * The new call's words are the script's KEYS.  The caller adds the common ones, calls
 * leased_words(), then adds a list.
 */
struct call	*leased_call_new(struct leased *, enum leased_script, leased_answer_fn *);
void		 leased_words(struct call *);		/* adds the ARGV of this kind */
void		 leased_send(struct call *);
void		 leased_cancel_calls(struct leased *);	/* all: their functions are not called */
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
void		 leased_fetch_step(struct leased *);
void		 leased_ask(void *);	/* mine, about pops of unknown outcome */
/* Whether a fetch could deliver messages now.  found: it needs no pop for that. */
bool		 leased_may_fetch(const struct leased *, bool found);
void		 leased_load(void *);	/* asks for large payloads again */

/* leased_settle.c */
void		 leased_settler_init(struct leased *);
/* The outcome of a pop or a rescue is unknown, so that no pop may be sent. */
bool		 leased_is_unsure(const struct leased *);
void		 leased_flush(struct leased *);	/* sends the kept results; makes no callbacks */
void		 leased_leave(struct leased *);	/* nothing is in flight: Redis forgets our pops */
/*
 * Asks whether the tag that another delivery holds is that of our message: "there" or
 * "other".
 */
void		 leased_check(struct leased *, struct delivery *, leased_answer_fn *);

/* leased_renew.c */
void		 leased_renew_all(struct leased *);
void		 leased_renew(void *);		/* the ledger's: a renewal is due */
