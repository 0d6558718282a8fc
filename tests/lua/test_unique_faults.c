/*
 * The scripts of kind "unique": particular cases, and their faults: each command
 * denied, each key of the wrong type, maxmemory.
 */
#include "faults.h"

#define FAR	"100000"

static struct rig	rig;
static unsigned		calls;

static void
reset(void)
{
	rig_connect(&rig, "");
	rig_do(&rig, "FLUSHALL");
}

/* -- particular cases ------------------------------------------------------- */

static void
enqueue(const char *id, const char *score)
{
	rig_do(&rig, "ZADD %s %s %s", rig_key(&rig, KEY_QUEUE), score, id);
}

static int
pop(int n, struct popped *p)
{
	char call[24];

	snprintf(call, sizeof(call), "u.%u", ++calls);
	return rig_pop(&rig, n, 1048576, MAX, call, 0, p, NULL);
}

/*
 * Thousands of ids that run and are due again do not hide another id, and a pop looks at
 * each of them only once.
 */
TEST(test_hidden)
{
	static struct popped p[2000];
	struct popped one;
	char id[16];
	int i, n = 0;

	reset();
	for (i = 0; i < 2000; i++) {
		snprintf(id, sizeof(id), "%d", i);
		enqueue(id, "5");
	}
	while (n < 2000) {
		assert_true((i = pop(100, p + n)) > 0);
		n += i;
	}
	for (i = 0; i < 2000; i++) {
		snprintf(id, sizeof(id), "%d", i);
		enqueue(id, i % 2 ? "-inf" : "7");
	}
	enqueue("behind", "1000");
	for (i = 0; (n = pop(100, &one)) == 0; i++)
		assert_true(i < 12);
	assert_int_equal(n, 1);
	assert_string_equal(one.tag, "behind");
	rig_popped_done(&one, 1);
	assert_int_equal(pop(1, &one), 0);
	/* Ids that were enqueued again while they ran, run again, each at its own time. */
	assert_string_equal(rig_settle(&rig, "ack", &p[8], NULL), "ok");
	assert_string_equal(rig_settle(&rig, "retry", &p[10], FAR), "ok");
	assert_string_equal(rig_settle(&rig, "dead", &p[12], "1"), "ok");
	for (i = 0; i < 3; i++) {
		assert_int_equal(pop(1, &one), 1);
		assert_int_equal(one.attempts, strcmp(one.tag, p[10].tag) == 0);
		rig_popped_done(&one, 1);
	}
	assert_int_equal(pop(1, &one), 0);
	rig_popped_done(p, 2000);
}

/*
 * Ids were put off because they run, and an operator has removed their deliveries: ticks
 * find them among many others.
 */
TEST(test_strays)
{
	static struct popped p[400];
	struct ticked t;
	char id[16];
	int i, n;

	reset();
	for (i = 0; i < 400; i++) {
		snprintf(id, sizeof(id), "%d", i);
		enqueue(id, "5");
	}
	for (n = 0; n < 400; n += i)
		assert_true((i = pop(100, p + n)) > 0);
	for (i = 0; i < 400; i++) {
		snprintf(id, sizeof(id), "%.6f", 6 + i / 1e6);
		enqueue(p[i].tag, id);
	}
	for (i = 0; i < 400; i += 100)
		assert_int_equal(pop(100, p), 0);
	for (i = 0; i < 400; i += 40)
		rig_do(&rig, "ZREM %s %s", rig_key(&rig, KEY_BACKUP), p[i].tag);
	rig_popped_done(p, 400);
	for (i = 0; i < 1000 && rig_int(&rig, "ZCOUNT %s -inf 7",
	    rig_key(&rig, KEY_QUEUE)) < 10; i++)
		assert_int_equal(rig_tick(&rig, 60, 60, true, 1e12, 250, 1048576, 0, NULL, &t), 0);
	assert_int_equal(rig_int(&rig, "ZCOUNT %s -inf 7", rig_key(&rig, KEY_QUEUE)), 10);
}

/* Ids are popped in the order of their times, whether in seconds or in milliseconds. */
TEST(test_order)
{
	static const char *const want[] = { "first", "second", "third", "now", "ms" };
	struct popped p[8];
	char ms[32], now[32];
	int i;

	reset();
	snprintf(ms, sizeof(ms), "%.0f", (rig_now(&rig) - 1) * 1000);
	snprintf(now, sizeof(now), "%.6f", rig_now(&rig) - 2);
	enqueue("never", "inf");
	enqueue("later", "9999999999");
	enqueue("ms", ms);
	enqueue("now", now);
	enqueue("third", "2.5");
	enqueue("second", "0");
	enqueue("first", "-inf");
	assert_int_equal(pop(8, p), 5);
	for (i = 0; i < 5; i++)
		assert_string_equal(p[i].tag, want[i]);
	rig_popped_done(p, 5);
}

/*
 * The script reports a message that is too large by its length; the dead letter has all
 * of it.
 */
TEST(test_too_large)
{
	struct popped p;
	char *big = xcalloc(1, 300001);
	redisReply *r;

	reset();
	memset(big, 'x', 300000);
	enqueue(big, "1");
	assert_int_equal(rig_pop(&rig, 1, 1048576, 200000, "u.9999", 0, &p, NULL), 1);
	assert_null(p.payload);
	assert_int_equal(p.len, 300000);
	assert_int_equal(p.tag[0], '~');
	assert_string_equal(rig_settle(&rig, "dead", &p, "0"), "ok");
	r = rig_command(&rig, "XRANGE %s - +", rig_key(&rig, KEY_DEAD));
	assert_int_equal(r->element[0]->element[1]->element[3]->len, 300000);
	freeReplyObject(r);
	rig_popped_done(&p, 1);
	free(big);
}

/* Redis has lost its data; a message that a daemon had in flight comes back, once. */
TEST(test_rescue)
{
	struct popped p[2];
	redisReply *r;
	int again;

	reset();
	enqueue("u7", "1");
	assert_int_equal(pop(1, p), 1);
	reset();
	enqueue("u7", "1");
	for (again = 0; again < 2; again++) {
		struct words w = { 0 };
		rig_words(&w, "retry", "u7", NULL);
		words_fmt(&w, "u7#%s", p[0].token);
		rig_words(&w, "2", "4", "1", FAR, "u7", "0", "h", "exit", "1", "", "",
		    NULL);
		words_fmt(&w, "r.%d", again);
		words_add(&w, "0");
		r = rig_script(&rig, "rescue", "BCRDX", &w);
		assert_non_null(r);
		assert_string_equal(r->str, again ? "there" : "ok");
		freeReplyObject(r);
	}
	assert_int_equal(pop(2, p + 1), 1);
	assert_int_equal(p[1].attempts, 4);
	assert_int_equal(p[1].crashes, 1);
	assert_string_equal(p[1].tag, "u7");
	assert_string_equal(rig_settle(&rig, "ack", &p[0], NULL), "held lost");
	rig_popped_done(p, 2);
	rig_check_clean(&rig);
}

TEST(test_arm)
{
	struct words w = { 0 };
	char score[32];
	redisReply *r;

	reset();
	snprintf(score, sizeof(score), "%.6f", rig_now(&rig) + 5);
	enqueue("a", score);
	enqueue("b", "inf");
	words_add(&w, "0");
	r = rig_script(&rig, "unique_arm", "QRP", &w);
	assert_non_null(r);
	assert_int_equal(r->elements, 8);
	assert_int_equal(r->element[1]->integer, 0);
	assert_true(atof(r->element[3]->str) > 4 && atof(r->element[3]->str) < 5.02);
	freeReplyObject(r);
	enqueue("c", "-inf");
	words_add(&w, "0");
	r = rig_script(&rig, "unique_arm", "QRP", &w);
	assert_int_equal(r->element[1]->integer, 1);
	freeReplyObject(r);
}

/* An id is never due later than it was. */
TEST(test_push)
{
	static const struct { const char *at, *delay; long long added; double from, to; } t[] = {
		{ "", "100", 1, 99, 101 }, { "", "200", 0, 99, 101 }, { "", "10", 0, 9, 11 },
		{ "", "0", 0, -1, 1 }, { "", "50", 0, -1, 1 },
	};
	struct words w = { 0 };
	redisReply *r;
	double now;
	size_t i;

	reset();
	for (i = 0; i < ARRAY_LEN(t); i++) {
		now = rig_now(&rig);
		rig_words(&w, t[i].at, t[i].delay, "u7", NULL);
		r = rig_script(&rig, "unique_push", "Q", &w);
		assert_non_null(r);
		assert_int_equal(r->integer, t[i].added);
		freeReplyObject(r);
		r = rig_command(&rig, "ZSCORE %s u7", rig_key(&rig, KEY_QUEUE));
		if (i < 3)
			assert_true(atof(r->str) - now >= t[i].from &&
			    atof(r->str) - now <= t[i].to + 5);
		else
			assert_true(atof(r->str) <= rig_now(&rig));
		freeReplyObject(r);
	}
}

/* The same holds for an id that was put off because it runs. */
TEST(test_push_put_off)
{
	struct popped p[2];
	struct words w = { 0 };
	redisReply *r;

	reset();
	enqueue("u7", "1");
	assert_int_equal(pop(1, p), 1);
	enqueue("u7", "2");
	assert_int_equal(pop(1, p + 1), 0);
	rig_words(&w, "", "100", "u7", NULL);
	r = rig_script(&rig, "unique_push", "Q", &w);
	assert_non_null(r);
	assert_int_equal(r->integer, 0);
	freeReplyObject(r);
	assert_string_equal(rig_settle(&rig, "ack", &p[0], NULL), "ok");
	assert_int_equal(pop(1, p + 1), 1);
	rig_popped_done(p, 2);
}

/* A pop removes a retry without a payload, and not the same id in the queue. */
TEST(test_empty_retry)
{
	struct popped p;

	reset();
	rig_do(&rig, "ZADD %s 1 u7", rig_key(&rig, KEY_RETRY));
	rig_do(&rig, "HSET %s u7 %s", rig_key(&rig, KEY_DELIVERY), "3 0 - 1 2");
	enqueue("u7", "1");
	assert_int_equal(pop(1, &p), 1);
	assert_string_equal(p.tag, "u7");
	assert_int_equal(p.attempts, 0);
	rig_popped_done(&p, 1);
	rig_check_clean(&rig);
}

/* -- faults ----------------------------------------------------------------- */

#define HAD	4

static struct popped	had[HAD + 4];
static int		nhad;

static void
waiting(void)
{
	enqueue("1", "1");
	enqueue("two", "-inf");
	enqueue("~3", "3");
	enqueue("ms", "1000000000000");
}

static void
in_hand(void)
{
	waiting();
	nhad = pop(HAD, had);
	assert_int_equal(nhad, HAD);
}

static void
again(void)
{
	in_hand();
	waiting();
}

static void
put_off(void)
{
	struct popped p;

	again();
	assert_int_equal(pop(1, &p), 0);
}

static void
in_retry(void)
{
	int i;

	in_hand();
	for (i = 0; i < nhad; i++)
		assert_string_equal(rig_settle(&rig, "retry", &had[i], i % 2 ? "0" : FAR), "ok");
	waiting();
}

static void
expired(void)
{
	put_off();
	faults_expire_all(&rig);
}

static void
letters(void)
{
	int i;

	in_hand();
	for (i = 0; i < nhad; i++)
		assert_string_equal(rig_settle(&rig, "dead", &had[i], "1"), "ok");
}

static void
pops(void)
{
	int n = pop(4, had + HAD);

	if (n > 0)
		rig_popped_done(had + HAD, n);
}

static void
settles(const char *op, const char *arg)
{
	int i;

	for (i = 0; i < nhad; i++)
		(void)rig_settle(&rig, op, &had[i], arg);
}

static void acks(void) { settles("ack", NULL); }
static void retries(void) { settles("retry", "0"); }
static void returns(void) { settles("return", NULL); }
static void deads(void) { settles("dead", "1"); }

static void
ticks(void)
{
	struct ticked t;

	(void)rig_tick(&rig, 60, 60, true, 1e12, 250, 1048576, 0, "0", &t);
}

static void
dead_retries(void)
{
	faults_revive(&rig, "unique_dead_retry", "QX");
}

static const struct fault_path paths[] = {
	{ "pop", waiting, pops, false },
	{ "pop of what runs", again, pops, false },
	{ "pop of retries", in_retry, pops, false },
	{ "ack", in_hand, acks, true },
	{ "ack of what was put off", put_off, acks, false },
	{ "retry", in_hand, retries, false },
	{ "retry of what was put off", put_off, retries, false },
	{ "return", put_off, returns, false },
	{ "dead", in_hand, deads, false },
	{ "dead, put off", put_off, deads, false },
	{ "tick", put_off, ticks, false },
	{ "tick, expired", expired, ticks, false },
	{ "dead retry", letters, dead_retries, false },
};

/* Every id that was enqueued is in the zset, in flight, a retry, or a letter. */
static void
nothing_lost(const struct fault_path *p, const char *fault)
{
	static const char *const names[] = { "1", "two", "~3", "ms" };
	redisReply *places;
	size_t i;

	if (p->finishes)
		return;
	places = rig_places(&rig);
	for (i = 0; i < ARRAY_LEN(names); i++) {
		if (rig_count(places->element[0], names[i], strlen(names[i])) == 0 &&
		    rig_count(places->element[1], names[i], strlen(names[i])) == 0)
			fail_msg("%s, %s: %s is lost", p->name, fault, names[i]);
	}
	freeReplyObject(places);
}

static void
recover(const struct fault_path *p, const char *fault)
{
	faults_work_off(&rig, p, fault, KEY_QUEUE);
	faults_nothing_left(&rig, p, fault);
}

static void
begin(const struct fault_path *p)
{
	reset();
	p->setup();
}

static void
end(void)
{
	rig_popped_done(had, nhad);
	nhad = 0;
}

static const char *const commands[] = {
	"exists", "getrange", "hdel", "hexists", "hget", "hlen", "hmget", "hscan", "hset",
	"hstrlen", "time", "xadd", "xdel", "xrange", "zadd", "zcard", "zcount", "zmscore",
	"zrange", "zrangebyscore", "zrem", "zremrangebyrank", "zscore",
};

/* The pop may already have changed milliseconds into seconds. */
static bool
may_change(const struct fault_path *p, const char *command)
{
	return p->run == pops && strcmp(command, "hset") == 0;
}

static bool
fits(enum key k, size_t type)
{
	return k == KEY_DELAYED || k == KEY_SCHEDULE ||
	    (type == 3 && (k == KEY_QUEUE || k == KEY_BACKUP || k == KEY_RETRY)) ||
	    (type == 2 && (k == KEY_CONTEXT || k == KEY_DELIVERY || k == KEY_STATS));
}

static const struct faults faults = {
	.rig = &rig, .paths = paths, .npaths = ARRAY_LEN(paths), .commands = commands,
	.ncommands = ARRAY_LEN(commands), .last = KEY_RATE, .begin = begin, .end = end,
	.nothing_lost = nothing_lost, .recover = recover, .may_change = may_change, .fits = fits,
};

TEST(test_refused_whole)
{
	faults_refused_whole(&faults);
}

TEST(test_denied)
{
	faults_denied(&faults, 80);
}

TEST(test_wrong_types)
{
	faults_wrong_types(&faults);
}

TEST(test_maxmemory)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(paths); i++) {
		begin(&paths[i]);
		rig_do(&rig, "CONFIG SET maxmemory 100000");
		paths[i].run();
		assert_string_equal(rig.error, "");
		nothing_lost(&paths[i], "maxmemory");
		rig_do(&rig, "CONFIG SET maxmemory 0");
		recover(&paths[i], "maxmemory");
		end();
	}
}

int
main(void)
{
	int rc;

	rig_open(&rig, "{Queue:users}");
	rig.unique = true;
	rc = unit_run(NULL, NULL);
	rig_close(&rig);
	return rc;
}
