/*
 * Batches: messages of 200 bytes through cat(1), a process for each message against one
 * for 100 messages, eight at once.
 */
#include "bench.h"

#include <stdio.h>

struct kind {
	const char	*name, *options;
	long		 count;
	struct drained	 cost;
};

static struct kind kinds[] = {
	{ .name = "a process per message", .options = "", .count = 2000 },
	{ .name = "batch = 100, length", .options = "batch = 100", .count = 100000 },
	{ .name = "batch = 100, raw", .options = "batch = 100 framing = \"raw\"",
	    .count = 100000 },
};
#define KINDS	(sizeof(kinds) / sizeof(kinds[0]))

static void
measure(struct kind *k)
{
	configure("queue \"q\" { command = {\"/bin/cat\"} output = \"none\" concurrency = 8 %s }\n",
	    k->options);
	rqd_measure(&k->cost, k->count);
}

static void
print(const struct kind *k)
{
	say("| %-21s | %8.0f | %6.1f | %7.2f | %6.2f |\n", k->name, series_median(&k->cost.rate),
	    series_ratio(&k->cost.rate, &kinds[0].cost.rate), series_median(&k->cost.cpu),
	    series_median(&k->cost.redis));
}

static void
run(void)
{
	size_t i;
	int n;

	for (n = 0; n < rounds; n++) {
		for (i = 0; i < KINDS; i++)
			measure(&kinds[i]);
	}
	say("rqd with its children, and Redis' scripts: µs a message.\n\n");
	say("| /bin/cat              | rqd/s    | times  | rqd     | Redis  |\n");
	say("| --------------------- | -------: | -----: | ------: | -----: |\n");
	for (i = 0; i < KINDS; i++)
		print(&kinds[i]);
}

const struct section section_batch = { "batch", "exec handlers that get several messages", run };
