/*
 * The scripts of kind "unique" against a model, while producers ZADD as they
 * like: no id runs beside itself, none is lost, each due one is delivered, its
 * counts are those of its last failure.  Then their faults: each command denied,
 * each key of the wrong type, maxmemory.
 */
#include "rig.h"

#define MAX	16777216LL
#define STEPS	3000
#define FAR	"100000"
#define AWAY	1e10

/* Ids of all sorts; the first ones are as people have them. */
static struct id {
	const char	*text;
	size_t		 len;
	enum { Q_NONE, Q_DUE, Q_LATER } queued;	/* in the zset */
	enum { TAG_NONE, TAG_RUNS, TAG_RETRY } state;
	bool		 due;		/* TAG_RETRY: now */
	bool		 expired;	/* TAG_RUNS: and its lease is over */
	long long	 attempts, crashes;
	char		 token[32];	/* "-": nobody's */
	bool		 has_tag;
	char		 tag[256];
} ids[] = {
	{ .text = "1", .len = 1 }, { .text = "user-7", .len = 6 }, { .text = "a b", .len = 3 },
	{ .text = "", .len = 0 }, { .text = "\0b\xff\n", .len = 4 }, { .text = "~7", .len = 2 },
	{ .text = "{\"id\":5}", .len = 8 }, { .text = "#", .len = 1 }, { .text = NULL, .len = 5000 },
	{ .text = "x#m.1.1", .len = 7 },
};
#define IDS	ARRAY_LEN(ids)

static struct rig	rig;
static struct popped	known[256];
static size_t		nknown;
static unsigned		calls;

/* -- the model -------------------------------------------------------------- */

static struct id *
by_text(const char *text, size_t len)
{
	size_t i;

	for (i = 0; i < IDS; i++) {
		if (ids[i].len == len && memcmp(ids[i].text, text, len) == 0)
			return &ids[i];
	}
	fail_msg("an id that nobody has enqueued: %.*s", (int)len, text);
	return NULL;
}

static void
forget_known(size_t n)
{
	rig_popped_done(known, (int)n);
	memmove(known, known + n, (nknown - n) * sizeof(known[0]));
	nknown -= n;
}

static void
reset(void)
{
	size_t i;

	rig_connect(&rig, "");
	rig_do(&rig, "FLUSHALL");
	forget_known(nknown);
	for (i = 0; i < IDS; i++) {
		ids[i].queued = Q_NONE;
		ids[i].state = TAG_NONE;
		ids[i].has_tag = false;
	}
}

/* What the zset says, as producers mean it. */
static void
see_score(struct id *id)
{
	redisReply *r = rig_command(&rig, "ZSCORE %s %b", rig_key(&rig, KEY_QUEUE), id->text, id->len);
	double score, now = rig_now(&rig);

	if (r->type == REDIS_REPLY_NIL) {
		id->queued = Q_NONE;
	} else {
		score = atof(r->str);
		if (score >= AWAY && score < 2 * AWAY) {
			assert_int_equal(id->state, TAG_RUNS);
			score -= AWAY;
		}
		if (score >= 1e11)
			score /= 1000;
		id->queued = score <= now ? Q_DUE : Q_LATER;
	}
	freeReplyObject(r);
}

static size_t
available(void)
{
	size_t i, n = 0;

	for (i = 0; i < IDS; i++)
		n += (ids[i].state == TAG_RETRY && ids[i].due) ||
		    (ids[i].state != TAG_RUNS && ids[i].queued == Q_DUE);
	return n;
}

/* Every id is where the model has it. */
static void
check(void)
{
	size_t i, queued = 0, tags = 0;
	enum { IN_B, IN_R } in;
	int at;

	for (i = 0; i < IDS; i++) {
		at = ids[i].queued;
		see_score(&ids[i]);
		if ((int)ids[i].queued != at)
			fail_msg("id %zu is %d in the zset, not %d", i, ids[i].queued, at);
		queued += at != Q_NONE;
		if (ids[i].state == TAG_NONE)
			continue;
		tags++;
		in = ids[i].state == TAG_RUNS ? IN_B : IN_R;
		assert_true(rig_int(&rig, "ZSCORE %s %s", rig_key(&rig, in == IN_B ?
		    KEY_BACKUP : KEY_RETRY), ids[i].tag) >= 0);
	}
	assert_int_equal(rig_int(&rig, "ZCARD %s", rig_key(&rig, KEY_QUEUE)), queued);
	assert_int_equal(rig_int(&rig, "HLEN %s", rig_key(&rig, KEY_CONTEXT)), tags);
	rig_check_clean(&rig);
}

/* -- steps ------------------------------------------------------------------ */

static void
step_produce(void)
{
	static const char *const forms[] = {
		"", "NX", "XX", "GT", "LT", "CH", "GT CH", "LT CH", "INCR", "XX GT"
	};
	char score[48], *command;
	const char *form = forms[unit_below(ARRAY_LEN(forms))];
	struct id *id = &ids[unit_below(IDS)];
	double now = rig_now(&rig);
	redisReply *r;

	switch (unit_below(8)) {
	case 0: snprintf(score, sizeof(score), "-inf"); break;
	case 1: snprintf(score, sizeof(score), "inf"); break;
	case 2: snprintf(score, sizeof(score), "%.0f", now * 1000 - 1000); break;
	case 3: snprintf(score, sizeof(score), "%.0f", (now + 1e5) * 1000); break;
	case 4: snprintf(score, sizeof(score), "%.6f", now + 1e5); break;
	case 5: snprintf(score, sizeof(score), "%u", (unsigned)unit_below(1000)); break;
	default: snprintf(score, sizeof(score), "%.6f", now - (double)unit_below(100)); break;
	}
	if (strcmp(form, "INCR") == 0)
		strcpy(score, "1");
	command = xasprintf("ZADD %%s %s %s %%b", form, score);
	r = rig_command(&rig, command, rig_key(&rig, KEY_QUEUE), id->text, id->len);
	if (r->type == REDIS_REPLY_ERROR)
		fail_msg("%s: %s", command, r->str);
	freeReplyObject(r);
	free(command);
	see_score(id);
}

/* Somebody changes his mind. */
static void
step_cancel(void)
{
	struct id *id = &ids[unit_below(IDS)];

	if (unit_below(4) != 0)
		return;
	rig_do(&rig, "ZREM %s %b", rig_key(&rig, KEY_QUEUE), id->text, id->len);
	id->queued = Q_NONE;
}

static void
took(const struct popped *p, bool *source_began)
{
	struct id *id = by_text(p->payload, p->len);
	bool retry = id->state == TAG_RETRY && id->due;

	assert_int_not_equal(id->state, TAG_RUNS);	/* never beside itself */
	assert_true(retry || id->queued == Q_DUE);
	if (retry)
		assert_false(*source_began);
	else
		*source_began = true;
	if (id->state == TAG_NONE)
		id->attempts = id->crashes = 0;
	else if (strcmp(id->token, "-") != 0)
		id->crashes++;
	if (id->has_tag)
		assert_string_equal(p->tag, id->tag);
	id->has_tag = true;
	snprintf(id->tag, sizeof(id->tag), "%s", p->tag);
	snprintf(id->token, sizeof(id->token), "%s", p->token);
	id->state = TAG_RUNS;
	id->queued = Q_NONE;
	id->expired = false;
	assert_int_equal(p->attempts, id->attempts);
	assert_int_equal(p->crashes, id->crashes);
	assert_int_equal(p->taglen, strlen(p->tag));
	assert_int_equal(p->idlen, p->taglen);
}

static void
step_pop(void)
{
	struct popped mine[IDS];
	int i, n, m, want = (int)unit_below(IDS) + 1;
	bool bounded = unit_below(4) == 0, began = false;
	size_t there = available();
	char call[24];

	snprintf(call, sizeof(call), "m.%u", ++calls);
	n = rig_pop(&rig, want, bounded ? (long long)unit_below(60) : 1048576, MAX, call, 0,
	    known + nknown, NULL);
	if (bounded)
		assert_true(n > 0 || there == 0);
	else
		assert_int_equal(n, (size_t)want < there ? (size_t)want : there);
	for (i = 0; i < n; i++)
		took(&known[nknown + (size_t)i], &began);
	nknown += (size_t)n;
	m = rig_mine(&rig, call, (int)unit_below(20) + 1, MAX, mine);
	assert_int_equal(m, n);
	rig_popped_done(mine, m);
	if (nknown > 200)
		forget_known(100);
}

static const char *const ops[] = { "ack", "retry", "return", "dead", "stale" };

static const char *
expect_settle(struct id *id, const struct popped *p, int op, const char *arg)
{
	if (id->state == TAG_NONE)
		return "unknown";
	if (strcmp(id->token, p->token) != 0 || op == 4)
		return "held";
	if (op == 0 || op == 3) {
		id->state = TAG_NONE;
		return "ok";
	}
	id->attempts += op == 1;
	id->state = TAG_RETRY;
	id->due = op == 2 || arg[0] == '0';
	strcpy(id->token, "-");
	return "ok";
}

static void
step_settle(void)
{
	const char *want, *answer, *arg;
	char digest[2][48];
	struct popped *p;
	struct id *id;
	int op, again;

	if (nknown == 0)
		return;
	p = &known[nknown - 1 - unit_below(unit_below(8) == 0 || nknown < 12 ? nknown : 12)];
	id = by_text(p->payload, p->len);
	op = (int)unit_below(ARRAY_LEN(ops));
	arg = op == 1 ? (unit_below(2) ? "0" : FAR) : (unit_below(2) ? "0" : "1");
	for (again = 0; again < 2; again++) {
		want = expect_settle(id, p, op, arg);
		answer = rig_settle(&rig, ops[op], p, arg);
		assert_non_null(answer);
		if (strcmp(answer, want) != 0)
			fail_msg("%s of %s, time %d: %s, not %s", ops[op], p->tag, again, answer, want);
		rig_digest(&rig, digest[again]);
	}
	assert_string_equal(digest[0], digest[1]);
}

static void
step_renew(void)
{
	const struct popped *p;
	struct id *id;
	int want;

	if (nknown == 0)
		return;
	p = &known[nknown - 1 - unit_below(nknown < 12 ? nknown : 12)];
	id = by_text(p->payload, p->len);
	if (id->state == TAG_NONE)
		want = -1;
	else if (strcmp(id->token, p->token) != 0)
		want = 0;
	else
		want = id->state == TAG_RETRY ? 2 : 1;
	assert_int_equal(rig_renew(&rig, p), want);
	if (want > 0) {
		id->state = TAG_RUNS;
		id->expired = false;
	}
}

/* Time passes: leases end, retries and ids fall due. */
static void
step_time(void)
{
	size_t i;

	for (i = 0; i < IDS; i++) {
		if (unit_below(4) != 0)
			continue;
		if (ids[i].queued == Q_LATER) {
			rig_do(&rig, "ZADD %s 1000 %b", rig_key(&rig, KEY_QUEUE), ids[i].text, ids[i].len);
			ids[i].queued = Q_DUE;
		}
		if (ids[i].state == TAG_RUNS) {
			rig_expire(&rig, ids[i].tag, strlen(ids[i].tag));
			ids[i].expired = true;
		} else if (ids[i].state == TAG_RETRY) {
			rig_fall_due(&rig, ids[i].tag, strlen(ids[i].tag));
			ids[i].due = true;
		}
	}
}

static void
step_tick(void)
{
	struct ticked t = { .cursor = "0" };
	long long requeued = 0, expected = 0;
	size_t i;

	for (i = 0; i < IDS; i++) {
		if (ids[i].state != TAG_RUNS || !ids[i].expired)
			continue;
		ids[i].state = TAG_RETRY;
		ids[i].due = true;
		expected++;
	}
	do {
		assert_int_equal(rig_tick(&rig, 60, 60, true, 1e12, (int)unit_below(20) + 1,
		    1048576, t.rank, t.cursor, &t), 0);
		requeued += t.requeued;
	} while (t.more);
	assert_int_equal(requeued, expected);
	assert_int_equal(t.dropped + t.promoted, 0);
}

/* All letters live again: due now. */
static void
step_dead_retry(void)
{
	redisReply *letters = rig_command(&rig, "XRANGE %s - + COUNT 5", rig_key(&rig, KEY_DEAD));
	struct args w = { 0 };
	struct id *id[5];
	redisReply *r;
	size_t i, n = letters->elements;

	args_str(&w, "1048576");
	for (i = 0; i < n; i++) {
		redisReply *body = letters->element[i]->element[1]->element[3];
		id[i] = by_text(body->str, body->len);
		args_str(&w, letters->element[i]->element[0]->str);
	}
	if (n > 0) {
		r = rig_script(&rig, "unique_dead_retry", "QX", &w);
		assert_non_null(r);
		assert_int_equal(r->element[0]->integer, n);
		assert_int_equal(r->element[1]->integer, n);
		freeReplyObject(r);
	} else {
		args_done(&w);
	}
	for (i = 0; i < n; i++) {
		see_score(id[i]);
		assert_int_equal(id[i]->queued, Q_DUE);
	}
	freeReplyObject(letters);
}

/* Works off everything; each id once, and nothing is left. */
static void
work_off(void)
{
	struct popped p[IDS];
	struct ticked t;
	bool began;
	size_t i;
	int n, k;

	rig_do(&rig, "DEL %s", rig_key(&rig, KEY_DEAD));
	for (i = 0; i < 8; i++)
		step_time();
	for (i = 0; i < IDS; i++) {
		if (ids[i].queued == Q_LATER)
			rig_do(&rig, "ZADD %s 1000 %b", rig_key(&rig, KEY_QUEUE), ids[i].text, ids[i].len);
		if (ids[i].state == TAG_RUNS) {
			rig_expire(&rig, ids[i].tag, strlen(ids[i].tag));
			ids[i].expired = true;
		} else if (ids[i].state == TAG_RETRY) {
			rig_fall_due(&rig, ids[i].tag, strlen(ids[i].tag));
			ids[i].due = true;
		}
		see_score(&ids[i]);
	}
	step_tick();
	do {
		char call[24];
		snprintf(call, sizeof(call), "m.%u", ++calls);
		began = false;
		n = rig_pop(&rig, (int)IDS, 1048576, MAX, call, 0, p, NULL);
		assert_true(n >= 0);
		for (k = 0; k < n; k++) {
			took(&p[k], &began);
			assert_string_equal(rig_settle(&rig, "ack", &p[k], NULL),
			    expect_settle(by_text(p[k].payload, p[k].len), &p[k], 0, ""));
		}
		rig_popped_done(p, n);
	} while (n > 0);
	assert_int_equal(rig_tick(&rig, 0, 0, true, 1e12, 250, 1048576, 0, "0", &t), 0);
	rig_do(&rig, "DEL %s", rig_key(&rig, KEY_STATS));
	assert_int_equal(rig_int(&rig, "DBSIZE"), 0);
}

static void
test_model(void **state)
{
	static void (*const steps[])(void) = {
		step_produce, step_produce, step_produce, step_produce, step_cancel,
		step_pop, step_pop, step_settle, step_settle, step_settle, step_renew,
		step_time, step_tick, step_dead_retry,
	};
	int i;

	(void)state;
	reset();
	for (i = 0; i < STEPS; i++) {
		steps[unit_below(ARRAY_LEN(steps))]();
		if (i % 7 == 0)
			check();
	}
	check();
	work_off();
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

/* Thousands that run and are due again hide nothing, and are looked at once. */
static void
test_hidden(void **state)
{
	static struct popped p[2000];
	struct popped one;
	char id[16];
	int i, n = 0;

	(void)state;
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
	/* What has run runs again, by its own time. */
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

/* A put off id whose delivery a hand has removed is found by the tick. */
static void
test_strays(void **state)
{
	struct popped p[200];
	struct ticked t;
	char id[16];
	int i, n;

	(void)state;
	reset();
	for (i = 0; i < 100; i++) {
		snprintf(id, sizeof(id), "%d", i);
		enqueue(id, "5");
	}
	n = pop(100, p);
	assert_int_equal(n, 100);
	for (i = 0; i < 100; i++)
		enqueue(p[i].tag, "6");
	rig_popped_done(p, n);
	assert_int_equal(pop(100, p), 0);
	rig_do(&rig, "DEL %s %s", rig_key(&rig, KEY_BACKUP), rig_key(&rig, KEY_CONTEXT));
	for (i = 0; i < 20 && rig_int(&rig, "ZCOUNT %s -inf 7", rig_key(&rig, KEY_QUEUE)) < 100; i++)
		assert_int_equal(rig_tick(&rig, 60, 60, true, 1e12, 250, 1048576, 0, NULL, &t), 0);
	assert_int_equal(rig_int(&rig, "ZCOUNT %s 6 6", rig_key(&rig, KEY_QUEUE)), 100);
}

/* The order of scores, whichever their unit. */
static void
test_order(void **state)
{
	static const char *const want[] = { "first", "second", "third", "now", "ms" };
	struct popped p[8];
	char ms[32], now[32];
	int i;

	(void)state;
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

/* What is too large is told by its length, and becomes a letter whole. */
static void
test_too_large(void **state)
{
	struct popped p;
	char *big = xcalloc(1, 300001);
	redisReply *r;

	(void)state;
	reset();
	memset(big, 'x', 300000);
	enqueue(big, "1");
	assert_int_equal(rig_pop(&rig, 1, 1048576, 200000, "u.big", 0, &p, NULL), 1);
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

/* Redis has lost its memory; what a daemon had in hand comes back, once. */
static void
test_rescue(void **state)
{
	struct popped p[2];
	redisReply *r;
	int again;

	(void)state;
	reset();
	enqueue("u7", "1");
	assert_int_equal(pop(1, p), 1);
	reset();
	enqueue("u7", "1");
	for (again = 0; again < 2; again++) {
		struct args w = { 0 };
		args_str(&w, "retry");
		args_str(&w, "u7");
		args_fmt(&w, "u7#%s", p[0].token);
		args_str(&w, "2");
		args_str(&w, "4");
		args_str(&w, "1");
		args_str(&w, FAR);
		args_str(&w, "u7");
		r = rig_script(&rig, "rescue", "BCRDX", &w);
		assert_non_null(r);
		assert_string_equal(r->str, again ? "there" : "ok");
		freeReplyObject(r);
	}
	assert_int_equal(pop(2, p + 1), 1);
	assert_int_equal(p[1].attempts, 4);
	assert_int_equal(p[1].crashes, 1);
	assert_string_equal(p[1].tag, "u7");
	assert_string_equal(rig_settle(&rig, "ack", &p[0], NULL), "held");
	rig_popped_done(p, 2);
	rig_check_clean(&rig);
}

static void
test_arm(void **state)
{
	struct args w = { 0 };
	char score[32];
	redisReply *r;

	(void)state;
	reset();
	snprintf(score, sizeof(score), "%.6f", rig_now(&rig) + 5);
	enqueue("a", score);
	enqueue("b", "inf");
	args_str(&w, "0");
	r = rig_script(&rig, "unique_arm", "QRP", &w);
	assert_non_null(r);
	assert_int_equal(r->elements, 8);
	assert_int_equal(r->element[1]->integer, 0);
	assert_true(atof(r->element[3]->str) > 4 && atof(r->element[3]->str) < 5.02);
	freeReplyObject(r);
	enqueue("c", "-inf");
	args_str(&w, "0");
	r = rig_script(&rig, "unique_arm", "QRP", &w);
	assert_int_equal(r->element[1]->integer, 1);
	freeReplyObject(r);
}

/* An id is never due later than it was. */
static void
test_push(void **state)
{
	static const struct { const char *at, *delay; long long added; double from, to; } t[] = {
		{ "", "100", 1, 99, 101 }, { "", "200", 0, 99, 101 }, { "", "10", 0, 9, 11 },
		{ "", "0", 0, -1, 1 }, { "", "50", 0, -1, 1 },
	};
	struct args w = { 0 };
	redisReply *r;
	double now;
	size_t i;

	(void)state;
	reset();
	for (i = 0; i < ARRAY_LEN(t); i++) {
		now = rig_now(&rig);
		args_str(&w, t[i].at);
		args_str(&w, t[i].delay);
		args_str(&w, "u7");
		r = rig_script(&rig, "unique_push", "Q", &w);
		assert_non_null(r);
		assert_int_equal(r->integer, t[i].added);
		freeReplyObject(r);
		r = rig_command(&rig, "ZSCORE %s u7", rig_key(&rig, KEY_QUEUE));
		if (i < 3)
			assert_true(atof(r->str) - now >= t[i].from && atof(r->str) - now <= t[i].to + 5);
		else
			assert_true(atof(r->str) <= rig_now(&rig));
		freeReplyObject(r);
	}
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
expire_all(void)
{
	int i;

	for (i = 0; i < nhad; i++) {
		rig_expire(&rig, had[i].tag, had[i].taglen);
		rig_fall_due(&rig, had[i].tag, had[i].taglen);
	}
}

static void
expired(void)
{
	put_off();
	expire_all();
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
	redisReply *all = rig_command(&rig, "XRANGE %s - +", rig_key(&rig, KEY_DEAD)), *r;
	struct args w = { 0 };
	size_t i;

	args_str(&w, "1048576");
	for (i = 0; all->type == REDIS_REPLY_ARRAY && i < all->elements; i++)
		args_str(&w, all->element[i]->element[0]->str);
	if ((r = rig_script(&rig, "unique_dead_retry", "QX", &w)) != NULL)
		freeReplyObject(r);
	freeReplyObject(all);
}

static const struct path {
	const char	*name;
	void		(*setup)(void);
	void		(*run)(void);
	bool		 finishes;	/* what was in hand is meant to go */
} paths[] = {
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

/* Every id that was enqueued is in the zset, in hand, a retry, or a letter. */
static void
nothing_lost(const struct path *p, const char *fault)
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

/* The fault is over: all can be worked off, and nothing is left. */
static void
recover(const struct path *p, const char *fault)
{
	struct popped got[8];
	struct ticked t;
	int i, n, rounds = 0;

	do {
		redisReply *r = rig_command(&rig, "ZRANGE %s 0 -1", rig_key(&rig, KEY_BACKUP));
		for (i = 0; i < (int)r->elements; i++)
			rig_expire(&rig, r->element[i]->str, r->element[i]->len);
		freeReplyObject(r);
		r = rig_command(&rig, "ZRANGE %s 0 -1", rig_key(&rig, KEY_RETRY));
		for (i = 0; i < (int)r->elements; i++)
			rig_fall_due(&rig, r->element[i]->str, r->element[i]->len);
		freeReplyObject(r);
		assert_int_equal(rig_tick(&rig, 60, 60, true, 1e12, 250, 1048576, 0, NULL, &t), 0);
		if ((n = pop(8, got)) < 0)
			fail_msg("%s, %s: %s", p->name, fault, rig.error);
		for (i = 0; i < n; i++)
			assert_string_equal(rig_settle(&rig, "ack", &got[i], NULL), "ok");
		rig_popped_done(got, n);
		assert_true(++rounds < 20);
	} while (n > 0 || rig_int(&rig, "ZCARD %s", rig_key(&rig, KEY_QUEUE)) > 0);
	rig_do(&rig, "DEL %s", rig_key(&rig, KEY_DEAD));
	assert_int_equal(rig_tick(&rig, 0, 0, true, 1e12, 250, 1048576, 0, "0", &t), 0);
	rig_do(&rig, "DEL %s", rig_key(&rig, KEY_STATS));
	if (rig_int(&rig, "DBSIZE") != 0)
		fail_msg("%s, %s: something is left over", p->name, fault);
}

static void
begin(const struct path *p)
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

static void
test_denied(void **state)
{
	static const char *const commands[] = {
		"exists", "get", "hdel", "hexists", "hget", "hlen", "hmget", "hscan", "hset",
		"hstrlen", "time", "xadd", "xdel", "xrange", "zadd", "zcard", "zcount", "zmscore",
		"zrange", "zrangebyscore", "zrem", "zremrangebyrank", "zscore",
	};
	size_t i, k;
	int refused = 0;

	(void)state;
	for (i = 0; i < ARRAY_LEN(paths); i++) {
		for (k = 0; k < ARRAY_LEN(commands); k++) {
			begin(&paths[i]);
			rig_do(&rig, "ACL SETUSER few reset on >x ~* &* +@all -%s", commands[k]);
			rig_connect(&rig, "few");
			paths[i].run();
			refused += rig.error[0] != '\0';
			paths[i].run();
			rig_connect(&rig, "");
			nothing_lost(&paths[i], commands[k]);
			paths[i].run();
			nothing_lost(&paths[i], commands[k]);
			recover(&paths[i], commands[k]);
			end();
		}
	}
	print_message("# %d of %zu calls were refused\n", refused,
	    ARRAY_LEN(paths) * ARRAY_LEN(commands));
	assert_true(refused > 80);
}

static void
test_wrong_types(void **state)
{
	static const char *const makes[] = { "SET %s x", "LPUSH %s x", "HSET %s x y", "ZADD %s 1 x" };
	char fault[64];
	size_t i, k, m;

	(void)state;
	for (i = 0; i < ARRAY_LEN(paths); i++) {
		for (k = 0; k <= KEY_RATE; k++) {
			for (m = 0; m < ARRAY_LEN(makes); m++) {
				begin(&paths[i]);
				if (rig_int(&rig, "EXISTS %s", rig.keys.name[k]) == 1 || k == KEY_DELAYED ||
				    k == KEY_SCHEDULE || (m == 3 && (k == KEY_QUEUE || k == KEY_BACKUP ||
				    k == KEY_RETRY)) || (m == 2 && (k == KEY_CONTEXT || k == KEY_DELIVERY ||
				    k == KEY_STATS))) {
					end();
					continue;
				}
				snprintf(fault, sizeof(fault), "Q%s by %.4s",
				    keys_suffix((enum key)k), makes[m]);
				rig_do(&rig, makes[m], rig.keys.name[k]);
				paths[i].run();
				paths[i].run();
				rig_do(&rig, "DEL %s", rig.keys.name[k]);
				nothing_lost(&paths[i], fault);
				recover(&paths[i], fault);
				end();
			}
		}
	}
}

static void
test_maxmemory(void **state)
{
	size_t i;

	(void)state;
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
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_model), cmocka_unit_test(test_hidden),
		cmocka_unit_test(test_strays), cmocka_unit_test(test_order),
		cmocka_unit_test(test_too_large), cmocka_unit_test(test_rescue),
		cmocka_unit_test(test_arm), cmocka_unit_test(test_push),
		cmocka_unit_test(test_denied), cmocka_unit_test(test_wrong_types),
		cmocka_unit_test(test_maxmemory),
	};
	char *big = xcalloc(1, 5001);
	int rc;

	unit_seed();
	memset(big, 'z', 5000);
	ids[8].text = big;
	rig_open(&rig, "{Queue:users}");
	rig.unique = true;
	rc = cmocka_run_group_tests_name("unique", tests, NULL, NULL);
	forget_known(nknown);
	rig_close(&rig);
	free(big);
	return rc;
}
