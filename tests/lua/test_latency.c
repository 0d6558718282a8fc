/*
 * What scripts tell about the time that messages have waited: overdue.
 */
#include "script_test.h"

/* -- overdue ------------------------------------------------------------------ */

#define FAR	1000	/* seconds; Redis' clock goes on between two calls */

/* Adds a member that is due so long ago; unit: 1, or 1000 for milliseconds. */
static void
add(enum key key, double ago, double unit)
{
	rig_do(&rig, "ZADD %s %f member%f", rig_key(&rig, key), (rig_now(&rig) - ago) * unit, ago);
}

static void
assert_overdue(const char *source, double seconds, int least)
{
	struct words w = { 0 };
	redisReply *r;
	double found;

	words_add(&w, source);
	words_add(&w, "rqd");
	r = rig_script(&rig, "overdue", "RLQ", &w);
	if (r == NULL)
		fail_msg("%s", rig.error);
	found = strtod(r->element[0]->str, NULL);
	if (found < seconds * (1 - 1e-5) - 0.01 || found > seconds + 10 ||
	    r->element[1]->integer != least)
		fail_msg("%s: %f, %lld", source, found, r->element[1]->integer);
	freeReplyObject(r);
}

SCRIPT_TEST(test_overdue_nothing)
{
	assert_overdue("list", 0, 0);
	assert_overdue("ids", 0, 0);
	assert_overdue("stream", 0, 0);
	add(KEY_RETRY, -FAR, 1);
	add(KEY_DELAYED, -FAR, 1);
	add(KEY_DELAYED, -FAR, 1000);
	assert_overdue("list", 0, 0);
}

SCRIPT_TEST(test_overdue_longest)
{
	add(KEY_RETRY, FAR, 1);
	add(KEY_RETRY, FAR / 2, 1);
	assert_overdue("list", FAR, 0);
	add(KEY_DELAYED, 2 * FAR, 1);
	assert_overdue("list", 2 * FAR, 0);
	add(KEY_DELAYED, 3 * FAR, 1000);
	assert_overdue("list", 3 * FAR, 0);
	add(KEY_DELAYED, 1e8, 1);
	assert_overdue("list", 1e8, 0);
}

SCRIPT_TEST(test_overdue_ids)
{
	add(KEY_QUEUE, FAR, 1000);
	add(KEY_QUEUE, -FAR, 1);
	/* Put off while they run. */
	rig_do(&rig, "ZADD orders %f away", 1e10 + rig_now(&rig) - 9 * FAR);
	assert_overdue("ids", FAR, 0);
	assert_overdue("list", 0, 0);
}

/* 0 and -inf say "now", and not since when. */
SCRIPT_TEST(test_overdue_without_time)
{
	rig_do(&rig, "ZADD orders 0 a -inf b");
	assert_overdue("ids", 0, 1);
	add(KEY_QUEUE, FAR, 1);
	assert_overdue("ids", FAR, 1);
}

SCRIPT_TEST(test_overdue_stream)
{
	double now = rig_now(&rig);

	rig_do(&rig, "XADD orders %lld-0 a 1", (long long)((now - 3 * FAR) * 1e3));
	rig_do(&rig, "XADD orders %lld-0 a 2", (long long)((now - 2 * FAR) * 1e3));
	assert_overdue("stream", 3 * FAR, 0);
	rig_do(&rig, "XGROUP CREATE orders rqd 0");
	assert_overdue("stream", 3 * FAR, 0);
	freeReplyObject(rig_command(&rig, "XREADGROUP GROUP rqd c COUNT 1 STREAMS orders >"));
	assert_overdue("stream", 2 * FAR, 0);
	freeReplyObject(rig_command(&rig, "XREADGROUP GROUP rqd c COUNT 1 STREAMS orders >"));
	assert_overdue("stream", 0, 0);
	rig_do(&rig, "DEL orders");
	rig_do(&rig, "XADD orders 1-1 a 1");
	assert_overdue("stream", 0, 1);
}

int
main(void)
{
	return rig_run("orders");
}
