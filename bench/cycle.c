/*
 * The limit of Redis: a bare loop of hiredis calls rqd's own pop and settle scripts,
 * over one connection, with some batches on their way at a time.
 *
 * There is no handler, no lease and no log: each batch is acked as soon as it has come.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/script.h"

#define POP_HEAD	7		/* status now waiting due dropped limited taken */
#define RESULT_WORDS	6		/* at most */
#define RESULTS_MAX	256		/* in a call */
#define IN_FLIGHT	64		/* in settle_cpu() */
#define ONTO_WIRE	16		/* batches on their way at most */

struct cycle {
	redisContext	*ctx;
	/* Q QBACKUP QCONTEXT QRETRY QDELIVERY QPAUSED QRATE QDEAD QSTATS */
	char		 keys[9][64];
	const char	*pop, *settle;	/* SHA1 */
	const char	*op;		/* "ack", "retry", "hand over", "" */
	bool		 hands_over;	/* an ack that pushes one message to BENCH_TARGET */
	int		 batch;
	int		 daemon;	/* each has its own number; numbers of its calls rise */
	long		 calls;
	char		 is_pop[4 * ONTO_WIRE];	/* the kinds of the expected answers, a ring */
	unsigned	 head, tail;
};

const char *
load_script(redisContext *ctx, const char *name)
{
	const struct script *s;
	redisReply *r;

	s = script_find(name);
	r = s == NULL ? NULL : redisCommand(ctx, "SCRIPT LOAD %b", s->text, s->len);
	if (r == NULL || r->type == REDIS_REPLY_ERROR)
		die("cannot load %s", name);
	freeReplyObject(r);
	return s->sha;
}

static void
begin(struct cycle *c, redisContext *ctx, const char *op, const char *queue, int batch)
{
	static const char *const suffix[] = { "", "BACKUP", "CONTEXT", "RETRY",
	    "DELIVERY", "PAUSED", "RATE", "DEAD", "STATS" };
	size_t i;

	*c = (struct cycle){ .ctx = ctx, .op = op, .batch = batch };
	for (i = 0; i < sizeof(suffix) / sizeof(suffix[0]); i++)
		(void)snprintf(c->keys[i], sizeof(c->keys[i]), "%s%s", queue, suffix[i]);
	c->pop = load_script(c->ctx, "pop");
	c->hands_over = strcmp(op, "hand over") == 0;
	c->settle = load_script(c->ctx, "settle");
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
	    "EVALSHA %s 8 %s %s %s %s %s %s %s %s "
	    "%d 1048576 16777216 3 bench%d.%ld 0 0 0 0 retry",
	    c->pop, c->keys[0], c->keys[1], c->keys[2], c->keys[3], c->keys[4],
	    c->keys[5], c->keys[6], c->keys[8], c->batch, c->daemon, c->calls + 1);
	c->calls++;
	sent(c, true);
}

/* Adds one result's words after n others; returns the new number of words. */
static int
add_result(const struct cycle *c, const redisReply *r, size_t i, const char **argv, int n)
{
	argv[n++] = c->hands_over ? "push" : c->op;
	argv[n++] = r->element[i]->str;
	argv[n++] = r->element[i + 2]->str;
	if (strcmp(c->op, "retry") == 0)
		argv[n++] = "0";
	if (!c->hands_over)
		return n;
	argv[n++] = "1";	/* one queue, the first, one message */
	argv[n++] = "1";
	argv[n++] = "1";
	argv[n++] = r->element[i + 5]->str;
	return n;
}

/* Settles some of a pop's messages, from element i of the reply on; each has six elements. */
static long
append_some(struct cycle *c, const redisReply *r, size_t i, long most)
{
	const char *argv[12 + RESULT_WORDS * RESULTS_MAX] = { "EVALSHA", c->settle,
	    c->hands_over ? "6" : "5", c->keys[1], c->keys[2], c->keys[3], c->keys[4],
	    c->keys[7] };
	size_t k, len[sizeof(argv) / sizeof(argv[0])];
	int n = 8;
	long messages = 0;

	if (c->hands_over)
		argv[n++] = BENCH_TARGET;
	argv[n++] = "0";
	argv[n++] = "bench";
	argv[n++] = "";
	for (; i + 6 <= r->elements && messages < most; i += 6, messages++)
		n = add_result(c, r, i, argv, n);
	if (messages == 0 || c->op[0] == '\0')
		return messages;
	for (k = 0; k < (size_t)n; k++)
		len[k] = strlen(argv[k]);
	redisAppendCommandArgv(c->ctx, n, argv, len);
	sent(c, false);
	return messages;
}

static long
append_results(struct cycle *c, const redisReply *r)
{
	return append_some(c, r, POP_HEAD, RESULTS_MAX);
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

/* The progress of all connections together. */
struct progress {
	long	count, asked, got;
};

static void
ask(struct cycle *c, struct progress *p)
{
	if (p->asked >= p->count)
		return;
	append_pop(c);
	p->asked += c->batch;
}

static void
take(struct cycle *c, struct progress *p)
{
	bool pop;
	redisReply *r = next(c, &pop);

	if (pop) {
		p->got += append_results(c, r);
		ask(c, p);
	}
	freeReplyObject(r);
}

static double
ended(const struct progress *p, double from)
{
	if (p->got < p->count)
		die("only %ld of %ld messages came", p->got, p->count);
	return now() - from;
}

double
cycle_on(redisContext *ctx, const char *op, const char *queue, long count, int batch, int depth)
{
	struct cycle c;
	struct progress p = { .count = count };
	double from;

	begin(&c, ctx, op, queue, batch);
	from = now();
	for (; depth > 0; depth--)
		ask(&c, &p);
	while (c.head != c.tail)
		take(&c, &p);
	return ended(&p, from);
}

double
settle_cpu(redisContext *ctx, const char *op, const char *queue, long count, int batch)
{
	double cpu = 0;
	struct cycle c;
	redisReply *r;
	bool pop;
	size_t i;
	long got;

	begin(&c, ctx, op, queue, IN_FLIGHT);
	for (got = 0; got < count; got += IN_FLIGHT) {
		append_pop(&c);
		r = next(&c, &pop);
		if (r->elements != POP_HEAD + 6 * IN_FLIGHT)
			die("only %zu elements came", r->elements);
		cpu -= redis_cpu();
		for (i = POP_HEAD; i < r->elements; i += 6 * (size_t)batch) {
			append_some(&c, r, i, batch);
			freeReplyObject(next(&c, &pop));
		}
		cpu += redis_cpu();
		freeReplyObject(r);
	}
	return cpu;
}

/* Sends as much as it may; true if it waits for an answer. */
static bool
send_all(struct cycle *c)
{
	int done = 0;

	while (!done) {
		if (redisBufferWrite(c->ctx, &done) != REDIS_OK)
			die("Redis: %s", c->ctx->errstr);
	}
	return c->head != c->tail;
}

double
cycle_crowd(redisContext *const *ctx, int n, const char *op, const char *queue, long count,
    int batch)
{
	struct cycle c[CROWD_MAX];
	struct progress p = { .count = count };
	double from;
	unsigned k;
	int i, busy = n;

	for (i = 0; i < n; i++)
		begin(&c[i], ctx[i], op, queue, batch);
	from = now();
	for (i = 0; i < n; i++) {
		c[i].daemon = i;
		ask(&c[i], &p);
	}
	while (busy > 0) {
		for (i = busy = 0; i < n; i++)
			busy += send_all(&c[i]);
		for (i = 0; i < n; i++) {
			for (k = c[i].tail - c[i].head; k > 0; k--)
				take(&c[i], &p);
		}
	}
	return ended(&p, from);
}

double
cycle(const char *queue, long count, int batch, int depth)
{
	redisContext *ctx = world_redis();
	double seconds = cycle_on(ctx, "ack", queue, count, batch, depth);

	redisFree(ctx);
	return seconds;
}
