/*
 * pop, settle and body, each against its head comment.
 */
#include <math.h>

#include "script_test.h"

/* -- pop -------------------------------------------------------------------- */

SCRIPT_TEST(test_pop_fifo)
{
	struct popped p[8];

	push("{\"id\":\"a\"}");
	push("plain");
	push("");
	assert_int_equal(pop(8, "i.1", p), 3);
	assert_string_equal(p[0].tag, "a");
	assert_string_equal(p[0].token, "i.1.1");
	assert_string_equal(p[1].tag, "~i.1.2");
	assert_string_equal(p[1].payload, "plain");
	assert_string_equal(p[2].tag, "~i.1.3");
	assert_int_equal(p[2].len, 0);
	assert_int_equal(p[0].attempts, 0);
	rig_check_clean(&rig);
	rig_popped_done(p, 3);
	assert_int_equal(pop(8, "i.2", p), 0);
}

SCRIPT_TEST(test_pop_equal_ids)
{
	struct popped p[8];
	int i;

	for (i = 0; i < 4; i++)
		push("{\"id\":7}");
	assert_int_equal(pop(3, "i.1", p), 3);
	assert_int_equal(pop(3, "i.2", p + 3), 1);
	assert_string_equal(p[0].tag, "7");
	assert_string_equal(p[1].tag, "7#i.1.2");
	assert_string_equal(p[3].tag, "7#i.2.1");
	for (i = 0; i < 4; i++)
		assert_int_equal(p[i].idlen, 1);
	assert_int_equal(rig_live(&rig, "{\"id\":7}", 8), 4);
	rig_check_clean(&rig);
	rig_popped_done(p, 4);
}

/* A producer who knows how rqd makes tags cannot give two messages the same tag. */
SCRIPT_TEST(test_pop_forged_ids)
{
	struct popped p[8];
	int i, k;

	push("{\"id\":\"~i.1.3\"}");
	push("{\"id\":\"7#i.1.5\"}");
	push("none");
	push("{\"id\":7}");
	push("{\"id\":7}");
	assert_int_equal(pop(8, "i.1", p), 5);
	for (i = 0; i < 5; i++) {
		for (k = 0; k < i; k++)
			assert_string_not_equal(p[i].tag, p[k].tag);
	}
	rig_check_clean(&rig);
	rig_popped_done(p, 5);
}

SCRIPT_TEST(test_pop_bounds)
{
	static char big[3000];
	struct popped p[8];
	int i, n;

	memset(big, 'x', sizeof(big) - 1);
	for (i = 0; i < 5; i++)
		push(big);
	/* A pop always gives one message, and then as many as fit. */
	n = rig_pop(&rig, 8, 10, MAX, "i.1", 0, p, NULL);
	assert_int_equal(n, 1);
	rig_popped_done(p, n);
	n = rig_pop(&rig, 8, 6000, MAX, "i.2", 0, p, NULL);
	assert_int_equal(n, 2);
	rig_popped_done(p, n);
	/*
	 * If a message is longer than max, the pop returns its length only, and the
	 * payload stays in Redis.
	 */
	n = rig_pop(&rig, 8, 100, 2000, "i.3", 0, p, NULL);
	assert_int_equal(n, 1);
	assert_null(p[0].payload);
	assert_int_equal(p[0].len, sizeof(big) - 1);
	assert_string_equal(rig_settle(&rig, "dead", &p[0], "0"), "ok");
	rig_popped_done(p, n);
	assert_int_equal(rig_dead(&rig, big, sizeof(big) - 1), 1);
	assert_int_equal(rig_live(&rig, big, sizeof(big) - 1), 4);
	rig_check_clean(&rig);
}

/* -- turns ------------------------------------------------------------------ */

/*
 * Makes due retries r0 r1 ... with these attempts; r0 has been due for the longest time.
 */
static void
make_retries(const int *attempts, int n)
{
	char text[40], tag[16], call[24];
	static unsigned calls;
	struct popped p;
	int i, k;

	for (i = 0; i < n; i++) {
		snprintf(tag, sizeof(tag), "r%d", i);
		snprintf(text, sizeof(text), "{\"id\":\"%s\"}", tag);
		push(text);
		rig.turn = "new";
		for (k = 0; k <= attempts[i]; k++) {
			snprintf(call, sizeof(call), "made.%u", ++calls);
			p = pop_one(call);
			assert_string_equal(p.tag, tag);
			assert_string_equal(rig_settle(&rig,
			    k < attempts[i] ? "retry" : "defer", &p,
			    k < attempts[i] ? "0" : "1000"), "ok");
			rig_popped_done(&p, 1);
		}
	}
	for (i = 0; i < n; i++)
		rig_do(&rig, "ZADD %s %d r%d", rig_key(&rig, KEY_RETRY), 1000 + i, i);
}

/* Checks the messages of a pop, as "r0 r1 n0 ", and acks them. */
static void
check_pop(const char *turn, int n, const char *want)
{
	static unsigned calls;
	char call[24], got[256] = "";
	struct popped p[32];
	int i, m;

	rig.turn = turn;
	snprintf(call, sizeof(call), "turn.%u", ++calls);
	m = pop(n, call, p);
	for (i = 0; i < m; i++) {
		strncat(got, p[i].tag, 20);
		strncat(got, " ", 2);
		assert_string_equal(rig_settle(&rig, "ack", &p[i], NULL), "ok");
	}
	assert_string_equal(got, want);
	rig_popped_done(p, m);
	rig.turn = NULL;
}

static void
push_new(int n)
{
	char text[24];
	int i;

	for (i = 0; i < n; i++) {
		snprintf(text, sizeof(text), "{\"id\":\"n%d\"}", i);
		push(text);
	}
}

/*
 * The sort that `turn` names gets half of the batch, and each sort takes the room that
 * the other leaves.
 */
SCRIPT_TEST(test_turns_share)
{
	static const int attempts[6] = { 0 };

	make_retries(attempts, 6);
	push_new(6);
	check_pop("retry", 1, "r0 ");
	check_pop("new", 1, "n0 ");
	check_pop("retry", 3, "r1 r2 n1 ");
	check_pop("new", 3, "n2 n3 r3 ");
	check_pop("new", 32, "n4 n5 r4 r5 ");
	make_retries(attempts, 4);
	push_new(1);
	check_pop("new", 4, "n0 r0 r1 r2 ");
	push_new(4);
	check_pop("retry", 4, "r3 n0 n1 n2 ");
	check_pop("retry", 4, "n3 ");
	make_retries(attempts, 1);
	check_pop("new", 1, "r0 ");
	rig_check_clean(&rig);
	rig_forget_pops(&rig);
	assert_int_equal(rig_left(&rig), 0);
}

/*
 * Whether a pop that takes nothing reports that it has passed over due retries, and that
 * it will look at them again in 0.1 s.
 */
static bool
passed_over(void)
{
	struct popped p[4];

	rig.turn = "new 3 4";
	assert_int_equal(pop(3, "over.1", p), 0);
	rig.turn = NULL;
	return fabs(rig.popped_due - rig.popped_now - 0.1) < 0.001;
}

/*
 * Batches: "ROOM EACH" follows the turn.  A retry that has failed takes EACH of the room,
 * all others take 1.  A retry that was only deferred does not wait behind one that finds
 * no room.
 */
SCRIPT_TEST(test_turns_of_batches)
{
	static const int failed[] = { 1, 1, 1, 1 }, mixed[] = { 0, 2, 0, 1 };

	/* One run takes a message that has failed, or several others. */
	make_retries(failed, 4);
	push_new(12);
	check_pop("retry 4 4", 4, "r0 ");
	check_pop("new 4 4", 4, "n0 n1 n2 n3 ");
	/* A run that is partly filled takes the rest. */
	check_pop("retry 3 4", 3, "n4 n5 n6 ");
	/* Room for two runs and a rest. */
	check_pop("retry 9 4", 9, "r1 r2 n7 ");
	check_pop("due 8 4", 8, "r3 n8 n9 n10 n11 ");
	make_retries(mixed, 4);
	check_pop("retry 4 4", 4, "r0 r2 ");
	check_pop("retry 8 4", 8, "r1 r3 ");
	/* Only retries for which there is no room. */
	make_retries(failed, 2);
	assert_true(passed_over());
	check_pop("new 8 4", 8, "r0 r1 ");
	rig_check_clean(&rig);
	rig_forget_pops(&rig);
	assert_int_equal(rig_left(&rig), 0);
}

/* A probe takes a message of its sort; if there is none, a message of another sort. */
SCRIPT_TEST(test_turns_of_probes)
{
	static const int attempts[] = { 3, 2, 1, 2, 1 };

	make_retries(attempts, 5);
	push_new(3);
	check_pop("newest", 1, "n2 ");
	check_pop("fewest", 1, "r2 ");
	check_pop("fewest", 1, "r4 ");
	check_pop("newest", 1, "n1 ");
	check_pop("newest", 1, "n0 ");
	check_pop("newest", 1, "r1 ");
	check_pop("fewest", 1, "r3 ");
	check_pop("fewest", 1, "r0 ");
	push_new(2);
	check_pop("fewest", 1, "n0 ");
	check_pop("newest", 1, "n1 ");
	check_pop("newest", 1, "");
	rig_check_clean(&rig);
	rig_forget_pops(&rig);
	assert_int_equal(rig_left(&rig), 0);
}

/* A pop drops retries without a payload, also if it looks for the fewest attempts. */
SCRIPT_TEST(test_turns_dropped)
{
	static const int attempts[] = { 1, 0 };

	make_retries(attempts, 2);
	rig_do(&rig, "HDEL %s r1", rig_key(&rig, KEY_CONTEXT));
	check_pop("fewest", 1, "r0 ");
	rig_forget_pops(&rig);
	assert_int_equal(rig_left(&rig), 0);
}

/*
 * The bounds hold for retries, too; a retry without room is not passed over for the list.
 */
SCRIPT_TEST(test_pop_bounds_retries)
{
	static char big[3000];
	struct popped p[8];
	int i, n;

	memset(big, 'x', sizeof(big) - 1);
	for (i = 0; i < 3; i++)
		push(big);
	assert_int_equal(pop(3, "i.1", p), 3);
	for (i = 0; i < 3; i++)
		assert_string_equal(rig_settle(&rig, "return", &p[i], NULL), "ok");
	rig_popped_done(p, 3);
	push("small");
	n = rig_pop(&rig, 8, 6000, MAX, "i.2", 0, p, NULL);
	assert_int_equal(n, 2);
	rig_popped_done(p, n);
	n = rig_pop(&rig, 8, 100, 2000, "i.3", 0, p, NULL);
	assert_int_equal(n, 1);
	assert_null(p[0].payload);
	rig_popped_done(p, n);
	rig_check_clean(&rig);
}

/*
 * A pop looks at retries in chunks of 25: there may be no room for the first of the
 * second chunk.
 */
SCRIPT_TEST(test_pop_bounds_chunk)
{
	static char big[3000];
	static struct popped p[60];
	int i, n;

	memset(big, 'x', sizeof(big) - 1);
	for (i = 0; i < 60; i++)
		push(big);
	assert_int_equal(pop(60, "i.1", p), 60);
	for (i = 0; i < 60; i++)
		assert_string_equal(rig_settle(&rig, "return", &p[i], NULL), "ok");
	rig_popped_done(p, 60);
	n = rig_pop(&rig, 60, 25 * 2999LL, MAX, "i.2", 0, p, NULL);
	assert_int_equal(n, 25);
	rig_popped_done(p, n);
	assert_int_equal(rig_int(&rig, "ZCARD %s", rig_key(&rig, KEY_RETRY)), 35);
	rig_check_clean(&rig);
}

SCRIPT_TEST(test_pop_many)
{
	static struct popped p[300];
	char text[32];
	int i, n = 0;

	for (i = 0; i < 250; i++) {
		snprintf(text, sizeof(text), "{\"id\":%d}", i);
		push(text);
	}
	n += pop(100, "i.1", p);
	n += pop(100, "i.2", p + n);
	n += pop(100, "i.3", p + n);
	assert_int_equal(n, 250);
	for (i = 0; i < n; i++)
		assert_int_equal(atoi(p[i].tag), i);
	for (i = 0; i < n; i++)
		assert_string_equal(rig_settle(&rig, "return", &p[i], NULL), "ok");
	rig_popped_done(p, n);
	/* Retries come in the order in which they were returned. */
	n = pop(100, "i.4", p);
	n += pop(200, "i.5", p + n);
	assert_int_equal(n, 250);
	for (i = 0; i < n; i++)
		assert_int_equal(atoi(p[i].tag), i);
	rig_check_clean(&rig);
	rig_popped_done(p, n);
}

SCRIPT_TEST(test_pop_paused_late)
{
	const char *status;
	struct popped p[2];

	push("x");
	rig_do(&rig, "SET %s why", rig_key(&rig, KEY_PAUSED));
	assert_int_equal(rig_pop(&rig, 1, 100, MAX, "i.1", 0, p, &status), 0);
	assert_string_equal(status, "paused");
	rig_do(&rig, "DEL %s", rig_key(&rig, KEY_PAUSED));
	assert_int_equal(rig_pop(&rig, 1, 100, MAX, "i.2", rig_now(&rig) - 0.001, p, &status), 0);
	assert_string_equal(status, "late");
	assert_int_equal(rig_pop(&rig, 1, 100, MAX, "i.3", rig_now(&rig) + 10, p, &status), 1);
	rig_popped_done(p, 1);
}

/* QPAUSED pauses, whatever its type. */
SCRIPT_TEST(test_pop_paused_by_a_list)
{
	const char *status;
	struct popped p[2];

	push("x");
	rig_do(&rig, "LPUSH %s why", rig_key(&rig, KEY_PAUSED));
	assert_int_equal(rig_pop(&rig, 1, 100, MAX, "i.1", 0, p, &status), 0);
	assert_string_equal(status, "paused");
}

/* Odd entries in QRETRY, written by hand or by a fault, do not stop a pop. */
SCRIPT_TEST(test_pop_odd_retries)
{
	struct popped p[8];

	rig_do(&rig, "ZADD %s 1 nobody 2 byhand 3 %b 4 good", rig_key(&rig, KEY_RETRY), "a\0b",
	    (size_t)3);
	rig_do(&rig, "HSET %s byhand one %b two good three", rig_key(&rig, KEY_CONTEXT), "a\0b",
	    (size_t)3);
	rig_do(&rig, "HSET %s nobody x byhand 99999999999999999999999x good %s",
	    rig_key(&rig, KEY_DELIVERY), "99999999999999999999 3 - 0 99");
	assert_int_equal(pop(8, "i.1", p), 3);
	assert_string_equal(p[0].tag, "byhand");
	assert_int_equal(p[0].attempts, 0);
	assert_int_equal(p[1].taglen, 3);
	assert_int_equal(p[2].attempts, 999999999);
	assert_int_equal(p[2].idlen, 4);
	rig_check_clean(&rig);
	assert_string_equal(rig_settle(&rig, "ack", &p[1], NULL), "ok");
	assert_string_equal(rig_settle(&rig, "retry", &p[2], "0"), "ok");
	rig_popped_done(p, 3);
}

/* -- settle ----------------------------------------------------------------- */

SCRIPT_TEST(test_settle_ack)
{
	struct popped p;

	push("{\"id\":1}");
	p = pop_one("i.1");
	assert_string_equal(rig_settle(&rig, "ack", &p, NULL), "ok");
	rig.over = "i.1";
	assert_string_equal(rig_settle(&rig, "ack", &p, NULL), "gone");
	rig.over = NULL;
	assert_int_equal(rig_left(&rig), 0);
	rig_popped_done(&p, 1);
}

SCRIPT_TEST(test_settle_retry)
{
	struct popped p, p2;

	push("{\"id\":1}");
	p = pop_one("i.1");
	assert_string_equal(rig_settle(&rig, "retry", &p, "0.05"), "ok");
	assert_string_equal(rig_settle(&rig, "retry", &p, "0.05"), "held");
	assert_int_equal(pop(1, "i.2", &p2), 0);
	usleep(60000);
	p2 = pop_one("i.3");
	assert_int_equal(p2.attempts, 1);
	assert_int_equal(p2.crashes, 0);
	assert_string_equal(p2.tag, "1");
	assert_string_equal(rig_settle(&rig, "ack", &p, NULL), "held");
	assert_string_equal(rig_settle(&rig, "dead", &p, "1"), "held");
	rig.over = "i.3";
	assert_string_equal(rig_settle(&rig, "ack", &p2, NULL), "ok");
	rig.over = NULL;
	assert_int_equal(rig_left(&rig), 0);
	rig_popped_done(&p, 1);
	rig_popped_done(&p2, 1);
}

/* A returned message counts no attempt, and comes before the list. */
SCRIPT_TEST(test_settle_return)
{
	struct popped p, p2;

	push("{\"id\":1}");
	push("{\"id\":2}");
	p = pop_one("i.1");
	assert_string_equal(rig_settle(&rig, "return", &p, NULL), "ok");
	p2 = pop_one("i.2");
	assert_string_equal(p2.tag, "1");
	assert_int_equal(p2.attempts, 0);
	assert_int_equal(p2.crashes, 0);
	rig_popped_done(&p, 1);
	rig_popped_done(&p2, 1);
}

SCRIPT_TEST(test_settle_dead)
{
	static const char *const want[] = {
		"id", "1", "message", "{\"id\":1}", "reason", "attempts", "attempts", "1",
		"status", "1", "error", "stderr's end", "host", "testhost",
		"answer", "the handler's words"
	};
	struct popped p[2];
	redisReply *r;
	size_t i;

	push("{\"id\":1}");
	push("{\"id\":1}");
	assert_int_equal(pop(2, "i.1", p), 2);
	assert_string_equal(rig_settle(&rig, "dead", &p[1], "1"), "ok");
	assert_string_equal(rig_settle(&rig, "dead", &p[1], "1"), "gone");
	r = rig_command(&rig, "XRANGE %s - +", rig_key(&rig, KEY_DEAD));
	assert_int_equal(r->elements, 1);
	assert_int_equal(r->element[0]->element[1]->elements, ARRAY_LEN(want));
	for (i = 0; i < ARRAY_LEN(want); i++)
		assert_string_equal(r->element[0]->element[1]->element[i]->str, want[i]);
	freeReplyObject(r);
	rig_check_clean(&rig);
	rig_popped_done(p, 2);
}

SCRIPT_TEST(test_settle_deferred)
{
	struct popped p, p2;
	double due;

	rig_do(&rig, "SET %s x", rig_key(&rig, KEY_DEAD));
	push("{\"id\":1}");
	p = pop_one("i.1");
	assert_memory_equal(rig_settle(&rig, "dead", &p, "1"), "deferred WRONGTYPE", 18);
	due = (double)rig_int(&rig, "ZSCORE %s 1", rig_key(&rig, KEY_RETRY)) - rig_now(&rig);
	assert_true(due > 57 && due < 62);
	rig_fall_due(&rig, "1", 1);
	p2 = pop_one("i.2");
	assert_int_equal(p2.attempts, 1);
	assert_int_equal(p2.crashes, 0);
	rig_popped_done(&p, 1);
	rig_popped_done(&p2, 1);
}

/* Each of many results in one call is settled separately. */
SCRIPT_TEST(test_settle_many)
{
	static struct popped p[120];
	struct words w = { 0 };
	redisReply *r;
	int i, n;

	for (i = 0; i < 120; i++)
		push(i % 3 == 0 ? "{\"id\":7}" : "x");
	n = pop(60, "i.1", p);
	n += pop(60, "i.2", p + n);
	assert_int_equal(n, 120);
	rig_words(&w, "1000", "h", "", NULL);
	for (i = 0; i < n; i++) {
		static const char *const ops[] = { "ack", "retry", "return", "dead", "ack" };
		const char *op = ops[i % 5];
		words_add(&w, op);
		words_mem(&w, p[i].tag, p[i].taglen);
		words_add(&w, i % 7 == 0 ? "not.ours.1" : p[i].token);
		if (strcmp(op, "retry") == 0)
			words_add(&w, "10");
		if (strcmp(op, "dead") == 0) {
			rig_words(&w, "1", "exit", "1", "", "", NULL);
		}
	}
	r = rig_script(&rig, "settle", "BCRDX", &w);
	assert_non_null(r);
	assert_int_equal(r->elements, 122);
	for (i = 0; i < n; i++)
		assert_string_equal(r->element[i + 2]->str, i % 7 == 0 ? "held lost" : "ok");
	assert_true(atof(r->element[1]->str) > 1);
	freeReplyObject(r);
	rig_check_clean(&rig);
	rig_popped_done(p, n);
}

/* A call copies up to 1 MiB into dead letters; further results get "again". */
SCRIPT_TEST(test_settle_bounded)
{
	static char big[700000];
	struct popped p[3];
	struct words w = { 0 };
	redisReply *r;
	int i;

	memset(big, 'x', sizeof(big) - 1);
	for (i = 0; i < 3; i++)
		push(big);
	for (i = 0; i < 3; i++) {
		char call[24];
		snprintf(call, sizeof(call), "i.%d", i);
		p[i] = pop_one(call);
	}
	rig_words(&w, "0", "h", "", NULL);
	for (i = 0; i < 3; i++) {
		rig_words(&w, "dead", p[i].tag, p[i].token, "1", "exit", "1", "", "",
		    NULL);
	}
	r = rig_script(&rig, "settle", "BCRDX", &w);
	assert_string_equal(r->element[2]->str, "ok");
	assert_string_equal(r->element[3]->str, "again");
	assert_string_equal(r->element[4]->str, "again");
	freeReplyObject(r);
	assert_int_equal(rig_live(&rig, big, sizeof(big) - 1), 2);
	rig_popped_done(p, 3);
}

/*
 * A foreign consumer has requeued or acked the message: settle forgets the delivery, and
 * leaves the message alone.
 */
SCRIPT_TEST(test_settle_taken)
{
	static const char *const ops[] = { "ack", "retry", "return", "dead", "stale", "defer" };
	struct popped p;
	size_t i;

	for (i = 0; i < ARRAY_LEN(ops); i++) {
		server_do(&rig.server, "FLUSHALL");
		push("{\"id\":1}");
		p = pop_one("i.1");
		rig_do(&rig, "ZREM %s 1", rig_key(&rig, KEY_BACKUP));
		push("{\"id\":1}");
		assert_int_equal(rig_renew(&rig, &p), -2);
		assert_string_equal(rig_settle(&rig, ops[i], &p, "0"), "taken");
		assert_string_equal(rig_settle(&rig, ops[i], &p, "0"), "gone");
		assert_int_equal(rig_live(&rig, "{\"id\":1}", 8), 1);
		rig_check_clean(&rig);
		rig_popped_done(&p, 1);
	}
}

/*
 * The payload was deleted: settle answers "lost", so that the daemon rescues the message.
 */
SCRIPT_TEST(test_settle_no_payload)
{
	struct popped p;

	push("{\"id\":1}");
	p = pop_one("i.1");
	rig_do(&rig, "HDEL %s 1", rig_key(&rig, KEY_CONTEXT));
	assert_string_equal(rig_settle(&rig, "retry", &p, "0"), "lost");
	rig_check_clean(&rig);
	rig_popped_done(&p, 1);
}

SCRIPT_TEST(test_settle_empty_payload)
{
	struct popped p;

	push("");
	p = pop_one("i.1");
	assert_string_equal(rig_settle(&rig, "retry", &p, "0"), "ok");
	rig_popped_done(&p, 1);
	p = pop_one("i.2");
	assert_int_equal(p.len, 0);
	assert_string_equal(rig_settle(&rig, "dead", &p, "1"), "ok");
	assert_int_equal(rig_dead(&rig, "", 0), 1);
	rig_popped_done(&p, 1);
}

/* A deferred message keeps its counts, and is due later; a second defer does nothing. */
SCRIPT_TEST(test_settle_defer)
{
	struct popped p;
	double due;

	push("x");
	p = pop_one("i.1");
	assert_string_equal(rig_settle(&rig, "defer", &p, "30"), "ok");
	assert_string_equal(rig_settle(&rig, "defer", &p, "90"), "held");
	due = (double)rig_int(&rig, "EVAL %s 1 %s",
	    "return math.floor(redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2])",
	    rig_key(&rig, KEY_RETRY)) - rig_now(&rig);
	assert_true(due > 25 && due < 31);
	rig_fall_due(&rig, p.tag, p.taglen);
	rig_popped_done(&p, 1);
	p = pop_one("i.2");
	assert_int_equal(p.attempts, 0);
	assert_int_equal(p.crashes, 0);
	rig_popped_done(&p, 1);
	rig_check_clean(&rig);
}

/* -- body ------------------------------------------------------------------- */

static redisReply *
body(const struct popped *p, const char *token)
{
	struct words w = { 0 };
	redisReply *r;

	words_mem(&w, p->tag, p->taglen);
	words_add(&w, token);
	r = rig_script(&rig, "body", "CD", &w);
	assert_non_null(r);
	return r;
}

/* body returns a payload that the pop has not sent, only to the delivery's owner. */
SCRIPT_TEST(test_body)
{
	struct popped p;
	redisReply *r;

	push("0123456789");
	assert_int_equal(rig_pop(&rig, 1, 1048576, 9, "i.1", 0, &p, NULL), 1);
	assert_null(p.payload);
	assert_int_equal(p.len, 10);
	r = body(&p, p.token);
	assert_int_equal(r->len, 10);
	assert_string_equal(r->str, "0123456789");
	freeReplyObject(r);
	r = body(&p, "i.1.2");
	assert_int_equal(r->type, REDIS_REPLY_NIL);
	freeReplyObject(r);
	assert_string_equal(rig_settle(&rig, "retry", &p, "0"), "ok");
	r = body(&p, p.token);
	assert_int_equal(r->type, REDIS_REPLY_NIL);
	freeReplyObject(r);
	rig_popped_done(&p, 1);
}
