/*
 * Each script by itself: what its head comment says.
 */
#include "rig.h"

#define MAX	16777216LL

static struct rig rig;

static int
setup(void **state)
{
	(void)state;
	server_do(&rig.server, "FLUSHALL");
	return 0;
}

static void
push(const char *payload)
{
	rig_do(&rig, "LPUSH %s %b", rig_key(&rig, KEY_QUEUE), payload, strlen(payload));
}

static int
pop(int n, const char *call, struct popped *p)
{
	return rig_pop(&rig, n, 1048576, MAX, call, 0, p, NULL);
}

static struct popped
pop_one(const char *call)
{
	struct popped p;

	assert_int_equal(pop(1, call, &p), 1);
	return p;
}

/* -- pop -------------------------------------------------------------------- */

static void
test_pop_fifo(void **state)
{
	struct popped p[8];

	(void)state;
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

static void
test_pop_equal_ids(void **state)
{
	struct popped p[8];
	int i;

	(void)state;
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

/* A producer who knows how tags are made gets no two messages into one. */
static void
test_pop_forged_ids(void **state)
{
	struct popped p[8];
	int i, k;

	(void)state;
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

static void
test_pop_bounds(void **state)
{
	static char big[3000];
	struct popped p[8];
	int i, n;

	(void)state;
	memset(big, 'x', sizeof(big) - 1);
	for (i = 0; i < 5; i++)
		push(big);
	/* One is always given; then as many as fit. */
	n = rig_pop(&rig, 8, 10, MAX, "i.1", 0, p, NULL);
	assert_int_equal(n, 1);
	rig_popped_done(p, n);
	n = rig_pop(&rig, 8, 6000, MAX, "i.2", 0, p, NULL);
	assert_int_equal(n, 2);
	rig_popped_done(p, n);
	/* Longer than max: only its length comes, the payload stays. */
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

/* Retries are bounded in the same way, and never skipped over for the list. */
static void
test_pop_bounds_retries(void **state)
{
	static char big[3000];
	struct popped p[8];
	int i, n;

	(void)state;
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

static void
test_pop_many(void **state)
{
	static struct popped p[300];
	char text[32];
	int i, n = 0;

	(void)state;
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
	/* In the order in which they were given back. */
	n = pop(100, "i.4", p);
	n += pop(200, "i.5", p + n);
	assert_int_equal(n, 250);
	for (i = 0; i < n; i++)
		assert_int_equal(atoi(p[i].tag), i);
	rig_check_clean(&rig);
	rig_popped_done(p, n);
}

static void
test_pop_paused_late(void **state)
{
	const char *status;
	struct popped p[2];

	(void)state;
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

/* A pause of any type is a pause. */
static void
test_pop_paused_by_a_list(void **state)
{
	const char *status;
	struct popped p[2];

	(void)state;
	push("x");
	rig_do(&rig, "LPUSH %s why", rig_key(&rig, KEY_PAUSED));
	assert_int_equal(rig_pop(&rig, 1, 100, MAX, "i.1", 0, p, &status), 0);
	assert_string_equal(status, "paused");
}

/* What a hand or a bug has left in QRETRY stops nothing. */
static void
test_pop_odd_retries(void **state)
{
	struct popped p[8];

	(void)state;
	rig_do(&rig, "ZADD %s 1 nobody 2 byhand 3 %b 4 good", rig_key(&rig, KEY_RETRY), "a\0b", (size_t)3);
	rig_do(&rig, "HSET %s byhand one %b two good three", rig_key(&rig, KEY_CONTEXT), "a\0b", (size_t)3);
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

static void
test_settle_ack(void **state)
{
	struct popped p;

	(void)state;
	push("{\"id\":1}");
	p = pop_one("i.1");
	assert_string_equal(rig_settle(&rig, "ack", &p, NULL), "ok");
	assert_string_equal(rig_settle(&rig, "ack", &p, NULL), "unknown");
	assert_int_equal(rig_int(&rig, "DBSIZE"), 0);
	rig_popped_done(&p, 1);
}

static void
test_settle_retry(void **state)
{
	struct popped p, p2;

	(void)state;
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
	assert_string_equal(rig_settle(&rig, "ack", &p2, NULL), "ok");
	assert_int_equal(rig_int(&rig, "DBSIZE"), 0);
	rig_popped_done(&p, 1);
	rig_popped_done(&p2, 1);
}

/* Given back: nothing counted, and before the list. */
static void
test_settle_return(void **state)
{
	struct popped p, p2;

	(void)state;
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

static void
test_settle_dead(void **state)
{
	static const char *const want[] = {
		"id", "1", "message", "{\"id\":1}", "reason", "attempts", "attempts", "1",
		"status", "1", "error", "stderr's end", "host", "testhost"
	};
	struct popped p[2];
	redisReply *r;
	size_t i;

	(void)state;
	push("{\"id\":1}");
	push("{\"id\":1}");
	assert_int_equal(pop(2, "i.1", p), 2);
	assert_string_equal(rig_settle(&rig, "dead", &p[1], "1"), "ok");
	assert_string_equal(rig_settle(&rig, "dead", &p[1], "1"), "unknown");
	r = rig_command(&rig, "XRANGE %s - +", rig_key(&rig, KEY_DEAD));
	assert_int_equal(r->elements, 1);
	assert_int_equal(r->element[0]->element[1]->elements, ARRAY_LEN(want));
	for (i = 0; i < ARRAY_LEN(want); i++)
		assert_string_equal(r->element[0]->element[1]->element[i]->str, want[i]);
	freeReplyObject(r);
	rig_check_clean(&rig);
	rig_popped_done(p, 2);
}

static void
test_settle_deferred(void **state)
{
	struct popped p, p2;
	double due;

	(void)state;
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

/* Many in one call, each for itself. */
static void
test_settle_many(void **state)
{
	static struct popped p[120];
	struct args w = { 0 };
	redisReply *r;
	int i, n;

	(void)state;
	for (i = 0; i < 120; i++)
		push(i % 3 == 0 ? "{\"id\":7}" : "x");
	n = pop(60, "i.1", p);
	n += pop(60, "i.2", p + n);
	assert_int_equal(n, 120);
	args_str(&w, "1000");
	args_str(&w, "h");
	for (i = 0; i < n; i++) {
		static const char *const ops[] = { "ack", "retry", "return", "dead", "ack" };
		const char *op = ops[i % 5];
		args_str(&w, op);
		args_mem(&w, p[i].tag, p[i].taglen);
		args_str(&w, i % 7 == 0 ? "not.ours.1" : p[i].token);
		if (strcmp(op, "retry") == 0)
			args_str(&w, "10");
		if (strcmp(op, "dead") == 0) {
			args_str(&w, "1");
			args_str(&w, "exit");
			args_str(&w, "1");
			args_str(&w, "");
		}
	}
	r = rig_script(&rig, "settle", "BCRDX", &w);
	assert_non_null(r);
	assert_int_equal(r->elements, 122);
	for (i = 0; i < n; i++)
		assert_string_equal(r->element[i + 2]->str, i % 7 == 0 ? "held" : "ok");
	assert_true(atof(r->element[1]->str) > 1);
	freeReplyObject(r);
	rig_check_clean(&rig);
	rig_popped_done(p, n);
}

/* Dead letters are copied up to 1 MiB per call; the rest must come again. */
static void
test_settle_bounded(void **state)
{
	static char big[700000];
	struct popped p[3];
	struct args w = { 0 };
	redisReply *r;
	int i;

	(void)state;
	memset(big, 'x', sizeof(big) - 1);
	for (i = 0; i < 3; i++)
		push(big);
	for (i = 0; i < 3; i++) {
		char call[24];
		snprintf(call, sizeof(call), "i.%d", i);
		p[i] = pop_one(call);
	}
	args_str(&w, "0");
	args_str(&w, "h");
	for (i = 0; i < 3; i++) {
		args_str(&w, "dead");
		args_str(&w, p[i].tag);
		args_str(&w, p[i].token);
		args_str(&w, "1");
		args_str(&w, "exit");
		args_str(&w, "1");
		args_str(&w, "");
	}
	r = rig_script(&rig, "settle", "BCRDX", &w);
	assert_string_equal(r->element[2]->str, "ok");
	assert_string_equal(r->element[3]->str, "again");
	assert_string_equal(r->element[4]->str, "again");
	freeReplyObject(r);
	assert_int_equal(rig_live(&rig, big, sizeof(big) - 1), 2);
	rig_popped_done(p, 3);
}

/* A foreign consumer requeued it, or acked it: ours to forget. */
static void
test_settle_taken(void **state)
{
	static const char *const ops[] = { "ack", "retry", "return", "dead", "stale" };
	struct popped p;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(ops); i++) {
		server_do(&rig.server, "FLUSHALL");
		push("{\"id\":1}");
		p = pop_one("i.1");
		rig_do(&rig, "ZREM %s 1", rig_key(&rig, KEY_BACKUP));
		push("{\"id\":1}");
		assert_int_equal(rig_renew(&rig, &p), -2);
		assert_string_equal(rig_settle(&rig, ops[i], &p, "0"), "taken");
		assert_string_equal(rig_settle(&rig, ops[i], &p, "0"), "unknown");
		assert_int_equal(rig_live(&rig, "{\"id\":1}", 8), 1);
		rig_check_clean(&rig);
		rig_popped_done(&p, 1);
	}
}

/* Someone deleted the payload: forgotten, so that the daemon puts it back. */
static void
test_settle_no_payload(void **state)
{
	struct popped p;

	(void)state;
	push("{\"id\":1}");
	p = pop_one("i.1");
	rig_do(&rig, "HDEL %s 1", rig_key(&rig, KEY_CONTEXT));
	assert_string_equal(rig_settle(&rig, "retry", &p, "0"), "unknown");
	assert_int_equal(rig_int(&rig, "DBSIZE"), 0);
	rig_popped_done(&p, 1);
}

static void
test_settle_empty_payload(void **state)
{
	struct popped p;

	(void)state;
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

/* -- renew, tick ------------------------------------------------------------ */

static void
test_renew(void **state)
{
	struct popped p, p2;
	struct ticked t;

	(void)state;
	push("{\"id\":1}");
	p = pop_one("i.1");
	assert_int_equal(rig_renew(&rig, &p), 1);
	rig_expire(&rig, "1", 1);
	assert_int_equal(rig_tick(&rig, 60, 60, true, 1e12, 250, 1048576, 0, NULL, &t), 0);
	assert_int_equal(t.requeued, 1);
	/* Expired, but nobody has taken it: ours again. */
	assert_int_equal(rig_renew(&rig, &p), 2);
	assert_int_equal(rig_renew(&rig, &p), 1);
	rig_expire(&rig, "1", 1);
	assert_int_equal(rig_tick(&rig, 60, 60, true, 1e12, 250, 1048576, 0, NULL, &t), 0);
	p2 = pop_one("i.2");
	assert_int_equal(p2.crashes, 1);
	assert_int_equal(p2.attempts, 0);
	assert_int_equal(rig_renew(&rig, &p), 0);
	assert_string_equal(rig_settle(&rig, "ack", &p, NULL), "held");
	assert_string_equal(rig_settle(&rig, "ack", &p2, NULL), "ok");
	assert_int_equal(rig_renew(&rig, &p), -1);
	rig_popped_done(&p, 1);
	rig_popped_done(&p2, 1);
}

/* Settled after it has expired, before anyone took it. */
static void
test_settle_expired(void **state)
{
	static const char *const ops[] = { "ack", "retry", "return", "dead" };
	struct popped p;
	struct ticked t;
	size_t i;

	(void)state;
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

static void
test_renew_many(void **state)
{
	static struct popped p[250];
	struct args w = { 0 };
	redisReply *r;
	int i, n = 0;

	(void)state;
	for (i = 0; i < 250; i++)
		push("x");
	while (n < 250) {
		char call[24];
		snprintf(call, sizeof(call), "i.%d", n);
		n += pop(100, call, p + n);
	}
	for (i = 0; i < 250; i++) {
		args_str(&w, p[i].tag);
		args_str(&w, i % 10 == 3 ? "not.ours.1" : p[i].token);
	}
	r = rig_script(&rig, "renew", "BRD", &w);
	assert_int_equal(r->elements, 251);
	for (i = 0; i < 250; i++)
		assert_int_equal(r->element[i + 1]->integer, i % 10 == 3 ? 0 : 1);
	freeReplyObject(r);
	rig_popped_done(p, 250);
}

/* A foreign consumer's entries: back into the list after their own time. */
static void
test_tick_foreign(void **state)
{
	struct ticked t;
	double now = rig_now(&rig);
	struct popped p;

	(void)state;
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
static void
test_tick_pages(void **state)
{
	struct ticked t;
	double now = rig_now(&rig);
	struct popped p, p2;
	int i, steps = 0;

	(void)state;
	push("{\"id\":\"ours\"}");
	p = pop_one("i.1");
	for (i = 0; i < 700; i++) {
		rig_do(&rig, "ZADD %s %f f%d", rig_key(&rig, KEY_BACKUP), now - 1000 - i, i);
		rig_do(&rig, "HSET %s f%d f%d", rig_key(&rig, KEY_CONTEXT), i, i);
	}
	rig_do(&rig, "ZADD %s XX %f ours", rig_key(&rig, KEY_BACKUP), now - 100);
	t.rank = 0;
	do {
		assert_int_equal(rig_tick(&rig, 60, 5000, true, 1e12, 250, 1048576, t.rank, NULL, &t), 0);
		steps++;
	} while (t.more);
	assert_int_equal(steps, 3);
	assert_int_equal(t.requeued, 1);
	p2 = pop_one("i.2");
	assert_string_equal(p2.tag, "ours");
	rig_popped_done(&p, 1);
	rig_popped_done(&p2, 1);
}

static void
test_tick_bounds(void **state)
{
	static char big[600000];
	struct ticked t;
	int i;

	(void)state;
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

static void
test_tick_sent(void **state)
{
	struct ticked t;
	struct popped p;

	(void)state;
	push("{\"id\":1}");
	p = pop_one("i.1");
	rig_do(&rig, "ZADD %s %f 1", rig_key(&rig, KEY_BACKUP), rig_now(&rig) - 100);
	/* It waited 50 s in a stalled server. */
	rig_tick(&rig, 60, 60, true, rig_now(&rig) - 50, 250, 1048576, 0, NULL, &t);
	assert_int_equal(t.requeued, 0);
	rig_tick(&rig, 60, 60, false, rig_now(&rig), 250, 1048576, 0, NULL, &t);
	assert_int_equal(t.requeued, 0);
	assert_string_equal(t.expires, "");
	rig_tick(&rig, 60, 60, true, rig_now(&rig), 250, 1048576, 0, NULL, &t);
	assert_int_equal(t.requeued, 1);
	rig_popped_done(&p, 1);
}

static void
test_tick_odd_backup(void **state)
{
	struct ticked t;
	struct popped p;
	double now = rig_now(&rig);

	(void)state;
	push("{\"id\":1}");
	push("{\"id\":2}");
	push("{\"id\":3}");
	p = pop_one("i.1");
	rig_popped_done(&p, 1);
	p = pop_one("i.2");
	rig_popped_done(&p, 1);
	p = pop_one("i.3");
	rig_popped_done(&p, 1);
	/* Without payload; in milliseconds; for ever; from the beginning of time. */
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

static void
test_tick_delayed(void **state)
{
	struct ticked t;
	double now = rig_now(&rig);

	(void)state;
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

static void
test_tick_sweep(void **state)
{
	struct ticked t = { .cursor = "0" };
	struct popped p;
	int i;

	(void)state;
	push("{\"id\":\"live\"}");
	p = pop_one("i.1");
	for (i = 0; i < 2000; i++)
		rig_do(&rig, "HSET %s old%d %s", rig_key(&rig, KEY_DELIVERY), i, "0 0 x.1.1 1000.5 3");
	rig_do(&rig, "HSET %s young %s%f%s", rig_key(&rig, KEY_DELIVERY), "0 0 x.1.1 ", rig_now(&rig), " 3");
	rig_do(&rig, "HSET %s kept %s", rig_key(&rig, KEY_DELIVERY), "0 0 x.1.1 1000.5 3");
	rig_do(&rig, "HSET %s kept payload", rig_key(&rig, KEY_CONTEXT));
	rig_do(&rig, "HSET %s odd 1", rig_key(&rig, KEY_DELIVERY));
	i = 0;
	do {
		char cursor[24];
		snprintf(cursor, sizeof(cursor), "%s", t.cursor);
		assert_int_equal(rig_tick(&rig, 60, 60, false, 0, 250, 1048576, 0, cursor, &t), 0);
		i++;
	} while (strcmp(t.cursor, "0") != 0);
	assert_true(i > 10);
	assert_int_equal(rig_int(&rig, "HLEN %s", rig_key(&rig, KEY_DELIVERY)), 3);
	assert_int_equal(rig_int(&rig, "HEXISTS %s live", rig_key(&rig, KEY_DELIVERY)), 1);
	assert_int_equal(rig_int(&rig, "HEXISTS %s young", rig_key(&rig, KEY_DELIVERY)), 1);
	assert_int_equal(rig_int(&rig, "HEXISTS %s kept", rig_key(&rig, KEY_DELIVERY)), 1);
	assert_int_equal(rig_int(&rig, "HGET %s acked", rig_key(&rig, KEY_STATS)), i);
	rig_popped_done(&p, 1);
}

/* -- arm, mine, push, rescue ------------------------------------------------ */

static redisReply *
arm(void)
{
	struct args w = { 0 };
	redisReply *r = rig_script(&rig, "arm", "QRLP", &w);

	assert_non_null(r);
	assert_int_equal(r->elements, 7);
	return r;
}

static void
test_arm(void **state)
{
	redisReply *r;
	double now = rig_now(&rig);

	(void)state;
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

static void
test_mine(void **state)
{
	static struct popped a[100], b[200];
	int i, j, n, pages[] = { 1, 3, 40, 100, 1000 };
	size_t k;

	(void)state;
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
	/* What has been settled since is not mine any more. */
	assert_string_equal(rig_settle(&rig, "ack", &a[0], NULL), "ok");
	assert_string_equal(rig_settle(&rig, "retry", &a[1], "0"), "ok");
	assert_int_equal(rig_mine(&rig, "i.11", 1000, MAX, b), n - 2);
	rig_popped_done(b, n - 2);
	rig_popped_done(a, n);
}

static long long
push_later(const char *tag, const char *at, const char *delay, const char *payload)
{
	struct args w = { 0 };
	redisReply *r;
	long long n;

	args_str(&w, tag);
	args_str(&w, "1");
	args_str(&w, at);
	args_str(&w, delay);
	args_str(&w, payload);
	r = rig_script(&rig, "push", "BCRD", &w);
	assert_non_null(r);
	n = r->integer;
	freeReplyObject(r);
	return n;
}

static void
test_push(void **state)
{
	struct popped p;

	(void)state;
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
rescue(const char *op, const char *tag, const char *other, const char *payload)
{
	static char answer[128];
	struct args w = { 0 };
	redisReply *r;

	args_str(&w, op);
	args_str(&w, tag);
	args_str(&w, other);
	args_str(&w, "1");
	args_str(&w, "3");
	args_str(&w, "2");
	args_str(&w, "0");
	args_str(&w, payload);
	args_str(&w, "0");
	args_str(&w, "h");
	args_str(&w, "exit");
	args_str(&w, "1");
	args_str(&w, "");
	if ((r = rig_script(&rig, "rescue", "BCRDX", &w)) == NULL)
		return NULL;
	snprintf(answer, sizeof(answer), "%s", r->str);
	freeReplyObject(r);
	return answer;
}

static void
test_rescue(void **state)
{
	struct popped p;

	(void)state;
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
	assert_int_equal(rig_live(&rig, "three", 5), 0);
	rig_do(&rig, "DEL %s", rig_key(&rig, KEY_DEAD));
	rig_do(&rig, "SET %s x", rig_key(&rig, KEY_DEAD));
	assert_memory_equal(rescue("dead", "8", "8#i.1.1", "three"), "deferred WRONGTYPE", 18);
	assert_int_equal(rig_live(&rig, "three", 5), 1);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_pop_fifo, setup),
		cmocka_unit_test_setup(test_pop_equal_ids, setup),
		cmocka_unit_test_setup(test_pop_forged_ids, setup),
		cmocka_unit_test_setup(test_pop_bounds, setup),
		cmocka_unit_test_setup(test_pop_bounds_retries, setup),
		cmocka_unit_test_setup(test_pop_many, setup),
		cmocka_unit_test_setup(test_pop_paused_late, setup),
		cmocka_unit_test_setup(test_pop_paused_by_a_list, setup),
		cmocka_unit_test_setup(test_pop_odd_retries, setup),
		cmocka_unit_test_setup(test_settle_ack, setup),
		cmocka_unit_test_setup(test_settle_retry, setup),
		cmocka_unit_test_setup(test_settle_return, setup),
		cmocka_unit_test_setup(test_settle_dead, setup),
		cmocka_unit_test_setup(test_settle_deferred, setup),
		cmocka_unit_test_setup(test_settle_many, setup),
		cmocka_unit_test_setup(test_settle_bounded, setup),
		cmocka_unit_test_setup(test_settle_taken, setup),
		cmocka_unit_test_setup(test_settle_no_payload, setup),
		cmocka_unit_test_setup(test_settle_empty_payload, setup),
		cmocka_unit_test_setup(test_renew, setup),
		cmocka_unit_test_setup(test_settle_expired, setup),
		cmocka_unit_test_setup(test_renew_many, setup),
		cmocka_unit_test_setup(test_tick_foreign, setup),
		cmocka_unit_test_setup(test_tick_pages, setup),
		cmocka_unit_test_setup(test_tick_bounds, setup),
		cmocka_unit_test_setup(test_tick_sent, setup),
		cmocka_unit_test_setup(test_tick_odd_backup, setup),
		cmocka_unit_test_setup(test_tick_delayed, setup),
		cmocka_unit_test_setup(test_tick_sweep, setup),
		cmocka_unit_test_setup(test_arm, setup),
		cmocka_unit_test_setup(test_mine, setup),
		cmocka_unit_test_setup(test_push, setup),
		cmocka_unit_test_setup(test_rescue, setup),
	};
	int rc;

	rig_open(&rig, "orders");
	rc = cmocka_run_group_tests_name("scripts", tests, NULL, NULL);
	rig_close(&rig);
	return rc;
}
