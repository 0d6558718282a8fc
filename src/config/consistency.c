/*
 * Checks options against each other: names and keys of queues, limits that belong
 * together, hand-over, schedules and their queues.  It also parses the cron of each
 * schedule.
 *
 * The daemon and rqctl both run these checks.  Only the check of timezones depends on this
 * machine, and rqctl leaves it out: the daemons may run elsewhere.
 */
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "base/utf8.h"
#include "config/draft.h"
#include "redis/slots.h"
#include "policy/message.h"
#include "policy/shard_keys.h"
#include "policy/zone.h"
#include "queue/keys.h"

#define TIME_LEN	21	/* "@2026-11-21T08:00:00Z" behind a schedule's name makes an id */

/* -- names and keys ------------------------------------------------------------------ */

/* The titles of all queues, or of all schedules. */
static void
check_names(struct draft *d, const struct draft_sections *all)
{
	char place[PLACE_TEXT_MAX];

	for (size_t i = 0; i < all->n; i++) {
		const struct draft_section *s = &all->list[i];
		int max = MESSAGE_ID_MAX;
		size_t len = strlen(s->name), j = i;

		if (s->queue == NULL)
			max -= TIME_LEN;
		if (!message_id_ok(s->name, len) || len > (size_t)max ||
		    !utf8_is_valid(s->name, len))
			finding_error(&d->findings, &s->at, "%s \"%.40s\": a name has 1 to %d "
			    "bytes of UTF-8 and no control characters",
			    section_name(s->section), s->name, max);
		while (j > 0 && strcmp(all->list[j - 1].name, s->name) != 0)
			j--;
		if (j > 0)
			finding_error(&d->findings, &s->at, "%s \"%s\" is defined twice (first at "
			    "%s)", section_name(s->section), s->name,
			    place_text(&all->list[j - 1].at, place));
	}
}

/* Whether rqd makes this key of one of the queue's. */
static bool
uses_key(const struct queue_config *q, const char *key)
{
	for (size_t i = 0; i < config_key_count(q); i++) {
		if (keys_is_one(config_key_at(q, i), key, strlen(key)))
			return true;
	}
	return false;
}

static void
check_keys(struct draft *d)
{
	char place[PLACE_TEXT_MAX];

	for (size_t i = 0; i < d->queues.n; i++) {
		const struct draft_section *s = &d->queues.list[i], *same = NULL, *user = NULL;
		const char *key = s->queue->key;

		for (size_t j = 0; j < d->queues.n; j++) {
			const struct draft_section *other = &d->queues.list[j];
			bool equal = strcmp(other->queue->key, key) == 0;

			if (equal && j < i)
				same = other;
			if (!equal && uses_key(other->queue, key))
				user = other;
		}
		if (same != NULL && strcmp(same->name, s->name) != 0)
			draft_error(d, s, "key", "queue \"%s\" has the same key as queue \"%s\" "
			    "(%s): \"%s\"", s->name, same->name, place_text(&same->at, place), key);
		if (same == NULL && user != NULL)
			draft_error(d, s, "key", "the key \"%s\" of queue \"%s\" is one that "
			    "queue \"%s\" (%s) uses: give it another name or key", key, s->name,
			    user->name, place_text(&user->at, place));
		if (strcmp(key, KEYS_DAEMONS) == 0 || strcmp(key, KEYS_QUEUES) == 0 ||
		    strncmp(key, KEYS_DAEMON_PREFIX, strlen(KEYS_DAEMON_PREFIX)) == 0)
			draft_error(d, s, "key", "the key \"%s\" is one that daemons use for "
			    "themselves: give the queue another one", key);
	}
}

/* -- options of a queue --------------------------------------------------------------- */

/* The option, if it is given; else the other one. */
static const char *
given_option(const struct draft_section *s, const char *option,
    const char *other)
{
	if (draft_setting(s, option) != NULL)
		return option;
	return other;
}

static void
check_shards(struct draft *d, const struct draft_section *s)
{
	const struct queue_config *q = s->queue;

	if (!shard_keys_count_ok(q->shards) && draft_is_sound(s, "shards"))
		draft_error(d, s, "shards", "shards %d is not a power of two", q->shards);
	if (!shard_keys_count_ok(q->shards_drain) && draft_is_sound(s, "shards_drain"))
		draft_error(d, s, "shards_drain", "shards_drain %d is not a power of two",
		    q->shards_drain);
	if (!config_is_sharded(q))
		return;
	if (strpbrk(q->keys[0], "{}") != NULL)
		draft_error(d, s, given_option(s, "key", "shards"),
		    "the key \"%s\" of a queue with shards has a brace: rqd writes {KEY.0}, "
		    "{KEY.1} ...; give it a key without braces", q->keys[0]);
	if (q->rate[0] != '\0')
		draft_error(d, s, "rate", "rate cannot be used with shards: no key knows what the "
		    "others deliver; write shards = 1");
	if (q->fleet_concurrency > 0)
		draft_error(d, s, "fleet_concurrency", "fleet_concurrency cannot be used with "
		    "shards: no key knows what the others deliver; write shards = 1");
	if (q->group_by[0] != '\0')
		draft_error(d, s, "group_by", "group_by cannot be used with shards: no key knows "
		    "what the others deliver; write shards = 1");
}

/* Times that do not fit together, and a queue without a command. */
static void
check_limits(struct draft *d, const struct draft_section *s)
{
	const struct queue_config *q = s->queue;
	char a[UNITS_TEXT_MAX], b[UNITS_TEXT_MAX];

	if (config_consumes(q) && q->command[0] == NULL && draft_is_sound(s, "command"))
		draft_error(d, s, "command", "queue \"%s\" has no command: write "
		    "command = {\"/path/to/command\"}", s->name);
	if (q->backoff > q->backoff_max && draft_is_sound(s, "backoff") &&
	    draft_is_sound(s, "backoff_max"))
		draft_error(d, s, given_option(s, "backoff", "backoff_max"),
		    "backoff %s is longer than backoff_max %s", units_duration(q->backoff, a),
		    units_duration(q->backoff_max, b));
	if (q->lease <= d->config->redis.timeout && draft_setting(s, "lease") != NULL &&
	    draft_is_sound(s, "lease"))
		draft_warn(d, s, "lease", "lease %s is not longer than redis.timeout %s: a slow "
		    "answer may cost the lease", units_duration(q->lease, a),
		    units_duration(d->config->redis.timeout, b));
}

/*
 * A Redis Cluster needs one database, all keys of a queue in one slot, and the queues that one
 * script writes in one slot, too.  A hash tag, the text in braces, decides the slot: "{orders}"
 * and "{orders}DEAD" share it.
 */
static bool
has_tag(const struct queue_config *q)
{
	return slot_has_tag(q->key, strlen(q->key));
}

/* A delayed_key must have no other use. */
static void
check_delayed(struct draft *d, const struct draft_section *s)
{
	const struct queue_config *q = s->queue;
	const char *key = q->delayed_key;
	char place[PLACE_TEXT_MAX];

	if (key[0] == '\0')
		return;
	for (size_t i = 0; i < d->queues.n; i++) {
		const struct draft_section *other = &d->queues.list[i];

		if (uses_key(other->queue, key) ||
		    (other != s && strcmp(other->queue->delayed_key, key) == 0))
			draft_error(d, s, "delayed_key", "the delayed_key \"%s\" is a key that "
			    "queue \"%s\" (%s) uses", key, other->name,
			    place_text(&other->at, place));
	}
	if (config_is_sharded(q))
		draft_error(d, s, "delayed_key", "delayed_key cannot be used with shards, which "
		    "have a key of delayed messages each; write shards = 1");
	else if (d->config->redis.clusters[0] != NULL && has_tag(q) &&
	    slot_of(q->key, strlen(q->key)) != slot_of(key, strlen(key)))
		draft_error(d, s, "delayed_key", "the delayed_key \"%s\" is in another slot of the "
		    "cluster than \"%s\": give both one hash tag", key, q->key);
}

/* A queue that messages are pushed to, by the scripts of this one.  NULL: there is none. */
static const struct queue_config *
check_push(struct draft *d, const struct draft_section *s, const char *option, const char *name)
{
	const struct queue_config *q = s->queue, *to = config_queue(d->config, name);

	if (to == NULL)
		draft_error(d, s, option, "%s names \"%.60s\", and there is no queue of this name: "
		    "add queue \"%.60s\" { concurrency = 0 } if others consume it", option, name,
		    name);
	else if (!kind_has(to->kind, TRAIT_TAKES_PUSHES))
		draft_error(d, s, option, "%s names \"%s\", a queue of kind \"%s\": "
		    "handlers can push to queues of kind \"ack\" only", option, to->name,
		    kind_name(to->kind));
	else if (d->config->redis.clusters[0] == NULL)
		return to;
	/* On a cluster one script acks a message and pushes to the other queue. */
	else if (config_is_sharded(q) || config_is_sharded(to))
		draft_error(d, s, option, "%s names \"%s\", and queue \"%s\" has shards, which are "
		    "in many slots of the cluster: a script that acknowledges cannot push to "
		    "another slot", option, to->name, config_is_sharded(q) ? q->name : to->name);
	else if (has_tag(q) && has_tag(to) &&
	    slot_of(q->key, strlen(q->key)) != slot_of(to->key, strlen(to->key)))
		draft_error(d, s, option, "%s names \"%s\", whose key \"%s\" is in another slot of "
		    "the cluster than \"%s\": give both one hash tag", option, to->name, to->key,
		    q->key);
	return to;
}

/* The queues that handlers push to. */
static void
check_pushes(struct draft *d, const struct draft_section *s)
{
	const struct queue_config *q = s->queue;
	const char *output = config_pushed_queue(q->output);

	if (output != NULL && q->mode == MODE_PERSISTENT)
		draft_error(d, s, "output", "output = \"%s\" has no meaning with mode "
		    "\"persistent\", whose standard output has answers", q->output);
	else if (output != NULL && !kind_has(q->kind, TRAIT_LEASES))
		draft_error(d, s, "output", "output = \"%s\" has no meaning with kind \"%s\", "
		    "which does not keep its messages", q->output, kind_name(q->kind));
	else if (output != NULL && draft_is_sound(s, "pushes") &&
	    !util_has(q->pushes, SIZE_MAX, output))
		draft_error(d, s, "output", "output = \"%s\", and pushes does not list \"%s\": "
		    "write pushes = {\"%s\"}", q->output, output, output);
	if (!kind_has(q->kind, TRAIT_LEASES) || !draft_is_sound(s, "pushes"))
		return;
	for (size_t i = 0; q->pushes[i] != NULL; i++)
		(void)check_push(d, s, "pushes", q->pushes[i]);
}

/* A letter of a letter ... must not come back. */
static bool
is_circle(const struct config *config, const struct queue_config *q)
{
	const struct queue_config *to = q;
	const char *name;

	for (size_t i = 0; i < config->nqueues && to != NULL; i++) {
		name = config_pushed_queue(to->on_dead);
		if (name == NULL)
			return false;
		to = config_queue(config, name);
		if (to == q)
			return true;
	}
	return false;
}

/* The queue that is told of dead letters. */
static void
check_dead_queue(struct draft *d, const struct draft_section *s)
{
	struct queue_config *q = s->queue;
	const char *name = config_pushed_queue(q->on_dead);
	const struct queue_config *to;
	uint64_t least = 16 * 1024;
	char size[UNITS_TEXT_MAX];

	if (q->on_dead_message)
		least = 256 * 1024;
	if (name == NULL || !kind_has(q->kind, TRAIT_LEASES) || !draft_is_sound(s, "on_dead"))
		return;
	if ((to = check_push(d, s, "on_dead", name)) == NULL)
		return;
	if (is_circle(d->config, q))
		draft_error(d, s, "on_dead", "on_dead of queue \"%s\" leads back to itself: write "
		    "on_dead = \"\" in queue \"%s\"", q->name, to->name);
	if (to->message_max < least)
		draft_error(d, s, "on_dead", "on_dead names \"%s\", whose message_max is below %s: "
		    "write message_max = %s there", to->name, units_size(least, size), size);
	q->dead_key = xstrdup(config_key_at(to, 0));
	q->dead_tell = xasprintf("%s:%d:%s", config_push_command(to), q->on_dead_message,
	    q->name);
}

/* An interpreter that obeys the variable runs what a producer chooses. */
static void
warn_of_interpreter(struct draft *d, const struct place *at, const char *entry)
{
	static const char *const names[] = { "PYTHON", "PERL5", "PERLLIB=", "RUBY", "NODE_",
	    "PHP_INI_SCAN_DIR=", "PHPRC=", "LUA_", "JAVA_TOOL_OPTIONS=", "_JAVA_OPTIONS=",
	    "JDK_JAVA_OPTIONS=", "CLASSPATH=", "DOTNET_", "GEM_", "BUNDLE_", "GIT_",
	    "TCLLIBPATH=", "AWKPATH=", "AWKLIBPATH=", "ERL_", "R_LIBS", "OPENSSL_", "SSH_",
	    "PAGER=", "EDITOR=", "HOME=", "TMPDIR=", "SHELL=" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (strncmp(entry, names[i], strlen(names[i])) == 0)
			finding_warn(&d->findings, at, "env_message sets %.*s, by which a "
			    "program may run what the producer of a message chooses: take "
			    "another name", (int)strcspn(entry, "="), entry);
	}
}

/* Each variable of env_message must be there once. */
static void
check_members(struct draft *d, const struct draft_section *s)
{
	const struct setting *given = draft_setting(s, "env_message");
	char **list = s->queue->env_message;
	struct place at;
	size_t i, k;

	if (given == NULL || given->bad)
		return;
	for (i = 0; list[i] != NULL; i++) {
		for (k = 0; strncmp(list[k], list[i], strcspn(list[i], "=") + 1) != 0; k++)
			continue;
		at = (struct place){ given->at.file, given->lines[i] };
		warn_of_interpreter(d, &at, list[i]);
		if (k < i)
			finding_error(&d->findings, &at, "env_message sets %.*s twice",
			    (int)strcspn(list[i], "="), list[i]);
	}
}

/* Checks batch above 1, and framing if it is given. */
static void
check_batch(struct draft *d, const struct draft_section *s)
{
	const struct queue_config *q = s->queue;
	char a[UNITS_TEXT_MAX], b[UNITS_TEXT_MAX];

	if (q->mode == MODE_PERSISTENT && q->framing == FRAMING_RAW)
		draft_error(d, s, "framing", "framing \"raw\" has no meaning with mode "
		    "\"persistent\": write \"length\" or \"line\"");
	if (!config_has_batches(q))
		return;
	if (config_pushed_queue(q->output) != NULL)
		draft_error(d, s, "output", "output = \"%s\" cannot be used with batch %d: a line "
		    "belongs to no single message; write batch = 1", q->output, q->batch);
	if (q->fleet_concurrency > 0)
		draft_error(d, s, "fleet_concurrency", "fleet_concurrency cannot be used with "
		    "batch %d: it counts messages, and batches would share what it allows; write "
		    "batch = 1", q->batch);
	if (q->batch_wait > q->lease / 3)
		draft_error(d, s, "batch_wait", "batch_wait %s is longer than a third of the lease "
		    "%s: messages that wait have a lease already",
		    units_duration(q->batch_wait, a), units_duration(q->lease, b));
}

/* -- schedules --------------------------------------------------------------------- */

/* The queue, and the message, which must be an id for a queue of kind "unique". */
static void
check_target(struct draft *d, const struct draft_section *s)
{
	const char *name = s->schedule->queue, *message = s->schedule->message;
	const struct queue_config *q = config_queue(d->config, name);
	size_t len = strlen(message);

	if (name[0] == '\0' && draft_is_sound(s, "queue"))
		draft_error(d, s, "queue", "schedule \"%s\" has no queue: write queue = \"NAME\"",
		    s->name);
	else if (q == NULL && name[0] != '\0')
		draft_error(d, s, "queue", "there is no queue \"%s\"", name);
	if (q == NULL)
		return;
	if (!kind_waits(q->kind))
		draft_error(d, s, "queue", "queue \"%s\" is of kind %s, which holds no messages: "
		    "nothing can be pushed to it", name, kind_name(q->kind));
	else if (kind_source(q->kind) == SOURCE_IDS && len > 0 && !message_id_ok(message, len))
		draft_error(d, s, "message", "the messages of queue \"%s\" are ids: 1 to %d bytes "
		    "without control characters", q->name, MESSAGE_ID_MAX);
	else if (len > q->message_max)
		draft_error(d, s, "message", "the message is longer than message_max of queue "
		    "\"%s\"", q->name);
}

static void
check_times(struct draft *d, const struct draft_section *s)
{
	struct schedule_config *c = s->schedule;
	char *cause = NULL;

	if (c->every != 0 && c->cron[0] != '\0')
		draft_error(d, s, "cron", "schedule \"%s\" has both every and cron: write one of "
		    "them", s->name);
	else if (c->every == 0 && c->cron[0] == '\0' && draft_is_sound(s, "every") &&
	    draft_is_sound(s, "cron"))
		draft_error(d, s, "every", "schedule \"%s\" does not say when: write "
		    "every = 1h or cron = \"0 3 * * *\"", s->name);
	if (c->every % SEC != 0)
		draft_error(d, s, "every", "every is a whole number of seconds");
	if (c->cron[0] != '\0' && cron_parse(c->cron, &c->times, &cause) == -1)
		fatalx("cron of schedule %s: %s", s->name, cause);
	if (!d->source->client && zone_check(c->timezone, &cause) == -1)
		draft_error(d, s, "timezone", "%s", cause);
	free(cause);
}

/* -- all --------------------------------------------------------------------------- */

static void
check_cluster(struct draft *d)
{
	static const char one[] = "a Redis Cluster has database 0 only";
	const struct redis_options *r = &d->config->redis;
	const char *before, *after;
	const struct place *at;

	if (r->clusters[0] == NULL)
		return;
	if (r->database != 0)
		finding_error(&d->findings, draft_global_place(d, SECTION_REDIS, "database"),
		    "database %d with cluster: %s", r->database, one);
	for (size_t i = 0; i < d->queues.n; i++) {
		const struct draft_section *s = &d->queues.list[i];

		if (kind_has(s->queue->kind, TRAIT_KEY_EVENTS) &&
		    draft_setting(s, "database") != NULL && s->queue->database != 0)
			draft_error(d, s, "database", "database %d: %s", s->queue->database, one);
		at = draft_place(s, "key");
		before = "-q '";
		after = "'";
		if (at->line > 0) {
			before = "key = \"";
			after = "\"";
		}
		if (draft_is_sound(s, "key") && !kind_has(s->queue->kind, TRAIT_SUBSCRIBES) &&
		    !has_tag(s->queue))
			finding_error(&d->findings, at, "the key \"%s\" of queue \"%s\" has no "
			    "hash tag, and on a cluster all keys of a queue must be in one slot: "
			    "write %s{%s}%s", s->queue->key, s->name, before,
			    s->queue->key, after);
	}
}

void
consistency_check(struct draft *d)
{
	const struct redis_options *r = &d->config->redis;
	const char *half = "tls_key";

	if (r->tls_cert[0] != '\0')
		half = "tls_cert";
	if ((r->tls_cert[0] == '\0') != (r->tls_key[0] == '\0'))
		finding_error(&d->findings,
		    draft_global_place(d, SECTION_REDIS, half),
		    "tls_cert and tls_key go together: give both or none");
	check_names(d, &d->queues);
	check_names(d, &d->schedules);
	check_keys(d);
	check_cluster(d);
	for (size_t i = 0; i < d->queues.n; i++) {
		const struct draft_section *s = &d->queues.list[i];

		const struct queue_config *q = s->queue;

		if (q->keys[1] != NULL && !kind_has(q->kind, TRAIT_SUBSCRIBES))
			draft_error(d, s, "key", "key takes one value with kind \"%s\"",
			    kind_name(q->kind));
		/* Of a channel that is given twice rqd would get each message twice. */
		for (size_t k = 1; kind_has(q->kind, TRAIT_SUBSCRIBES) && q->keys[0] != NULL &&
		    q->keys[k] != NULL; k++) {
			if (util_has(q->keys, k, q->keys[k]))
				draft_error(d, s, "key", "key names \"%s\" twice", q->keys[k]);
		}
		check_shards(d, s);
		check_limits(d, s);
		check_delayed(d, s);
		check_pushes(d, s);
		check_dead_queue(d, s);
		check_batch(d, s);
		check_members(d, s);
	}
	for (size_t i = 0; i < d->schedules.n; i++) {
		check_target(d, &d->schedules.list[i]);
		check_times(d, &d->schedules.list[i]);
	}
}
