/*
 * Heartbeats, and sums over them; see fleet.h.
 *
 * Anybody who may write to Redis can write a heartbeat.  So the reader first bounds its size,
 * its depth, and the memory that parsing takes.  Then it keeps only the members that
 * service/heartbeat.c writes, and only in the type that heartbeat.c gives them.  A member that
 * heartbeat.c adds belongs into the tables here, or no reader will see it.
 */
#include "status/fleet.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/units.h"
#include "base/util.h"
#include "redis/reply.h"
#include "status/json_bytes.h"

#define MEMBER_MAX	4096	/* bytes of a member of KEYS_QUEUES */
#define COUNT_MAX	1e12	/* sums over a fleet stay exact below it */
#define TEXT_MAX	1024	/* bytes of one string in a heartbeat */
#define SLOW_MIN	60.0	/* seconds: a shorter run is not slow */
#define SLOW_TIMES	10.0	/* as long as usual */
#define DEPTH_MAX	5	/* heartbeat, queues, queue, in_hand, delivery */
#define WEIGHT_NEST	192	/* memory that jansson takes for an empty object, or array */
#define WEIGHT_MEMBER	96	/* and for a member with its value */

/* -- one heartbeat ---------------------------------------------------------------- */

enum type { TYPE_TEXT, TYPE_INTEGER, TYPE_NUMBER };

struct member {
	const char	*name;
	enum type	 type;
};

static const struct member daemon_members[] = {
	{ "instance", TYPE_TEXT }, { "name", TYPE_TEXT }, { "version", TYPE_TEXT },
	{ "pid", TYPE_INTEGER }, { "started", TYPE_NUMBER }, { "config", TYPE_TEXT },
	{ "max_handlers", TYPE_INTEGER }, { "log_error", TYPE_TEXT },
	{ "clock", TYPE_NUMBER },
	{ "reload_error", TYPE_TEXT },
};

static const struct member queue_members[] = {
	{ "key", TYPE_TEXT }, { "kind", TYPE_TEXT }, { "running", TYPE_INTEGER },
	{ "concurrency", TYPE_INTEGER }, { "lease", TYPE_NUMBER }, { "state", TYPE_TEXT },
	{ "blocked", TYPE_TEXT }, { "consumer_group", TYPE_TEXT }, { "reason", TYPE_TEXT },
	{ "since", TYPE_NUMBER }, { "latency", TYPE_NUMBER }, { "delayed_key", TYPE_TEXT },
	{ "taken", TYPE_INTEGER }, { "shards", TYPE_INTEGER }, { "cause", TYPE_TEXT },
	{ "config", TYPE_TEXT }, { "usual", TYPE_NUMBER }, { "cpu", TYPE_NUMBER },
	{ "maxrss", TYPE_INTEGER }, { "group_by", TYPE_TEXT },
	{ "group_concurrency", TYPE_INTEGER }, { "no_limits", TYPE_TEXT },
	{ "failed", TYPE_INTEGER }, { "waits", TYPE_NUMBER }, { "command", TYPE_TEXT },
	{ "max_attempts", TYPE_INTEGER }, { "time_limit", TYPE_NUMBER },
	{ "pop", TYPE_TEXT }, { "id", TYPE_TEXT }, { "dead_key", TYPE_TEXT },
	{ "dead_tell", TYPE_TEXT },
};

static const struct member delivery_members[] = {
	{ "attempt", TYPE_INTEGER }, { "pid", TYPE_INTEGER }, { "age", TYPE_NUMBER },
	{ "id", TYPE_TEXT }, { "id_base64", TYPE_TEXT }, { "tag", TYPE_TEXT },
	{ "tag_base64", TYPE_TEXT }, { "progress", TYPE_TEXT },
};

static const struct member error_members[] = {
	{ "tag", TYPE_TEXT }, { "tag_base64", TYPE_TEXT }, { "attempts", TYPE_INTEGER },
	{ "error", TYPE_TEXT },
};

size_t
fleet_weight(const char *text, size_t len)
{
	size_t weight = len, i;
	bool string = false;
	int depth = 0;

	if (len > BEAT_MAX)
		return SIZE_MAX;
	for (i = 0; i < len; i++) {
		if (string && text[i] == '\\')
			i++;
		else if (text[i] == '"')
			string = !string;
		else if (string)
			continue;
		else if (text[i] == '{' || text[i] == '[') {
			weight += WEIGHT_NEST;
			if (++depth > DEPTH_MAX)
				return SIZE_MAX;
		} else if (text[i] == '}' || text[i] == ']')
			depth--;
		else if (text[i] == ',')
			weight += WEIGHT_MEMBER;
	}
	return weight;
}

static bool
is_of_type(const json_t *v, enum type type)
{
	switch (type) {
	case TYPE_TEXT:
		return json_is_string(v) && json_string_length(v) <= TEXT_MAX;
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

	for (size_t i = 0; i < n; i++) {
		v = json_object_get(from, members[i].name);
		if (is_of_type(v, members[i].type))
			json_object_set(to, members[i].name, v);
	}
	return to;
}

/* A new array of objects with those members that the elements of `from` have. */
static json_t *
known_list(const json_t *from, const struct member *members, size_t n)
{
	json_t *list = json_array(), *e;
	size_t i;

	json_array_foreach(from, i, e)
		json_array_append_new(list, known(e, members, n));
	return list;
}

/* A new object with the known members; NULL: not a heartbeat, or one that is too large. */
static json_t *
read_beat(const char *text, size_t len)
{
	json_t *all, *beat = NULL, *from = NULL, *queues = NULL, *q, *to, *key;
	const char *name;

	if (fleet_weight(text, len) > BEAT_WEIGHT_MAX)
		return NULL;
	all = json_loadb(text, len, 0, NULL);
	if (json_is_object(all)) {
		beat = known(all, daemon_members, ARRAY_LEN(daemon_members));
		json_object_set_new(beat, "queues", queues = json_object());
		from = json_object_get(all, "queues");
	}
	json_object_foreach(from, name, q) {
		/* Not one whose name or key is too long: a cut key could be another queue's. */
		key = json_object_get(q, "key");
		if (!json_is_object(q) || strlen(name) > TEXT_MAX ||
		    (key != NULL && !is_of_type(key, TYPE_TEXT)))
			continue;
		to = known(q, queue_members, ARRAY_LEN(queue_members));
		json_object_set_new(to, "in_hand", known_list(json_object_get(q, "in_hand"),
		    delivery_members, ARRAY_LEN(delivery_members)));
		json_object_set_new(to, "errors", known_list(json_object_get(q, "errors"),
		    error_members, ARRAY_LEN(error_members)));
		json_object_set_new(queues, name, to);
	}
	json_decref(all);
	return beat;
}

/* -- the fleet -------------------------------------------------------------------- */

const char *
fleet_text(const json_t *object, const char *member)
{
	return or_empty(json_string_value(json_object_get(object, member)));
}

double
fleet_number(const json_t *object, const char *member, double otherwise)
{
	const json_t *v = json_object_get(object, member);

	if (!json_is_number(v))
		return otherwise;
	return json_number_value(v);
}

int64_t
fleet_count(const json_t *object, const char *member)
{
	double n = fleet_number(object, member, 0);

	if (n > 0 && n < COUNT_MAX)
		return (int64_t)n;
	return 0;
}

const json_t *
fleet_queue(const struct daemon *d, const char *key)
{
	return json_object_get(d->by_key, key);
}

/* A queue's key is its name, unless the heartbeat has another one. */
static const char *
key_of(const char *name, const json_t *queue)
{
	const char *key = fleet_text(queue, "key");

	if (key[0] == '\0')
		return name;
	return key;
}

json_t *
fleet_member(const struct redisReply *reply)
{
	size_t len;
	const char *text = reply_str(reply, &len);

	if (text == NULL || len > MEMBER_MAX)
		return NULL;
	return json_loadb(text, len, 0, NULL);
}

struct served *
fleet_served(const struct fleet *f, size_t *n)
{
	json_t *seen = json_object(), *q;
	struct served *list = NULL;
	const char *name, *key;

	*n = 0;
	for (size_t i = 0; i < f->n; i++)
		json_object_foreach(json_object_get(f->daemons[i].beat, "queues"), name, q) {
			key = key_of(name, q);
			if (json_object_get(seen, key) != NULL)
				continue;
			json_object_set_new(seen, key, json_true());
			*APPEND(list, *n) = (struct served){ name, key, q };
		}
	json_decref(seen);
	return list;
}

bool
fleet_is_full(const struct fleet *f)
{
	return f->weight >= FLEET_WEIGHT_MAX;
}

void
fleet_add(struct fleet *f, const char *instance, double seen, const char *beat, size_t len)
{
	json_t *json = NULL, *index, *q;
	const char *name;

	if (len == 0)
		return;
	if (!fleet_is_full(f) && strlen(instance) <= TEXT_MAX)
		json = read_beat(beat, len);
	if (json == NULL) {
		f->ignored++;
		return;
	}
	f->weight += fleet_weight(beat, len);
	index = json_object();
	json_object_foreach(json_object_get(json, "queues"), name, q)
		json_object_set(index, key_of(name, q), q);
	*APPEND(f->daemons, f->n) = (struct daemon){
		.beat = json, .by_key = index, .instance = xstrdup(instance),
		.seen = seen,
	};
}

static void
daemon_done(struct daemon *d)
{
	json_decref(d->by_key);
	json_decref(d->beat);
	free(d->instance);
}

bool
fleet_replace(struct fleet *f, const char *instance, double seen, const char *beat, size_t len)
{
	size_t before = f->n, ignored = f->ignored, i;
	struct daemon old;

	for (i = 0; i < before && strcmp(f->daemons[i].instance, instance) != 0; i++)
		continue;
	fleet_add(f, instance, seen, beat, len);
	if (f->n == before)
		f->ignored = ignored;	/* this one is not of Redis */
	if (f->n == before || i == before)
		return i < before;
	old = f->daemons[i];
	f->daemons[i] = f->daemons[--f->n];
	daemon_done(&old);
	return true;
}

enum kind
fleet_kind(const json_t *queue)
{
	return kind_find(fleet_text(queue, "kind"));
}

void
fleet_done(struct fleet *f)
{
	while (f->n > 0)
		daemon_done(&f->daemons[--f->n]);
	free(f->daemons);
	memset(f, 0, sizeof(*f));
}

bool
fleet_is_delivery(const json_t *entry)
{
	return json_object_get(entry, "id") != NULL || json_object_get(entry, "id_base64") != NULL;
}

const json_t *
fleet_entry(const struct daemon *d, const char *key, const char *list, const char *tag,
    size_t len)
{
	json_t *want = json_set(json_object(), "tag:b", tag, len);	/* "tag" or "tag_base64" */
	const char *name = json_object_iter_key(json_object_iter(want));
	const json_t *e, *found = NULL;
	size_t k;

	json_array_foreach(json_object_get(fleet_queue(d, key), list), k, e)
		if (json_equal(json_object_get(e, name), json_object_get(want, name))) {
			found = e;
			break;
		}
	json_decref(want);
	return found;
}

const char *
fleet_error(const struct fleet *f, const char *key, const char *tag, size_t len,
    long attempts)
{
	const json_t *e;

	for (size_t i = 0; i < f->n; i++) {
		e = fleet_entry(&f->daemons[i], key, "errors", tag, len);
		if (e != NULL && fleet_count(e, "attempts") == attempts)
			return fleet_text(e, "error");
	}
	return "";
}

/* Finds the oldest delivery that a daemon lists, and counts those of the age `slow`. */
static void
add_runs(const json_t *queue, double slow, struct service *s)
{
	const json_t *list = json_object_get(queue, "in_hand"), *e;
	double age;
	size_t i;

	json_array_foreach(list, i, e)
	{
		if (!fleet_is_delivery(e))
			continue;
		age = fleet_number(e, "age", -1);
		s->slow += age >= slow;
		if (age > s->oldest) {
			s->oldest = age;
			s->oldest_tag = fleet_text(e, "tag");
		}
	}
}

/* -- states ------------------------------------------------------------------------ */

const char *
fleet_state_name(enum queue_state state)
{
	static const char *const names[] = {
		[QUEUE_RUNNING] = "running", [QUEUE_QUIET] = "quiet",
		[QUEUE_DRAINING] = "draining", [QUEUE_PAUSED] = "paused",
		[QUEUE_NO_REDIS] = "no Redis", [QUEUE_UNSUBSCRIBED] = "unsubscribed",
		[QUEUE_REFUSED] = "refused", [QUEUE_SUSPENDED] = "suspended",
	};

	return names[state];
}

enum queue_state
fleet_state(const json_t *queue)
{
	const char *name = fleet_text(queue, "state");

	for (enum queue_state s = QUEUE_SUSPENDED; s > QUEUE_RUNNING; s--)
		if (strcmp(name, fleet_state_name(s)) == 0)
			return s;
	return QUEUE_RUNNING;
}

/* -- settings that differ ------------------------------------------------------------ */

static const char *const setting_names[] = {
	[SETTING_COMMAND] = "command", [SETTING_MAX_ATTEMPTS] = "max_attempts",
	[SETTING_TIME_LIMIT] = "time_limit",
};

const char *
fleet_setting_name(enum fleet_setting i)
{
	return setting_names[i];
}

/* Appends the value, and the daemon that has it. */
static void
add_value(struct buf *b, enum fleet_setting i, const json_t *value, const struct daemon *d)
{
	char age[UNITS_TEXT_MAX];

	switch (i) {
	case SETTING_COMMAND:
		buf_puts(b, json_string_value(value));
		break;
	case SETTING_MAX_ATTEMPTS:
		buf_printf(b, "%lld", (long long)json_integer_value(value));
		break;
	case SETTING_TIME_LIMIT:
		if (json_number_value(value) > 0)
			buf_puts(b, units_age(json_number_value(value), age));
		else
			buf_addc(b, '0');
		break;
	case SETTING_MAX:
		break;
	}
	buf_printf(b, " on %s", d->instance);
}

char *
fleet_disagreement(const struct service *s, enum fleet_setting i)
{
	const struct disagreement *d = &s->disagree[i];
	struct buf b = BUF_INIT;

	if (d->other == NULL)
		return NULL;
	buf_printf(&b, "%s is ", setting_names[i]);
	add_value(&b, i, d->ones, d->one);
	buf_puts(&b, " and ");
	add_value(&b, i, d->others, d->other);
	return buf_steal(&b);
}

/* Compares the settings of a daemon with those of the first one that has them. */
static void
compare_settings(struct service *s, const struct daemon *d, const json_t *queue)
{
	struct disagreement *a;
	const json_t *value;

	for (enum fleet_setting i = 0; i < SETTING_MAX; i++) {
		a = &s->disagree[i];
		value = json_object_get(queue, setting_names[i]);
		if (value == NULL || a->other != NULL)
			continue;
		if (a->one == NULL) {
			a->one = d;
			a->ones = value;
		} else if (!json_equal(a->ones, value)) {
			a->other = d;
			a->others = value;
		}
	}
}

char *
fleet_difference(const struct service *s)
{
	char least[UNITS_TEXT_MAX], most[UNITS_TEXT_MAX];
	struct buf b = BUF_INIT;

	if (!s->settings_differ)
		return NULL;
	for (enum fleet_setting i = 0; i < SETTING_MAX; i++)
		if (s->disagree[i].other != NULL)
			buf_printf(&b, "%s, ", setting_names[i]);
	if (s->concurrency_least != s->concurrency_most)
		buf_printf(&b, "at most %lld to %lld messages in flight, ",
		    (long long)s->concurrency_least, (long long)s->concurrency_most);
	if (s->leases_differ)
		buf_printf(&b, "lease from %s to %s, ", units_age(s->lease_least, least),
		    units_age(s->lease_most, most));
	if (b.len == 0 && s->shards_differ)
		buf_puts(&b, "shards, ");
	else if (b.len == 0 && s->groups_differ)
		buf_puts(&b, "groups, ");
	else if (b.len == 0)
		buf_puts(&b, "an option that heartbeats do not have, ");
	b.len -= 2;		/* the last ", " */
	return buf_steal(&b);
}

/* The age at which a run is slow. */
static double
slow_age(double usual)
{
	if (usual <= 0)
		return INFINITY;
	if (usual < SLOW_MIN / SLOW_TIMES)
		return SLOW_MIN;
	return SLOW_TIMES * usual;
}

void
fleet_service(const struct fleet *f, const char *key, struct service *s)
{
	double lease = -1, theirs, latency, usual, slow, waits;
	int64_t most;
	enum queue_state state;
	const char *config, *version;
	const struct daemon *d;
	const json_t *q, *first = NULL;

	*s = (struct service){ .oldest = -1, .oldest_tag = "", .latency = -1, .waits = -1,
	    .reason = "", .cause = "", .config = "", .version = "" };
	for (size_t k = 0; k < f->n; k++) {
		usual = fleet_number(fleet_queue(&f->daemons[k], key), "usual", 0);
		if (usual > s->usual)
			s->usual = usual;
	}
	slow = slow_age(s->usual);
	for (size_t k = 0; k < f->n; k++) {
		d = &f->daemons[k];
		if ((q = fleet_queue(d, key)) == NULL)
			continue;
		most = fleet_count(q, "concurrency");
		s->daemons++;
		s->running += fleet_count(q, "running");
		s->concurrency += most;
		s->cpu += fleet_number(q, "cpu", 0);
		s->maxrss = int64_max(s->maxrss, fleet_count(q, "maxrss"));
		add_runs(q, slow, s);
		if (strcmp(fleet_text(q, "blocked"), "limited") == 0)
			s->limited = true;

		theirs = fleet_number(q, "lease", lease);
		s->leases_differ |= lease >= 0 && theirs != lease;
		if (lease < 0 || theirs < s->lease_least)
			s->lease_least = theirs;
		if (lease < 0 || theirs > s->lease_most)
			s->lease_most = theirs;
		lease = theirs;
		if (first == NULL)
			first = q;
		s->shards_differ |= fleet_count(q, "shards") != fleet_count(first, "shards");
		s->groups_differ |= fleet_count(q, "group_concurrency") !=
		    fleet_count(first, "group_concurrency") ||
		    strcmp(fleet_text(q, "group_by"), fleet_text(first, "group_by")) != 0;

		/* The longest that a daemon knew when it wrote its heartbeat. */
		latency = fleet_number(q, "latency", -1);
		if (latency > s->latency) {
			s->latency = latency;
			s->latency_at = d->seen;
			s->latency_taken = (int64_t)fleet_number(q, "taken", -1);
		}

		s->failed = int64_max(s->failed, fleet_count(q, "failed"));

		/* The worst state, and its cause. */
		state = fleet_state(q);
		if (state > s->state) {
			s->state = state;
			s->reason = fleet_text(q, "reason");
			s->cause = fleet_text(q, "cause");
			s->since = fleet_number(q, "since", 0);
		}
		waits = fleet_number(q, "waits", -1);
		if (waits > s->waits)
			s->waits = waits;
		compare_settings(s, d, q);

		/*
		 * Hashes of settings.  Another version prints other options, so its hash does not
		 * count.  config and version are those of the first daemon with a hash.
		 */
		config = fleet_text(q, "config");
		version = fleet_text(d->beat, "version");
		if (s->config[0] == '\0') {
			s->config = config;
			s->version = version;
			s->concurrency_least = s->concurrency_most = most;
		}
		if (config[0] == '\0' || strcmp(version, s->version) != 0)
			continue;
		s->settings_differ |= strcmp(config, s->config) != 0;
		if (most < s->concurrency_least)
			s->concurrency_least = most;
		if (most > s->concurrency_most)
			s->concurrency_most = most;
	}
}
