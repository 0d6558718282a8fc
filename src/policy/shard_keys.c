/* The keys of shards; see shard_keys.h. */
#include "policy/shard_keys.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "policy/message.h"
#include "redis/slots.h"

bool
shard_keys_count_ok(int64_t n)
{
	return n >= 1 && n <= SHARDS_MAX && (n & (n - 1)) == 0;
}

char **
shard_keys_new(const char *name, unsigned n)
{
	char **keys = xcalloc(n + 1, sizeof(*keys)), *key;
	unsigned found = 0, part;

	for (unsigned k = 0; found < n; k++) {
		key = xasprintf("{%s.%u}", name, k);
		part = slot_of(key, strlen(key)) / (SLOTS / n);
		if (keys[part] != NULL) {
			free(key);
			continue;
		}
		keys[part] = key;
		found++;
	}
	return keys;
}

unsigned
shard_keys_part(const char *id, size_t len, unsigned n)
{
	return slot_of_text(id, len) / (SLOTS / n);
}

char **
shard_keys_all(const char *key, int64_t shards)
{
	char **keys = NULL, *name;
	size_t n = (size_t)shards, len = strlen(key);

	if (shards <= 1 || !shard_keys_count_ok(shards) || key[0] == '\0')
		return NULL;
	/* On a cluster the key of the whole queue has a hash tag around the name. */
	name = len > 2 && key[0] == '{' && key[len - 1] == '}' ? xstrndup(key + 1, len - 2) :
	    xstrdup(key);
	if (strpbrk(name, "{}") == NULL) {
		keys = xreallocarray(shard_keys_new(name, (unsigned)n), n + 2, sizeof(*keys));
		keys[n] = xstrdup(key);
		keys[n + 1] = NULL;
	}
	free(name);
	return keys;
}

/*
 * A key with a brace gets no shards, because all of them would have one tag; the error
 * is reported later.
 */
void
shard_keys_set(struct queue_config *q)
{
	bool brace = strpbrk(q->keys[0], "{}") != NULL;
	unsigned shards = brace ? 1 : (unsigned)q->shards;
	unsigned drain = brace ? 1 : (unsigned)q->shards_drain;
	unsigned most = shards > drain ? shards : drain;
	char **all, **keys;
	size_t n = shards > 1 ? shards : 0, before = n;

	if (q->shards <= 1 && q->shards_drain <= 1)
		return;
	all = n > 0 ? shard_keys_new(q->keys[0], shards) : NULL;
	all = xreallocarray(all, most + 2, sizeof(*all));
	if (drain > shards) {
		keys = shard_keys_new(q->keys[0], drain);
		for (char **k = keys; *k != NULL; k++) {
			if (util_has(all, before, *k))
				free(*k);
			else
				all[n++] = *k;
		}
		free(keys);
	}
	all[n++] = xstrdup(q->key);
	all[n] = NULL;
	q->shard_keys = all;
	q->nshard_keys = n;
}

size_t
shard_keys_pick(const struct queue_config *q, const char *message, size_t len)
{
	unsigned n = (unsigned)q->shards;
	char id[MESSAGE_ID_MAX + 1];

	if (q->shards <= 1)
		return config_key_count(q) - 1;
	if (message_id(q->id, message, len, id) == 0)
		return shard_keys_part(id, strlen(id), n);
	return random_u64() % n;
}

const char *
shard_keys_schedule(const struct queue_config *q)
{
	int i = 0;

	if (q->shards <= 1)
		return q->key;
	while (strcmp(q->shard_keys[i] + strlen(q->keys[0]) + 1, ".0}") != 0)
		i++;
	return q->shard_keys[i];
}
