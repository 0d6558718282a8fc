/*
 * Names of Redis keys: doc/keys.md.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "policy/config.h"
#include "redis/words.h"

enum key {
	KEY_QUEUE, KEY_BACKUP, KEY_CONTEXT, KEY_DELIVERY, KEY_RETRY,
	KEY_DELAYED, KEY_DEAD, KEY_PAUSED, KEY_STATS, KEY_SCHEDULE, KEY_RATE,
	KEY_HELD, KEY_GROUP, KEY_ORDER,
	KEY_MAX
};

/* All derived from Q; owned, NUL-terminated. */
struct keys {
	char	*name[KEY_MAX];
	size_t	 len[KEY_MAX];
	char	*group;		/* the consumer group, if Q is a stream and it is known; owned */
};

void		 keys_init(struct keys *, const char *q);
void		 keys_done(struct keys *);
void		 keys_set_group(struct keys *, const char *);	/* "": not known */
void		 keys_set_delayed(struct keys *, const char *);	/* in place of QDELAYED; "": not */
const char	*keys_group(const struct keys *);	/* the default if it is not known */
const char	*keys_suffix(enum key);		/* "" "BACKUP" "CONTEXT" ... */
void		 keys_add(const struct keys *, struct words *, enum key);	/* as words_key() */
/* Whether the name is Q or derived from it. */
bool		 keys_is_one(const char *q, const char *name, size_t len);

#define KEYS_DAEMON_PREFIX	"rqd:daemon:"
#define KEYS_DAEMONS		"rqd:daemons"
#define KEYS_QUEUES		"rqd:daemons:queues"
#define GROUP_DEFAULT	"rqd"		/* as consumer_group has it by default */
#define KEYS_CONTROL_PREFIX	"rqd:control:"
#define KEYS_LOCK_PREFIX	"Lock:"
