/*
 * Cost against what waits: the same messages with a thousand and with a million
 * behind them, with 100,000 delayed and 100,000 waiting for a retry beside them;
 * and what renewing and ticking cost with 10,000 in flight.
 */
#include "bench.h"

#include <stdio.h>
#include <string.h>

#include "redis/script.h"

#define CYCLES	10000
#define BATCH	16
#define FLEET	10000

struct backlog {
	const char	*name;		/* in the table */
	const char	*queue;
	struct series	 usec, rate;
};

/* All three stand in one Redis, so that its memory is the same for each. */
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

/* -- a fleet's worth in flight ------------------------------------------------------- */

static const char *
load(const char *name)
{
	struct script *s;

	script_init();
	s = script_find(name);
	if (s == NULL)
		die("no script %s", name);
	freeReplyObject(redis("SCRIPT LOAD %b", s->text, s->len));
	return s->sha;
}

/* Deliveries of a daemon that is somewhere else. */
static void
fill_in_flight(long count)
{
	static const char script[] =
	    "local t = redis.call('TIME')[1] "
	    "for i = 1, tonumber(ARGV[1]) do "
	    "  local tag = 'm' .. i "
	    "  redis.call('ZADD', KEYS[1], t, tag) "
	    "  redis.call('HSET', KEYS[2], tag, '{\"id\":\"' .. tag .. '\"}') "
	    "  redis.call('HSET', KEYS[3], tag, '0 0 fleet.' .. i .. ' ' .. t .. ' ' .. #tag) "
	    "end";

	freeReplyObject(redis("EVAL %s 3 qBACKUP qCONTEXT qDELIVERY %ld", script, count));
}

static double
renew_usec(const char *sha)
{
	const char *argv[7 + 500] = { "EVALSHA", sha, "3", "qBACKUP", "qRETRY",
	    "qDELIVERY", "0" };
	char words[500][24];
	double before;
	int from, i;
	redisReply *r;
	redisContext *ctx = world_redis();

	before = script_usec();
	for (from = 0; from < FLEET; from += 250) {
		for (i = 0; i < 500; i++) {
			(void)snprintf(words[i], sizeof(words[i]), "%s%d",
			    i % 2 == 0 ? "m" : "fleet.", from + i / 2 + 1);
			argv[7 + i] = words[i];
		}
		r = redisCommandArgv(ctx, 507, argv, NULL);
		if (r == NULL || r->type != REDIS_REPLY_ARRAY || r->elements != 251)
			die("renew: %s", r != NULL && r->str != NULL ? r->str : "no answer");
		freeReplyObject(r);
	}
	redisFree(ctx);
	return (script_usec() - before) / FLEET;
}

static double
tick_usec(const char *sha)
{
	double before = script_usec();
	int i;

	for (i = 0; i < 100; i++)
		freeReplyObject(redis("EVALSHA %s 7 q qBACKUP qCONTEXT qRETRY qDELIVERY "
		    "qDELAYED qSTATS 60 60 1 9999999999 250 1048576 0 0", sha));
	return (script_usec() - before) / 100;
}

static void
measure_fleet(void)
{
	const char *renew, *tick;

	flush();
	renew = load("renew");
	tick = load("tick");
	say("\n10,000 in flight, of a simulated fleet: a renewal costs Redis ");
	fill_in_flight(FLEET);
	say("%.1f µs, in calls of 250; ", renew_usec(renew));
	say("a tick %.0f µs", tick_usec(tick));
	flush();
	say(" (%.0f µs with none in flight).\n", tick_usec(load("tick")));
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
	measure_fleet();
}

const struct section section_backlog = { "backlog", "cost against what waits", run };
