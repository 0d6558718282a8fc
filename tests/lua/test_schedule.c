/*
 * The script of schedules.
 */
#include "script_test.h"

static char what[16];
static char schedule_key[] = "ordersSCHEDULE";

/* Returns the script's answer; "" for an error, which is in rig.error. */
static const char *
ask(const char *name, long long tick, int period, int grace, const char *how, const char *message)
{
	struct words w = { 0 };
	redisReply *r;

	words_add(&w, name);
	words_fmt(&w, "%lld", tick);
	words_fmt(&w, "%d", period);
	words_fmt(&w, "%d", grace);
	rig_words(&w, how, message, NULL);
	what[0] = '\0';
	if ((r = rig_script(&rig, "schedule", "QT", &w)) == NULL)
		return what;
	assert_int_equal(r->elements, 2);
	assert_true(atof(r->element[1]->str) > 1e9);
	snprintf(what, sizeof(what), "%s", r->element[0]->str);
	freeReplyObject(r);
	return what;
}

static long long
last(const char *name)
{
	return rig_int(&rig, "HGET %s %s", schedule_key, name);
}

/* Whether the mark of a schedule that was seen, but has not run, is there. */
static long long
never_ran(const char *name)
{
	return rig_int(&rig, "HEXISTS %s \001%s", schedule_key, name);
}

SCRIPT_TEST(test_ticks)
{
	long long now = (long long)rig_now(&rig);

	/* The script only records the first tick of a schedule that it does not know. */
	assert_string_equal(ask("s", now - 1, 1, 10, "LPUSH", "m"), "new");
	assert_int_equal(rig_int(&rig, "EXISTS orders"), 0);
	assert_int_equal(last("s"), now - 1);
	assert_int_equal(never_ran("s"), 1);
	assert_string_equal(ask("s", now - 1, 1, 10, "LPUSH", "m"), "done");
	assert_string_equal(ask("s", now - 2, 1, 10, "LPUSH", "m"), "done");
	assert_string_equal(ask("s", now, 1, 10, "LPUSH", "m"), "pushed");
	assert_string_equal(ask("s", now, 1, 10, "LPUSH", "m"), "done");
	assert_string_equal(ask("s", now + 100, 1, 10, "LPUSH", "m"), "early");
	assert_int_equal(last("s"), now);
	assert_int_equal(never_ran("s"), 0);
	assert_int_equal(rig_int(&rig, "LLEN orders"), 1);
	/* It does not record a tick in the future. */
	assert_string_equal(ask("t", now + 100, 1, 10, "LPUSH", "m"), "early");
	assert_int_equal(rig_int(&rig, "HEXISTS %s t", schedule_key), 0);
}

SCRIPT_TEST(test_late)
{
	long long now = (long long)rig_now(&rig);

	rig_do(&rig, "HSET %s s %d", schedule_key, 1000);
	assert_string_equal(ask("s", now - 50, 3600, 40, "LPUSH", "m"), "missed");
	assert_int_equal(last("s"), 1000);
	assert_string_equal(ask("s", now - 30, 3600, 40, "LPUSH", "m"), "pushed");
	assert_string_equal(ask("s", now - 25, 3600, -1, "LPUSH", "m"), "pushed");
	assert_int_equal(last("s"), now - 25);
	/* The last tick is in the future, because a clock was wrong. */
	rig_do(&rig, "HSET %s s %lld", schedule_key, now + 5000);
	assert_string_equal(ask("s", now - 25, 3600, -1, "LPUSH", "m"), "pushed");
	assert_int_equal(last("s"), now - 25);
	rig_do(&rig, "HSET %s s %lld", schedule_key, now + 5000);
	assert_string_equal(ask("s", now - 50, 3600, 40, "LPUSH", "m"), "missed");
	assert_int_equal(last("s"), now - 50);
	rig_do(&rig, "HSET %s s %lld", schedule_key, now + 3000);
	assert_string_equal(ask("s", now - 50, 3600, 40, "LPUSH", "m"), "done");
	rig_do(&rig, "HSET %s s what", schedule_key);
	assert_string_equal(ask("s", now - 5, 3600, 40, "LPUSH", "m"), "new");
	assert_int_equal(last("s"), now - 5);
}

SCRIPT_TEST(test_kinds)
{
	long long now = (long long)rig_now(&rig);
	redisReply *r;

	rig_do(&rig, "HSET %s s 1", schedule_key);
	rig_do(&rig, "LPUSH orders middle");
	assert_string_equal(ask("s", now - 3, 1, 10, "LPUSH", "left"), "pushed");
	assert_string_equal(ask("s", now - 2, 1, 10, "RPUSH", "right"), "pushed");
	r = rig_command(&rig, "LRANGE orders 0 -1");
	assert_string_equal(r->element[0]->str, "left");
	assert_string_equal(r->element[2]->str, "right");
	freeReplyObject(r);
	rig_do(&rig, "DEL orders");
	assert_string_equal(ask("s", now - 1, 1, 10, "XADD", "x"), "pushed");
	r = rig_command(&rig, "XRANGE orders - +");
	assert_string_equal(r->element[0]->element[1]->element[0]->str, "message");
	assert_string_equal(r->element[0]->element[1]->element[1]->str, "x");
	freeReplyObject(r);
	rig_do(&rig, "DEL orders");
	/*
	 * An id that is due later becomes due now; one that is due already keeps its
	 * time.
	 */
	rig_do(&rig, "ZADD orders %lld id", now + 100);
	assert_string_equal(ask("s", now, 1, 10, "ZADD", "id"), "pushed");
	assert_int_equal(rig_int(&rig, "ZSCORE orders id"), now);
	rig_do(&rig, "ZADD orders 5 id");
	rig_do(&rig, "HSET %s s 1", schedule_key);
	assert_string_equal(ask("s", now, 1, 10, "ZADD", "id"), "pushed");
	assert_int_equal(rig_int(&rig, "ZSCORE orders id"), 5);
}

SCRIPT_TEST(test_wrong_types)
{
	static const char *const hows[] = { "LPUSH", "RPUSH", "ZADD", "XADD" };
	long long now = (long long)rig_now(&rig);
	char before[48], after[48];
	size_t i;

	rig_do(&rig, "HSET %s s 1", schedule_key);
	rig_do(&rig, "SET orders x");
	rig_digest(&rig, before);
	for (i = 0; i < ARRAY_LEN(hows); i++) {
		assert_string_equal(ask("s", now, 1, 10, hows[i], "m"), "");
		assert_memory_equal(rig.error, "WRONGTYPE", 9);
	}
	rig_digest(&rig, after);
	assert_string_equal(before, after);
	rig_do(&rig, "DEL orders %s", schedule_key);
	rig_do(&rig, "SET %s x", schedule_key);
	for (i = 0; i < ARRAY_LEN(hows); i++)
		assert_string_equal(ask("s", now, 1, 10, hows[i], "m"), "");
	assert_int_equal(rig_int(&rig, "EXISTS orders"), 0);
}

/* Whichever command is denied, a tick that is not recorded is not pushed. */
SCRIPT_TEST(test_denied)
{
	static const char *const commands[] = { "time", "hget", "hset", "llen", "lpush" };
	long long now = (long long)rig_now(&rig);
	size_t i;

	rig_do(&rig, "ACL SETUSER weak on >x ~* +@all");
	for (i = 0; i < ARRAY_LEN(commands); i++) {
		server_do(&rig.server, "FLUSHALL");
		rig_do(&rig, "HSET %s s 1", schedule_key);
		server_do(&rig.server, "ACL SETUSER weak +@all -%s", commands[i]);
		rig_connect(&rig, "weak");
		assert_string_equal(ask("s", now, 1, 10, "LPUSH", "m"), "");
		rig_connect(&rig, "");
		assert_int_equal(rig_int(&rig, "EXISTS orders"), 0);
		assert_int_equal(last("s"), 1);
		assert_string_equal(ask("s", now, 1, 10, "LPUSH", "m"), "pushed");
	}
}

SCRIPT_TEST(test_maxmemory)
{
	long long now = (long long)rig_now(&rig);

	rig_do(&rig, "HSET %s s 1", schedule_key);
	rig_do(&rig, "CONFIG SET maxmemory 100000");
	assert_string_equal(ask("s", now, 1, 10, "LPUSH", "m"), "");
	assert_memory_equal(rig.error, "OOM", 3);
	rig_do(&rig, "CONFIG SET maxmemory 0");
	assert_int_equal(rig_int(&rig, "EXISTS orders"), 0);
	assert_string_equal(ask("s", now, 1, 10, "LPUSH", "m"), "pushed");
}
