/*
 * The daemons that are alive, by their heartbeats (doc/keys.md).
 *
 * The index rqd:daemons names the instances.  Each has a heartbeat, a key with a TTL, and
 * is alive while that key exists.  Readers look at the latest FLEET_MAX of the index, and
 * never SCAN.
 *
 * A heartbeat is JSON, and all its members are optional.  The functions here return NULL
 * or a default for a member that is missing or has another type.  A heartbeat that is too
 * large is left out and counted, and so are all that follow once
 * FLEET_WEIGHT_MAX is reached.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/config.h"

#define FLEET_MAX	1000		/* daemons that are looked at: the latest */
#define FLEET_WEIGHT_MAX ((size_t)48 << 20)	/* memory that all heartbeats may take */
#define BEAT_MAX	((size_t)1 << 20)	/* bytes of one heartbeat */
#define BEAT_WEIGHT_MAX	((size_t)8 << 20)	/* memory that one may take */

struct daemon {
	json_t		*beat;		/* owned; an object */
	json_t		*by_key;	/* owned; its queues by their keys */
	char		*instance;	/* owned */
	double		 seen;		/* Redis seconds of the heartbeat */
};

struct fleet {
	struct daemon	*daemons;
	size_t		 n;
	size_t		 weight;	/* of their heartbeats, see fleet_weight() */
	size_t		 ignored;	/* heartbeats that are too large, or none */
	size_t		 unread;	/* instances of the index beyond FLEET_MAX */
};

/*
 * About how many bytes of memory a parser takes for the text of a heartbeat.  More than
 * BEAT_WEIGHT_MAX: the text is longer than BEAT_MAX, or nested deeper than a heartbeat
 * is.
 */
size_t	fleet_weight(const char *, size_t);

/* Adds a daemon by its heartbeat; len 0: it has none any more. */
void	fleet_add(struct fleet *, const char *instance, double seen, const char *beat,
	    size_t len);
/*
 * The same, in place of the heartbeat that the daemon has there.  Returns whether it had one, and
 * keeps that one if the new one is not readable.
 */
bool	fleet_replace(struct fleet *, const char *instance, double seen, const char *beat,
	    size_t len);
/* More heartbeats would only be ignored: do not ask for them. */
bool	fleet_is_full(const struct fleet *);
void	fleet_done(struct fleet *);

const char *fleet_text(const json_t *object, const char *member);	/* "" */
double	fleet_number(const json_t *object, const char *member, double otherwise);
int64_t	fleet_count(const json_t *object, const char *member);	/* 0: not a count */

/*
 * Whether an entry of in_hand is a delivery; false: a batch that goes on although all
 * its messages are settled.
 */
bool	fleet_is_delivery(const json_t *entry);

/* The daemon's figures of the queue with this key; NULL: it does not serve the queue. */
const json_t *fleet_queue(const struct daemon *, const char *key);

/* The entry with this tag in a list ("in_hand", "errors") of the daemon's queue; NULL: none. */
const json_t *fleet_entry(const struct daemon *, const char *key, const char *list,
	    const char *tag, size_t len);
/*
 * Why the message with this tag, which has failed so often, failed last, as far as a daemon that
 * serves the queue tells it; borrowed from the fleet; "": none does.
 */
const char *fleet_error(const struct fleet *, const char *key, const char *tag, size_t len,
	    long attempts);

/* A new object of a member of KEYS_QUEUES; NULL: the reply is none. */
struct redisReply;
json_t	*fleet_member(const struct redisReply *);

/* A queue that some daemon serves, as the first of them says it; borrowed from the fleet. */
struct served {
	const char	*name;
	const char	*key;
	const json_t	*queue;
};

/* All of them, each key once; the caller frees the array. */
struct served *fleet_served(const struct fleet *, size_t *n);

/* The kind that the daemon names; KIND_DEFAULT: none that is known. */
enum kind	 fleet_kind(const json_t *queue);

/*
 * The state of a queue in one daemon, as its heartbeat names it.  The later a state comes here,
 * the more an operator must know of it: of several daemons the last one counts.
 */
enum queue_state {
	QUEUE_RUNNING, QUEUE_QUIET, QUEUE_DRAINING, QUEUE_PAUSED, QUEUE_NO_REDIS,
	QUEUE_UNSUBSCRIBED, QUEUE_REFUSED, QUEUE_SUSPENDED
};

const char	*fleet_state_name(enum queue_state);
/* QUEUE_RUNNING if the heartbeat names none that is known. */
enum queue_state fleet_state(const json_t *queue);

/* Settings, besides the lease, that heartbeats have so that readers can compare them. */
enum fleet_setting { SETTING_COMMAND, SETTING_MAX_ATTEMPTS, SETTING_TIME_LIMIT, SETTING_MAX };

/* What a setting is in two daemons that disagree; all borrowed from the fleet. */
struct disagreement {
	const struct daemon *one, *other;	/* NULL: no two daemons disagree */
	const json_t	*ones, *others;		/* the values */
};

/* Sums over all daemons that serve the queue. */
struct service {
	int		 daemons;
	int64_t		 running;
	int64_t		 concurrency;
	double		 oldest;	/* seconds that a handler has run; -1: none known */
	const char	*oldest_tag;	/* its message's; "": not known; borrowed */
	double		 usual;		/* seconds that a run takes at most; 0: not known */
	double		 cpu;		/* seconds of handlers since their daemons started */
	int64_t		 maxrss;	/* bytes: the largest of late; 0: not known */
	int64_t		 slow;		/* runs that take far longer: perhaps they hang */
	double		 latency;	/* of a list, the longest of any heartbeat; -1: unknown */
	double		 latency_at;	/* Redis seconds of that heartbeat */
	int64_t		 latency_taken;	/* so many had been taken; -1: not said */
	enum queue_state state;		/* the worst */
	const char	*reason;	/* these two are borrowed from the fleet */
	const char	*cause;		/* of a suspension: the last failure; "": not said */
	int64_t		 failed;	/* suspended: messages that failed since the last success */
	double		 since;		/* wall seconds; 0: not said */
	double		 waits;		/* suspended: so long a message has waited, at least; -1 */
	bool		 leases_differ;
	double		 lease_least, lease_most;	/* seconds */
	bool		 settings_differ; /* of daemons of one version, by hashes of the queue */
	const char	*config, *version;	/* one of these hashes, and its daemon; private */
	int64_t		 concurrency_least, concurrency_most;
	bool		 shards_differ;	/* some daemon does not serve all keys */
	bool		 groups_differ;	/* messages of one group may run at once, in any order */
	struct disagreement disagree[SETTING_MAX];
	/* some daemon is kept from taking more, by rate or fleet_concurrency */
	bool		 limited;
};
void	fleet_service(const struct fleet *, const char *key, struct service *);

/*
 * Names the settings of the queue that differ between daemons, as far as heartbeats
 * have them: "command, at most 1 to 4 messages in flight".  NULL: none.  The caller frees it.
 */
char	*fleet_difference(const struct service *);

/* "max_attempts" */
const char	*fleet_setting_name(enum fleet_setting);
/* "max_attempts is 3 on web1.x and 5 on web2.y"; NULL: all agree.  The caller frees it. */
char	*fleet_disagreement(const struct service *, enum fleet_setting);
