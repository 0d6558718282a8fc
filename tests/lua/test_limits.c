/*
 * The limits of the fleet, rate and fleet_concurrency, which pop and renew apply, for
 * kinds "ack" and "unique".
 */
#define RIG_KEY "{orders}"
#include "script_test.h"

static unsigned		calls;

static void
fill(int n)
{
	int i;

	for (i = 0; i < n; i++) {
		if (rig.unique)
			rig_do(&rig, "ZADD %s 1 id%d", rig_key(&rig, KEY_QUEUE), i);
		else
			rig_do(&rig, "LPUSH %s x", rig_key(&rig, KEY_QUEUE));
	}
}

static void
begin(bool unique, int messages)
{
	rig_connect(&rig, "");
	rig_do(&rig, "FLUSHALL");
	rig.unique = unique;
	rig.fleet = 0;
	rig.gap = rig.slack = 0;
	fill(messages);
}

static int
take(int n, struct popped *p)
{
	char call[24];

	snprintf(call, sizeof(call), "l.%u", ++calls);
	return rig_pop(&rig, n, 1048576, MAX, call, 0, p, NULL);
}

static int
pop_only(int n)
{
	static struct popped p[100];
	int got = take(n, p);

	if (got > 0)
		rig_popped_done(p, got);
	return got;
}

static long long
waiting(void)
{
	return rig_int(&rig, rig.unique ? "ZCARD %s" : "LLEN %s", rig_key(&rig, KEY_QUEUE));
}

/* -- fleet_concurrency -------------------------------------------------------- */

static void
places(bool unique)
{
	struct popped p[4];

	begin(unique, 10);
	rig.fleet = 3;
	assert_int_equal(take(2, p), 2);
	assert_string_equal(rig.limited, "");
	assert_int_equal(take(5, p + 2), 1);
	assert_string_equal(rig.limited, "fleet");
	assert_int_equal(pop_only(5), 0);
	assert_string_equal(rig.limited, "fleet");
	assert_int_equal(waiting(), 7);
	assert_string_equal(rig_settle(&rig, "ack", &p[0], NULL), "ok");
	assert_int_equal(pop_only(5), 1);
	/* A retry counts for the limit like any other message. */
	assert_string_equal(rig_settle(&rig, "retry", &p[1], "0"), "ok");
	rig_popped_done(p + 1, 1);
	assert_int_equal(take(5, p + 1), 1);
	assert_int_equal(p[1].attempts, 1);
	/* The limit is now below the number in flight. */
	rig.fleet = 1;
	assert_int_equal(pop_only(5), 0);
	/* If nothing waits, the pop reports no limit. */
	rig.fleet = 3;
	rig_do(&rig, "DEL %s", rig_key(&rig, KEY_QUEUE));
	assert_int_equal(pop_only(5), 0);
	assert_string_equal(rig.limited, "");
	rig_popped_done(p, 3);
}

TEST(test_places)
{
	places(false);
	places(true);
}

/*
 * The lease of a message has ended, and another message has its place: the first owner
 * cannot take it back.
 */
TEST(test_renew)
{
	struct popped p[3];
	struct ticked t;

	begin(false, 3);
	rig.fleet = 2;
	assert_int_equal(take(2, p), 2);
	rig_expire(&rig, p[0].tag, p[0].taglen);
	rig_expire(&rig, p[1].tag, p[1].taglen);
	assert_int_equal(rig_tick(&rig, 60, 60, true, 1e12, 250, 1048576, 0, NULL, &t), 0);
	assert_int_equal(t.requeued, 2);
	assert_int_equal(rig_renew(&rig, &p[0]), 2);
	/* Another pop takes the other message. */
	assert_int_equal(take(2, p + 2), 1);
	assert_string_equal(p[2].tag, p[1].tag);
	assert_int_equal(p[2].crashes, 1);
	assert_int_equal(rig_renew(&rig, &p[1]), 0);
	rig_expire(&rig, p[0].tag, p[0].taglen);
	assert_int_equal(rig_tick(&rig, 60, 60, true, 1e12, 250, 1048576, 0, NULL, &t), 0);
	assert_int_equal(pop_only(1), 1);
	assert_int_equal(rig_renew(&rig, &p[0]), 0);
	assert_int_equal(rig_renew(&rig, &p[2]), 1);
	rig_popped_done(p, 3);
	/*
	 * While the fleet is full, a renewal is refused; the message stays in QRETRY for
	 * others.
	 */
	begin(false, 2);
	rig.fleet = 1;
	assert_int_equal(take(1, p), 1);
	rig_do(&rig, "ZADD %s 1e10 later", rig_key(&rig, KEY_RETRY));
	rig_expire(&rig, p[0].tag, p[0].taglen);
	assert_int_equal(rig_tick(&rig, 60, 60, true, 1e12, 250, 1048576, 0, NULL, &t), 0);
	rig_do(&rig, "ZADD %s 1e10 foreign", rig_key(&rig, KEY_BACKUP));
	assert_int_equal(rig_renew(&rig, &p[0]), 0);
	rig_do(&rig, "DEL %s", rig_key(&rig, KEY_BACKUP));
	assert_int_equal(rig_renew(&rig, &p[0]), 2);
	rig_popped_done(p, 1);
}

TEST(test_full)
{
	struct words w = { 0 };
	redisReply *r;

	begin(false, 5);
	rig.fleet = 2;
	assert_int_equal(pop_only(2), 2);
	words_add(&w, "2");
	r = rig_script(&rig, "arm", "QRLPB", &w);
	assert_int_equal(r->element[1]->integer, 3);
	assert_int_equal(r->element[7]->integer, 1);
	freeReplyObject(r);
	words_add(&w, "3");
	r = rig_script(&rig, "arm", "QRLPB", &w);
	assert_int_equal(r->element[7]->integer, 0);
	freeReplyObject(r);
}

/* -- rate ---------------------------------------------------------------------- */

/* For a second pops take what they can: never more than the rate allows. */
static void
rate(bool unique)
{
	double began, now;
	int got = 0, n;

	begin(unique, 400);
	rig.gap = 0.01;
	rig.slack = 0.1;
	began = rig_now(&rig);
	do {
		n = pop_only((int)unit_below(20) + 1);
		assert_true(n >= 0);
		got += n;
		now = rig_now(&rig);
		if (got > (now - began) / 0.01 + 11)
			fail_msg("%d messages in %f s", got, now - began);
		if (rig.limited[0] != '\0') {
			assert_true(atof(rig.limited) <= 0.1 && atof(rig.limited) >= 0);
			usleep((useconds_t)(atof(rig.limited) * 1e6));
		}
	} while (now - began < 1);
	assert_true(got >= 50);
	assert_int_equal(waiting(), 400 - got);
}

TEST(test_rate)
{
	rate(false);
	rate(true);
}

/* Rate that was left unused may be used at once only within the slack. */
TEST(test_burst)
{
	begin(false, 100);
	rig.gap = 1000;
	rig.slack = 0.1;
	assert_int_equal(pop_only(10), 1);
	assert_true(atof(rig.limited) > 990 && atof(rig.limited) < 1000);
	assert_int_equal(pop_only(10), 0);
	/* The rate was not used for an hour. */
	rig_do(&rig, "SET %s %f", rig_key(&rig, KEY_RATE), rig_now(&rig) - 3600);
	assert_int_equal(pop_only(10), 1);
	rig.gap = 0.01;
	rig_do(&rig, "DEL %s", rig_key(&rig, KEY_RATE));
	assert_in_range(pop_only(100), 10, 12);
}

/*
 * A rate applies at once, whatever value an old rate, a wrong clock or an operator has
 * left.
 */
TEST(test_other_rate)
{
	static const char *const left[] = { "99999999999", "inf", "nan", "-5", "x", "" };
	size_t i;

	for (i = 0; i < ARRAY_LEN(left); i++) {
		begin(false, 5);
		rig.gap = 0.05;
		rig.slack = 0.1;
		rig_do(&rig, "SET %s %s", rig_key(&rig, KEY_RATE), left[i]);
		if (pop_only(1) == 0) {
			assert_true(atof(rig.limited) <= 0.051);
			usleep(60000);
			assert_int_equal(pop_only(1), 1);
		}
		assert_true(rig_int(&rig, "PTTL %s", rig_key(&rig, KEY_RATE)) > 0);
	}
	begin(false, 5);
	rig.gap = 0.05;
	rig_do(&rig, "LPUSH %s x", rig_key(&rig, KEY_RATE));
	assert_int_equal(pop_only(1), -1);
	assert_int_equal(waiting(), 5);
}

/* A pop that may not write the rate takes nothing. */
TEST(test_denied)
{
	static const char *const commands[] = { "getrange", "set" };
	size_t i;

	for (i = 0; i < ARRAY_LEN(commands); i++) {
		begin(false, 5);
		rig.gap = 1;
		rig_do(&rig, "ACL SETUSER few reset on >x ~* &* +@all -%s", commands[i]);
		rig_connect(&rig, "few");
		assert_int_equal(pop_only(5), -1);
		rig_connect(&rig, "");
		assert_int_equal(waiting(), 5);
		assert_int_equal(rig_int(&rig, "EXISTS %s", rig_key(&rig, KEY_BACKUP)), 0);
	}
	begin(false, 5);
	rig.gap = 1;
	rig_do(&rig, "CONFIG SET maxmemory 100000");
	assert_int_equal(pop_only(5), 1);
	rig_do(&rig, "CONFIG SET maxmemory 0");
}

/* Both limits: the stricter one decides. */
TEST(test_both)
{
	begin(false, 50);
	rig.fleet = 4;
	rig.gap = 0.01;
	rig.slack = 0.1;
	assert_int_equal(pop_only(20), 4);
	assert_string_equal(rig.limited, "fleet");
	begin(false, 50);
	rig.fleet = 4;
	rig.gap = 1000;
	assert_int_equal(pop_only(20), 1);
	assert_true(atof(rig.limited) > 900);
}
