/*
 * The scripts other than pop and settle, each against its head comment.
 */
#include "script_test.h"

/* -- renew, tick ------------------------------------------------------------ */

SCRIPT_TEST(test_renew)
{
	struct popped p, p2;
	struct ticked t;

	push("{\"id\":1}");
	p = pop_one("i.1");
	assert_int_equal(rig_renew(&rig, &p), 1);
	rig_expire(&rig, "1", 1);
	assert_int_equal(rig_tick(&rig, 60, 60, true, 1e12, 250, 1048576, 0, NULL, &t), 0);
	assert_int_equal(t.requeued, 1);
	/*
	 * The lease has ended, but no daemon has taken the message: its owner gets it
	 * back.
	 */
	assert_int_equal(rig_renew(&rig, &p), 2);
	assert_int_equal(rig_renew(&rig, &p), 1);
	rig_expire(&rig, "1", 1);
	assert_int_equal(rig_tick(&rig, 60, 60, true, 1e12, 250, 1048576, 0, NULL, &t), 0);
	p2 = pop_one("i.2");
	assert_int_equal(p2.crashes, 1);
	assert_int_equal(p2.attempts, 0);
	assert_int_equal(rig_renew(&rig, &p), 0);
	assert_string_equal(rig_settle(&rig, "ack", &p, NULL), "held");
	/*
	 * Redis has lost the record of the pop: another message may have the tag, and
	 * then none has.
	 */
	assert_int_equal(rig_forget_pops(&rig), 1);
	assert_int_equal(rig_renew(&rig, &p), -4);
	assert_string_equal(rig_settle(&rig, "ack", &p, NULL), "held lost");
	assert_string_equal(rig_settle(&rig, "ack", &p2, NULL), "ok");
	assert_int_equal(rig_renew(&rig, &p), -1);
	assert_string_equal(rig_settle(&rig, "ack", &p, NULL), "lost");
	rig_popped_done(&p, 1);
	rig_popped_done(&p2, 1);
}

/* A message can be settled after its lease has ended, if no daemon has taken it. */
SCRIPT_TEST(test_settle_expired)
{
	static const char *const ops[] = { "ack", "retry", "return", "dead", "defer" };
	struct popped p;
	struct ticked t;
	size_t i;

	for (i = 0; i < ARRAY_LEN(ops); i++) {
		server_do(&rig.server, "FLUSHALL");
		push("{\"id\":1}");
		p = pop_one("i.1");
		rig_expire(&rig, "1", 1);
		rig_tick(&rig, 60, 60, true, 1e12, 250, 1048576, 0, NULL, &t);
		assert_int_equal(rig_int(&rig, "ZCARD %s", rig_key(&rig, KEY_RETRY)), 1);
		assert_string_equal(rig_settle(&rig, ops[i], &p, "30"), "ok");
		rig_check_clean(&rig);
		rig_popped_done(&p, 1);
	}
}

SCRIPT_TEST(test_renew_many)
{
	static struct popped p[250];
	struct words w = { 0 };
	redisReply *r;
	int i, n = 0;

	for (i = 0; i < 250; i++)
		push("x");
	while (n < 250) {
		char call[24];
		snprintf(call, sizeof(call), "i.%d", n);
		n += pop(100, call, p + n);
	}
	rig_words(&w, "0", "0", NULL);
	for (i = 0; i < 250; i++) {
		rig_words(&w, p[i].tag, i % 10 == 3 ? "not.ours.1" : p[i].token, NULL);
	}
	r = rig_script(&rig, "renew", "BRD", &w);
	assert_int_equal(r->elements, 251);
	for (i = 0; i < 250; i++)
		assert_int_equal(r->element[i + 1]->integer, i % 10 == 3 ? -4 : 1);
	freeReplyObject(r);
	rig_popped_done(p, 250);
}

/*
 * A daemon can renew all messages of a pop whose reply has not come, as many as a pop may
 * take.
 */
SCRIPT_TEST(test_renew_unknown_pop)
{
	enum { MANY = 200 };
	static struct popped p[MANY];
	struct words w = { 0 };
	double begin;

	for (int i = 0; i < MANY; i++)
		push("x");
	assert_int_equal(pop(MANY, "i.7", p), MANY);
	begin = rig_now(&rig);
	rig_words(&w, "0", "1", "i.7", "0", NULL);
	freeReplyObject(rig_script(&rig, "renew", "BRD", &w));
	assert_int_equal(rig_int(&rig, "ZCOUNT %s %.6f +inf", rig_key(&rig, KEY_BACKUP), begin),
	    MANY);
	rig_popped_done(p, MANY);
}

/*
 * A tick requeues a foreign consumer's messages after foreign_timeout, not after the
 * lease.
 */
SCRIPT_TEST(test_tick_foreign)
{
	struct ticked t;
	double now = rig_now(&rig);
	struct popped p;

	rig_do(&rig, "ZADD %s %f f1", rig_key(&rig, KEY_BACKUP), now - 100);
	rig_do(&rig, "HSET %s f1 one", rig_key(&rig, KEY_CONTEXT));
	rig_tick(&rig, 10, 200, true, 1e12, 250, 1048576, 0, NULL, &t);
	assert_int_equal(t.requeued, 0);
	assert_true(atof(t.expires) > now + 90 && atof(t.expires) < now + 110);
	rig_tick(&rig, 200, 50, true, 1e12, 250, 1048576, 0, NULL, &t);
	assert_int_equal(t.requeued, 1);
	p = pop_one("i.1");
	assert_string_equal(p.payload, "one");
	rig_check_clean(&rig);
	rig_popped_done(&p, 1);
}

/* Unexpired foreign entries before it do not hide an expired one of ours. */
SCRIPT_TEST(test_tick_pages)
{
	struct ticked t;
	double now = rig_now(&rig);
	struct popped p, p2;
	int i, steps = 0;

	push("{\"id\":\"ours\"}");
	p = pop_one("i.1");
	for (i = 0; i < 700; i++) {
		rig_do(&rig, "ZADD %s %f f%d", rig_key(&rig, KEY_BACKUP), now - 1000 - i, i);
		rig_do(&rig, "HSET %s f%d f%d", rig_key(&rig, KEY_CONTEXT), i, i);
	}
	rig_do(&rig, "ZADD %s XX %f ours", rig_key(&rig, KEY_BACKUP), now - 100);
	t.rank = 0;
	do {
		assert_int_equal(rig_tick(&rig, 60, 5000, true, 1e12, 250, 1048576, t.rank,
		    NULL, &t), 0);
		steps++;
	} while (t.more);
	assert_int_equal(steps, 3);
	assert_int_equal(t.requeued, 1);
	p2 = pop_one("i.2");
	assert_string_equal(p2.tag, "ours");
	rig_popped_done(&p, 1);
	rig_popped_done(&p2, 1);
}

SCRIPT_TEST(test_tick_bounds)
{
	static char big[600000];
	struct ticked t;
	int i;

	memset(big, 'x', sizeof(big) - 1);
	for (i = 0; i < 3; i++) {
		rig_do(&rig, "ZADD %s %d f%d", rig_key(&rig, KEY_BACKUP), 1000 + i, i);
		rig_do(&rig, "HSET %s f%d %s", rig_key(&rig, KEY_CONTEXT), i, big);
		big[0] = (char)('a' + i);
		rig_do(&rig, "ZADD %s %d %s", rig_key(&rig, KEY_DELAYED), 1000 + i, big);
	}
	for (i = 0; i < 6; i++) {
		assert_int_equal(rig_tick(&rig, 60, 60, true, 1e12, 250, 1048576, 0, NULL, &t), 0);
		assert_true(t.requeued + t.promoted <= 2);
		if (!t.more)
			break;
	}
	assert_int_equal(rig_int(&rig, "LLEN %s", rig_key(&rig, KEY_QUEUE)), 6);
}

SCRIPT_TEST(test_tick_sent)
{
	struct ticked t;
	struct popped p;

	push("{\"id\":1}");
	p = pop_one("i.1");
	rig_do(&rig, "ZADD %s %f 1", rig_key(&rig, KEY_BACKUP), rig_now(&rig) - 100);
	/* The call waited 50 s in a stalled server. */
	rig_tick(&rig, 60, 60, true, rig_now(&rig) - 50, 250, 1048576, 0, NULL, &t);
	assert_int_equal(t.requeued, 0);
	rig_tick(&rig, 60, 60, false, rig_now(&rig), 250, 1048576, 0, NULL, &t);
	assert_int_equal(t.requeued, 0);
	assert_string_equal(t.expires, "");
	rig_tick(&rig, 60, 60, true, rig_now(&rig), 250, 1048576, 0, NULL, &t);
	assert_int_equal(t.requeued, 1);
	rig_popped_done(&p, 1);
}

SCRIPT_TEST(test_tick_odd_backup)
{
	struct ticked t;
	struct popped p;
	double now = rig_now(&rig);

	push("{\"id\":1}");
	push("{\"id\":2}");
	push("{\"id\":3}");
	p = pop_one("i.1");
	rig_popped_done(&p, 1);
	p = pop_one("i.2");
	rig_popped_done(&p, 1);
	p = pop_one("i.3");
	rig_popped_done(&p, 1);
	/*
	 * One has no payload; the others end in milliseconds, never, and at minus
	 * infinity.
	 */
	rig_do(&rig, "ZADD %s 5 nobody", rig_key(&rig, KEY_BACKUP));
	rig_do(&rig, "ZADD %s %f 1 +inf 2 -inf 3", rig_key(&rig, KEY_BACKUP), now * 1000);
	rig_tick(&rig, 60, 60, true, 1e12, 250, 1048576, 0, NULL, &t);
	assert_int_equal(t.dropped, 1);
	assert_int_equal(t.requeued, 1);
	assert_true(t.warning[0] != '\0');
	assert_true(rig_int(&rig, "ZSCORE %s 1", rig_key(&rig, KEY_BACKUP)) < now + 10);
	assert_true(rig_int(&rig, "ZSCORE %s 2", rig_key(&rig, KEY_BACKUP)) < now + 10);
	rig_check_clean(&rig);
	rig_tick(&rig, 60, 60, true, 1e12, 250, 1048576, 0, NULL, &t);
	assert_string_equal(t.warning, "");
}

SCRIPT_TEST(test_tick_delayed)
{
	struct ticked t;
	double now = rig_now(&rig);

	rig_do(&rig, "ZADD %s %f a %f b %f c %f d -inf e +inf f", rig_key(&rig, KEY_DELAYED),
	    now - 5, (now - 3) * 1000, now + 3, (now + 5) * 1000);
	rig_tick(&rig, 60, 60, false, 0, 250, 1048576, 0, NULL, &t);
	assert_int_equal(t.promoted, 3);
	assert_int_equal(t.waiting, 3);
	assert_true(atof(t.delayed) > now + 2.9 && atof(t.delayed) < now + 3.1);
	assert_int_equal(rig_int(&rig, "ZCARD %s", rig_key(&rig, KEY_DELAYED)), 3);
	rig_do(&rig, "ZREM %s c", rig_key(&rig, KEY_DELAYED));
	rig_tick(&rig, 60, 60, false, 0, 250, 1048576, 0, NULL, &t);
	assert_true(atof(t.delayed) > now + 4.9 && atof(t.delayed) < now + 5.1);
	rig_do(&rig, "ZREM %s d", rig_key(&rig, KEY_DELAYED));
	rig_tick(&rig, 60, 60, false, 0, 250, 1048576, 0, NULL, &t);
	assert_string_equal(t.delayed, "");
}

/* Sweeps all fields once; returns in how many ticks. */
static int
sweep(double lease)
{
	struct ticked t = { .cursor = "0" };
	char cursor[24];
	int n = 0;

	do {
		snprintf(cursor, sizeof(cursor), "%s", t.cursor);
		assert_int_equal(rig_tick(&rig, lease, 60, false, 0, 250, 1048576, 0, cursor,
		    &t), 0);
		n++;
	} while (strcmp(t.cursor, "0") != 0);
	return n;
}

/* With any fault of QDELAYED leases still expire, and the warning names the fault. */
SCRIPT_TEST(test_tick_wrong_delayed)
{
	static const char *const faults[] = { "wrongtype", "zrangebyscore", "lpush" };
	struct ticked t;
	struct popped p;
	size_t i;

	for (i = 0; i < ARRAY_LEN(faults); i++) {
		rig_connect(&rig, "");
		rig_do(&rig, "FLUSHALL");
		push("{\"id\":7}");
		p = pop_one("i.1");
		rig_expire(&rig, p.tag, p.taglen);
		if (i == 0) {
			rig_do(&rig, "SET %s x", rig_key(&rig, KEY_DELAYED));
		} else {
			rig_do(&rig, "ZADD %s 1000 later", rig_key(&rig, KEY_DELAYED));
			rig_do(&rig, "ACL SETUSER few reset on >x ~* &* +@all -%s", faults[i]);
		}
		if (i > 0)
			rig_connect(&rig, "few");
		if (rig_tick(&rig, 60, 60, true, 1e12, 250, 1048576, 0, "0", &t) != 0)
			fail_msg("%s: %s", faults[i], rig.error);
		rig_connect(&rig, "");
		assert_int_equal(t.requeued, 1);
		assert_int_equal(t.promoted, 0);
		assert_int_equal(rig_int(&rig, "ZCARD %s", rig_key(&rig, KEY_RETRY)), 1);
		if (t.warning[0] == '\0' || (i > 0 &&
		    strncasecmp(t.warning, faults[i], strlen(faults[i])) != 0))
			fail_msg("%s: the warning is '%s'", faults[i], t.warning);
		assert_int_equal(rig_int(&rig, "LLEN %s", rig_key(&rig, KEY_QUEUE)), 0);
		rig_popped_done(&p, 1);
	}
}

/*
 * Foreign leases in the near future, which a tick leaves alone, do not hide a lease of
 * rqd's that is too far ahead.
 */
SCRIPT_TEST(test_tick_clamp_hidden)
{
	double now = rig_now(&rig), at;
	struct ticked t;
	struct popped p;
	redisReply *r;
	int i;

	push("{\"id\":\"own\"}");
	p = pop_one("i.1");
	for (i = 0; i < 300; i++)
		rig_do(&rig, "ZADD %s %f foreign%d", rig_key(&rig, KEY_BACKUP), now + 500, i);
	rig_do(&rig, "ZADD %s %f own", rig_key(&rig, KEY_BACKUP), now + 1000);
	for (i = 0; i < 1000; i++) {
		assert_int_equal(rig_tick(&rig, 60, 60, true, 1e12, 250, 1048576, 0, NULL, &t), 0);
		assert_int_equal(t.requeued, 0);
		r = rig_command(&rig, "ZSCORE %s own", rig_key(&rig, KEY_BACKUP));
		at = atof(r->str);
		freeReplyObject(r);
		if (at < now + 500)
			break;
	}
	assert_true(at < now + 500);
	assert_int_equal(rig_int(&rig, "ZCOUNT %s %f %f", rig_key(&rig, KEY_BACKUP), now + 499,
	    now + 501), 300);
	assert_string_equal(rig_settle(&rig, "ack", &p, NULL), "ok");
	rig_popped_done(&p, 1);
}

SCRIPT_TEST(test_tick_sweep)
{
	struct popped p;
	redisReply *r;
	int i;

	push("{\"id\":\"live\"}");
	p = pop_one("i.1");
	for (i = 0; i < 2000; i++)
		rig_do(&rig, "HSET %s old%d %s", rig_key(&rig, KEY_DELIVERY), i,
		    "0 0 x.1.1 1000.5 3");
	rig_do(&rig, "HSET %s young %s%f%s", rig_key(&rig, KEY_DELIVERY), "0 0 x.1.1 ",
	    rig_now(&rig) + 1000, " 3");
	rig_do(&rig, "HSET %s stolen %s", rig_key(&rig, KEY_DELIVERY), "1 2 x.1.1 1000.5 3");
	rig_do(&rig, "HSET %s stolen payload", rig_key(&rig, KEY_CONTEXT));
	/* A tick removes the record of a daemon's pops after a week. */
	rig_do(&rig, "HSET %s \1away 7%s%f%s", rig_key(&rig, KEY_DELIVERY), " 9 ",
	    rig_now(&rig) - 600000, " 9999999999");
	rig_do(&rig, "HSET %s \1dead 7%s%f%s", rig_key(&rig, KEY_DELIVERY), " 9 ",
	    rig_now(&rig) - 610000, " 9999999999");
	rig_do(&rig, "HSET %s \1odd x", rig_key(&rig, KEY_DELIVERY));
	rig_do(&rig, "HSET %s odd 1", rig_key(&rig, KEY_DELIVERY));
	/* The first round deletes nothing: an owner that lives must be able to notice. */
	i = sweep(60);
	assert_true(i > 10);
	/* The records \1i and \1away stay. */
	assert_int_equal(rig_int(&rig, "HLEN %s", rig_key(&rig, KEY_DELIVERY)), 2006);
	r = rig_command(&rig, "HGET %s stolen", rig_key(&rig, KEY_DELIVERY));
	assert_memory_equal(r->str, "1 2 x.1.1 -", 11);
	freeReplyObject(r);
	i += sweep(60);
	assert_int_equal(rig_int(&rig, "HLEN %s", rig_key(&rig, KEY_DELIVERY)), 2006);
	usleep(30000);
	i += sweep(0.01);
	assert_int_equal(rig_int(&rig, "HLEN %s", rig_key(&rig, KEY_DELIVERY)), 4);
	assert_int_equal(rig_int(&rig, "HEXISTS %s live", rig_key(&rig, KEY_DELIVERY)), 1);
	assert_int_equal(rig_int(&rig, "HEXISTS %s young", rig_key(&rig, KEY_DELIVERY)), 1);
	assert_int_equal(rig_int(&rig, "HEXISTS %s \1away", rig_key(&rig, KEY_DELIVERY)), 1);
	assert_int_equal(rig_int(&rig, "HLEN %s", rig_key(&rig, KEY_CONTEXT)), 1);
	assert_int_equal(rig_int(&rig, "HGET %s acked", rig_key(&rig, KEY_STATS)), i);
	rig_popped_done(&p, 1);
}

/*
 * Redis refuses the cursor: the sweep begins anew, and the tick does all its other work.
 */
SCRIPT_TEST(test_tick_wrong_cursor)
{
	struct ticked t;
	struct popped p;

	push("{\"id\":7}");
	p = pop_one("i.1");
	rig_expire(&rig, p.tag, p.taglen);
	assert_int_equal(rig_tick(&rig, 60, 60, true, 1e12, 250, 1048576, 0, "what", &t), 0);
	assert_int_equal(t.requeued, 1);
	assert_memory_equal(t.warning, "HSCAN: ", 7);
	assert_string_equal(t.cursor, "0");
	rig_popped_done(&p, 1);
}

/*
 * rqd's first version takes the record of a daemon's pops for an old delivery.  By its
 * rule, which this script copies, the record must not be old: without it settled messages
 * count as lost.
 */
SCRIPT_TEST(test_first_version_sweep)
{
	struct popped p;

	push("{\"id\":7}");
	p = pop_one("i.1");
	assert_int_equal(rig_int(&rig, "EVAL %s 1 %s",
	    "local call, n, t = redis.call, 0, redis.call('TIME')\n"
	    "for _, field in ipairs(call('HKEYS', KEYS[1])) do\n"
	    "  local value = call('HGET', KEYS[1], field)\n"
	    "  local time = tonumber(string.match(value, '^%d+ %d+ %S+ (%S+)') or '') or 0\n"
	    "  if time < t[1] - 2 * 30 then n = n + call('HDEL', KEYS[1], field) end\n"
	    "end\n"
	    "return n", rig_key(&rig, KEY_DELIVERY)), 0);
	assert_string_equal(rig_settle(&rig, "ack", &p, NULL), "ok");
	assert_string_equal(rig_settle(&rig, "ack", &p, NULL), "gone");
	rig_popped_done(&p, 1);
}

/* -- arm, mine, push, rescue ------------------------------------------------ */

static redisReply *
arm(void)
{
	struct words w = { 0 };
	redisReply *r;

	words_add(&w, "0");
	r = rig_script(&rig, "arm", "QRLP", &w);
	assert_non_null(r);
	assert_int_equal(r->elements, 8);
	return r;
}

SCRIPT_TEST(test_arm)
{
	redisReply *r;
	double now = rig_now(&rig);

	r = arm();
	assert_int_equal(r->element[1]->integer, 0);
	assert_string_equal(r->element[2]->str, "");
	assert_string_equal(r->element[3]->str, "");
	assert_int_equal(r->element[4]->integer, 0);
	freeReplyObject(r);
	push("x");
	rig_do(&rig, "ZADD %s %f a", rig_key(&rig, KEY_RETRY), now + 5);
	rig_do(&rig, "ZADD %s %f a %f b", rig_key(&rig, KEY_DELAYED), now + 5, (now + 4) * 1000);
	rig_do(&rig, "SET %s why PX 60000", rig_key(&rig, KEY_PAUSED));
	r = arm();
	assert_int_equal(r->element[1]->integer, 1);
	assert_true(atof(r->element[2]->str) > 4.5 && atof(r->element[2]->str) <= 5);
	assert_true(atof(r->element[3]->str) > 3.5 && atof(r->element[3]->str) <= 4.01);
	assert_int_equal(r->element[4]->integer, 1);
	assert_string_equal(r->element[5]->str, "why");
	assert_true(r->element[6]->integer > 59000 && r->element[6]->integer <= 60000);
	freeReplyObject(r);
	rig_do(&rig, "ZADD %s -inf a", rig_key(&rig, KEY_RETRY));
	rig_do(&rig, "ZADD %s 3 a", rig_key(&rig, KEY_DELAYED));
	r = arm();
	assert_true(atof(r->element[2]->str) == 0);
	assert_true(atof(r->element[3]->str) == 0);
	freeReplyObject(r);
}

SCRIPT_TEST(test_mine)
{
	static struct popped a[100], b[200];
	int i, j, n, pages[] = { 1, 3, 40, 100, 1000 };
	size_t k;

	for (i = 0; i < 150; i++)
		push(i % 2 == 0 ? "{\"id\":1}" : "x");
	n = pop(100, "i.1", a);
	rig_popped_done(a, n);
	n = pop(40, "i.11", a);
	assert_int_equal(n, 40);
	for (k = 0; k < ARRAY_LEN(pages); k++) {
		assert_int_equal(rig_mine(&rig, "i.11", pages[k], MAX, b), n);
		for (i = 0; i < n; i++) {
			for (j = 0; strcmp(a[i].token, b[j].token) != 0; j++)
				assert_true(j < n);
			assert_string_equal(a[i].tag, b[j].tag);
			assert_string_equal(a[i].payload, b[j].payload);
			assert_int_equal(a[i].idlen, b[j].idlen);
		}
		rig_popped_done(b, n);
	}
	assert_int_equal(rig_mine(&rig, "i.1", 1000, 0, b), 100);
	assert_null(b[0].payload);
	rig_popped_done(b, 100);
	assert_int_equal(rig_mine(&rig, "i.2", 1000, MAX, b), 0);
	/* `mine` does not return messages that were settled since. */
	assert_string_equal(rig_settle(&rig, "ack", &a[0], NULL), "ok");
	assert_string_equal(rig_settle(&rig, "retry", &a[1], "0"), "ok");
	assert_int_equal(rig_mine(&rig, "i.11", 1000, MAX, b), n - 2);
	rig_popped_done(b, n - 2);
	rig_popped_done(a, n);
}

static long long
push_later(const char *tag, const char *at, const char *delay, const char *payload)
{
	struct words w = { 0 };
	redisReply *r;
	long long n;

	rig_words(&w, tag, "1", at, delay, payload, NULL);
	r = rig_script(&rig, "push", "BCRD", &w);
	assert_non_null(r);
	n = r->integer;
	freeReplyObject(r);
	return n;
}

SCRIPT_TEST(test_push)
{
	struct popped p;

	rig_do(&rig, "HSET %s 7#a leftover", rig_key(&rig, KEY_CONTEXT));
	assert_int_equal(push_later("7#a", "", "0.01", "one"), 1);
	assert_int_equal(push_later("7#a", "", "0.01", "one"), 0);
	assert_int_equal(push_later("7#b", "4000000000", "", "one"), 1);
	rig_check_clean(&rig);
	usleep(15000);
	p = pop_one("i.1");
	assert_string_equal(p.payload, "one");
	assert_int_equal(p.idlen, 1);
	assert_int_equal(p.attempts, 0);
	assert_int_equal(push_later("7#a", "", "0.01", "one"), 0);
	rig_popped_done(&p, 1);
}

static const char *
rescue_again(const char *op, const char *tag, const char *other, const char *payload, int number)
{
	static char answer[128];
	struct words w = { 0 };
	redisReply *r;

	rig_words(&w, op, tag, other, "1", "3", "2", "0", payload, "0", "h", "exit",
	    "1", "", "words", NULL);
	words_fmt(&w, "r.%d", number);
	words_add(&w, "0");
	if ((r = rig_script(&rig, "rescue", "BCRDX", &w)) == NULL)
		return NULL;
	snprintf(answer, sizeof(answer), "%s", r->str);
	freeReplyObject(r);
	return answer;
}

static const char *
rescue(const char *op, const char *tag, const char *other, const char *payload)
{
	static int number;

	return rescue_again(op, tag, other, payload, ++number);
}

/* A rescue whose reply was lost is sent again, with its number: it acts once. */
SCRIPT_TEST(test_rescue_twice)
{
	struct popped p;

	assert_string_equal(rescue_again("dead", "8", "8#i.1.1", "three", 7), "ok");
	assert_string_equal(rescue_again("dead", "8", "8#i.1.1", "three", 7), "ok");
	assert_int_equal(rig_dead(&rig, "three", 5), 1);
	assert_string_equal(rescue_again("retry", "9", "9#i.1.1", "four", 8), "ok");
	p = pop_one("j.1");
	assert_string_equal(p.payload, "four");
	assert_string_equal(rig_settle(&rig, "ack", &p, NULL), "ok");
	assert_string_equal(rescue_again("retry", "9", "9#i.1.1", "four", 8), "ok");
	assert_int_equal(rig_live(&rig, "four", 4), 0);
	rig_popped_done(&p, 1);
	/* Redis has lost its data since: the rescue acts again. */
	server_do(&rig.server, "FLUSHALL");
	assert_string_equal(rescue_again("retry", "9", "9#i.1.1", "four", 8), "ok");
	assert_int_equal(rig_live(&rig, "four", 4), 1);
	rig_do(&rig, "SET %s x", rig_key(&rig, KEY_DEAD));
	assert_memory_equal(rescue_again("dead", "8", "8#i.1.1", "three", 9),
	    "deferred WRONGTYPE", 18);
	assert_memory_equal(rescue_again("dead", "8", "8#i.1.1", "three", 9), "deferred", 8);
	assert_int_equal(rig_live(&rig, "three", 5), 1);
}

/*
 * A reload has removed a queue, which drains, and the daemon has a new queue with the
 * same key.  The new queue's pops have later numbers than a rescue of the old queue that
 * did not arrive: the rescue must still act.
 */
SCRIPT_TEST(test_rescue_beside_pops)
{
	struct popped p[2];

	push("{\"id\":1}");
	push("{\"id\":2}");
	p[0] = pop_one("r.7");
	rig.prev = 7;
	p[1] = pop_one("r.9");
	rig.prev = 0;
	assert_string_equal(rescue_again("retry", "9", "9#i.1.1", "four", 8), "ok");
	assert_int_equal(rig_live(&rig, "four", 4), 1);
	rig_popped_done(p, 2);
}

SCRIPT_TEST(test_rescue)
{
	struct popped p;
	redisReply *r;

	assert_string_equal(rescue("check", "7", "7#i.1.1", "one"), "other");
	assert_string_equal(rescue("retry", "7", "7#i.1.1", "one"), "ok");
	assert_string_equal(rescue("retry", "7", "7#i.1.1", "one"), "there");
	assert_string_equal(rescue("check", "7", "7#i.1.1", "one"), "there");
	assert_string_equal(rescue("check", "7", "7#i.1.1", "two"), "other");
	/* Another message has the tag. */
	assert_string_equal(rescue("return", "7", "7#i.1.1", "two"), "ok");
	assert_string_equal(rescue("return", "7", "7#i.1.1", "two"), "there");
	rig_check_clean(&rig);
	p = pop_one("i.2");
	assert_string_equal(p.payload, "one");
	assert_int_equal(p.attempts, 3);
	assert_int_equal(p.crashes, 2);
	assert_int_equal(p.idlen, 1);
	rig_popped_done(&p, 1);
	p = pop_one("i.3");
	assert_string_equal(p.payload, "two");
	rig_popped_done(&p, 1);
	assert_string_equal(rescue("dead", "8", "8#i.1.1", "three"), "ok");
	assert_int_equal(rig_dead(&rig, "three", 5), 1);
	r = rig_command(&rig, "XRANGE %s - +", rig_key(&rig, KEY_DEAD));
	assert_int_equal(r->element[0]->element[1]->elements, 16);
	assert_string_equal(r->element[0]->element[1]->element[14]->str, "answer");
	assert_string_equal(r->element[0]->element[1]->element[15]->str, "words");
	freeReplyObject(r);
	assert_int_equal(rig_live(&rig, "three", 5), 0);
	rig_do(&rig, "DEL %s", rig_key(&rig, KEY_DEAD));
	rig_do(&rig, "SET %s x", rig_key(&rig, KEY_DEAD));
	assert_memory_equal(rescue("dead", "8", "8#i.1.1", "three"), "deferred WRONGTYPE", 18);
	assert_int_equal(rig_live(&rig, "three", 5), 1);
}
