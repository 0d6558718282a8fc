/*
 * Ownership of configurations; see config.h.  config/options.c lists the options, and
 * reads their values.
 */
#include "policy/config.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"

/* A row of a table of texts; the compiler knows whether it is a list. */
#define TEXT(struct_, member) { \
	.name = #member, .offset = offsetof(struct struct_, member), \
	.list = _Generic(((struct struct_ *)NULL)->member, \
	    char *: false, const char *: false, char **: true) }

const struct config_text config_texts[] = {
	TEXT(config, redis.servers), TEXT(config, redis.sentinels),
	TEXT(config, redis.clusters), TEXT(config, redis.master),
	TEXT(config, redis.sentinel_username),
	TEXT(config, redis.sentinel_password_file),
	TEXT(config, redis.username), TEXT(config, redis.password_file),
	TEXT(config, redis.tls_ca), TEXT(config, redis.tls_cert),
	TEXT(config, redis.tls_key), TEXT(config, redis.tls_name),
	TEXT(config, http.listen), TEXT(config, log.target),
	TEXT(config, name), TEXT(config, file), TEXT(config, overrides),
	{ .name = NULL }
};

const struct config_text queue_texts[] = {
	TEXT(queue_config, name), TEXT(queue_config, file),
	TEXT(queue_config, key), TEXT(queue_config, keys),
	TEXT(queue_config, shard_keys), TEXT(queue_config, match),
	TEXT(queue_config, id), TEXT(queue_config, delayed_key),
	TEXT(queue_config, consumer_group), TEXT(queue_config, command),
	TEXT(queue_config, rate), TEXT(queue_config, group_by),
	TEXT(queue_config, on_dead), TEXT(queue_config, dead_key),
	TEXT(queue_config, dead_tell), TEXT(queue_config, user),
	TEXT(queue_config, group), TEXT(queue_config, directory),
	TEXT(queue_config, env), TEXT(queue_config, env_file),
	TEXT(queue_config, env_message), TEXT(queue_config, output),
	TEXT(queue_config, pushes),
	{ .name = NULL }
};

const struct config_text schedule_texts[] = {
	TEXT(schedule_config, name), TEXT(schedule_config, file),
	TEXT(schedule_config, queue), TEXT(schedule_config, message),
	TEXT(schedule_config, cron), TEXT(schedule_config, timezone),
	{ .name = NULL }
};

/* Frees the texts, and the struct itself. */
static void
free_texts(const struct config_text *t, void *base)
{
	void *p;

	for (; t->name != NULL; t++) {
		memcpy(&p, (char *)base + t->offset, sizeof(p));
		if (t->list)
			util_free_list(p);
		else
			free(p);
	}
	free(base);
}

struct config *
config_new(void)
{
	struct config *c = NEW(struct config, .refs = 1, .overrides = xstrdup(""));

	c->queues = xcalloc(1, sizeof(*c->queues));
	c->schedules = xcalloc(1, sizeof(*c->schedules));
	return c;
}

struct config *
config_ref(struct config *c)
{
	c->refs++;
	return c;
}

void
config_unref(struct config *c)
{
	if (c == NULL || --c->refs > 0)
		return;
	for (size_t i = 0; i < c->nqueues; i++)
		free_texts(queue_texts, c->queues[i]);
	free(c->queues);
	for (size_t i = 0; i < c->nschedules; i++)
		free_texts(schedule_texts, c->schedules[i]);
	free(c->schedules);
	free_texts(config_texts, c);
}

void
config_hold(struct config **held, struct config *config)
{
	struct config *old = *held;

	*held = config_ref(config);
	config_unref(old);
}

const struct queue_config *
config_queue(const struct config *c, const char *name)
{
	for (size_t i = 0; i < c->nqueues; i++) {
		if (strcmp(c->queues[i]->name, name) == 0)
			return c->queues[i];
	}
	return NULL;
}

bool
config_is_sharded(const struct queue_config *q)
{
	return q->shard_keys != NULL;
}

size_t
config_key_count(const struct queue_config *q)
{
	return config_is_sharded(q) ? q->nshard_keys : 1;
}

const char *
config_key_at(const struct queue_config *q, size_t i)
{
	return config_is_sharded(q) ? q->shard_keys[i] : q->key;
}

bool
config_has_key(const struct queue_config *q, const char *key)
{
	for (size_t i = 0; i < config_key_count(q); i++) {
		if (strcmp(config_key_at(q, i), key) == 0)
			return true;
	}
	return false;
}

bool
config_pops_left(const struct queue_config *q)
{
	return kind_has(q->kind, TRAIT_LIST) && q->pop == POP_LEFT;
}

const char *
config_push_command(const struct queue_config *q)
{
	switch (kind_source(q->kind)) {
	case SOURCE_IDS:
		return "ZADD";
	case SOURCE_STREAM:
		return "XADD";
	case SOURCE_CHANNEL: case SOURCE_PATTERN:
		return "PUBLISH";
	case SOURCE_LIST:
		break;
	}
	return config_pops_left(q) ? "RPUSH" : "LPUSH";
}

bool
config_consumes(const struct queue_config *q)
{
	return q->concurrency > 0;
}

const char *
config_pushed_queue(const char *text)
{
	size_t n = strlen("push:");

	return strncmp(text, "push:", n) == 0 && text[n] != '\0' ? text + n : NULL;
}

bool
config_drops_output(const struct queue_config *q)
{
	return strcmp(q->output, "none") == 0;
}

unsigned
config_most_runs(const struct queue_config *q)
{
	unsigned most = (unsigned)q->concurrency;

	return q->mode == MODE_PERSISTENT ? most * (unsigned)q->pipeline : most;
}

unsigned
config_most(const struct queue_config *q)
{
	return config_most_runs(q) * (config_has_batches(q) ? (unsigned)q->batch : 1);
}

unsigned
config_members(const struct queue_config *q)
{
	unsigned n = 0;

	while (q->env_message != NULL && q->env_message[n] != NULL)
		n++;
	return q->mode == MODE_EXEC && !config_has_batches(q) ? n : 0;
}

bool
config_has_batches(const struct queue_config *q)
{
	return q->batch > 1;
}

uint64_t
config_bytes_max(const struct config *config, const struct queue_config *q)
{
	int runs = q->concurrency > 0 ? q->concurrency : 1;

	if (q->mode == MODE_EXEC && config->max_handlers > 0 && config->max_handlers < runs)
		runs = config->max_handlers;
	return (uint64_t)runs * CONFIG_RUN_BYTES;
}

const char *const config_modes[] = {
	[MODE_EXEC] = "exec", [MODE_PERSISTENT] = "persistent", NULL
};
