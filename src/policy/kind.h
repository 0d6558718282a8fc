/*
 * The kinds of queue: one row of traits for each.
 *
 * Other code does not name a kind: it asks for a trait, or for the source.  So
 * a new kind with a known source is a value here, a row in kind.c and in
 * queue/queue_kinds.c, and a file of its own (HACKING.md, "A kind of queue").
 */
#pragma once

#include <stdbool.h>

enum kind {
	KIND_ACK, KIND_UNIQUE, KIND_STREAM, KIND_LIST, KIND_CHANNEL,
	KIND_PATTERN, KIND_EXPIRED,
	KINDS,			/* the number of kinds */
	KIND_DEFAULT = KIND_ACK
};

/*
 * The place where messages wait before their first delivery; it decides how they are
 * pushed and counted.
 */
enum source {
	SOURCE_LIST,		/* Q is a list */
	SOURCE_IDS,		/* Q is a zset of ids; the scores say when they are due */
	SOURCE_STREAM,		/* Q is a stream */
	SOURCE_CHANNEL,		/* nowhere: producers publish to channels */
	SOURCE_PATTERN,		/* nowhere: producers publish to channels that a pattern matches */
};

/* Bits of a set. */
enum trait {
	TRAIT_LEASES = 1 << 0,		/* at least once: leases, retries, delays, dead letters */
	/* `key` names channels or patterns; Q is the queue's name */
	TRAIT_SUBSCRIBES = 1 << 1,
	/* messages are names of keys, from keyspace notifications */
	TRAIT_KEY_EVENTS = 1 << 2,
	TRAIT_CONSUMER_GROUP = 1 << 3,	/* reads through a consumer group */
	TRAIT_LIST = 1 << 4,		/* has a list that producers push to: `pop`, `id` */
	TRAIT_ID_ONLY = 1 << 5,		/* the whole message is its id */
	TRAIT_TAKES_PUSHES = 1 << 6,	/* handlers of other queues may push to it */
	TRAIT_SHARDS = 1 << 7,		/* it may be spread over several keys */
	TRAIT_GROUPS = 1 << 8,		/* messages may belong to groups, see group_by */
};

/* Names as in kind = "...", by enum kind; NULL-terminated. */
extern const char *const kind_names[];

const char	*kind_name(enum kind);
enum kind	 kind_find(const char *name);		/* KIND_DEFAULT: no such kind */
enum source	 kind_source(enum kind);
bool		 kind_has(enum kind, enum trait);
/* By default Q is this and the queue's name. */
const char	*kind_key_prefix(enum kind);

/* Whether messages wait in Redis, in Q; otherwise messages that no daemon hears are lost. */
bool		 kind_waits(enum kind);
