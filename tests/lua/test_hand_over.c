/*
 * Hand-over: hand_over acks and pushes in one step; hand_over_lost pushes after Redis
 * has forgotten the delivery.  If Redis refuses a command, nothing is pushed or acked.
 * If a call is sent again, nothing is pushed twice.  For kinds "ack", "unique" and
 * "stream".
 */
#include "rig.h"

static struct rig	rig;
static struct popped	had[100];
static int		nhad;
static unsigned		calls;
static const char	*const targets[] = { "items", "mails" };

static void
take(int n)
{
	char call[24];
	int i, got;

	for (i = 0; i < n; i++) {
		if (rig.consumer != NULL)
			rig_do(&rig, "XADD %s * message m%d", rig_key(&rig, KEY_QUEUE), i);
		else if (rig.unique)
			rig_do(&rig, "ZADD %s 0 m%d", rig_key(&rig, KEY_QUEUE), i);
		else
			rig_do(&rig, "LPUSH %s m%d", rig_key(&rig, KEY_QUEUE), i);
	}
	snprintf(call, sizeof(call), "f.%u", ++calls);
	got = rig_pop(&rig, n, 1048576, MAX, call, 0, had, NULL);
	assert_int_equal(got, n);
	nhad = n;
}

static void
begin(int n)
{
	rig_connect(&rig, "");
	rig_do(&rig, "FLUSHALL");
	rig_popped_done(had, nhad);
	nhad = 0;
	rig.prev = 0;
	take(n);
}

/*
 * Adds the messages of the ith delivery: two for each list, or only for the list `only`.
 */
static void
add_pushes(struct words *w, int i, const char *only)
{
	int t;

	words_add(w, only != NULL ? "1" : "2");
	for (t = 0; t < 2; t++) {
		if (only != NULL && strcmp(only, targets[t]) != 0)
			continue;
		words_fmt(w, "%d", t + 1);
		words_add(w, "2");
		words_fmt(w, "%d.%d.1", i, t);
		words_fmt(w, "%d.%d.2", i, t);
	}
}

static redisReply *
call(struct words *w)
{
	redisReply *r;

	rig.more = targets;
	rig.nmore = 2;
	r = rig.consumer != NULL ? rig_script(&rig, "stream_hand_over", "BCRDXQ", w) :
	    rig.unique ? rig_script(&rig, "unique_hand_over", "BCRDXQ", w) :
	    rig_script(&rig, "hand_over", "BCRDX", w);
	rig.nmore = 0;
	return r;
}

static void
add_one(struct words *w, int i, const char *only)
{
	words_mem(w, had[i].tag, had[i].taglen);
	words_add(w, had[i].token);
	add_pushes(w, i, only);
}

/*
 * Hands over the ith delivery alone, and returns the answer; on an error "ERR " and its
 * text.
 */
static const char *
hand_over_to(int i, const char *only)
{
	static char answer[600];
	struct words w = { 0 };
	redisReply *r;

	rig_settle_begin(&rig, &w);
	add_one(&w, i, only);
	if ((r = call(&w)) == NULL) {
		snprintf(answer, sizeof(answer), "ERR %s", rig.error);
		return answer;
	}
	assert_int_equal(r->elements, 3);
	snprintf(answer, sizeof(answer), "%s", r->element[2]->str);
	freeReplyObject(r);
	return answer;
}

static const char *
hand_over(int i)
{
	return hand_over_to(i, NULL);
}

static void
expect_lists(long long items, long long mails)
{
	assert_int_equal(rig_int(&rig, "LLEN items"), items);
	assert_int_equal(rig_int(&rig, "LLEN mails"), mails);
}

static void
expect_item(int from_right, const char *payload)
{
	redisReply *r = rig_command(&rig, "LINDEX items %d", -1 - from_right);

	assert_string_equal(r->str, payload);
	freeReplyObject(r);
}

/*
 * Fails the test if Redis has more than the lists and the records of pops; deletes those.
 */
static void
expect_clean(void)
{
	redisReply *r;

	rig_forget_pops(&rig);
	if (rig.consumer != NULL) {
		r = rig_command(&rig, "XPENDING %s rqd", rig_key(&rig, KEY_QUEUE));
		if (r->type == REDIS_REPLY_ARRAY)
			assert_int_equal(r->element[0]->integer, 0);
		freeReplyObject(r);
		rig_do(&rig, "DEL %s", rig_key(&rig, KEY_QUEUE));
	}
	rig_do(&rig, "DEL items mails %s", rig_key(&rig, KEY_STATS));
	if (rig_int(&rig, "DBSIZE") == 0)
		return;
	r = rig_command(&rig, "KEYS *");
	fail_msg("left over: %s", r->element[0]->str);
}

/* -- kinds ----------------------------------------------------------------------- */

static int
of_a_list(void **state UNUSED)
{
	rig.consumer = NULL;
	rig.unique = false;
	return 0;
}

static int
of_ids(void **state UNUSED)
{
	rig.unique = true;
	return 0;
}

static int
of_a_stream(void **state UNUSED)
{
	rig.unique = false;
	rig.consumer = "host-orders";
	return 0;
}

/* A test of each kind. */
#define KINDS_TEST(name)								\
	static void name(void);								\
	TEST_WITH(name##_of_a_list, of_a_list, NULL) { name(); }			\
	TEST_WITH(name##_of_ids, of_ids, NULL) { name(); }				\
	TEST_WITH(name##_of_a_stream, of_a_stream, NULL) { name(); }			\
	static void									\
	name(void)

/* -- once ------------------------------------------------------------------------ */

KINDS_TEST(test_once)
{
	begin(1);
	assert_string_equal(hand_over(0), "ok");
	expect_lists(2, 2);
	expect_item(0, "0.0.1");	/* the first one is popped first */
	expect_item(1, "0.0.2");
	assert_string_equal(hand_over(0), "gone");
	expect_lists(2, 2);
	expect_clean();
}

/*
 * The lease has ended, and a tick has put the message into QRETRY: its first owner can
 * still hand over, because nobody else has it.
 */
KINDS_TEST(test_expired)
{
	struct ticked t = { .scan = "" };

	begin(1);
	rig_expire(&rig, had[0].tag, had[0].taglen);
	if (rig.consumer != NULL)
		rig_idle(&rig, had[0].tag, had[0].taglen);
	assert_int_equal(rig_tick(&rig, 60, 60, true, 1e12, 250, 1048576, 0, NULL, &t), 0);
	assert_string_equal(hand_over(0), "ok");
	expect_lists(2, 2);
	assert_string_equal(hand_over(0), "gone");
	expect_lists(2, 2);
	expect_clean();
}

/*
 * Nothing is pushed if another delivery has begun or ended, or if Redis has lost the
 * message.
 */
KINDS_TEST(test_not_ours)
{
	struct ticked t = { .scan = "" };
	struct popped next[1];
	char call_name[24];

	begin(1);
	rig_expire(&rig, had[0].tag, had[0].taglen);
	if (rig.consumer != NULL)
		rig_idle(&rig, had[0].tag, had[0].taglen);
	assert_int_equal(rig_tick(&rig, 60, 60, true, 1e12, 250, 1048576, 0, NULL, &t), 0);
	snprintf(call_name, sizeof(call_name), "f.%u", ++calls);
	rig.prev = calls - 1;
	assert_int_equal(rig_pop(&rig, 1, 1048576, MAX, call_name, 0, next, NULL), 1);
	assert_string_equal(hand_over(0), "held");
	assert_string_equal(rig_settle(&rig, "ack", &next[0], NULL), "ok");
	assert_string_equal(hand_over(0), "gone");
	rig_forget_pops(&rig);
	assert_string_equal(hand_over(0), "lost");
	expect_lists(0, 0);
	rig_popped_done(next, 1);
	begin(1);
	rig_do(&rig, "FLUSHALL");
	assert_string_equal(hand_over(0), "lost");
	expect_lists(0, 0);
}

/* A foreign consumer has the message: nothing is pushed. */
KINDS_TEST(test_taken)
{
	begin(1);
	if (rig.consumer != NULL)
		rig_do(&rig, "XCLAIM %s rqd other 0 %s", rig_key(&rig, KEY_QUEUE), had[0].tag);
	else
		rig_do(&rig, "ZREM %s %s", rig_key(&rig, KEY_BACKUP), had[0].tag);
	assert_string_equal(hand_over(0), "taken");
	expect_lists(0, 0);
}

/* One call with 70 deliveries settles each of them separately; one is done already. */
KINDS_TEST(test_many)
{
	struct words w = { 0 };
	redisReply *r;
	int i;

	begin(70);
	assert_string_equal(rig_settle(&rig, "ack", &had[33], NULL), "ok");
	rig_settle_begin(&rig, &w);
	for (i = 0; i < 70; i++)
		add_one(&w, i, i == 60 ? "mails" : NULL);
	assert_non_null(r = call(&w));
	assert_int_equal(r->elements, 72);
	for (i = 0; i < 70; i++)
		assert_string_equal(r->element[i + 2]->str, i == 33 ? "gone" : "ok");
	freeReplyObject(r);
	expect_lists(2 * 68, 2 * 69);
	expect_item(0, "0.0.1");
	expect_item(2, "1.0.1");
	expect_clean();
}

/* 10,000 messages, more than unpack() can return at once, take less than 20 ms. */
KINDS_TEST(test_ten_thousand)
{
	long long best = 1000000, since, took;
	struct words w;
	redisReply *r;
	int i, run;

	for (run = 0; run < 5 || (best >= 20000 && run < 50); run++) {
		begin(1);
		w = (struct words){ 0 };
		rig_settle_begin(&rig, &w);
		words_mem(&w, had[0].tag, had[0].taglen);
		rig_words(&w, had[0].token, "1", "1", "10000", NULL);
		for (i = 0; i < 10000; i++)
			words_fmt(&w, "{\"number\":%d}%90d", i, i);
		since = rig_time(&rig);
		assert_non_null(r = call(&w));
		assert_string_equal(r->element[2]->str, "ok");
		freeReplyObject(r);
		took = rig_took(&rig, since);
		best = took < best ? took : best;
		assert_int_equal(rig_int(&rig, "LLEN items"), 10000);
		rig_do(&rig, "DEL items");
		expect_clean();
	}
	print_message("# 10,000 messages: %.1f ms\n", (double)best / 1e3);
	assert_true(best < 20000);
}

/* -- refused --------------------------------------------------------------------- */

static const char *const commands[] = {
	"evalsha", "hdel", "hexists", "hget", "hlen", "hmget", "hset", "llen", "lpush", "ltrim",
	"time", "zadd", "zcard", "zmscore", "zrange", "zrem", "zscore", "xack", "xlen", "xpending",
};

/*
 * With each command denied, either everything has happened or nothing.  When the command
 * is permitted and the result is sent again, all has happened once.
 */
KINDS_TEST(test_denied)
{
	const char *answer;
	size_t k;
	int refused = 0;

	for (k = 0; k < ARRAY_LEN(commands); k++) {
		begin(1);
		if (rig.unique)	/* enqueued while it runs: settle makes it due again */
			rig_do(&rig, "ZADD %s 15000000000 m0", rig_key(&rig, KEY_QUEUE));
		rig_do(&rig, "ACL SETUSER few reset on >x ~* &* +@all -%s", commands[k]);
		rig_connect(&rig, "few");
		answer = hand_over(0);
		if (strcmp(answer, "ok") != 0) {
			refused++;
			if (strcasestr(answer, commands[k]) == NULL &&
			    strcasestr(rig.cause, commands[k]) == NULL)
				fail_msg("%s is not named: %s", commands[k], answer);
			rig_connect(&rig, "");
			expect_lists(0, 0);
			assert_int_equal(rig_int(&rig, "ZCARD %s", rig_key(&rig, KEY_BACKUP)), 1);
			assert_int_equal(rig_int(&rig, "HEXISTS %s %s", rig_key(&rig, KEY_CONTEXT),
			    had[0].tag), 1);
			assert_string_equal(hand_over(0), "ok");
		}
		rig_connect(&rig, "");
		expect_lists(2, 2);
		assert_string_equal(hand_over(0), "gone");
		expect_lists(2, 2);
		if (rig.unique)
			rig_do(&rig, "DEL %s", rig_key(&rig, KEY_QUEUE));
		expect_clean();
	}
	print_message("# %d of %zu were refused\n", refused, ARRAY_LEN(commands));
	assert_true(refused >= 8);
}

/*
 * The user may not access one of the lists: the call is refused, and the other list stays
 * empty.
 */
KINDS_TEST(test_denied_key)
{
	begin(1);
	rig_do(&rig, "ACL SETUSER few reset on >x ~orders* ~Queue* ~items &* +@all");
	rig_connect(&rig, "few");
	assert_non_null(strstr(hand_over(0), "NOPERM"));
	rig_connect(&rig, "");
	expect_lists(0, 0);
	assert_string_equal(hand_over(0), "ok");
	expect_lists(2, 2);
	expect_clean();
}

/*
 * One target is not a list: deliveries with messages for it wait, and others in the call
 * do not.
 */
KINDS_TEST(test_wrong_target)
{
	struct words w = { 0 };
	redisReply *r;

	begin(3);
	rig_do(&rig, "SET mails x");
	rig_settle_begin(&rig, &w);
	add_one(&w, 0, NULL);		/* to both, the wrong one is the second */
	add_one(&w, 1, "items");
	add_one(&w, 2, "mails");
	assert_non_null(r = call(&w));
	assert_string_equal(r->element[2]->str, "error cannot push to mails: WRONGTYPE Operation "
	    "against a key holding the wrong kind of value");
	assert_string_equal(r->element[3]->str, "ok");
	assert_memory_equal(r->element[4]->str, "error cannot push to mails: ", 28);
	freeReplyObject(r);
	assert_int_equal(rig_int(&rig, "LLEN items"), 2);
	expect_item(0, "1.0.1");
	assert_int_equal(rig_int(&rig, "ZCARD %s", rig_key(&rig, KEY_BACKUP)), 2);
	rig_do(&rig, "DEL mails");
	assert_string_equal(hand_over(0), "ok");
	assert_string_equal(hand_over_to(2, "mails"), "ok");
	expect_lists(4, 4);
	expect_clean();
}

/* A failed hand-over removes what it has pushed, and no message of others. */
KINDS_TEST(test_taken_back)
{
	begin(1);
	rig_do(&rig, "LPUSH items theirs");
	rig_do(&rig, "SET mails x");
	assert_memory_equal(hand_over(0), "error cannot push to mails", 26);
	assert_int_equal(rig_int(&rig, "LLEN items"), 1);
	expect_item(0, "theirs");
	rig_do(&rig, "DEL mails");
	assert_string_equal(hand_over(0), "ok");
	assert_int_equal(rig_int(&rig, "LLEN items"), 3);
	expect_clean();
}

/* Each of the queue's own keys is of a wrong type. */
KINDS_TEST(test_wrong_types)
{
	static const enum key keys[] = { KEY_BACKUP, KEY_CONTEXT, KEY_RETRY, KEY_DELIVERY };
	size_t k;

	for (k = 0; k < ARRAY_LEN(keys); k++) {
		begin(1);
		if (rig_int(&rig, "EXISTS %s", rig_key(&rig, keys[k])) == 1)
			rig_do(&rig, "RENAME %s saved", rig_key(&rig, keys[k]));
		rig_do(&rig, "SET %s x", rig_key(&rig, keys[k]));
		assert_non_null(strstr(hand_over(0), "WRONGTYPE"));
		expect_lists(0, 0);
		rig_do(&rig, "DEL %s", rig_key(&rig, keys[k]));
		if (rig_int(&rig, "EXISTS saved") == 1)
			rig_do(&rig, "RENAME saved %s", rig_key(&rig, keys[k]));
		assert_string_equal(hand_over(0), "ok");
		expect_lists(2, 2);
		expect_clean();
	}
}

/*
 * At maxmemory Redis refuses the call before anything has changed; acks without messages
 * go on.
 */
KINDS_TEST(test_maxmemory)
{
	char was[48], is[48];

	begin(2);
	rig_digest(&rig, was);
	rig_do(&rig, "CONFIG SET maxmemory 100000");
	assert_non_null(strstr(hand_over(0), "OOM"));
	rig_digest(&rig, is);
	assert_string_equal(was, is);
	assert_string_equal(rig_settle(&rig, "ack", &had[1], NULL), "ok");
	rig_do(&rig, "CONFIG SET maxmemory 0");
	assert_string_equal(hand_over(0), "ok");
	expect_lists(2, 2);
	expect_clean();
}

/* -- lost ------------------------------------------------------------------------ */

static const char *
hand_over_lost(int number, const char *prev, const char *payload)
{
	static char answer[600];
	struct words w = { 0 };
	redisReply *r;

	words_mem(&w, had[0].tag, had[0].taglen);
	words_add(&w, payload);
	words_fmt(&w, "f.%d", number);
	words_add(&w, prev);
	add_pushes(&w, 0, NULL);
	rig.more = targets;
	rig.nmore = 2;
	r = rig_script(&rig, "hand_over_lost", "BCRD", &w);
	rig.nmore = 0;
	if (r == NULL) {
		snprintf(answer, sizeof(answer), "ERR %s", rig.error);
		return answer;
	}
	snprintf(answer, sizeof(answer), "%s", r->str);
	freeReplyObject(r);
	return answer;
}

KINDS_TEST(test_lost)
{
	begin(1);
	assert_string_equal(hand_over_lost(900, "0", had[0].payload), "there");
	expect_lists(0, 0);
	rig_do(&rig, "FLUSHALL");
	assert_string_equal(hand_over_lost(900, "0", "m0"), "ok");
	expect_lists(2, 2);
	assert_string_equal(hand_over_lost(900, "0", "m0"), "ok");
	expect_lists(2, 2);
	expect_clean();
	/* Another message has its tag now. */
	begin(1);
	assert_string_equal(hand_over_lost(901, "0", "another"), "ok");
	expect_lists(2, 2);
}

KINDS_TEST(test_lost_refused)
{
	static const char *const denied[] = { "hget", "hset", "hdel", "lpush", "ltrim", "llen",
	    "zscore", "time" };
	size_t k;

	for (k = 0; k < ARRAY_LEN(denied); k++) {
		begin(1);
		rig_do(&rig, "FLUSHALL");
		rig_do(&rig, "ACL SETUSER few reset on >x ~* &* +@all -%s", denied[k]);
		rig_connect(&rig, "few");
		assert_memory_equal(hand_over_lost(900, "0", "m0"), "ERR ", 4);
		if (strcasestr(rig.cause, denied[k]) == NULL)
			fail_msg("%s is not named: %s", denied[k], rig.cause);
		rig_connect(&rig, "");
		expect_lists(0, 0);
		assert_string_equal(hand_over_lost(901, "0", "m0"), "ok");
		expect_lists(2, 2);
	}
	rig_do(&rig, "FLUSHALL");
	rig_do(&rig, "SET mails x");
	assert_non_null(strstr(hand_over_lost(902, "0", "m0"), "cannot push to mails: WRONGTYPE"));
	assert_int_equal(rig_int(&rig, "EXISTS items"), 0);
	rig_do(&rig, "DEL mails");
	rig_do(&rig, "CONFIG SET maxmemory 100000");
	assert_non_null(strstr(hand_over_lost(902, "0", "m0"), "OOM"));
	rig_do(&rig, "CONFIG SET maxmemory 0");
	assert_string_equal(hand_over_lost(902, "0", "m0"), "ok");
	expect_lists(2, 2);
}

int
main(void)
{
	int rc;

	rig_open(&rig, "orders");
	rc = unit_run(NULL, NULL);
	rig_popped_done(had, nhad);
	rig_close(&rig);
	return rc;
}
