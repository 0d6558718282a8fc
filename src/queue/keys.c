/*
 * Names of Redis keys: Q and the suffixes of doc/keys.md.
 */
#include "queue/keys.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"

static const char *const keys_suffixes[KEY_MAX] = {
	[KEY_QUEUE] = "",
	[KEY_BACKUP] = "BACKUP",
	[KEY_CONTEXT] = "CONTEXT",
	[KEY_DELIVERY] = "DELIVERY",
	[KEY_RETRY] = "RETRY",
	[KEY_DELAYED] = "DELAYED",
	[KEY_DEAD] = "DEAD",
	[KEY_PAUSED] = "PAUSED",
	[KEY_STATS] = "STATS",
	[KEY_SCHEDULE] = "SCHEDULE",
	[KEY_RATE] = "RATE",
	[KEY_HELD] = "HELD",
	[KEY_GROUP] = "GROUP",
	[KEY_ORDER] = "ORDER",
};

void
keys_init(struct keys *k, const char *q)
{
	for (int i = 0; i < KEY_MAX; i++) {
		k->name[i] = xasprintf("%s%s", q, keys_suffixes[i]);
		k->len[i] = strlen(k->name[i]);
	}
	k->group = NULL;
}

void
keys_set_group(struct keys *k, const char *group)
{
	xreplace(&k->group, group[0] != '\0' ? group : NULL);
}

void
keys_set_delayed(struct keys *k, const char *name)
{
	if (name[0] == '\0')
		return;
	xreplace(&k->name[KEY_DELAYED], name);
	k->len[KEY_DELAYED] = strlen(name);
}

const char *
keys_group(const struct keys *k)
{
	return k->group != NULL ? k->group : GROUP_DEFAULT;
}

void
keys_done(struct keys *k)
{
	for (int i = 0; i < KEY_MAX; i++)
		free(k->name[i]);
	free(k->group);
	memset(k, 0, sizeof(*k));
}

const char *
keys_suffix(enum key key)
{
	return keys_suffixes[key];
}

void
keys_add(const struct keys *k, struct words *w, enum key key)
{
	words_key(w, k->name[key], k->len[key]);
}

bool
keys_is_one(const char *q, const char *name, size_t len)
{
	size_t qlen = strlen(q), n;

	if (len < qlen || memcmp(name, q, qlen) != 0)
		return false;
	for (int i = 0; i < KEY_MAX; i++) {
		n = strlen(keys_suffixes[i]);
		if (len - qlen == n && memcmp(name + qlen, keys_suffixes[i], n) == 0)
			return true;
	}
	return false;
}
