/*
 * The scripts of kind "unique" against a model, while producers ZADD at any time.  No
 * id runs twice at the same time, none is lost, each due one is delivered, and its
 * counts are those of its last failure.
 */
#include "rig.h"

#define STEPS	3000
#define FAR	"100000"
#define AWAY	1e10

/* Ids of all sorts; the first ones are usual ones. */
static struct id {
	const char	*text;
	size_t		 len;
	enum { Q_NONE, Q_DUE, Q_LATER } queued;	/* in the zset */
	enum { TAG_NONE, TAG_RUNS, TAG_RETRY } state;
	bool		 due;		/* TAG_RETRY: it is due */
	bool		 expired;	/* TAG_RUNS: its lease has ended */
	long long	 attempts, crashes;
	char		 token[32];	/* "-": no owner */
	bool		 has_tag;
	char		 tag[256];
} ids[] = {
	{ .text = "1", .len = 1 }, { .text = "user-7", .len = 6 }, { .text = "a b", .len = 3 },
	{ .text = "", .len = 0 }, { .text = "\0b\xff\n", .len = 4 }, { .text = "~7", .len = 2 },
	{ .text = "{\"id\":5}", .len = 8 }, { .text = "#", .len = 1 },
	{ .text = NULL, .len = 5000 },
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

/* Reads the score of an id in the zset, as producers mean it. */
static void
see_score(struct id *id)
{
	redisReply *r = rig_command(&rig, "ZSCORE %s %b", rig_key(&rig, KEY_QUEUE), id->text,
	    id->len);
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

	/* What is due has been so for long: INCR must not make it due during the test. */
	switch (unit_below(8)) {
	case 0: snprintf(score, sizeof(score), "-inf"); break;
	case 1: snprintf(score, sizeof(score), "inf"); break;
	case 2: snprintf(score, sizeof(score), "%.0f", now * 1000 - 1e6); break;
	case 3: snprintf(score, sizeof(score), "%.0f", (now + 1e5) * 1000); break;
	case 4: snprintf(score, sizeof(score), "%.6f", now + 1e5); break;
	case 5: snprintf(score, sizeof(score), "%u", (unsigned)unit_below(1000)); break;
	default: snprintf(score, sizeof(score), "%.6f",
	    now - 1000 - (double)unit_below(100)); break;
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

/* A producer removes an id. */
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
took(const struct popped *p)
{
	struct id *id = by_text(p->payload, p->len);
	bool retry = id->state == TAG_RETRY && id->due;

	assert_int_not_equal(id->state, TAG_RUNS);	/* an id never runs twice at once */
	assert_true(retry || id->queued == Q_DUE);
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

static const char *const ops[] = { "ack", "retry", "return", "dead", "stale", "defer" };

static const char *
expect_settle(struct id *id, const struct popped *p, int op, const char *arg)
{
	if (id->state == TAG_NONE)
		return "gone";
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
step_pop(void)
{
	int i, n, want = (int)unit_below(IDS) + 1;
	static const char *const turns[] = { "retry", "new", "newest", "fewest" };
	bool bounded = unit_below(4) == 0;
	size_t there = available();
	char call[24];

	rig.turn = turns[unit_below(ARRAY_LEN(turns))];
	snprintf(call, sizeof(call), "m.%u", ++calls);
	/* A bounded pop may look only at ids that run, but at no id a second time. */
	for (n = 0, i = 0; n == 0 && i < (bounded ? (int)IDS : 1); i++)
		n = rig_pop(&rig, want, bounded ? (long long)unit_below(60) : 1048576, MAX, call,
		    0, known + nknown, NULL);
	if (bounded)
		assert_true(n > 0 || there == 0);
	else
		assert_int_equal(n, (size_t)want < there ? (size_t)want : there);
	for (i = 0; i < n; i++)
		took(&known[nknown + (size_t)i]);
	nknown += (size_t)n;
	/* The reply is lost. */
	if (unit_below(8) == 0) {
		assert_int_equal(rig_reclaim(&rig, call, (int)unit_below(20) + 1, false), n);
		for (i = 0; i < n; i++) {
			struct popped *p = &known[nknown - 1 - (size_t)i];
			(void)expect_settle(by_text(p->payload, p->len), p, 2, "");
		}
	}
	if (nknown > 200)
		forget_known(100);
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
	arg = op == 1 || op == 5 ? (unit_below(2) ? "0" : FAR) : (unit_below(2) ? "0" : "1");
	for (again = 0; again < 2; again++) {
		want = expect_settle(id, p, op, arg);
		answer = rig_settle(&rig, ops[op], p, arg);
		assert_non_null(answer);
		if (strcmp(answer, want) != 0)
			fail_msg("%s of %s, time %d: %s, not %s", ops[op], p->tag, again,
			    answer, want);
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
			rig_do(&rig, "ZADD %s 1000 %b", rig_key(&rig, KEY_QUEUE), ids[i].text,
			    ids[i].len);
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

/* Retries up to five dead letters: their ids are due now. */
static void
step_dead_retry(void)
{
	redisReply *letters = rig_command(&rig, "XRANGE %s - + COUNT 5", rig_key(&rig, KEY_DEAD));
	struct words w = { 0 };
	struct id *id[5];
	redisReply *r;
	size_t i, n = letters->elements;

	words_add(&w, "1048576");
	for (i = 0; i < n; i++) {
		redisReply *body = letters->element[i]->element[1]->element[3];
		id[i] = by_text(body->str, body->len);
		words_add(&w, letters->element[i]->element[0]->str);
	}
	if (n > 0) {
		r = rig_script(&rig, "unique_dead_retry", "QX", &w);
		assert_non_null(r);
		assert_int_equal(r->element[0]->integer, n);
		assert_int_equal(r->element[1]->integer, n);
		freeReplyObject(r);
	} else {
		words_done(&w);
	}
	for (i = 0; i < n; i++) {
		see_score(id[i]);
		assert_int_equal(id[i]->queued, Q_DUE);
	}
	freeReplyObject(letters);
}

/* Works off all ids; no key may be left. */
static void
work_off(void)
{
	struct popped p[IDS];
	struct ticked t;
	size_t i;
	int n, k;

	rig_do(&rig, "DEL %s", rig_key(&rig, KEY_DEAD));
	for (i = 0; i < 8; i++)
		step_time();
	for (i = 0; i < IDS; i++) {
		if (ids[i].queued == Q_LATER)
			rig_do(&rig, "ZADD %s 1000 %b", rig_key(&rig, KEY_QUEUE), ids[i].text,
			    ids[i].len);
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
		n = rig_pop(&rig, (int)IDS, 1048576, MAX, call, 0, p, NULL);
		assert_true(n >= 0);
		for (k = 0; k < n; k++) {
			took(&p[k]);
			assert_string_equal(rig_settle(&rig, "ack", &p[k], NULL),
			    expect_settle(by_text(p[k].payload, p[k].len), &p[k], 0, ""));
		}
		rig_popped_done(p, n);
	} while (n > 0);
	assert_int_equal(rig_tick(&rig, 0, 0, true, 1e12, 250, 1048576, 0, "0", &t), 0);
	rig_do(&rig, "DEL %s", rig_key(&rig, KEY_STATS));
	assert_int_equal(rig_int(&rig, "DBSIZE"), 0);
}

TEST(test_model)
{
	static void (*const steps[])(void) = {
		step_produce, step_produce, step_produce, step_produce, step_cancel,
		step_pop, step_pop, step_settle, step_settle, step_settle, step_renew,
		step_time, step_tick, step_dead_retry,
	};
	int i;

	reset();
	for (i = 0; i < STEPS; i++) {
		steps[unit_below(ARRAY_LEN(steps))]();
		if (i % 7 == 0)
			check();
	}
	check();
	work_off();
}

int
main(void)
{
	char *big = xcalloc(1, 5001);
	int rc;

	memset(big, 'z', 5000);
	ids[8].text = big;
	rig_open(&rig, "{Queue:users}");
	rig.unique = true;
	rc = unit_run(NULL, NULL);
	forget_known(nknown);
	rig_close(&rig);
	free(big);
	return rc;
}
