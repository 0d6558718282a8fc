/*
 * Ownership of configurations; see config.h.  config/options.c lists the options, and
 * reads their values.
 */
#include "policy/config.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"

static void
queue_config_free(struct queue_config *q)
{
	if (q == NULL)
		return;
	free(q->name);
	free((char *)q->file);
	free(q->key);
	free(q->consumer_group);
	free(q->id);
	free(q->delayed_key);
	free(q->group_by);
	util_free_list(q->keys);
	util_free_list(q->shard_keys);
	util_free_list(q->match);
	util_free_list(q->command);
	util_free_list(q->pushes);
	free(q->output);
	free(q->on_dead);
	free(q->dead_key);
	free(q->dead_tell);
	free(q->rate);
	free(q->user);
	free(q->group);
	free(q->directory);
	util_free_list(q->env);
	util_free_list(q->env_message);
	free(q->env_file);
	free(q);
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
		queue_config_free(c->queues[i]);
	free(c->queues);
	for (size_t i = 0; i < c->nschedules; i++) {
		struct schedule_config *s = c->schedules[i];

		free(s->name);
		free((char *)s->file);
		free(s->queue);
		free(s->message);
		free(s->cron);
		free(s->timezone);
		free(s);
	}
	free(c->schedules);
	util_free_list(c->redis.servers);
	util_free_list(c->redis.sentinels);
	util_free_list(c->redis.clusters);
	free(c->redis.master);
	free(c->redis.sentinel_username);
	free(c->redis.sentinel_password_file);
	free(c->redis.username);
	free(c->redis.password_file);
	free(c->redis.tls_ca);
	free(c->redis.tls_cert);
	free(c->redis.tls_key);
	free(c->redis.tls_name);
	free(c->http.listen);
	free(c->log.target);
	free(c->name);
	free(c->file);
	free(c->overrides);
	free(c);
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
