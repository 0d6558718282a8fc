/*
 * Checks what a Redis Cluster needs of the configuration: one database, all keys of a queue in
 * one slot, and the queues that one script writes in one slot, too.
 *
 * A hash tag, the text in braces, decides the slot: "{orders}" and "{orders}DEAD" share it.
 */
#include <stdlib.h>
#include <string.h>

#include "config/draft.h"
#include "redis/slots.h"

static bool
has_tag(const struct queue_config *q)
{
	return slot_has_tag(q->key, strlen(q->key));
}

/* "Queue:{jobs}": the key with a tag, without the braces that it has; the caller frees it. */
static char *
suggest_key(const struct queue_config *q)
{
	const char *prefix = kind_key_prefix(q->kind);
	size_t skip = strncmp(q->key, prefix, strlen(prefix)) == 0 ? strlen(prefix) : 0;
	char *rest = xstrdup(q->key + skip), *to = rest, *whole;

	for (const char *p = rest; *p != '\0'; p++)
		if (*p != '{' && *p != '}')
			*to++ = *p;
	*to = '\0';
	whole = xasprintf("%.*s{%s}", (int)skip, q->key, rest[0] != '\0' ? rest : "queue");
	free(rest);
	return whole;
}

static void
check_key(struct draft *d, const struct draft_section *s)
{
	const struct place *at = draft_place(s, "key");
	char *better;

	if (!s->named || !draft_is_sound(s, "key") ||
	    kind_has(s->queue->kind, TRAIT_SUBSCRIBES) || has_tag(s->queue))
		return;
	better = suggest_key(s->queue);
	finding_error(&d->findings, at, "the key \"%s\" of queue \"%s\" has no hash tag, and on a "
	    "cluster all keys of a queue must be in one slot: write %s%s%s", s->queue->key,
	    s->name, at->line > 0 ? "key = \"" : "-q '", better, at->line > 0 ? "\"" : "'");
	free(better);
}

/* Checks the slots of a hand-over: one script acks a message and pushes to the other queue. */
static void
check_push(struct draft *d, const struct draft_section *s, const struct queue_config *to)
{
	const struct queue_config *q = s->queue, *shards = config_is_sharded(q) ? q :
	    config_is_sharded(to) ? to : NULL;
	const char *tag = strchr(q->key, '{'), *end = tag != NULL ? strchr(tag, '}') : NULL;

	if (shards != NULL)
		draft_error(d, s, "pushes", "pushes names \"%s\", and queue \"%s\" has shards, "
		    "which are in many slots of the cluster: a script that acknowledges cannot "
		    "push to another slot", to->name, shards->name);
	if (shards != NULL || end == NULL || !has_tag(q) || !has_tag(to) ||
	    slot_of(q->key, strlen(q->key)) == slot_of(to->key, strlen(to->key)))
		return;
	draft_error(d, s, "pushes", "pushes names \"%s\", whose key \"%s\" is in another slot of "
	    "the cluster than \"%s\": give both one hash tag, such as key = \"%.*s:%s\" for queue "
	    "\"%s\"", to->name, to->key, q->key, (int)(end + 1 - tag), tag, to->name, to->name);
}

static void
check_pushes(struct draft *d, const struct draft_section *s)
{
	const struct queue_config *to;

	if (!kind_has(s->queue->kind, TRAIT_LEASES) || !draft_is_sound(s, "pushes"))
		return;
	for (size_t i = 0; s->queue->pushes[i] != NULL; i++) {
		to = config_queue(d->config, s->queue->pushes[i]);
		if (to != NULL && kind_has(to->kind, TRAIT_TAKES_PUSHES))
			check_push(d, s, to);
	}
}

/* Checks the database of the keys whose expiry is a message. */
static void
check_queue_database(struct draft *d, const struct draft_section *s)
{
	if (kind_has(s->queue->kind, TRAIT_KEY_EVENTS) && draft_setting(s, "database") != NULL &&
	    s->queue->database != 0)
		draft_error(d, s, "database", "database %d: a Redis Cluster has database 0 only",
		    s->queue->database);
}

static void
check_database(struct draft *d)
{
	if (d->config->redis.database != 0)
		finding_error(&d->findings, draft_global_place(d, SECTION_REDIS, "database"),
		    "database %d with cluster: a Redis Cluster has database 0 only",
		    d->config->redis.database);
}

void
hash_tags_check(struct draft *d)
{
	if (d->config->redis.clusters[0] == NULL)
		return;
	check_database(d);
	for (size_t i = 0; i < d->queues.n; i++) {
		check_queue_database(d, &d->queues.list[i]);
		check_key(d, &d->queues.list[i]);
		check_pushes(d, &d->queues.list[i]);
	}
}
