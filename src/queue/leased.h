/*
 * A queue that delivers at least once; the kinds in ack.c, unique.c, stream.c and
 * expired.c are built on it.  Each kind is a table that says which script plays which
 * part.
 */
#pragma once

#include "queue/keys.h"
#include "queue/queue.h"
#include "redis/words.h"

enum leased_script {
	LEASED_POP, LEASED_SETTLE, LEASED_RENEW, LEASED_TICK, LEASED_ARM, LEASED_MINE,
	LEASED_RESCUE, LEASED_BODY, LEASED_HAND_OVER, LEASED_HAND_OVER_LOST, LEASED_SCRIPTS
};

/* The facts that a kind needs to build its words; borrowed for the call. */
struct leased_facts {
	const struct queue_config *cfg;
	const char	*host;
	const char	*scan;		/* where the next tick goes on in the source */
};

/* A script's part in a kind. */
struct leased_role {
	const char	*script;	/* its name: src/queue/lua/NAME.lua */
	/* Extra ARGV of this kind: after the common ones, before a list (results, counters). */
	void		(*words)(const struct leased_facts *, struct words *);
	enum key	 keys[KEY_MAX];	/* its KEYS; KEY_MAX ends them */
};
#define LEASED_ROLE(script, words, ...)	{ script, words, { __VA_ARGS__, KEY_MAX } }

/* KEYS of parts whose scripts differ between kinds, but not in their KEYS. */
#define LEASED_KEYS_POP	KEY_QUEUE, KEY_BACKUP, KEY_CONTEXT, KEY_RETRY, KEY_DELIVERY, KEY_PAUSED, \
			KEY_RATE
#define LEASED_KEYS_POP_LIST	LEASED_KEYS_POP, KEY_STATS
#define LEASED_KEYS_SETTLE	KEY_BACKUP, KEY_CONTEXT, KEY_RETRY, KEY_DELIVERY, KEY_DEAD
#define LEASED_KEYS_RENEW	KEY_BACKUP, KEY_RETRY, KEY_DELIVERY
#define LEASED_KEYS_TICK	KEY_QUEUE, KEY_BACKUP, KEY_CONTEXT, KEY_RETRY, KEY_DELIVERY, \
			KEY_DELAYED, KEY_STATS
#define LEASED_KEYS_ARM	KEY_QUEUE, KEY_RETRY, KEY_DELAYED, KEY_PAUSED

/* Parts that every kind gives to the same script. */
#define LEASED_ROLES_ANY \
	[LEASED_MINE] = LEASED_ROLE("mine", NULL, KEY_BACKUP, KEY_CONTEXT, KEY_DELIVERY), \
	[LEASED_RESCUE] = LEASED_ROLE("rescue", NULL, LEASED_KEYS_SETTLE), \
	[LEASED_BODY] = LEASED_ROLE("body", NULL, KEY_CONTEXT, KEY_DELIVERY), \
	[LEASED_HAND_OVER_LOST] = LEASED_ROLE("hand_over_lost", NULL, KEY_BACKUP, KEY_CONTEXT, \
	    KEY_RETRY, KEY_DELIVERY)
/* All parts of a kind whose source is a list. */
#define LEASED_ROLES_LIST(pop) \
	[LEASED_POP] = LEASED_ROLE(pop, NULL, LEASED_KEYS_POP_LIST), \
	[LEASED_SETTLE] = LEASED_ROLE("settle", NULL, LEASED_KEYS_SETTLE), \
	[LEASED_HAND_OVER] = LEASED_ROLE("hand_over", NULL, LEASED_KEYS_SETTLE), \
	[LEASED_RENEW] = LEASED_ROLE("renew", NULL, LEASED_KEYS_RENEW), \
	[LEASED_TICK] = LEASED_ROLE("tick", NULL, LEASED_KEYS_TICK), \
	[LEASED_ARM] = LEASED_ROLE("arm", NULL, LEASED_KEYS_ARM), \
	LEASED_ROLES_ANY

/*
 * A kind.  The arguments and answers of a part are the same for all kinds; the heads of
 * pop.lua, settle.lua and so on describe them.
 */
struct leased_kind {
	const struct queue_ops	*ops;
	struct leased_role		 role[LEASED_SCRIPTS];
	/*
	 * Messages in the source itself may fall due later (arm's "delayed").  True:
	 * the tick moves them to where pops find them.  False: pops find them in the
	 * source.
	 */
	bool			 promotes;
	size_t			 size;	/* of the object, a struct leased first; 0: that alone */
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
void		 leased_tick_round(struct queue *);
void		 leased_renew_hint(struct queue *);
const struct arrivals *leased_arrivals(const struct queue *);
unsigned	 leased_held(const struct queue *);
bool		 leased_is_empty(const struct queue *);
void		 leased_close(struct queue *);
void		 leased_free(struct queue *);
/* All members of a struct queue_ops but open, which calls leased_new(). */
#define LEASED_OPS \
	.reconfigure = leased_reconfigure, .conn_up = leased_conn_up, \
	.conn_down = leased_conn_down, .want = leased_want, .fetch = leased_fetch, \
	.defer_fetch = leased_defer_fetch, .settle = leased_settle, .tick = leased_tick_round, \
	.is_empty = leased_is_empty, .close = leased_close, .free = leased_free, \
	.renew = leased_renew_hint, .held = leased_held, .arrivals = leased_arrivals
