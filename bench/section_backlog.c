/*
 * The cost of a message against the length of the queue: with a thousand and with a
 * million messages behind, and with 100,000 delayed ones and 100,000 retries beside.
 */
#include "bench.h"

#include <stdio.h>
#include <string.h>

#define CYCLES	10000
#define BATCH	16

struct backlog {
	const char	*name;		/* in the table */
	const char	*queue;
	struct series	 usec, rate;
};

/* All three are in one Redis, so that its memory is the same for each. */
static struct backlog small = { .name = "1,000 messages and more", .queue = "small" };
static struct backlog large = { .name = "1,000,000 messages", .queue = "large" };
static struct backlog beside = { .name = "100,000 delayed, 100,000 for a retry",
    .queue = "q" };

static void
measure(struct backlog *b)
{
	double before = script_usec(), wall = cycle(b->queue, CYCLES, BATCH, 1);

	series_add(&b->usec, (script_usec() - before) / CYCLES);
	series_add(&b->rate, CYCLES / wall);
}

/* Retries in an hour, as the scripts write them, and delayed messages of producers. */
static void
fill_later(long count)
{
	static const char script[] =
	    "local t = redis.call('TIME')[1] + 3600 "
	    "for i = 1, tonumber(ARGV[1]) do "
	    "  local tag, at = 'later' .. i, string.format('%.6f', t + i / 1000) "
	    "  redis.call('ZADD', KEYS[1], at, tag) "
	    "  redis.call('HSET', KEYS[2], tag, '{\"id\":\"' .. tag .. '\"}') "
	    "  redis.call('HSET', KEYS[3], tag, '1 0 - ' .. at .. ' ' .. #tag) "
	    "  redis.call('ZADD', KEYS[4], at, 'delayed' .. i) "
	    "end";

	freeReplyObject(redis("EVAL %s 4 qRETRY qCONTEXT qDELIVERY qDELAYED %ld", script,
	    count));
}

static void
compare_backlogs(void)
{
	int r;

	flush();
	fill("small", 1000 + (long)CYCLES * rounds);
	fill("large", 1000000 + (long)CYCLES * rounds);
	fill("q", 1000 + (long)CYCLES * rounds);
	fill_later(100000);
	for (r = 0; r < rounds; r++) {
		measure(&small);
		measure(&large);
		measure(&beside);
	}
}

static void
print(const struct backlog *b)
{
	say("| %-38s | %5.1f | %5.2f | %10.0f |\n", b->name, series_median(&b->usec),
	    series_ratio(&b->usec, &small.usec), series_median(&b->rate));
}

static void
run(void)
{
	compare_backlogs();
	say("Redis is in µs a message for its pop and its ack, in batches of %d.\n\n", BATCH);
	say("| what waits                             | Redis | ratio | messages/s |\n");
	say("| -------------------------------------- | ----: | ----: | ---------: |\n");
	print(&small);
	print(&large);
	print(&beside);
}

const struct section section_backlog = { "backlog", "cost against what waits", run };
