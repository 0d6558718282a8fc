/*
 * Each queue is asked the same commands, of O(1) or O(log n) each; the table
 * says which, on which key, and where the answer goes.
 */
#include "rqctl/depth.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/reply.h"
#include "rqctl/ask.h"

struct question {
	const char	*command;
	enum key	 key;
	size_t		 at;		/* of an int64_t in struct depth */
};

static const struct question questions[] = {
	{ "ZCARD", KEY_BACKUP, offsetof(struct depth, in_flight) },
	{ "ZCARD", KEY_RETRY, offsetof(struct depth, retry) },
	{ "ZCARD", KEY_DELAYED, offsetof(struct depth, delayed) },
	{ "XLEN", KEY_DEAD, offsetof(struct depth, dead) },
	{ "HLEN", KEY_DELIVERY, offsetof(struct depth, own) },
};

/* How many wait for their first delivery, by kind; NULL: nothing waits in Redis. */
static const char *
waiting_command(enum kind kind)
{
	switch (kind) {
	case KIND_ACK:
	case KIND_LIST:
	case KIND_EXPIRED:
		return "LLEN";
	case KIND_UNIQUE:
		return "ZCARD";
	case KIND_STREAM:
		return "XLEN";
	case KIND_CHANNEL:
	case KIND_PATTERN:
		break;
	}
	return NULL;
}

static int
append(struct ctl *c, const struct target *t, const char *now)
{
	char *const *key = t->keys.name;
	const char *waiting = waiting_command(t->kind);
	struct words w = { 0 };
	size_t i;
	int rc = 0;

	if (waiting != NULL)
		rc = ask_append(c, waiting, key[KEY_QUEUE], NULL);
	for (i = 0; i < ARRAY_LEN(questions) && rc == 0; i++)
		rc = ask_append(c, questions[i].command, key[questions[i].key], NULL);
	if (rc == -1 || ask_append(c, "ZCOUNT", key[KEY_RETRY], "-inf", now, NULL) == -1 ||
	    ask_append(c, "GET", key[KEY_PAUSED], NULL) == -1 ||
	    ask_append(c, "PTTL", key[KEY_PAUSED], NULL) == -1)
		return -1;
	words_add(&w, "HMGET");
	words_add(&w, key[KEY_STATS]);
	for (i = 0; i < STAT_MAX; i++)
		words_add(&w, stats_name((enum stat)i));
	rc = ask_append_words(c, &w);
	words_done(&w);
	return rc;
}

/* The next reply; an error in it is the queue's problem. */
static struct redisReply *
next(struct ctl *c, struct depth *d)
{
	struct redisReply *reply = ask_next(c);

	if (reply != NULL && reply_error(reply) != REPLY_OK && d->problem == NULL)
		d->problem = xstrdup(reply_text(reply));
	return reply;
}

static int
number(struct ctl *c, struct depth *d, int64_t *ret)
{
	struct redisReply *reply = next(c, d);

	if (reply == NULL)
		return -1;
	*ret = reply_int(reply, -1);
	client_reply_free(reply);
	return 0;
}

static int
take_pause(struct ctl *c, struct depth *d)
{
	struct redisReply *reply = next(c, d);
	const char *text;
	int64_t ttl;
	size_t len;

	if (reply == NULL)
		return -1;
	if ((text = reply_str(reply, &len)) != NULL) {
		d->paused = true;
		free(d->pause);
		d->pause = xstrndup(text, len);
	}
	client_reply_free(reply);
	if (number(c, d, &ttl) == -1)
		return -1;
	d->pause_left = ttl >= 0 ? (double)ttl / 1e3 : -1;
	return 0;
}

static int
take(struct ctl *c, const struct target *t, struct depth *d)
{
	struct redisReply *reply;
	size_t i;

	*d = (struct depth){ .waiting = -1, .pause = xstrdup(""), .pause_left = -1 };
	if (waiting_command(t->kind) != NULL && number(c, d, &d->waiting) == -1)
		return -1;
	for (i = 0; i < ARRAY_LEN(questions); i++)
		if (number(c, d, (int64_t *)(void *)((char *)d + questions[i].at)) == -1)
			return -1;
	if (number(c, d, &d->due) == -1 || take_pause(c, d) == -1 ||
	    (reply = next(c, d)) == NULL)
		return -1;
	for (i = 0; i < STAT_MAX; i++)
		d->total[i] = reply_int(reply_at(reply, i), 0);
	client_reply_free(reply);
	return 0;
}

int
depth_read(struct ctl *c, const struct target *t, size_t n, struct depth *ret)
{
	char now[32];
	double at = ask_time(c);
	size_t i;

	if (at < 0)
		return -1;
	memset(ret, 0, n * sizeof(*ret));
	snprintf(now, sizeof(now), "%.6f", at);
	for (i = 0; i < n; i++)
		if (append(c, &t[i], now) == -1)
			return -1;
	for (i = 0; i < n; i++)
		if (take(c, &t[i], &ret[i]) == -1) {
			depth_done(ret, i + 1);
			return -1;
		}
	return 0;
}

void
depth_done(struct depth *d, size_t n)
{
	while (n > 0) {
		n--;
		free(d[n].pause);
		free(d[n].problem);
		d[n].pause = d[n].problem = NULL;
	}
}
