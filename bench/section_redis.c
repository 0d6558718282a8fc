/*
 * What Redis pays for a message: rqd's own pop and settle scripts, driven by a
 * bare loop, in batches of several sizes, one call at a time and four on their way.
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
run(void)
{
	size_t i;
	int r;

	for (r = 0; r < rounds; r++) {
		for (i = 0; i < BATCHES; i++)
			measure(&batches[i]);
	}
	say("Redis is in µs a message for its pop and its ack, of INFO commandstats.\n\n");
	say("| batch | calls on their way | messages/s | Redis |\n");
	say("| ----: | -----------------: | ---------: | ----: |\n");
	for (i = 0; i < BATCHES; i++)
		say("| %5d | %18d | %10.0f | %5.1f |\n", batches[i].size, batches[i].depth,
		    series_median(&batches[i].rate), series_median(&batches[i].usec));
}

const struct section section_redis = { "redis", "what Redis pays for a message", run };
