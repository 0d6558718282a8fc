/*
 * Groups: messages through persistent handlers in C, without groups, with 1,000 groups, and with
 * one, which is compared with a queue that has one slot; and how long a flood of one group delays
 * one message of another.
 */
#include "bench.h"

#include <stdio.h>
#include <unistd.h>

#define FLOOD	100000

static const struct kind {
	const char	*name, *options;
	size_t		 against;	/* the row that it is compared with */
	long		 count;
	int		 groups;
} kinds[] = {
	{ "no groups", "pipeline = 8 concurrency = 8", 0, 40000, 1000 },
	{ "1,000 groups", "pipeline = 8 concurrency = 8 group_by = \"g\"", 0, 40000, 1000 },
	{ "one at a time", "concurrency = 1", 2, 10000, 1 },
	{ "1 group", "pipeline = 8 concurrency = 8 group_by = \"g\"", 2, 10000, 1 },
};
#define KINDS	(sizeof(kinds) / sizeof(kinds[0]))

static struct series rate[KINDS], usec[KINDS], delay, busy;

static void
push(long count, int groups)
{
	freeReplyObject(redis("EVAL %s 1 q %ld %d", "local pad = string.rep('x', 150) "
	    "for i = 1, ARGV[1] do redis.call('LPUSH', KEYS[1], '{\"id\":' .. i .. ',\"g\":\"' .. "
	    "i % ARGV[2] .. '\",\"pad\":\"' .. pad .. '\"}') end", count, groups));
}

static void
measure(size_t i)
{
	const struct kind *k = &kinds[i];
	struct cost start, c;

	configure("queue \"q\" { command = {\"%s\"} mode = \"persistent\" %s }\n",
	    helper("answer"), k->options);
	flush();
	start = rqd_start_cost();
	push(k->count, k->groups);
	freeReplyObject(redis("CONFIG RESETSTAT"));
	c = rqd_drain(start);
	series_add(&rate[i], (double)k->count / c.wall);
	series_add(&usec[i], script_usec() / (double)k->count);
}

static void
measure_flood(void)
{
	const char *file = world_file("started");
	double started;
	pid_t pid;

	(void)unlink(file);
	configure("queue \"q\" { command = {\"/bin/sh\", \"-c\", "
	    "'case $RQD_ID in other) : >%s ;; esac; sleep 1'} concurrency = 8 "
	    "group_by = \"g\" }\n", file);
	flush();
	push(FLOOD, 1);
	freeReplyObject(redis("LPUSH q {\"id\":\"other\",\"g\":\"other\"}"));
	freeReplyObject(redis("CONFIG RESETSTAT"));
	started = now();
	pid = rqd_start();
	while (access(file, F_OK) == -1 && now() - started < 60)
		nap(0.005);
	series_add(&delay, now() - started);
	series_add(&busy, script_usec() / 1e6);
	rqd_stop(pid);
}

static void
run(void)
{
	for (int n = 0; n < rounds; n++) {
		for (size_t i = 0; i < KINDS; i++)
			measure(i);
		measure_flood();
	}
	say("Redis is in µs a message for all scripts, of INFO commandstats.\n\n");
	say("| groups        | messages/s | Redis | times |\n");
	say("| ------------- | ---------: | ----: | ----: |\n");
	for (size_t i = 0; i < KINDS; i++)
		say("| %-13s | %10.0f | %5.1f | %5.2f |\n", kinds[i].name, series_median(&rate[i]),
		    series_median(&usec[i]), series_ratio(&usec[i], &usec[kinds[i].against]));
	say("\nA message behind %d of another group starts after %.2f s, of which Redis is busy "
	    "for %.2f s.\n", FLOOD, series_median(&delay), series_median(&busy));
}

const struct section section_group = { "group", "messages that belong to groups", run };
