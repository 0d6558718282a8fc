/* Reads the fields that the scripts in src/queue/lua write. */
#include "rqctl/delivery.h"

#include <stdio.h>
#include <string.h>

#include "rqctl/ask.h"

/*
 * A token is INSTANCE-QUEUE.CALL.NUMBER, and INSTANCE is NAME.RANDOM.  Older daemons write
 * tokens without -QUEUE.
 */
void
delivery_instance(const char *token, char ret[DELIVERY_INSTANCE])
{
	const char *end = strrchr(token, '.');
	char *dash;

	ret[0] = '\0';
	while (end != NULL && end > token && *--end != '.')
		;
	if (end == NULL || end == token)
		return;
	snprintf(ret, DELIVERY_INSTANCE, "%.*s", (int)(end - token), token);
	dash = strrchr(ret, '-');
	if (dash != NULL && strchr(ret, '.') != NULL && strrchr(ret, '.') < dash)
		*dash = '\0';
}

/* Reads the mark of cancel.lua: "!drop:WHO:TOKEN" or "!dead:WHO:TOKEN".  "WHO:" is optional. */
static void
delivery_mark(const char *token, struct delivery_info *d)
{
	const char *who = strchr(token, ':');

	d->cancelled = token[0] == '!' && who != NULL;
	if (d->cancelled && strrchr(token, ':') > who)
		snprintf(d->by, sizeof(d->by), "%.*s", (int)(strrchr(token, ':') - who - 1),
		    who + 1);
}

void
delivery_parse(const char *text, struct delivery_info *d)
{
	const char *bare;
	char token[256];

	memset(d, 0, sizeof(*d));
	if (text == NULL || sscanf(text, "%9ld %9ld %255s %lf %zu", &d->attempts, &d->crashes,
	    token, &d->time, &d->idlen) != 5) {
		memset(d, 0, sizeof(*d));
		return;
	}
	d->ours = true;
	delivery_mark(token, d);
	bare = d->cancelled ? strrchr(token, ':') + 1 : token;
	d->owned = strcmp(bare, "-") != 0;
	delivery_instance(bare, d->instance);
}

struct redisReply *
delivery_fields(struct ctl *c, const struct target *t, const struct redisReply *tags, size_t step)
{
	struct words w = { .n = 0 };

	ask_add(&w, "HMGET %s", t->keys.name[KEY_DELIVERY]);
	ask_add_list(&w, tags, step);
	return ask_words(c, &w);
}

int64_t
delivery_daemons(struct ctl *c, const char *key)
{
	struct redisReply *reply;
	char cursor[24] = "0";
	const char *next;
	int64_t n = 0;

	do {
		reply = ask(c, "HSCAN %s %s MATCH \1* COUNT 1000", key, cursor);
		next = reply_str(reply_at(reply, 0), NULL);
		n += (int64_t)reply_len(reply_at(reply, 1)) / 2;
		snprintf(cursor, sizeof(cursor), "%s", next != NULL ? next : "0");
		blocking_reply_free(reply);
	} while (strcmp(cursor, "0") != 0 && !ctl_interrupted());
	return n;
}
