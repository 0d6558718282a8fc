/*
 * The cost of a message in Redis.  A bare loop calls rqd's own pop and settle scripts,
 * in batches of several sizes, with one call and with four calls on their way.  Further
 * rows show the cost of reading the id of several kinds of messages, and that of an ack
 * that hands a message over beside a plain ack, each in a call of its own.
 */
#include "bench.h"

struct batch {
	int		size, depth;
	long		count;
	struct series	usec, rate;
};

static struct batch batches[] = {
	{ .size = 1, .depth = 1, .count = 4000 },
	{ .size = 8, .depth = 1, .count = 16000 },
	{ .size = 16, .depth = 1, .count = 20000 },
	{ .size = 64, .depth = 1, .count = 30000 },
	{ .size = 100, .depth = 1, .count = 30000 },
	{ .size = 16, .depth = 4, .count = 30000 },
	{ .size = 64, .depth = 4, .count = 40000 },
};
#define BATCHES	(sizeof(batches) / sizeof(batches[0]))

struct kind {
	const char	*name, *head, *end;
	struct series	 usec[2];	/* in batches of kind_sizes */
};

static struct kind kinds[] = {
	{ .name = "JSON, `{\"id\":\"…\"` first", .head = "{\"id\":\"m%024d\",\"pad\":\"",
	    .end = "\"}" },
	{ .name = "JSON, `{\"id\":7` first", .head = "{\"id\":%d,\"pad\":\"", .end = "\"}" },
	{ .name = "JSON, the id behind", .head = "{\"kind\":\"order\",\"id\":\"m%024d\",\"pad\":\"",
	    .end = "\"}" },
	{ .name = "JSON without an id", .head = "{\"number\":\"m%024d\",\"pad\":\"", .end = "\"}" },
	{ .name = "plain text", .head = "number m%024d ", .end = "" },
};
#define KINDS		(sizeof(kinds) / sizeof(kinds[0]))
#define KIND_COUNT	20000
static const int kind_sizes[2] = { 16, 64 };

/* Calls with a plain ack, and with one that hands over; in turns. */
static struct acks {
	int		size;		/* in a call */
	long		count;
	struct series	plain, over;	/* of Redis' CPU, in us a message */
} acks[] = {
	{ .size = 1, .count = 3200 },
	{ .size = 16, .count = 12800 },
};
#define ACKS		(sizeof(acks) / sizeof(acks[0]))

static void
measure(struct batch *b)
{
	double wall;

	flush();
	fill("q", b->count);
	wall = cycle("q", b->count, b->size, b->depth);
	series_add(&b->usec, script_usec() / (double)b->count);
	series_add(&b->rate, (double)b->count / wall);
}

static void
measure_kind(struct kind *k, int which)
{
	flush();
	fill_like("q", KIND_COUNT, MESSAGE_SIZE, k->head, k->end);
	(void)cycle("q", KIND_COUNT, kind_sizes[which], 1);
	series_add(&k->usec[which], script_usec() / KIND_COUNT);
}

static double
ack_usec(const char *op, const struct acks *a)
{
	redisContext *ctx = world_redis();
	double cpu;

	flush();
	fill("q", a->count);
	cpu = settle_cpu(ctx, op, "q", a->count, a->size);
	redisFree(ctx);
	return cpu * 1e6 / (double)a->count;
}

static void
measure_acks(struct acks *a)
{
	series_add(&a->plain, ack_usec("ack", a));
	series_add(&a->over, ack_usec("hand over", a));
}

static void
say_acks(void)
{
	const struct acks *a;

	say("\nAn ack, and one that hands one message over, in calls of their own: µs of CPU of "
	    "Redis\na message.\n\n");
	say("| acks in a call | plain | hands over | times |\n");
	say("| -------------: | ----: | ---------: | ----: |\n");
	for (a = acks; a < acks + ACKS; a++)
		say("| %14d | %5.1f | %10.1f | %5.2f |\n", a->size, series_median(&a->plain),
		    series_median(&a->over), series_ratio(&a->over, &a->plain));
}

static void
say_kinds(void)
{
	size_t i;

	say("\nWhat the message is, one call at a time:\n\n");
	say("| message                   | batch of %d | batch of %d |\n", kind_sizes[0],
	    kind_sizes[1]);
	say("| ------------------------- | ----------: | ----------: |\n");
	for (i = 0; i < KINDS; i++)
		say("| %-25s | %11.1f | %11.1f |\n", kinds[i].name,
		    series_median(&kinds[i].usec[0]), series_median(&kinds[i].usec[1]));
}

static void
run(void)
{
	size_t i;
	int r;

	for (r = 0; r < rounds; r++) {
		for (i = 0; i < BATCHES; i++)
			measure(&batches[i]);
		for (i = 0; i < 2 * KINDS; i++)
			measure_kind(&kinds[i / 2], i % 2);
		for (i = 0; i < ACKS; i++)
			measure_acks(&acks[i]);
	}
	say("Redis is in µs a message for its pop and its ack, of INFO commandstats.\n\n");
	say("| batch | calls on their way | messages/s | Redis |\n");
	say("| ----: | -----------------: | ---------: | ----: |\n");
	for (i = 0; i < BATCHES; i++)
		say("| %5d | %18d | %10.0f | %5.1f |\n", batches[i].size, batches[i].depth,
		    series_median(&batches[i].rate), series_median(&batches[i].usec));
	say_kinds();
	say_acks();
}

const struct section section_redis = { "redis", "what Redis pays for a message", run };
