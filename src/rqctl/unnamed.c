/*
 * A member of the index is JSON: {"key":"orders","kind":"ack"}, of a stream with its
 * "consumer_group", and of a queue with shards with their number, "shards".  Anybody who may
 * write to Redis can write a member: rqctl skips those of another form.
 */
#include "rqctl/unnamed.h"

#include <stdlib.h>
#include <string.h>

#include "policy/shard_keys.h"
#include "rqctl/ask.h"
#include "rqctl/out.h"

/* Whether the configuration or a living daemon has a queue with this key. */
static bool
is_named(const struct ctl *c, const struct picture *p, const char *key)
{
	for (size_t i = 0; i < c->config->nqueues; i++)
		if (strcmp(c->config->queues[i]->key, key) == 0)
			return true;
	for (size_t i = 0; i < p->fleet.n; i++)
		if (fleet_queue(&p->fleet.daemons[i], key) != NULL)
			return true;
	return false;
}

static bool
is_listed(const struct unnamed *u, const char *key)
{
	for (size_t i = 0; i < u->n; i++)
		if (strcmp(u->targets[i].name, key) == 0)
			return true;
	return false;
}

/* The most shards that the configuration or a living daemon gives this key. */
static int64_t
shards_of(const struct ctl *c, const struct picture *p, const char *key)
{
	const struct queue_config *cfg;
	int64_t most = 0, n;

	for (size_t i = 0; i < c->config->nqueues; i++) {
		cfg = c->config->queues[i];
		if (strcmp(cfg->key, key) == 0)
			most = (int64_t)config_key_count(cfg) - 1;
	}
	for (size_t i = 0; i < p->fleet.n; i++) {
		n = fleet_count(fleet_queue(&p->fleet.daemons[i], key), "shards");
		most = n > most ? n : most;
	}
	return most;
}

/* Adds the shards that a queue had once, and that nobody names any more. */
static void
add_former_shards(const struct ctl *c, const struct picture *p, struct unnamed *u,
    const json_t *member, const char *key)
{
	char **had = shard_keys_all(key, fleet_count(member, "shards")), **k;
	char **has = shard_keys_all(key, shards_of(c, p, key));

	for (k = had; k != NULL && *k != NULL && u->n < UNNAMED_MAX; k++) {
		if (strcmp(*k, key) == 0 || util_has(has, SIZE_MAX, *k) || is_listed(u, *k))
			continue;
		target_init(APPEND(u->targets, u->n), NULL, *k, 0);
	}
	shard_keys_free(had);
	shard_keys_free(has);
}

/* Returns "orders" for "{orders}", which the caller frees; NULL for a key of another form. */
static char *
without_braces(const char *key)
{
	size_t len = strlen(key);

	if (len <= 2 || key[0] != '{' || strcspn(key + 1, "{}") != len - 2 || key[len - 1] != '}')
		return NULL;
	return xstrndup(key + 1, len - 2);
}

/* queue: the name by which verbs know the queue with the key queue_key. */
static void
add_without_braces(const struct ctl *c, const struct picture *p, struct unnamed *u,
    const char *queue_key, const char *queue)
{
	char *key = without_braces(queue_key);
	struct target *t;

	if (key != NULL && u->n < UNNAMED_MAX && !is_named(c, p, key) && !is_listed(u, key)) {
		t = APPEND(u->targets, u->n);
		target_init(t, NULL, key, 0);
		t->name = t->key;	/* key is freed below */
		u->meant = xreallocarray(u->meant, u->n, sizeof(u->meant[0]));
		u->meant[u->n - 1] = xstrdup(queue);
	}
	free(key);
}

/*
 * Adds the lists whose names are keys of queues without the braces.  Without a file, verbs take
 * the key as the queue's name.
 */
static void
add_all_without_braces(const struct ctl *c, const struct picture *p, struct unnamed *u)
{
	size_t n;
	struct served *served = fleet_served(&p->fleet, &n);
	struct queue_config *q;

	u->meant = xcalloc(u->n + 1, sizeof(u->meant[0]));
	for (size_t i = 0; i < c->config->nqueues; i++) {
		q = c->config->queues[i];
		if (kind_source(q->kind) == SOURCE_LIST)
			add_without_braces(c, p, u, q->key, q->name);
	}
	for (size_t i = 0; i < n; i++)
		if (kind_source(fleet_kind(served[i].queue)) == SOURCE_LIST)
			add_without_braces(c, p, u, served[i].key,
			    ctl_has_file(c) ? served[i].name : served[i].key);
	free(served);
}

/* Drops the keys that hold no messages. */
static void
keep_full(struct unnamed *u)
{
	size_t n = 0;

	for (size_t i = 0; i < u->n; i++) {
		if (depth_messages(&u->depths[i]) > 0) {
			u->targets[n] = u->targets[i];
			u->meant[n] = u->meant[i];
			u->depths[n++] = u->depths[i];
		} else {
			target_done(&u->targets[i]);
			depth_done(&u->depths[i]);
			free(u->meant[i]);
		}
	}
	u->n = n;
}

int
unnamed_find(struct ctl *c, const struct picture *p, struct unnamed *u)
{
	struct redisReply *index;
	const char *key;
	json_t *member;

	*u = (struct unnamed){ .n = 0 };
	if (c->args.nwords > 0 || c->left_out || p->fleet.ignored + p->fleet.unread > 0)
		return 0;
	index = ask_any(c, "ZREVRANGE %s 0 %lld", KEYS_QUEUES, (long long)UNNAMED_MAX - 1);
	if (index == NULL)
		return -1;
	for (size_t i = 0; i < reply_len(index); i++) {
		member = fleet_member(reply_at(index, i));
		key = fleet_text(member, "key");
		if (is_named(c, p, key))
			add_former_shards(c, p, u, member, key);
		else if (key[0] != '\0' && !is_listed(u, key))
			target_told(APPEND(u->targets, u->n), key, member);
		json_decref(member);
	}
	blocking_reply_free(index);
	add_all_without_braces(c, p, u);
	u->depths = xcalloc(u->n + 1, sizeof(u->depths[0]));
	if (u->n == 0)
		return 0;
	if (picture_depths(c, u->targets, u->n, u->depths) == -1)
		return -1;
	keep_full(u);
	return 0;
}

void
unnamed_done(struct unnamed *u)
{
	for (size_t i = 0; i < u->n; i++) {
		target_done(&u->targets[i]);
		depth_done(&u->depths[i]);
		free(u->meant[i]);
	}
	free(u->meant);
	free(u->targets);
	free(u->depths);
	*u = (struct unnamed){ .n = 0 };
}

static void
add_count(struct buf *b, int64_t n, const char *one, const char *many)
{
	if (n > 0)
		buf_printf(b, "%s%lld %s", b->len > 0 ? ", " : "", (long long)n,
		    n == 1 ? one : many);
}

char *
unnamed_text(const struct depth *d)
{
	struct buf b = BUF_INIT;

	add_count(&b, d->waiting, "waiting", "waiting");
	add_count(&b, d->in_flight, "in flight", "in flight");
	add_count(&b, d->retry, "retry", "retries");
	add_count(&b, d->delayed, "delayed", "delayed");
	add_count(&b, d->dead, "dead letter", "dead letters");
	return buf_steal(&b);
}

void
unnamed_print(const struct unnamed *u, struct buf *b)
{
	char *text;

	for (size_t i = 0; i < u->n; i++) {
		text = unnamed_text(&u->depths[i]);
		if (u->meant[i] != NULL)
			out_line(b, "warning: no queue reads %s, which holds messages: %s; push to "
			    "the keys that rqctl queues --keys %s prints", u->targets[i].name,
			    text, u->meant[i]);
		else
			out_line(b, "warning: no configuration names %s, which holds messages: %s",
			    u->targets[i].name, text);
		free(text);
	}
}

json_t *
unnamed_json(const struct unnamed *u)
{
	const struct depth *d = u->depths;
	json_t *list = json_array(), *o;

	for (size_t i = 0; i < u->n; i++, d++) {
		o = json_set(json_object(), "key:s kind:s waiting:n running:n retry:n delayed:n "
		    "dead:n", u->targets[i].name, kind_name(u->targets[i].kind), d->waiting,
		    d->in_flight, d->retry, d->delayed, d->dead);
		if (u->meant[i] != NULL)
			json_set(o, "meant:s", u->meant[i]);
		json_array_append_new(list, o);
	}
	return list;
}

static void
drop_member(struct ctl *c, const char *member, size_t len)
{
	struct words w = { .n = 0 };

	words_add(&w, "ZREM");
	words_add(&w, KEYS_QUEUES);
	words_mem(&w, member, len);
	blocking_reply_free(ask_any_words(c, &w));
}

int64_t
unnamed_shards(struct ctl *c, const char *key)
{
	struct redisReply *index = ask_any(c, "ZREVRANGE %s 0 %lld", KEYS_QUEUES,
	    (long long)UNNAMED_MAX - 1);
	int64_t shards = 0, n;
	json_t *member;

	for (size_t i = 0; i < reply_len(index); i++) {
		member = fleet_member(reply_at(index, i));
		n = fleet_count(member, "shards");
		if (strcmp(fleet_text(member, "key"), key) == 0 && n > shards)
			shards = n;
		json_decref(member);
	}
	blocking_reply_free(index);
	return shards;
}

void
unnamed_forget(struct ctl *c, const char *key)
{
	struct redisReply *index = ask_any(c, "ZRANGE %s 0 -1", KEYS_QUEUES);
	const char *text;
	json_t *member;
	size_t len;

	for (size_t i = 0; i < reply_len(index); i++) {
		member = fleet_member(reply_at(index, i));
		text = reply_str(reply_at(index, i), &len);
		if (strcmp(fleet_text(member, "key"), key) == 0)
			drop_member(c, text, len);
		json_decref(member);
	}
	blocking_reply_free(index);
}
