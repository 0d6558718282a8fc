/*
 * The table of kinds; see kind.h.
 */
#include "policy/kind.h"

#include <string.h>

const char *const kind_names[] = {
	[KIND_ACK] = "ack", [KIND_UNIQUE] = "unique", [KIND_STREAM] = "stream",
	[KIND_LIST] = "list", [KIND_CHANNEL] = "channel", [KIND_PATTERN] = "pattern",
	[KIND_EXPIRED] = "expired", [KINDS] = NULL
};

static const struct {
	enum source	 source;
	unsigned	 traits;
	const char	*key_prefix;	/* NULL: none */
} kinds[] = {
	[KIND_ACK] = { SOURCE_LIST, TRAIT_LEASES | TRAIT_TAKES_PUSHES | TRAIT_SHARDS |
	    TRAIT_GROUPS | TRAIT_LIST, NULL },
	[KIND_UNIQUE] = { SOURCE_IDS, TRAIT_LEASES | TRAIT_ID_ONLY, "Queue:" },
	[KIND_STREAM] = { SOURCE_STREAM, TRAIT_LEASES | TRAIT_CONSUMER_GROUP, NULL },
	[KIND_LIST] = { SOURCE_LIST, TRAIT_LIST, NULL },
	[KIND_CHANNEL] = { SOURCE_CHANNEL, TRAIT_SUBSCRIBES, NULL },
	[KIND_PATTERN] = { SOURCE_PATTERN, TRAIT_SUBSCRIBES, NULL },
	[KIND_EXPIRED] = { SOURCE_LIST, TRAIT_LEASES | TRAIT_KEY_EVENTS | TRAIT_ID_ONLY, NULL },
};
_Static_assert(sizeof(kinds) / sizeof(kinds[0]) == KINDS, "each kind needs a row of traits");

const char *
kind_name(enum kind kind)
{
	return kind_names[kind];
}

enum kind
kind_find(const char *name)
{
	for (int kind = 0; kind < KINDS; kind++) {
		if (strcmp(name, kind_names[kind]) == 0)
			return (enum kind)kind;
	}
	return KIND_DEFAULT;
}

enum source
kind_source(enum kind kind)
{
	return kinds[kind].source;
}

bool
kind_has(enum kind kind, enum trait trait)
{
	return (kinds[kind].traits & trait) != 0;
}

const char *
kind_key_prefix(enum kind kind)
{
	return kinds[kind].key_prefix != NULL ? kinds[kind].key_prefix : "";
}

bool
kind_waits(enum kind kind)
{
	return kinds[kind].source != SOURCE_CHANNEL && kinds[kind].source != SOURCE_PATTERN;
}
