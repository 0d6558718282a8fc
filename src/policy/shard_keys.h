/*
 * The keys of a queue that is spread over several (option shards).
 *
 * A cluster has 16,384 slots.  N shards divide them into N equal parts.  The key of a
 * part is the first of {NAME.0}, {NAME.1}, {NAME.2} ... whose slot lies in the part.
 * So N shards lie evenly on any number of equal masters, and the keys of N shards are
 * among those of 2N.  {NAME.0} is always one of them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "policy/config.h"

#define SHARDS_MAX	256

/* A power of two, from 1 to SHARDS_MAX. */
bool		 shard_keys_count_ok(int64_t n);

/* The n keys in the order of their parts; free them by util_free_list(). */
char		**shard_keys_new(const char *name, unsigned n);

/* The part, 0 to n - 1, for messages with this id, the same for all producers. */
unsigned	 shard_keys_part(const char *id, size_t len, unsigned n);

/*
 * All keys of a queue that has so many shards according to another process: those of
 * the shards, then `key` itself.  NULL: it has no shards, or their number is
 * impossible.
 */
char		**shard_keys_all(const char *key, int64_t shards);

/* Sets queue_config.shard_keys from key, shards and shards_drain. */
void		 shard_keys_set(struct queue_config *);

/* The key for a new message, as config_key_at(): by its id, or at random. */
size_t		 shard_keys_pick(const struct queue_config *, const char *message, size_t len);

/* The key in which schedules keep their state, and which they push to. */
const char	*shard_keys_schedule(const struct queue_config *);
