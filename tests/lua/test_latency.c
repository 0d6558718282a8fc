/*
 * What scripts report for latencies and the curve of arrivals: overdue.lua, and the
 * counts in the replies of pops and ticks.
 */
#include "script_test.h"

/* -- overdue ------------------------------------------------------------------ */

#define FAR	1000	/* seconds, so many that the time between two calls does not matter */

/* Adds a member that was due `ago` seconds ago; unit: 1, or 1000 for milliseconds. */
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

	rig_words(&w, source, "rqd", NULL);
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
	/* An id that was put off because it runs. */
	rig_do(&rig, "ZADD orders %f away", 1e10 + rig_now(&rig) - 9 * FAR);
	assert_overdue("ids", FAR, 0);
	assert_overdue("list", 0, 0);
}

/* The scores 0 and -inf mean "now", but not since when. */
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

/* -- counts of pops and ticks --------------------------------------------- */

static struct ticked
tick(void)
{
	struct ticked t;

	assert_int_equal(rig_tick(&rig, 60, 60, true, 1e12, 250, 1048576, 0, "0", &t), 0);
	return t;
}

SCRIPT_TEST(test_pops_count)
{
	struct popped p[3];

	assert_int_equal(tick().taken, 0);
	push("a");
	push("b");
	push("c");
	assert_int_equal(pop(2, "c.1", p), 2);
	assert_int_equal(rig.taken, 2);
	assert_int_equal(tick().taken, 2);
	assert_string_equal(rig_settle(&rig, "retry", &p[0], "0"), "ok");
	/* A retry does not count, because it was taken from the list before. */
	assert_int_equal(pop(1, "c.2", &p[2]), 1);
	assert_int_equal(rig.taken, -1);
	assert_int_equal(tick().taken, 2);
	rig_popped_done(p, 3);
	rig.turn = "newest";
	p[0] = pop_one("c.3");
	rig.turn = NULL;
	assert_int_equal(rig.taken, -1);
	assert_int_equal(tick().taken, 2);
	rig_popped_done(p, 1);
	assert_int_equal(pop(1, "c.4", p), 0);
	assert_int_equal(rig.taken, -1);
}

/* A faulty counter affects no pop and no tick. */
SCRIPT_TEST(test_odd_counters)
{
	struct popped p;

	push("a");
	push("b");
	rig_do(&rig, "HSET ordersSTATS taken x");
	p = pop_one("c.1");
	rig_popped_done(&p, 1);
	assert_int_equal(rig.taken, -1);
	assert_int_equal(tick().taken, -1);
	rig_do(&rig, "DEL ordersSTATS");
	rig_do(&rig, "SET ordersSTATS x");
	p = pop_one("c.2");
	rig_popped_done(&p, 1);
	assert_int_equal(rig.taken, -1);
	assert_int_equal(tick().taken, -1);
	assert_int_equal(rig_int(&rig, "ZCARD ordersBACKUP"), 2);
}

SCRIPT_TEST(test_others)
{
	struct popped p;

	push("a");
	p = pop_one("host.abc-1.1");
	assert_int_equal(tick().others, 0);
	/* A foreign consumer takes a message. */
	rig_do(&rig, "ZADD ordersBACKUP %f 7", rig_now(&rig));
	rig_do(&rig, "HSET ordersCONTEXT 7 payload");
	assert_int_equal(tick().others, 1);
	rig_do(&rig, "ZREM ordersBACKUP 7");
	rig_do(&rig, "HDEL ordersCONTEXT 7");
	assert_int_equal(tick().others, 0);
	/* rqd's first version writes the same tokens, but no records of its pops. */
	rig_forget_pops(&rig);
	assert_int_equal(tick().others, 1);
	rig_popped_done(&p, 1);
}

/*
 * A foreign consumer has abandoned a message: the tick still reports it, and requeues the
 * message.
 */
SCRIPT_TEST(test_others_gone)
{
	struct ticked t;

	rig_do(&rig, "ZADD ordersBACKUP 1000000000 7");
	rig_do(&rig, "HSET ordersCONTEXT 7 payload");
	t = tick();
	assert_int_equal(t.requeued, 1);
	assert_int_equal(t.others, 1);
	assert_int_equal(tick().others, 0);
}

/* Some of 100 ticks find a foreign consumer's message among many of rqd's. */
SCRIPT_TEST(test_others_among_many)
{
	struct popped p[50];
	int i, found = 0;

	for (i = 0; i < 50; i++)
		push("a");
	assert_int_equal(pop(50, "host.abc-1.1", p), 50);
	rig_popped_done(p, 50);
	for (i = 0; i < 5; i++)
		rig_do(&rig, "ZADD ordersBACKUP %f foreign%d", rig_now(&rig) + 1, i);
	for (i = 0; i < 5; i++)
		rig_do(&rig, "HSET ordersCONTEXT foreign%d payload", i);
	for (i = 0; i < 100; i++)
		found += tick().others == 1;
	assert_in_range(found, 1, 99);
}

/* -- the list without leases ----------------------------------------------------- */

static long long
list_pop(const char *turn)
{
	struct words w = { 0 };
	long long taken;
	redisReply *r;

	rig_words(&w, "right", "2", "1000", "1000", "0", turn, NULL);
	r = rig_script(&rig, "list_pop", "QPS", &w);
	assert_non_null(r);
	taken = r->element[3]->integer;
	freeReplyObject(r);
	return taken;
}

static void
assert_list_taken(long long waiting, long long taken)
{
	struct words w = { 0 };
	redisReply *r = rig_script(&rig, "list_taken", "QS", &w);

	assert_non_null(r);
	assert_int_equal(r->element[0]->integer, waiting);
	assert_int_equal(r->element[1]->integer, taken);
	freeReplyObject(r);
}

SCRIPT_TEST(test_list)
{
	int i;

	assert_list_taken(0, 0);
	for (i = 0; i < 5; i++)
		push("a");
	assert_int_equal(list_pop("oldest"), 2);
	assert_list_taken(3, 2);
	assert_int_equal(list_pop("newest"), -1);
	assert_list_taken(1, 2);
	assert_int_equal(list_pop("oldest"), 3);
	assert_int_equal(list_pop("oldest"), -1);
	assert_list_taken(0, 3);
	rig_do(&rig, "HSET ordersSTATS taken 99999999999999999999999");
	assert_list_taken(0, -1);
	rig_do(&rig, "DEL ordersSTATS");
	rig_do(&rig, "SET ordersSTATS x");
	assert_list_taken(0, -1);
	push("a");
	assert_int_equal(list_pop("oldest"), -1);
	assert_list_taken(0, -1);
}
