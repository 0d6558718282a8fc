/*
 * A member of the index is JSON: {"key":"orders","kind":"ack"}, and of a stream its
 * "consumer_group".  Anybody who may write to Redis can write one: others are passed over.
 */
#include "rqctl/unnamed.h"

#include <stdlib.h>
#include <string.h>

#include "rqctl/ask.h"
#include "rqctl/out.h"

#define MEMBER_MAX	4096	/* bytes */

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

/* The member's object; NULL: it is none. */
static json_t *
read_member(const struct redisReply *reply)
{
	size_t len;
	const char *text = reply_str(reply, &len);

	return text == NULL || len > MEMBER_MAX ? NULL : json_loadb(text, len, 0, NULL);
}

static void
add_target(struct unnamed *u, const json_t *member, const char *key)
{
	struct target *t = &u->targets[u->n++];

	t->kind = fleet_kind(member);
	t->source = kind_source(t->kind);
	keys_init(&t->keys, key);
	keys_set_group(&t->keys, fleet_text(member, "consumer_group"));
	t->name = t->keys.name[KEY_QUEUE];
}

/* Leaves those out that hold nothing. */
static void
keep_full(struct unnamed *u)
{
	size_t n = 0;

	for (size_t i = 0; i < u->n; i++) {
		if (depth_messages(&u->depths[i]) > 0) {
			u->targets[n] = u->targets[i];
			u->depths[n++] = u->depths[i];
		} else {
			keys_done(&u->targets[i].keys);
			depth_done(&u->depths[i]);
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
	u->targets = xcalloc(reply_len(index) + 1, sizeof(u->targets[0]));
	for (size_t i = 0; i < reply_len(index); i++) {
		member = read_member(reply_at(index, i));
		key = fleet_text(member, "key");
		if (key[0] != '\0' && !is_named(c, p, key) && !is_listed(u, key))
			add_target(u, member, key);
		json_decref(member);
	}
	blocking_reply_free(index);
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
		keys_done(&u->targets[i].keys);
		depth_done(&u->depths[i]);
	}
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
	buf_addc(&b, '\0');
	return buf_steal(&b);
}

bool
unnamed_is_only_dead(const struct depth *d)
{
	return d->dead == depth_messages(d);
}

void
unnamed_print(const struct unnamed *u, struct buf *b)
{
	char *text;

	for (size_t i = 0; i < u->n; i++) {
		text = unnamed_text(&u->depths[i]);
		buf_puts(b, "warning: no configuration names ");
		out_escape(b, u->targets[i].name, strlen(u->targets[i].name));
		buf_printf(b, ", which holds messages: %s\n", text);
		free(text);
	}
}

json_t *
unnamed_json(const struct unnamed *u)
{
	const struct depth *d = u->depths;
	json_t *list = json_array();

	for (size_t i = 0; i < u->n; i++, d++)
		json_array_append_new(list, json_set(json_object(), "key:s kind:s waiting:n "
		    "running:n retry:n delayed:n dead:n", u->targets[i].name,
		    kind_name(u->targets[i].kind), d->waiting, d->in_flight, d->retry, d->delayed,
		    d->dead));
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

void
unnamed_forget(struct ctl *c, const char *key)
{
	struct redisReply *index = ask_any(c, "ZRANGE %s 0 -1", KEYS_QUEUES);
	const char *text;
	json_t *member;
	size_t len;

	for (size_t i = 0; i < reply_len(index); i++) {
		member = read_member(reply_at(index, i));
		text = reply_str(reply_at(index, i), &len);
		if (strcmp(fleet_text(member, "key"), key) == 0)
			drop_member(c, text, len);
		json_decref(member);
	}
	blocking_reply_free(index);
}
