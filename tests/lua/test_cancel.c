/*
 * The scripts of rqctl cancel: for a message in each place, and in each order of the
 * cancel and of its owner's calls. test_model.c mixes them at random.
 */
#include "rig.h"

static struct rig rig;

static int
setup(void **state)
{
	(void)state;
	server_do(&rig.server, "FLUSHALL");
	return 0;
}

#define FIXTURE_TEST(name)	TEST_WITH(name, setup, NULL)

static void
push(const char *payload)
{
	if (rig.unique)
		rig_do(&rig, "ZADD %s 0 %s", rig_key(&rig, KEY_QUEUE), payload);
	else if (rig.consumer != NULL)
		rig_do(&rig, "XADD %s 1-1 message %s", rig_key(&rig, KEY_QUEUE), payload);
	else
		rig_do(&rig, "LPUSH %s %s", rig_key(&rig, KEY_QUEUE), payload);
}

static unsigned calls;

static int
pop(struct popped *p)
{
	char call[24];

	snprintf(call, sizeof(call), "i.%u", ++calls);
	return rig_pop(&rig, 1, 1048576, MAX, call, 0, p, NULL);
}

static struct popped
in_flight(void)
{
	struct popped p;

	push("1");
	assert_int_equal(pop(&p), 1);
	return p;
}

static void
expire(const struct popped *p)
{
	struct ticked t = { .scan = "" };

	rig_expire(&rig, p->tag, p->taglen);
	assert_int_equal(rig_tick(&rig, 60, 60, true, 1e12, 250, 1048576, 0, NULL, &t), 0);
	assert_int_equal(t.requeued, 1);
}

static const char *
cancel(const char *mode, const struct popped *p)
{
	return rig_cancel(&rig, mode, p->tag, p->taglen);
}

/* Checks that nothing is left of the message, and that there are so many letters. */
static void
check_gone(int letters)
{
	assert_int_equal(rig_int(&rig, "ZCARD %s", rig_key(&rig, KEY_BACKUP)), 0);
	assert_int_equal(rig_int(&rig, "ZCARD %s", rig_key(&rig, KEY_RETRY)), 0);
	assert_int_equal(rig_int(&rig, "HLEN %s", rig_key(&rig, KEY_CONTEXT)), 0);
	rig_forget_pops(&rig);
	assert_int_equal(rig_int(&rig, "HLEN %s", rig_key(&rig, KEY_DELIVERY)), 0);
	assert_int_equal(rig_int(&rig, "XLEN %s", rig_key(&rig, KEY_DEAD)), letters);
	if (rig.consumer != NULL)
		assert_int_equal(rig_int(&rig, "XLEN %s", rig_key(&rig, KEY_QUEUE)), 1);
}

/* The answers of settle; rig_cancel() gives the name. */
#define DROPPED	"cancelled by me@host"
#define BURIED	"cancelled dead by me@host"

/* The answer to a settle by token of a marked message, and the number of letters afterwards. */
static const struct order {
	const char	*mode, *op, *answer;
	int		 letters;
} orders[] = {
	{ "drop", "ack", "ok", 0 },		{ "dead", "ack", "ok", 0 },
	{ "drop", "retry", DROPPED, 0 },	{ "dead", "retry", BURIED, 1 },
	{ "drop", "defer", DROPPED, 0 },	{ "dead", "defer", BURIED, 1 },
	{ "drop", "return", DROPPED, 0 },	{ "dead", "return", BURIED, 1 },
	{ "drop", "dead", "ok", 1 },		{ "dead", "dead", "ok", 1 },
};

static void
settle_marked(const struct order *o, bool expired, bool renewed)
{
	struct popped p = in_flight();

	if (expired)
		expire(&p);
	assert_string_equal(cancel(o->mode, &p), expired ? "expired" : "running");
	assert_string_equal(cancel(o->mode, &p), expired ? "expired" : "running");
	if (renewed)
		assert_int_equal(rig_renew(&rig, &p), strcmp(o->mode, "drop") == 0 ? 3 : 4);
	assert_string_equal(rig_settle(&rig, o->op, &p, "1"), o->answer);
	check_gone(o->letters);
	rig_popped_done(&p, 1);
}

/*
 * The message is cancelled, and then its owner settles it; also after its lease has
 * ended, also after a renewal.
 */
static void
check_settles(void)
{
	size_t i;
	int k;

	for (i = 0; i < ARRAY_LEN(orders); i++) {
		for (k = 0; k < 4; k++) {
			server_do(&rig.server, "FLUSHALL");
			settle_marked(&orders[i], (k & 1) != 0, (k & 2) != 0);
		}
	}
}

/*
 * A message is cancelled before or after its lease ends: the next pop, and the one after
 * it, get the mark.
 */
static void
check_pops(void)
{
	static const char *const modes[] = { "drop", "dead" };
	struct popped p, again, third;
	int k;

	for (k = 0; k < 4; k++) {
		server_do(&rig.server, "FLUSHALL");
		p = in_flight();
		if ((k & 1) != 0)
			expire(&p);
		cancel(modes[k / 2], &p);
		if ((k & 1) == 0)
			expire(&p);
		assert_int_equal(pop(&again), 1);
		assert_string_equal(again.mark, modes[k / 2]);
		assert_int_equal(again.crashes, 1);
		/* The first owner's calls have no effect. */
		assert_int_equal(rig_renew(&rig, &p), 0);
		assert_string_equal(rig_settle(&rig, "ack", &p, NULL), "held");
		expire(&again);
		assert_int_equal(pop(&third), 1);
		assert_string_equal(third.mark, modes[k / 2]);
		assert_int_equal(rig_renew(&rig, &third), k / 2 == 0 ? 3 : 4);
		assert_string_equal(rig_settle(&rig, "return", &third, NULL),
		    k / 2 == 0 ? DROPPED : BURIED);
		check_gone(k / 2);
		rig_popped_done(&p, 1);
		rig_popped_done(&again, 1);
		rig_popped_done(&third, 1);
	}
}

/*
 * The dead letter of a cancelled message cannot be written: the message waits, and keeps
 * its mark.
 */
static void
check_deferred(void)
{
	struct popped p = in_flight(), again, third;
	const char *answer;

	rig_do(&rig, "SET %s x", rig_key(&rig, KEY_DEAD));
	cancel("dead", &p);
	answer = rig_settle(&rig, "return", &p, NULL);
	assert_memory_equal(answer, "deferred", 8);
	rig_fall_due(&rig, p.tag, p.taglen);
	assert_int_equal(pop(&again), 1);
	assert_string_equal(again.mark, "dead");
	assert_int_equal(again.crashes, 0);
	/* The same, if the handler itself wants a dead letter. */
	answer = rig_settle(&rig, "dead", &again, "1");
	assert_memory_equal(answer, "deferred", 8);
	rig_fall_due(&rig, p.tag, p.taglen);
	rig_do(&rig, "DEL %s", rig_key(&rig, KEY_DEAD));
	assert_int_equal(pop(&third), 1);
	assert_string_equal(rig_settle(&rig, "return", &third, NULL), BURIED);
	check_gone(1);
	rig_popped_done(&p, 1);
	rig_popped_done(&again, 1);
	rig_popped_done(&third, 1);
}

/* `mine` finds the message of a pop whose reply was lost, with its mark. */
static void
check_mine(void)
{
	struct popped p = in_flight(), again, mine;
	char call[24];

	cancel("dead", &p);
	expire(&p);
	assert_int_equal(pop(&again), 1);
	snprintf(call, sizeof(call), "i.%u", calls);
	assert_int_equal(rig_mine(&rig, call, 10, MAX, &mine), 1);
	assert_string_equal(mine.token, again.token);
	assert_string_equal(mine.mark, "dead");
	rig_popped_done(&p, 1);
	rig_popped_done(&again, 1);
	rig_popped_done(&mine, 1);
}

static void
check_all(void)
{
	setup(NULL);
	check_settles();
	setup(NULL);
	check_pops();
	setup(NULL);
	check_deferred();
	setup(NULL);
	check_mine();
}

TEST(test_ack)
{
	check_all();
}

TEST(test_unique)
{
	rig.unique = true;
	check_all();
	rig.unique = false;
}

TEST(test_stream)
{
	rig.consumer = "me";
	check_all();
	rig.consumer = NULL;
}

/*
 * Kind "unique": an id that is enqueued again after the cancel is another message, and
 * runs.
 */
FIXTURE_TEST(test_enqueued_again)
{
	struct popped p, again, next;
	int k;

	rig.unique = true;
	for (k = 0; k < 2; k++) {
		setup(NULL);
		p = in_flight();
		cancel("drop", &p);
		if (k == 0)
			push("1");
		expire(&p);
		if (k == 1)
			push("1");
		rig.turn = k == 1 ? "new" : NULL;
		assert_int_equal(pop(&again), 1);
		rig.turn = NULL;
		assert_string_equal(again.mark, "drop");
		assert_string_equal(rig_settle(&rig, "ack", &again, NULL), "ok");
		assert_int_equal(pop(&next), 1);
		assert_null(next.mark);
		assert_int_equal(next.crashes, 0);
		assert_string_equal(rig_settle(&rig, "ack", &next, NULL), "ok");
		rig_popped_done(&p, 1);
		rig_popped_done(&again, 1);
		rig_popped_done(&next, 1);
	}
	rig.unique = false;
}

/* If a message is cancelled twice, the later mode counts. */
FIXTURE_TEST(test_twice)
{
	struct popped p = in_flight();

	cancel("drop", &p);
	cancel("dead", &p);
	assert_int_equal(rig_renew(&rig, &p), 4);
	cancel("drop", &p);
	assert_int_equal(rig_renew(&rig, &p), 3);
	cancel("look", &p);
	assert_int_equal(rig_renew(&rig, &p), 3);
	rig_popped_done(&p, 1);
}

/* A waiting retry, due or not, can be cancelled; after that its tag is unknown. */
FIXTURE_TEST(test_waiting)
{
	struct popped p;
	int k;

	for (k = 0; k < 4; k++) {
		setup(NULL);
		p = in_flight();
		rig_settle(&rig, "retry", &p, k % 2 == 0 ? "0" : "100");
		assert_string_equal(cancel("look", &p), "waiting");
		assert_string_equal(cancel(k < 2 ? "drop" : "dead", &p), "waiting");
		check_gone(k / 2);
		assert_string_equal(cancel("drop", &p), "unknown");
		rig_popped_done(&p, 1);
	}
}

/*
 * A delivery of a foreign consumer cannot be cancelled.  A message without a payload is
 * dropped, not written as a dead letter.
 */
FIXTURE_TEST(test_foreign)
{
	char before[48], after[48];
	struct popped p;

	rig_do(&rig, "ZADD %s 1000 f", rig_key(&rig, KEY_BACKUP));
	rig_do(&rig, "HSET %s f x", rig_key(&rig, KEY_CONTEXT));
	rig_digest(&rig, before);
	assert_string_equal(rig_cancel(&rig, "drop", "f", 1), "foreign");
	rig_digest(&rig, after);
	assert_string_equal(before, after);
	p = in_flight();
	rig_do(&rig, "HDEL %s %s", rig_key(&rig, KEY_CONTEXT), p.tag);
	cancel("dead", &p);
	assert_string_equal(rig_settle(&rig, "retry", &p, "0"), DROPPED);
	rig_popped_done(&p, 1);
}

/*
 * A foreign consumer has put a cancelled message back: its owner's calls find it taken,
 * and the tag is unknown.
 */
FIXTURE_TEST(test_taken)
{
	struct popped p = in_flight();

	cancel("drop", &p);
	rig_do(&rig, "ZREM %s %s", rig_key(&rig, KEY_BACKUP), p.tag);
	assert_int_equal(rig_renew(&rig, &p), -2);
	assert_string_equal(rig_settle(&rig, "retry", &p, "0"), "taken");
	assert_string_equal(cancel("drop", &p), "unknown");
	rig_popped_done(&p, 1);
}

/* body and drop_retries work with a message that has a mark. */
FIXTURE_TEST(test_others)
{
	struct popped p = in_flight();
	struct words w = { 0 };
	redisReply *r;

	cancel("dead", &p);
	rig_words(&w, p.tag, p.token, NULL);
	r = rig_script(&rig, "body", "CD", &w);
	assert_string_equal(r->str, "1");
	freeReplyObject(r);
	expire(&p);
	w = (struct words){ 0 };
	words_add(&w, p.tag);
	r = rig_script(&rig, "drop_retries", "CRD", &w);
	assert_int_equal(r->integer, 0);
	freeReplyObject(r);
	rig_do(&rig, "SET %s x", rig_key(&rig, KEY_DEAD));
	rig_settle(&rig, "return", &p, NULL);
	w = (struct words){ 0 };
	words_add(&w, p.tag);
	r = rig_script(&rig, "drop_retries", "CRD", &w);
	assert_int_equal(r->integer, 1);
	freeReplyObject(r);
	rig_popped_done(&p, 1);
}

/* -- cancel_waiting ------------------------------------------------------------------- */

static const char *
cancel_waiting(const char *key, const char *what, const char *mode, const char *scan,
    const char *message)
{
	static char answer[32];
	struct words w = { 0 };
	char keys[3] = { key[0], 'X', '\0' };
	redisReply *r;

	rig_words(&w, what, mode, "0", "h", "cancelled by me", scan, "id", message,
	    NULL);
	if ((r = rig_script(&rig, "cancel_waiting", keys, &w)) == NULL)
		return NULL;
	snprintf(answer, sizeof(answer), "%s", r->str);
	freeReplyObject(r);
	return answer;
}

FIXTURE_TEST(test_list)
{
	redisReply *r;

	rig_do(&rig, "LPUSH %s a b a c d a", rig_key(&rig, KEY_QUEUE));
	assert_string_equal(cancel_waiting("Q", "list", "look", "10", "a"), "ok");
	assert_int_equal(rig_int(&rig, "LLEN %s", rig_key(&rig, KEY_QUEUE)), 6);
	/* Of equal messages the one that rqd would pop next is cancelled. */
	assert_string_equal(cancel_waiting("Q", "list", "drop", "1", "a"), "ok");
	assert_string_equal(cancel_waiting("Q", "list", "drop", "1", "a"), "gone");
	assert_string_equal(cancel_waiting("Q", "list", "dead", "2", "a"), "ok");
	assert_string_equal(cancel_waiting("Q", "list", "drop", "10", "x"), "gone");
	r = rig_command(&rig, "LRANGE %s 0 -1", rig_key(&rig, KEY_QUEUE));
	assert_int_equal(r->elements, 4);
	assert_string_equal(r->element[0]->str, "a");
	assert_string_equal(r->element[3]->str, "b");
	freeReplyObject(r);
	assert_int_equal(rig_dead(&rig, "a", 1), 1);
}

FIXTURE_TEST(test_delayed)
{
	rig_do(&rig, "ZADD %s 1 a 2 b 3 c", rig_key(&rig, KEY_DELAYED));
	assert_string_equal(cancel_waiting("L", "zset", "drop", "1", "b"), "ok");
	assert_string_equal(cancel_waiting("L", "zset", "drop", "1", "b"), "gone");
	assert_string_equal(cancel_waiting("L", "zset", "dead", "1", "c"), "ok");
	assert_int_equal(rig_int(&rig, "ZCARD %s", rig_key(&rig, KEY_DELAYED)), 1);
	assert_int_equal(rig_dead(&rig, "c", 1), 1);
}

int
main(void)
{
	int rc;

	rig_open(&rig, "orders");
	rc = unit_run(NULL, NULL);
	rig_close(&rig);
	return rc;
}
