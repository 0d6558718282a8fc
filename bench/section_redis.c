/*
 * What Redis pays for a message: rqd's own pop and settle scripts, driven by a
 * bare loop, in batches of several sizes, one call at a time and four on their way;
 * what reading the id of several kinds of messages adds to it; and what an ack costs that
 * hands a message over.
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

static struct ack {
	const char	*name, *op;
	struct series	 usec[2];	/* in batches of ack_sizes */
} acks[] = {
	{ .name = "the pop alone", .op = "" },
	{ .name = "the pop and an ack", .op = "ack" },
	{ .name = "and an ack that hands over", .op = "hand over" },
};
static const int ack_sizes[2] = { 1, 16 };
#define ACK_COUNT	10000
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

static void
measure_ack(struct ack *a, int which)
{
	redisContext *ctx = world_redis();
	double cpu;

	flush();
	fill("q", ACK_COUNT);
	cpu = redis_cpu();
	(void)cycle_on(ctx, a->op, "q", ACK_COUNT, ack_sizes[which], 1);
	series_add(&a->usec[which], (redis_cpu() - cpu) * 1e6 / ACK_COUNT);
	redisFree(ctx);
}

static void
say_acks(void)
{
	size_t i;

	say("\nAn ack, and one that hands one message over, in µs of CPU of Redis:\n\n");
	say("|                            | batch of %2d | batch of %d |\n", ack_sizes[0],
	    ack_sizes[1]);
	say("| -------------------------- | ----------: | ----------: |\n");
	for (i = 0; i < ACKS; i++)
		say("| %-26s | %11.1f | %11.1f |\n", acks[i].name,
		    series_median(&acks[i].usec[0]), series_median(&acks[i].usec[1]));
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
		for (i = 0; i < 2 * ACKS; i++)
			measure_ack(&acks[i / 2], i % 2);
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
