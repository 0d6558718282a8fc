/*
 * Reading one heartbeat; see beat.h.  A member that heartbeat.c adds belongs into
 * these tables, or no reader will see it.
 */
#include "status/beat.h"

#include <stdbool.h>
#include <string.h>

#include "base/util.h"

#define DEPTH_MAX	5	/* heartbeat, queues, queue, in_hand, delivery */
#define WEIGHT_NEST	192	/* memory that jansson takes for an empty object, or array */
#define WEIGHT_MEMBER	96	/* and for a member with its value */

enum type { TYPE_TEXT, TYPE_INTEGER, TYPE_NUMBER };

struct member {
	const char	*name;
	enum type	 type;
};

static const struct member daemon_members[] = {
	{ "instance", TYPE_TEXT }, { "name", TYPE_TEXT }, { "version", TYPE_TEXT },
	{ "pid", TYPE_INTEGER }, { "started", TYPE_NUMBER }, { "config", TYPE_TEXT },
	{ "max_handlers", TYPE_INTEGER }, { "log_error", TYPE_TEXT },
};

static const struct member queue_members[] = {
	{ "key", TYPE_TEXT }, { "kind", TYPE_TEXT }, { "running", TYPE_INTEGER },
	{ "concurrency", TYPE_INTEGER }, { "lease", TYPE_NUMBER }, { "state", TYPE_TEXT },
	{ "blocked", TYPE_TEXT }, { "consumer_group", TYPE_TEXT }, { "reason", TYPE_TEXT },
	{ "since", TYPE_NUMBER },
};

static const struct member delivery_members[] = {
	{ "attempt", TYPE_INTEGER }, { "pid", TYPE_INTEGER }, { "age", TYPE_NUMBER },
	{ "id", TYPE_TEXT }, { "id_base64", TYPE_TEXT }, { "tag", TYPE_TEXT },
	{ "tag_base64", TYPE_TEXT },
};

/* The length of the string that begins at s, with its quotes. */
static size_t
string_length(const char *s, size_t len)
{
	size_t i = 1;

	while (i < len && s[i] != '"')
		i += s[i] == '\\' ? 2 : 1;
	return i < len ? i + 1 : len;
}

size_t
beat_weight(const char *text, size_t len)
{
	size_t weight = len, i, n;
	int depth = 0;

	if (len > BEAT_MAX)
		return SIZE_MAX;
	for (i = 0; i < len; i += n) {
		n = text[i] == '"' ? string_length(text + i, len - i) : 1;
		if (text[i] == '{' || text[i] == '[') {
			weight += WEIGHT_NEST;
			if (++depth > DEPTH_MAX)
				return SIZE_MAX;
		} else if (text[i] == '}' || text[i] == ']') {
			depth--;
		} else if (text[i] == ',') {
			weight += WEIGHT_MEMBER;
		}
	}
	return weight;
}

static bool
is_of_type(const json_t *v, enum type type)
{
	switch (type) {
	case TYPE_TEXT:
		return json_is_string(v) && json_string_length(v) <= BEAT_TEXT_MAX;
	case TYPE_INTEGER:
		return json_is_integer(v);
	case TYPE_NUMBER:
		return json_is_number(v);
	}
	return false;
}

/* A new object with those of the members that `from` has in the right type. */
static json_t *
known(const json_t *from, const struct member *members, size_t n)
{
	json_t *to = json_object(), *v;
	size_t i;

	for (i = 0; i < n; i++) {
		v = json_object_get(from, members[i].name);
		if (is_of_type(v, members[i].type))
			json_object_set(to, members[i].name, v);
	}
	return to;
}

static json_t *
read_deliveries(const json_t *from)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < json_array_size(from); i++)
		json_array_append_new(list, known(json_array_get(from, i), delivery_members,
		    ARRAY_LEN(delivery_members)));
	return list;
}

/* A queue whose name or key is too long is left out: its key would be taken for another. */
static json_t *
read_queues(json_t *from)
{
	json_t *queues = json_object(), *q, *to, *key;
	const char *name;

	json_object_foreach(from, name, q) {
		key = json_object_get(q, "key");
		if (!json_is_object(q) || strlen(name) > BEAT_TEXT_MAX ||
		    (key != NULL && !is_of_type(key, TYPE_TEXT)))
			continue;
		to = known(q, queue_members, ARRAY_LEN(queue_members));
		json_object_set_new(to, "in_hand", read_deliveries(json_object_get(q, "in_hand")));
		json_object_set_new(queues, name, to);
	}
	return queues;
}

json_t *
beat_read(const char *text, size_t len)
{
	json_t *all, *beat = NULL;

	if (beat_weight(text, len) > BEAT_WEIGHT_MAX)
		return NULL;
	all = json_loadb(text, len, 0, NULL);
	if (json_is_object(all)) {
		beat = known(all, daemon_members, ARRAY_LEN(daemon_members));
		json_object_set_new(beat, "queues", read_queues(json_object_get(all, "queues")));
	}
	json_decref(all);
	return beat;
}
