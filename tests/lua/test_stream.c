/*
 * The scripts of kind "stream", each by itself, where they differ from those of kind
 * "ack".
 */
#include "script_test.h"

#define Q	rig_key(&rig, KEY_QUEUE)

static int
setup(void **state)
{
	rig.consumer = "me";
	return empty_redis(state);
}

#define STREAM_TEST(name)	TEST_WITH(name, setup, NULL)

static void
add(const char *id, const char *payload)
{
	rig_do(&rig, "XADD %s %s message %s", Q, id, payload);
}

/* Settles a delivery, which must get this answer, and frees it. */
static void
settle(struct popped *p, const char *op, const char *arg, const char *answer)
{
	assert_string_equal(rig_settle(&rig, op, p, arg), answer);
	rig_popped_done(p, 1);
}

static int
tick(struct ticked *t)
{
	assert_int_equal(rig_tick(&rig, 60, 60, true, 1e12, 250, 1048576, 0, NULL, t), 0);
	return (int)t->requeued;
}

static long long
pending(void)
{
	redisReply *r = rig_command(&rig, "XPENDING %s rqd", Q);
	long long n = r->type == REDIS_REPLY_ARRAY ? r->element[0]->integer : -1;

	freeReplyObject(r);
	return n;
}

/* The consumer that has the entry in the pending list; "" if none has. */
static const char *
holder(const char *id)
{
	static char name[64];
	redisReply *r = rig_command(&rig, "XPENDING %s rqd %s %s 1", Q, id, id);

	assert_int_equal(r->type, REDIS_REPLY_ARRAY);
	snprintf(name, sizeof(name), "%s",
	    r->elements > 0 ? r->element[0]->element[1]->str : "");
	freeReplyObject(r);
	return name;
}

/* The number that a script answers, or that is at index i of its answer. */
static long long
answer(const char *script, const char *keys, struct words *w, size_t i)
{
	redisReply *r = rig_script(&rig, script, keys, w);
	long long n;

	if (r == NULL)
		fail_msg("%s: %s", script, rig.error);
	n = r->type == REDIS_REPLY_ARRAY ? r->element[i]->integer : r->integer;
	freeReplyObject(r);
	return n;
}

static long long
waiting(void)
{
	struct words w = { 0 };

	rig_words(&w, "0", "rqd", NULL);
	return answer("stream_arm", "QRLP", &w, 1);
}

static long long
depth(void)
{
	struct words w = { 0 };

	words_add(&w, "rqd");
	return answer("stream_depth", "Q", &w, 0);
}

/* -- messages --------------------------------------------------------------- */

static void
expect_message(const char *message, size_t len)
{
	static unsigned calls;
	struct popped p;
	char call[24];

	snprintf(call, sizeof(call), "m.%u", ++calls);
	p = pop_one(call);
	assert_int_equal(p.len, len);
	assert_memory_equal(p.payload, message, len);
	settle(&p, "ack", NULL, "ok");
}

STREAM_TEST(test_messages)
{
	static char big[6000000], json[2 * sizeof(big) + 16];
	size_t i;

	rig_do(&rig, "XADD %s * other 1 message %b", Q, "a\0\xff", (size_t)3);
	expect_message("a\0\xff", 3);
	rig_do(&rig, "XADD %s * message 1 x y message 2", Q);
	expect_message("2", 1);
	rig_do(&rig, "XADD %s * message %b", Q, "", (size_t)0);
	expect_message("", 0);
	rig_do(&rig, "XADD %s * b 1 a %b b 3 %b 4", Q, "x\"\n\0\xc3\xa4\xff", (size_t)7, "",
	    (size_t)0);
	expect_message("{\"a\":\"x\\\"\\n\\u0000\xc3\xa4\xff\",\"b\":\"3\",\"\":\"4\"}", 37);
	/* The script quotes a long value in pieces. */
	memset(big, '"', sizeof(big) - 1);
	rig_do(&rig, "XADD %s * k %s", Q, big);
	strcpy(json, "{\"k\":\"");
	for (i = 6; i < 6 + 2 * (sizeof(big) - 1); i += 2)
		memcpy(json + i, "\\\"", 2);
	memcpy(json + i, "\"}", 2);
	expect_message(json, i + 2);
}

/*
 * If a message is longer than max, the pop returns its length, and it can be settled as
 * dead.
 */
STREAM_TEST(test_too_large)
{
	struct popped p;

	rig_do(&rig, "XADD %s 7-0 key value", Q);
	assert_int_equal(rig_pop(&rig, 1, 1048576, 10, "i.1", 0, &p, NULL), 1);
	assert_null(p.payload);
	assert_int_equal(p.len, 15);
	settle(&p, "dead", "0", "ok");
	assert_int_equal(rig_dead(&rig, "{\"key\":\"value\"}", 15), 1);
	/*
	 * Only as JSON it would be longer than max: the script does not make JSON of it.
	 */
	rig_do(&rig, "XADD %s 7-1 key value a b", Q);
	assert_int_equal(rig_pop(&rig, 1, 1048576, 9, "i.2", 0, &p, NULL), 1);
	assert_null(p.payload);
	settle(&p, "dead", "0", "ok");
	assert_int_equal(rig_dead(&rig, "key\nvalue\na\nb", 13), 1);
	assert_int_equal(pending(), 0);
}

/* -- pop -------------------------------------------------------------------- */

STREAM_TEST(test_pop)
{
	struct popped p[8];

	add("1-1", "a");
	add("1-2", "b");
	add("18446744073709551615-18446744073709551615", "c");
	assert_int_equal(waiting(), 1);
	assert_int_equal(pop(8, "i.1", p), 3);
	assert_string_equal(p[0].tag, "1-1");
	assert_int_equal(p[0].idlen, 3);
	assert_string_equal(p[0].token, "i.1.1");
	assert_string_equal(p[0].payload, "a");
	assert_string_equal(p[2].token, "i.1.3");
	assert_int_equal(pending(), 3);
	assert_string_equal(holder("1-2"), "me");
	rig_check_clean(&rig);
	settle(&p[0], "ack", NULL, "ok");
	settle(&p[1], "ack", NULL, "ok");
	rig.over = "i.1";
	settle(&p[2], "ack", NULL, "ok");
	rig.over = NULL;
	assert_int_equal(pending(), 0);
	assert_int_equal(rig_int(&rig, "DBSIZE"), 1);
	assert_int_equal(pop(8, "i.2", p), 0);
}

/* Bounds: n; and bytes, which the last message may exceed. */
STREAM_TEST(test_pop_bounds)
{
	static char big[3000];
	struct popped p[80];
	int i, n;

	memset(big, 'x', sizeof(big) - 1);
	for (i = 0; i < 70; i++)
		add("*", big);
	assert_int_equal(rig_pop(&rig, 8, 10, MAX, "i.1", 0, p, NULL), 1);
	rig_popped_done(p, 1);
	n = rig_pop(&rig, 8, 6000, MAX, "i.2", 0, p, NULL);
	assert_int_equal(n, 3);
	rig_popped_done(p, n);
	assert_int_equal(pop(60, "i.3", p), 60);
	assert_string_equal(p[59].token, "i.3.60");
	rig_popped_done(p, 60);
	assert_int_equal(rig_int(&rig, "ZCARD %s", rig_key(&rig, KEY_BACKUP)), 64);
	assert_int_equal(pending(), 64);
	assert_int_equal(depth(), 6);
	rig_check_clean(&rig);
}

/* A pop makes the group if it is missing, at the beginning of the stream. */
STREAM_TEST(test_group)
{
	struct popped p;

	assert_int_equal(waiting(), 1);
	assert_int_equal(pop(1, "i.1", &p), 0);
	assert_int_equal(pending(), 0);
	assert_int_equal(waiting(), 0);
	rig_do(&rig, "DEL %s", Q);
	add("1-1", "a");
	p = pop_one("i.2");
	settle(&p, "ack", NULL, "ok");
	assert_int_equal(waiting(), 0);
	rig_do(&rig, "XGROUP DESTROY %s rqd", Q);
	assert_int_equal(waiting(), 1);
	p = pop_one("i.3");
	assert_string_equal(p.tag, "1-1");
	settle(&p, "ack", NULL, "ok");
	/* Another group is not ours. */
	rig_do(&rig, "XGROUP CREATE %s another 0", Q);
	assert_int_equal(waiting(), 0);
	add("1-2", "b");
	assert_int_equal(waiting(), 1);
}

/* An id in flight comes again, from a stream that was deleted and made anew. */
STREAM_TEST(test_pop_equal_ids)
{
	struct popped p, again;

	add("1-1", "old");
	p = pop_one("i.1");
	rig_do(&rig, "DEL %s", Q);
	add("1-1", "new");
	again = pop_one("i.2");
	assert_string_equal(again.tag, "1-1#i.2.1");
	assert_int_equal(pending(), 0);
	assert_int_equal(again.idlen, 3);
	assert_int_equal(rig_live(&rig, "old", 3), 1);
	assert_int_equal(rig_live(&rig, "new", 3), 1);
	settle(&p, "retry", "0", "ok");
	assert_int_equal(rig_renew(&rig, &again), 1);
	settle(&again, "retry", "0", "ok");
	assert_int_equal(rig_live(&rig, "old", 3), 1);
	assert_int_equal(rig_live(&rig, "new", 3), 1);
	assert_int_equal(pending(), 0);
	rig_check_clean(&rig);
}

/*
 * Another consumer reads an entry with the same id in a new stream: rqd's calls leave it
 * alone.
 */
STREAM_TEST(test_other_equal_ids)
{
	struct ticked t = { .scan = "" };
	struct popped p;
	int i;

	for (i = 0; i < 3; i++) {
		rig_forget_pops(&rig);
		add("1-1", "old");
		p = pop_one("i.1");
		rig_do(&rig, "DEL %s", Q);
		add("1-1", "new");
		rig_do(&rig, "XGROUP CREATE %s rqd 0", Q);
		if (i == 1)
			rig_do(&rig, "ZADD %s XX 1000 1-1", rig_key(&rig, KEY_BACKUP));
		rig_do(&rig, "XREADGROUP GROUP rqd other STREAMS %s >", Q);
		if (i == 0)
			assert_int_equal(rig_renew(&rig, &p), 1);
		if (i == 1)
			assert_int_equal(tick(&t), 1);
		else
			assert_string_equal(rig_settle(&rig, "return", &p, NULL), "ok");
		rig_popped_done(&p, 1);
		assert_int_equal(rig_live(&rig, "old", 3), 1);
		p = pop_one("i.2");
		assert_string_equal(p.payload, "old");
		settle(&p, "ack", NULL, "ok");
		assert_string_equal(holder("1-1"), "other");
		rig_do(&rig, "DEL %s", Q);
	}
	rig_check_clean(&rig);
}

/* Deleted entries do not count as waiting, wherever they were. */
STREAM_TEST(test_waiting)
{
	struct popped p;

	add("1-1", "a");
	add("1-2", "b");
	add("1-3", "c");
	assert_int_equal(depth(), 3);
	p = pop_one("i.1");
	settle(&p, "ack", NULL, "ok");
	assert_int_equal(depth(), 2);
	rig_do(&rig, "XDEL %s 1-3", Q);
	assert_int_equal(waiting(), 1);
	assert_int_equal(depth(), 1);
	rig_do(&rig, "XDEL %s 1-2", Q);
	assert_int_equal(waiting(), 0);
	assert_int_equal(depth(), 0);
	assert_int_equal(pop(1, "i.2", &p), 0);
	add("1-4", "d");
	assert_int_equal(waiting(), 1);
	assert_int_equal(depth(), 1);
	rig_do(&rig, "XTRIM %s MAXLEN 0", Q);
	assert_int_equal(waiting(), 0);
	assert_int_equal(depth(), 0);
}

/* -- settle and renew ------------------------------------------------------- */

/* Every result but "stale" removes the entry from the pending list. */
STREAM_TEST(test_settle)
{
	struct popped p[5], q;

	add("1-1", "a");
	add("1-2", "b");
	add("1-3", "c");
	add("1-4", "d");
	add("1-5", "e");
	assert_int_equal(pop(5, "i.1", p), 5);
	assert_string_equal(rig_settle(&rig, "ack", &p[0], NULL), "ok");
	assert_string_equal(rig_settle(&rig, "ack", &p[0], NULL), "gone");
	assert_string_equal(rig_settle(&rig, "retry", &p[1], "100"), "ok");
	assert_string_equal(rig_settle(&rig, "retry", &p[1], "100"), "held");
	assert_string_equal(rig_settle(&rig, "return", &p[2], NULL), "ok");
	assert_string_equal(rig_settle(&rig, "dead", &p[3], "1"), "ok");
	assert_string_equal(rig_settle(&rig, "stale", &p[4], NULL), "held");
	assert_int_equal(pending(), 1);
	settle(&p[4], "ack", NULL, "ok");
	rig_popped_done(p, 4);
	assert_int_equal(pending(), 0);
	assert_int_equal(rig_dead(&rig, "d", 1), 1);
	/* A message that comes back is settled like any other. */
	q = pop_one("i.2");
	assert_string_equal(q.tag, "1-3");
	settle(&q, "ack", NULL, "ok");
	rig_fall_due(&rig, "1-2", 3);
	q = pop_one("i.3");
	assert_int_equal(q.attempts, 1);
	settle(&q, "ack", NULL, "ok");
	rig_check_clean(&rig);
}

/*
 * Messages that rqctl has pushed have tags that are not entry ids, or only look like
 * them.
 */
STREAM_TEST(test_other_tags)
{
	static const char *const tags[] = {
		"~x", "99999999999999999999-1", "1-1#x", "1-1-1", "-", "a-1",
	};
	struct popped p;
	size_t i;

	for (i = 0; i < ARRAY_LEN(tags); i++) {
		struct words w = { 0 };

		rig_words(&w, tags[i], "2", "", "0", "body", NULL);
		assert_int_equal(answer("push", "BCRD", &w, 0), 1);
		p = pop_one("i.1");
		assert_string_equal(p.tag, tags[i]);
		assert_int_equal(rig_renew(&rig, &p), 1);
		settle(&p, "ack", NULL, "ok");
	}
	rig_check_clean(&rig);
}

/*
 * An entry that another consumer has claimed stays that consumer's, whatever rqd settles.
 */
STREAM_TEST(test_claimed)
{
	static const char *const ops[] = { "ack", "retry", "return", "dead", "stale", "defer" };
	struct popped p;
	size_t i;

	for (i = 0; i < ARRAY_LEN(ops); i++) {
		rig_do(&rig, "DEL %s", Q);
		add("1-1", "a");
		p = pop_one("i.1");
		assert_int_equal(rig_renew(&rig, &p), 1);
		rig_do(&rig, "XCLAIM %s rqd other 0 1-1", Q);
		assert_int_equal(rig_renew(&rig, &p), -2);
		assert_string_equal(holder("1-1"), "other");
		settle(&p, ops[i], strcmp(ops[i], "dead") == 0 ? "1" : "0", "taken");
		assert_string_equal(holder("1-1"), "other");
		assert_int_equal(rig_live(&rig, "a", 1), 1);
		rig_check_clean(&rig);
	}
}

/*
 * An entry that is no longer pending is still its owner's by the token, and is not lost.
 */
STREAM_TEST(test_not_pending)
{
	struct popped p;

	add("1-1", "a");
	p = pop_one("i.1");
	rig_do(&rig, "XACK %s rqd 1-1", Q);
	assert_int_equal(rig_renew(&rig, &p), 1);
	settle(&p, "retry", "0", "ok");
	assert_int_equal(rig_live(&rig, "a", 1), 1);
	p = pop_one("i.2");
	rig_do(&rig, "DEL %s", Q);
	assert_int_equal(rig_renew(&rig, &p), 1);
	settle(&p, "return", NULL, "ok");
	p = pop_one("i.3");
	settle(&p, "ack", NULL, "ok");
}

/*
 * A renewal resets the idle time that other consumers see, and does not count as a
 * delivery.
 */
STREAM_TEST(test_renew)
{
	struct popped p;
	redisReply *r;

	add("1-1", "a");
	p = pop_one("i.1");
	rig_expire(&rig, "1-1", 3);
	assert_int_equal(rig_renew(&rig, &p), 1);
	r = rig_command(&rig, "XPENDING %s rqd - + 1", Q);
	assert_true(r->element[0]->element[2]->integer < 60000);
	assert_int_equal(r->element[0]->element[3]->integer, 1);
	freeReplyObject(r);
	/*
	 * The entry is trimmed while pending; from 7.0 on a claim then removes it from
	 * the list.
	 */
	rig_do(&rig, "XTRIM %s MAXLEN 0", Q);
	assert_int_equal(rig_renew(&rig, &p), 1);
	assert_int_equal(rig_renew(&rig, &p), 1);
	settle(&p, "ack", NULL, "ok");
	assert_int_equal(pending(), 0);
}

/* -- tick ------------------------------------------------------------------- */

STREAM_TEST(test_expired)
{
	struct ticked t = { .scan = "" };
	struct popped p, again;

	add("1-1", "a");
	p = pop_one("i.1");
	assert_int_equal(tick(&t), 0);
	rig_expire(&rig, "1-1", 3);
	assert_int_equal(tick(&t), 1);
	assert_int_equal(pending(), 0);
	/* Its owner may take it back; the entry is then in flight, and not pending. */
	assert_int_equal(rig_renew(&rig, &p), 2);
	rig_expire(&rig, "1-1", 3);
	assert_int_equal(tick(&t), 1);
	again = pop_one("i.2");
	assert_int_equal(again.crashes, 1);
	assert_int_equal(rig_renew(&rig, &p), 0);
	settle(&p, "ack", NULL, "held");
	settle(&again, "ack", NULL, "ok");
	rig_check_clean(&rig);
}

/*
 * The lease has ended, and another consumer has claimed the entry: a tick leaves it to
 * that consumer.
 */
STREAM_TEST(test_expired_claimed)
{
	struct ticked t = { .scan = "" };
	struct popped p;

	add("1-1", "a");
	p = pop_one("i.1");
	rig_expire(&rig, "1-1", 3);
	rig_do(&rig, "XCLAIM %s rqd other 0 1-1", Q);
	assert_int_equal(tick(&t), 0);
	assert_string_equal(holder("1-1"), "other");
	assert_int_equal(rig_live(&rig, "a", 1), 1);
	/* The first owner was not dead. */
	assert_int_equal(rig_renew(&rig, &p), -2);
	settle(&p, "stale", NULL, "taken");
	rig_check_clean(&rig);
	/* The other consumer dies, too. */
	rig_idle(&rig, "1-1", 3);
	assert_int_equal(tick(&t), 1);
	p = pop_one("i.2");
	assert_int_equal(p.attempts + p.crashes, 0);
	settle(&p, "ack", NULL, "ok");
	assert_int_equal(pending(), 0);
}

/*
 * The entry was claimed and then abandoned, and its old field is still in QDELIVERY: the
 * old owner's token must not count for the next delivery.
 */
STREAM_TEST(test_claimed_abandoned)
{
	struct ticked t = { .scan = "" };
	struct popped p, again;

	add("1-1", "a");
	p = pop_one("i.1");
	rig_expire(&rig, "1-1", 3);
	rig_do(&rig, "XCLAIM %s rqd other 0 1-1", Q);
	(void)tick(&t);
	rig_idle(&rig, "1-1", 3);
	assert_int_equal(tick(&t), 1);
	assert_int_equal(rig_renew(&rig, &p), 0);
	again = pop_one("i.2");
	settle(&p, "ack", NULL, "held");
	settle(&again, "ack", NULL, "ok");
	rig_check_clean(&rig);
}

/* A tick acknowledges an entry that a retry has left pending, but not one of another stream. */
STREAM_TEST(test_pending_retry)
{
	struct ticked t = { .scan = "" };
	struct popped p;

	add("1-1", "old");
	p = pop_one("i.1");
	settle(&p, "retry", "100", "ok");
	rig_do(&rig, "XCLAIM %s rqd me 0 1-1 FORCE", Q);
	assert_int_equal(pending(), 1);
	rig_idle(&rig, "1-1", 3);
	assert_int_equal(tick(&t), 0);
	assert_int_equal(pending(), 0);
	rig_do(&rig, "DEL %s", Q);
	add("1-1", "new");
	rig_do(&rig, "XGROUP CREATE %s rqd 0", Q);
	rig_do(&rig, "XREADGROUP GROUP rqd other STREAMS %s >", Q);
	rig_idle(&rig, "1-1", 3);
	assert_int_equal(tick(&t), 0);
	assert_int_equal(pending(), 1);
	rig_fall_due(&rig, "1-1", 3);
	p = pop_one("i.2");
	assert_string_equal(p.payload, "old");
	settle(&p, "ack", NULL, "ok");
	assert_int_equal(tick(&t), 1);
	p = pop_one("i.3");
	assert_string_equal(p.payload, "new");
	settle(&p, "ack", NULL, "ok");
	assert_int_equal(pending(), 0);
	rig_check_clean(&rig);
}

/* How often the command was called since the last CONFIG RESETSTAT. */
static int
calls_of(const char *command)
{
	redisReply *r = rig_command(&rig, "INFO commandstats");
	char *name = xasprintf("cmdstat_%s:calls=", command), *at = strstr(r->str, name);
	int n = at != NULL ? atoi(at + strlen(name)) : 0;

	freeReplyObject(r);
	free(name);
	return n;
}

/*
 * A pending list that is longer than a step: some entries were abandoned, and some of
 * these deleted.
 */
STREAM_TEST(test_abandoned)
{
	struct ticked t = { .scan = "" };
	static struct popped p[200];
	char id[24];
	int i, steps = 0, requeued = 0, dropped = 0, n;

	for (i = 1; i <= 600; i++) {
		snprintf(id, sizeof(id), "%d-1", i);
		rig_do(&rig, "XADD %s %s n %d", Q, id, i);
	}
	rig_do(&rig, "XGROUP CREATE %s rqd 0", Q);
	rig_do(&rig, "XREADGROUP GROUP rqd other COUNT 590 STREAMS %s >", Q);
	for (i = 5; i <= 600; i += 5) {
		snprintf(id, sizeof(id), "%d-1", i);
		rig_idle(&rig, id, strlen(id));
		if (i % 50 == 0)
			rig_do(&rig, "XDEL %s %s", Q, id);
	}
	do {
		assert_int_equal(rig_tick(&rig, 60, 60, true, 1e12, 100, 1048576, 0, NULL, &t), 0);
		requeued += (int)t.requeued;
		dropped += (int)t.dropped;
		assert_true(++steps < 20);
	} while (t.more || t.scan[0] != '\0');
	assert_true(steps > 3);
	assert_int_equal(requeued, 107);
	assert_int_equal(dropped, 11);
	assert_int_equal(pending(), 590 - 118);
	/* The other entries will be, when they have been idle for as long. */
	assert_true(atof(t.expires) > rig_now(&rig) + 30);
	n = pop(100, "i.1", p);
	n += pop(100, "i.2", p + n);
	assert_int_equal(n, 107 + 9);
	assert_string_equal(p[0].tag, "10-1");
	assert_int_equal(p[0].idlen, 4);
	for (i = 0; i < n; i++)
		assert_string_equal(rig_settle(&rig, "ack", &p[i], NULL), "ok");
	rig_popped_done(p, n);
	assert_int_equal(pending(), 590 - 118);
	rig_check_clean(&rig);
}

/*
 * Another consumer has a long pending list.  A tick makes one step, whose size does not
 * depend on the list; ticks visit all of it in turn, and the oldest entries always.
 */
STREAM_TEST(test_long_list)
{
	struct ticked t = { .scan = "" };
	int i, ticks = 0, requeued = 0;

	rig_do(&rig, "EVAL %s 1 %s",
	    "for i = 1, 5000 do redis.call('XADD', KEYS[1], i .. '-1', 'n', i) end\n"
	    "redis.call('XGROUP', 'CREATE', KEYS[1], 'rqd', 0)\n"
	    "redis.call('XREADGROUP', 'GROUP', 'rqd', 'other', 'STREAMS', KEYS[1], '>')", Q);
	rig_do(&rig, "CONFIG RESETSTAT");
	assert_int_equal(rig_tick(&rig, 60, 60, true, 1e12, 250, 1048576, 0, NULL, &t), 0);
	assert_int_equal(t.more, 0);
	assert_string_not_equal(t.scan, "");
	assert_true(calls_of("xpending") <= 10);
	rig_idle(&rig, "4321-1", 6);
	for (i = 0; i < 2 && requeued == 0; i++) {
		do {
			assert_int_equal(rig_tick(&rig, 60, 60, true, 1e12, 250, 1048576, 0,
			    NULL, &t), 0);
			requeued += (int)t.requeued;
			assert_true(++ticks < 60);
		} while (t.scan[0] != '\0');
	}
	assert_int_equal(requeued, 1);
	/* A tick visits the oldest entries wherever the scan has come to. */
	snprintf(t.scan, sizeof(t.scan), "(3000-1");
	rig_idle(&rig, "7-1", 3);
	assert_int_equal(rig_tick(&rig, 60, 60, true, 1e12, 250, 1048576, 0, NULL, &t), 0);
	assert_int_equal(t.requeued, 1);
	assert_int_equal(t.more, 1);
}

/* Redis refuses the place of the scan: it begins anew. */
STREAM_TEST(test_wrong_place)
{
	struct ticked t = { .scan = "what" };
	struct popped p;

	add("1-1", "a");
	p = pop_one("i.1");
	rig_popped_done(&p, 1);
	rig_expire(&rig, "1-1", 3);
	assert_int_equal(rig_tick(&rig, 60, 60, true, 1e12, 250, 1048576, 0, NULL, &t), 0);
	assert_int_equal(t.requeued, 1);
	assert_string_equal(t.scan, "");
}

/*
 * The script makes no JSON of an entry of more than 1000 fields; the field "message" is
 * its message, if there is one.
 */
STREAM_TEST(test_many_fields)
{
	static const char add_fields[] = "local w = {'XADD', KEYS[1], '*'}\n"
	    "for i = 1, ARGV[1] do w[#w + 1] = 'f' .. i w[#w + 1] = 'v' end\n"
	    "for i = 2, #ARGV do w[#w + 1] = ARGV[i] end\n"
	    "return redis.call(unpack(w))";
	struct popped p;

	rig_do(&rig, "EVAL %s 1 %s 1000", add_fields, Q);
	rig_do(&rig, "EVAL %s 1 %s 1001", add_fields, Q);
	rig_do(&rig, "EVAL %s 1 %s 2000 message text", add_fields, Q);
	p = pop_one("i.1");
	assert_memory_equal(p.payload, "{\"f1\":\"v\",", 10);
	settle(&p, "ack", NULL, "ok");
	p = pop_one("i.2");
	assert_null(p.payload);
	assert_true(p.len > 4000);
	settle(&p, "dead", "1", "ok");
	p = pop_one("i.3");
	assert_string_equal(p.payload, "text");
	settle(&p, "ack", NULL, "ok");
	assert_int_equal(pending(), 0);
}

/* A limit of bytes also ends a step, and no entry is skipped. */
STREAM_TEST(test_abandoned_bytes)
{
	struct ticked t = { .scan = "" };
	static char big[3000];
	char id[24];
	int i, steps = 0, requeued = 0;

	memset(big, 'x', sizeof(big) - 1);
	for (i = 1; i <= 10; i++) {
		snprintf(id, sizeof(id), "%d-1", i);
		add(id, big);
	}
	rig_do(&rig, "XGROUP CREATE %s rqd 0", Q);
	rig_do(&rig, "XREADGROUP GROUP rqd other STREAMS %s >", Q);
	for (i = 1; i <= 10; i++) {
		snprintf(id, sizeof(id), "%d-1", i);
		rig_idle(&rig, id, strlen(id));
	}
	do {
		assert_int_equal(rig_tick(&rig, 60, 60, true, 1e12, 250, 7000, 0, NULL, &t), 0);
		requeued += (int)t.requeued;
		assert_true(t.requeued <= 2);
		assert_true(++steps < 20);
	} while (t.more);
	assert_int_equal(requeued, 10);
	assert_int_equal(pending(), 0);
}

/*
 * A tick requeues nothing while the daemon may not judge, and judges by the time at which
 * it was sent.
 */
STREAM_TEST(test_no_judge)
{
	struct ticked t = { .scan = "" };

	add("1-1", "a");
	rig_do(&rig, "XGROUP CREATE %s rqd 0", Q);
	rig_do(&rig, "XREADGROUP GROUP rqd other STREAMS %s >", Q);
	rig_idle(&rig, "1-1", 3);
	assert_int_equal(rig_tick(&rig, 60, 60, false, 1e12, 250, 1048576, 0, NULL, &t), 0);
	assert_int_equal(t.requeued, 0);
	assert_int_equal(rig_tick(&rig, 60, 60, true, 1010, 250, 1048576, 0, NULL, &t), 0);
	assert_int_equal(t.requeued, 0);
	assert_string_equal(holder("1-1"), "other");
	assert_int_equal(tick(&t), 1);
}

STREAM_TEST(test_delayed)
{
	struct ticked t = { .scan = "" };
	struct popped p;

	rig_do(&rig, "ZADD %s 1000 later", rig_key(&rig, KEY_DELAYED));
	assert_int_equal(tick(&t), 0);
	assert_int_equal(t.promoted, 1);
	assert_int_equal(t.waiting, 1);
	p = pop_one("i.1");
	assert_string_equal(p.payload, "later");
	settle(&p, "ack", NULL, "ok");
	assert_int_equal(rig_int(&rig, "EXISTS %s", rig_key(&rig, KEY_DELAYED)), 0);
}

/* -- looking ---------------------------------------------------------------- */

STREAM_TEST(test_peek)
{
	struct popped p;
	struct words w = { 0 };
	redisReply *r;

	add("1-1", "a");
	add("1-2", "bcd");
	rig_do(&rig, "XADD %s 1-3 k v", Q);
	p = pop_one("i.1");
	rig_words(&w, "rqd", "", "10", "1000", "2", NULL);
	r = rig_script(&rig, "stream_peek", "Q", &w);
	assert_non_null(r);
	assert_int_equal(r->elements, 12);
	assert_string_equal(r->element[3]->str, "1-2");
	assert_int_equal(r->element[5]->integer, 3);
	assert_string_equal(r->element[6]->str, "bc");
	assert_string_equal(r->element[8]->str, "1-3");
	assert_int_equal(r->element[10]->integer, 9);
	freeReplyObject(r);
	rig_popped_done(&p, 1);
}
