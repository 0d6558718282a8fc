/*
 * The limit of Redis: a bare loop of hiredis over rqd's own pop and settle
 * scripts, one connection, some batches on their way at a time.
 *
 * No handler, no lease, no log: each batch is acked as soon as it is there.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/script.h"

#define POP_HEAD	6		/* status now waiting due dropped limited */
#define ACK_WORDS	3
#define ONTO_WIRE	16		/* batches on their way at most */

struct cycle {
	redisContext	*ctx;
	char		 keys[8][64];	/* Q QBACKUP QCONTEXT QRETRY QDELIVERY QPAUSED QRATE QDEAD */
	const char	*pop, *settle;	/* SHA1 */
	int		 batch;
	long		 calls;
	char		 is_pop[4 * ONTO_WIRE];	/* what the answers belong to, a ring */
	unsigned	 head, tail;
};

static const char *
load(redisContext *ctx, const char *name)
{
	struct script *s;
	redisReply *r;

	script_init();
	s = script_find(name);
	r = s == NULL ? NULL : redisCommand(ctx, "SCRIPT LOAD %b", s->text, s->len);
	if (r == NULL || r->type == REDIS_REPLY_ERROR)
		die("cannot load %s", name);
	freeReplyObject(r);
	return s->sha;
}

static void
begin(struct cycle *c, const char *queue, int batch)
{
	static const char *const suffix[] = { "", "BACKUP", "CONTEXT", "RETRY",
	    "DELIVERY", "PAUSED", "RATE", "DEAD" };
	size_t i;

	*c = (struct cycle){ .ctx = world_redis(), .batch = batch };
	for (i = 0; i < sizeof(suffix) / sizeof(suffix[0]); i++)
		(void)snprintf(c->keys[i], sizeof(c->keys[i]), "%s%s", queue, suffix[i]);
	c->pop = load(c->ctx, "pop");
	c->settle = load(c->ctx, "settle");
}

static void
sent(struct cycle *c, bool pop)
{
	c->is_pop[c->tail++ % sizeof(c->is_pop)] = pop;
}

static void
append_pop(struct cycle *c)
{
	redisAppendCommand(c->ctx,
	    "EVALSHA %s 7 %s %s %s %s %s %s %s %d 1048576 16777216 bench.%ld 0 0 0 0",
	    c->pop, c->keys[0], c->keys[1], c->keys[2], c->keys[3], c->keys[4],
	    c->keys[5], c->keys[6], c->batch, ++c->calls);
	sent(c, true);
}

/* Acks all that a pop has brought: six elements each, behind what it says first. */
static long
append_acks(struct cycle *c, const redisReply *r)
{
	const char *argv[10 + ACK_WORDS * 256] = { "EVALSHA", c->settle, "5", c->keys[1],
	    c->keys[2], c->keys[3], c->keys[4], c->keys[7], "0", "bench" };
	size_t i, len[sizeof(argv) / sizeof(argv[0])];
	int n = 10;
	long messages = 0;

	for (i = POP_HEAD; i + 6 <= r->elements && messages < 256; i += 6, messages++) {
		argv[n++] = "ack";
		argv[n++] = r->element[i]->str;
		argv[n++] = r->element[i + 2]->str;
	}
	if (messages == 0)
		return 0;
	for (i = 0; i < (size_t)n; i++)
		len[i] = strlen(argv[i]);
	redisAppendCommandArgv(c->ctx, n, argv, len);
	sent(c, false);
	return messages;
}

static redisReply *
next(struct cycle *c, bool *pop)
{
	void *r;

	*pop = c->is_pop[c->head++ % sizeof(c->is_pop)];
	if (redisGetReply(c->ctx, &r) != REDIS_OK)
		die("Redis: %s", c->ctx->errstr);
	if (((redisReply *)r)->type != REDIS_REPLY_ARRAY)
		die("Redis: %s", ((redisReply *)r)->str);
	return r;
}

/* Pops and acks as many messages as these; returns the seconds. */
double
cycle(const char *queue, long count, int batch, int depth)
{
	struct cycle c;
	double from;
	long asked = 0, got = 0, n;
	bool pop;
	redisReply *r;

	begin(&c, queue, batch);
	from = now();
	for (; depth > 0 && asked < count; depth--, asked += batch)
		append_pop(&c);
	while (c.head != c.tail) {
		r = next(&c, &pop);
		n = pop ? append_acks(&c, r) : 0;
		freeReplyObject(r);
		got += n;
		if (pop && asked - got < count - got && asked < count) {
			append_pop(&c);
			asked += batch;
		}
	}
	redisFree(c.ctx);
	if (got < count)
		die("only %ld of %ld messages came", got, count);
	return now() - from;
}
