/*
 * Random sequences of all scripts against a model: after each step every message
 * is in exactly one place, the answers are those that the heads of the scripts
 * promise, and a call sent twice acts once.
 */
#define RIG_KEY "{orders}"
#include "script_test.h"

#define STEPS		2500
#define TAGS_MAX	4096
#define FAR		"100000"

/* Payloads with equal ids, equal payloads, no id, odd bytes, and an empty one. */
static const struct {
	const char	*text;
	size_t		 len;
} payloads[] = {
	{ "{\"id\":1}", 8 }, { "{\"id\":1,\"x\":[2]}", 16 }, { "{\"id\":\"1\"}", 10 },
	{ "{\"id\":\"a b\"}", 12 }, { "dup", 3 }, { "", 0 }, { "\0bin\xff\n", 6 },
	{ "{\"id\":\"~m.1.1\"}", 15 }, { "{\"id\":\"1#m.3.1\"}", 16 }, { "{}", 2 },
};
#define PAYLOADS	ARRAY_LEN(payloads)

/* A live tag: in QBACKUP or in QRETRY. */
struct tag {
	char		*tag;
	size_t		 len;
	char		*token;		/* "-": no owner */
	size_t		 payload;	/* in payloads */
	long long	 attempts, crashes;
	bool		 retry;		/* in QRETRY */
	bool		 due;		/* if retry: it is due */
	bool		 expired;	/* in QBACKUP, and its lease has ended */
	const char	*mark;		/* if cancelled: "drop", "dead" or "retry"; NULL */
};

static struct tag	tags[TAGS_MAX];
static size_t		ntags;
static size_t		list[TAGS_MAX];		/* payloads; [0] is the next to be popped */
static size_t		nlist;
static long long	pushed[PAYLOADS], acked[PAYLOADS], dead[PAYLOADS];
static struct popped	known[TAGS_MAX];	/* deliveries, also of long ago */
static size_t		nknown;
static unsigned		calls;

/* -- the model -------------------------------------------------------------- */

static struct tag *
model_find(const char *tag, size_t len)
{
	size_t i;

	for (i = 0; i < ntags; i++) {
		if (tags[i].len == len && memcmp(tags[i].tag, tag, len) == 0)
			return &tags[i];
	}
	return NULL;
}

static struct tag *
model_add(const char *tag, size_t len, const char *token, size_t payload)
{
	struct tag *t = &tags[ntags++];

	assert_true(ntags < TAGS_MAX);
	memset(t, 0, sizeof(*t));
	t->tag = xmemdup(tag, len + 1);
	t->len = len;
	t->token = xstrdup(token);
	t->payload = payload;
	return t;
}

static void
model_set_token(struct tag *t, const char *token)
{
	char *copy = xstrdup(token);

	free(t->token);
	t->token = copy;
	if (t->mark != NULL && strcmp(t->mark, "retry") == 0)
		t->mark = NULL;		/* it belongs to one delivery */
}

static void
model_drop(struct tag *t)
{
	free(t->tag);
	free(t->token);
	*t = tags[--ntags];
}

static void
model_push(size_t payload)
{
	assert_true(nlist < TAGS_MAX);
	list[nlist++] = payload;
}

static size_t
model_due(void)
{
	size_t i, n = 0;

	for (i = 0; i < ntags; i++)
		n += tags[i].retry && tags[i].due;
	return n;
}

static void
model_check(void)
{
	redisReply *all = rig_places(&rig);
	long long told = 0;
	size_t i;

	for (i = 0; i < PAYLOADS; i++) {
		int live = rig_count(all->element[0], payloads[i].text, payloads[i].len);
		int gone = rig_count(all->element[1], payloads[i].text, payloads[i].len);
		if (live != pushed[i] - acked[i] - dead[i] || gone != dead[i])
			fail_msg("payload %zu: pushed %lld acked %lld dead %lld, found %d and "
			    "%d dead",
			    i, pushed[i], acked[i], dead[i], live, gone);
	}
	freeReplyObject(all);
	/* Each letter was told once. */
	for (i = 0; i < PAYLOADS; i++)
		told += dead[i];
	assert_int_equal(rig_int(&rig, "LLEN alerts"), told);
	rig_check_clean(&rig);
	assert_int_equal(rig_int(&rig, "LLEN %s", rig_key(&rig, KEY_QUEUE)), nlist);
}

/* -- steps ------------------------------------------------------------------ */

static void
step_push(void)
{
	size_t i = unit_below(PAYLOADS);

	rig_do(&rig, "LPUSH %s %b", rig_key(&rig, KEY_QUEUE), payloads[i].text, payloads[i].len);
	model_push(i);
	pushed[i]++;
}

static void
step_push_later(void)
{
	size_t i = unit_below(PAYLOADS), again;
	bool due = unit_below(2) == 0;
	char tag[32], digest[2][48];
	struct tag *t;

	snprintf(tag, sizeof(tag), "x#push%u", ++calls);
	for (again = 0; again < 2; again++) {
		struct words w = { 0 };
		redisReply *r;
		rig_words(&w, "", due ? "0" : FAR, tag, "1", NULL);
		words_mem(&w, payloads[i].text, payloads[i].len);
		r = rig_script(&rig, "push", "BCRD", &w);
		assert_int_equal(r->integer, again == 0);
		freeReplyObject(r);
		rig_digest(&rig, digest[again]);
	}
	assert_string_equal(digest[0], digest[1]);
	t = model_add(tag, strlen(tag), "-", i);
	t->retry = true;
	t->due = due;
	pushed[i]++;
}

/* QDELAYED is a set: the same payload twice is one message. */
static void
step_delay(void)
{
	size_t i = unit_below(PAYLOADS);
	redisReply *r = rig_command(&rig, "ZADD %s NX 1000 %b", rig_key(&rig, KEY_DELAYED),
	    payloads[i].text, payloads[i].len);
	struct ticked t;

	assert_int_equal(r->integer, 1);
	freeReplyObject(r);
	pushed[i]++;
	assert_int_equal(rig_tick(&rig, 60, 60, false, 0, 250, 1048576, 0, NULL, &t), 0);
	assert_int_equal(t.promoted, 1);
	model_push(i);
}

/* Applies a popped message to the model; returns true if it is a retry. */
static bool
took(const struct popped *p)
{
	struct tag *t = model_find(p->tag, p->taglen);
	bool again = t != NULL, newest = strcmp(rig.turn, "newest") == 0;
	size_t i;

	if (again) {
		assert_true(t->retry && t->due);
		if (strcmp(t->token, "-") != 0)
			t->crashes++;
		t->retry = t->due = false;
	} else {
		assert_true(nlist > 0);
		t = model_add(p->tag, p->taglen, "", list[newest ? nlist - 1 : 0]);
		nlist--;
		if (!newest)
			memmove(list, list + 1, nlist * sizeof(list[0]));
	}
	i = t->payload;
	model_set_token(t, p->token);
	assert_string_equal(p->mark != NULL ? p->mark : "", t->mark != NULL ? t->mark : "");
	t->expired = false;
	assert_int_equal(p->len, payloads[i].len);
	assert_memory_equal(p->payload, payloads[i].text, p->len);
	assert_int_equal(p->attempts, t->attempts);
	assert_int_equal(p->crashes, t->crashes);
	return again;
}

static size_t
least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/*
 * How many of n are retries: the sort that `turn` names first gets half, and each sort
 * takes the room that the other leaves.
 */
static size_t
share_of_retries(size_t n, size_t due, size_t new)
{
	size_t half = (n + 1) / 2, retries, rest;

	if (strcmp(rig.turn, "retry") == 0 || strcmp(rig.turn, "fewest") == 0) {
		retries = least(due, half);
		rest = least(new, n - retries);
		return retries + least(due - retries, n - retries - rest);
	}
	rest = least(new, half);
	return least(due, n - rest);
}

/* With up to 50 due retries, "fewest" must take one with the fewest attempts. */
static void
check_fewest(size_t due)
{
	const struct popped *p = &known[nknown - 1];
	const struct tag *t;
	size_t i;

	if (strcmp(rig.turn, "fewest") != 0 || due == 0 || due > 50)
		return;
	for (i = 0; i < ntags; i++) {
		t = &tags[i];
		if (t->retry && t->due)
			assert_true(p->attempts <= t->attempts);
	}
}

/* The pop's reply is lost: all that it took is due, and nobody has it. */
static void
lose(const char *call, const struct popped *p, int n)
{
	bool crash = unit_below(2) == 0;
	int page = (int)unit_below(20) + 1;
	struct tag *t;

	assert_int_equal(rig_reclaim(&rig, call, page, crash), n);
	assert_int_equal(rig_reclaim(&rig, call, page, crash), 0);
	for (int i = 0; i < n; i++) {
		if ((t = model_find(p[i].tag, p[i].taglen)) == NULL)
			abort();
		t->retry = t->due = true;
		t->crashes += crash && p[i].len >= 65536;
		model_set_token(t, "-");
	}
}

static void
step_pop(void)
{
	static const char *const turns[] = { "retry", "new", "newest", "fewest" };
	size_t kind = unit_below(ARRAY_LEN(turns));
	struct popped p[64];
	int i, n, want = kind < 2 ? (int)unit_below(40) + 1 : 1;
	size_t new = nlist, due = model_due(), available = new + due, retries = 0;
	bool bounded = unit_below(4) == 0;
	char call[24];

	rig.turn = turns[kind];

	snprintf(call, sizeof(call), "m.%u", ++calls);
	n = rig_pop(&rig, want, bounded ? (long long)unit_below(60) : 1048576, MAX, call, 0,
	    p, NULL);
	if (bounded)
		assert_true(n > 0 || available == 0);
	else
		assert_int_equal(n, (size_t)want < available ? (size_t)want : available);
	for (i = 0; i < n; i++)
		retries += took(&p[i]);
	if (!bounded)
		assert_int_equal(retries, share_of_retries((size_t)want, due, new));
	if (unit_below(8) == 0)
		lose(call, p, n);
	for (i = 0; i < n; i++)
		known[nknown++] = p[i];
	if (n > 0)
		check_fewest(due);
	assert_true(nknown < TAGS_MAX - 64);
}

static const char *const ops[] = { "ack", "retry", "return", "dead", "stale", "defer" };

/* Returns the answer that the model expects, and applies the settle to the model. */
static const char *
expect_settle(const struct popped *p, int op, const char *arg, bool deferred)
{
	struct tag *t = model_find(p->tag, p->taglen);
	bool drop;

	if (t == NULL)
		return "gone";
	if (strcmp(t->token, p->token) != 0 || op == 4)
		return "held";
	if (t->mark != NULL && strcmp(t->mark, "retry") != 0 && op != 0 && op != 3) {
		if (strcmp(t->mark, "dead") == 0 && deferred) {
			t->retry = true;
			t->expired = t->due = false;
			model_set_token(t, "-");
			return "deferred";
		}
		drop = strcmp(t->mark, "drop") == 0;
		(drop ? acked : dead)[t->payload]++;
		model_drop(t);
		return drop ? "cancelled by me@host" : "cancelled dead by me@host";
	}
	if (op == 0 || (op == 3 && !deferred)) {
		(op == 0 ? acked : dead)[t->payload]++;
		model_drop(t);
		return "ok";
	}
	if (op == 1 || (op == 3 && arg[0] == '1'))
		t->attempts++;
	t->retry = true;
	t->expired = false;
	t->due = op == 2 || ((op == 1 || op == 5) && arg[0] == '0');
	model_set_token(t, "-");
	return op == 3 ? "deferred" : "ok";
}

static void
step_settle(void)
{
	size_t at, n = 1 + unit_below(60), i;
	bool deferred = unit_below(8) == 0;
	const char *want[2][64];
	struct popped *p[64];
	char digest[2][48];
	int op[64], again;
	const char *arg[64];
	redisReply *r;

	if (nknown == 0)
		return;
	if (deferred && rig_int(&rig, "RENAMENX %s saved", rig_key(&rig, KEY_DEAD)) != 1)
		deferred = false;
	if (deferred)
		rig_do(&rig, "SET %s x", rig_key(&rig, KEY_DEAD));
	for (i = 0; i < n; i++) {
		/* Takes recent deliveries rather than old ones, and each tag once. */
		at = nknown - 1 - unit_below(unit_below(8) == 0 || nknown < 50 ? nknown : 50);
		p[i] = &known[at];
		op[i] = (int)unit_below(ARRAY_LEN(ops));
		arg[i] = op[i] == 1 || op[i] ==
		    5 ? (unit_below(2) ? "0" : FAR) : (unit_below(2) ? "0" : "1");
		for (at = 0; at < i && strcmp(p[at]->tag, p[i]->tag) != 0; at++)
			;
		if (at < i)
			n = i;
	}
	/* The script does acks before the rest. */
	for (again = 0; again < 2; again++) {
		for (i = 0; i < n; i++) {
			if (op[i] == 0)
				want[again][i] = expect_settle(p[i], op[i], arg[i], deferred);
		}
		for (i = 0; i < n; i++) {
			if (op[i] != 0)
				want[again][i] = expect_settle(p[i], op[i], arg[i], deferred);
		}
	}
	for (again = 0; again < 2; again++) {
		struct words w = { 0 };
		rig_words(&w, "0", "h", rig.tell, NULL);
		for (i = 0; i < n; i++) {
			words_add(&w, ops[op[i]]);
			words_mem(&w, p[i]->tag, p[i]->taglen);
			words_add(&w, p[i]->token);
			if (op[i] == 1 || op[i] == 5)
				words_add(&w, arg[i]);
			if (op[i] == 3) {
				rig_words(&w, arg[i], "exit", "1", "", "", "", NULL);
			}
		}
		r = rig_script(&rig, "settle", "BCRDX", &w);
		assert_non_null(r);
		assert_int_equal(r->elements, n + 2);
		for (i = 0; i < n; i++) {
			if (strncmp(r->element[i + 2]->str, want[again][i],
			    strlen(want[again][i])) != 0)
				fail_msg("%s of %s (%s), time %d: %s, not %s", ops[op[i]],
				    p[i]->tag,
				    p[i]->token, again, r->element[i + 2]->str, want[again][i]);
		}
		freeReplyObject(r);
		rig_digest(&rig, digest[again]);
	}
	assert_string_equal(digest[0], digest[1]);
	if (deferred)
		rig_do(&rig, "RENAME saved %s", rig_key(&rig, KEY_DEAD));
}

static void
step_renew(void)
{
	const struct popped *p;
	struct tag *t;
	int want;

	if (nknown == 0)
		return;
	p = &known[nknown - 1 - unit_below(nknown < 30 ? nknown : 30)];
	t = model_find(p->tag, p->taglen);
	if (t == NULL)
		want = -1;
	else if (strcmp(t->token, p->token) != 0)
		want = 0;
	else if (t->mark != NULL)
		want = strcmp(t->mark, "drop") == 0 ? 3 : strcmp(t->mark, "dead") == 0 ? 4 : 5;
	else
		want = t->retry ? 2 : 1;
	assert_int_equal(rig_renew(&rig, p), want);
	assert_int_equal(rig_renew(&rig, p), want == 2 ? 1 : want);
	if (want > 0)
		t->retry = t->due = t->expired = false;
}

/* Cancels a random tag, or one that does not exist; twice. */
static void
step_cancel(void)
{
	static const char *const modes[] = { "drop", "drop", "dead", "retry" };
	const char *mode = modes[unit_below(ARRAY_LEN(modes))];
	struct tag *t = ntags > 0 ? &tags[unit_below(ntags)] : NULL;
	const char *want;

	if (t == NULL || unit_below(20) == 0) {
		assert_string_equal(rig_cancel(&rig, mode, "nothing", 7), "unknown");
		return;
	}
	assert_string_equal(rig_cancel(&rig, "look", t->tag, t->len), !t->retry ? "running" :
	    strcmp(t->token, "-") == 0 ? "waiting" : "expired");
	want = !t->retry ? "running" : strcmp(t->token, "-") == 0 ? "waiting" : "expired";
	assert_string_equal(rig_cancel(&rig, mode, t->tag, t->len), want);
	assert_string_equal(rig_cancel(&rig, mode, t->tag, t->len), strcmp(want, "waiting") == 0 &&
	    strcmp(mode, "retry") != 0 ? "unknown" : want);
	if (strcmp(want, "waiting") != 0)
		t->mark = mode;
	if (strcmp(want, "waiting") != 0 || strcmp(mode, "retry") == 0)
		return;
	(strcmp(mode, "dead") == 0 ? dead : acked)[t->payload]++;
	model_drop(t);
}

/* Time passes: leases end, retries fall due. */
static void
step_time(void)
{
	size_t i;

	for (i = 0; i < ntags; i++) {
		if (unit_below(4) != 0)
			continue;
		if (tags[i].retry) {
			rig_fall_due(&rig, tags[i].tag, tags[i].len);
			tags[i].due = true;
		} else {
			rig_expire(&rig, tags[i].tag, tags[i].len);
			tags[i].expired = true;
		}
	}
}

static void
step_tick(void)
{
	struct ticked t = { .cursor = "0" };
	long long requeued = 0, expected = 0;
	char digest[2][48];
	size_t i;

	for (i = 0; i < ntags; i++) {
		if (tags[i].retry || !tags[i].expired)
			continue;
		tags[i].retry = tags[i].due = true;
		tags[i].expired = false;
		expected++;
	}
	do {
		assert_int_equal(rig_tick(&rig, 60, 60, true, 1e12, (int)unit_below(20) + 1,
		    1048576, t.rank, t.cursor, &t), 0);
		requeued += t.requeued;
		assert_int_equal(t.dropped, 0);
		assert_int_equal(t.promoted, 0);
	} while (t.more);
	assert_int_equal(requeued, expected);
	rig_do(&rig, "DEL %s", rig_key(&rig, KEY_STATS));
	rig_digest(&rig, digest[0]);
	assert_int_equal(rig_tick(&rig, 60, 60, true, 1e12, 250, 1048576, 0, "0", &t), 0);
	rig_do(&rig, "DEL %s", rig_key(&rig, KEY_STATS));
	rig_digest(&rig, digest[1]);
	assert_string_equal(digest[0], digest[1]);
}

TEST(test_alone)
{
	static void (*const steps[])(void) = {
		step_push, step_push, step_push, step_push, step_push_later, step_delay,
		step_pop, step_pop, step_pop, step_settle, step_settle, step_settle,
		step_renew, step_renew, step_time, step_tick, step_cancel,
	};
	static const char *const alerts[] = { "alerts" };
	struct popped p[100];
	int i, n, rounds = 0;

	rig.tell = "LPUSH:0:q";
	rig.more = alerts;
	rig.nmore = 1;
	for (i = 0; i < unit_rounds(STEPS); i++) {
		steps[unit_below(ARRAY_LEN(steps))]();
		if (i % 20 == 0)
			model_check();
		if (nknown > TAGS_MAX - 200) {
			rig_popped_done(known, TAGS_MAX / 2);
			memmove(known, known + TAGS_MAX / 2,
			    (nknown - TAGS_MAX / 2) * sizeof(known[0]));
			nknown -= TAGS_MAX / 2;
		}
	}
	/* In the end all messages can be delivered and acked, and no key is left. */
	for (i = 0; (size_t)i < ntags; i++) {
		rig_expire(&rig, tags[i].tag, tags[i].len);
		rig_fall_due(&rig, tags[i].tag, tags[i].len);
		if (!tags[i].retry)
			tags[i].expired = true;
		else
			tags[i].due = true;
	}
	step_tick();
	rig.turn = "retry";
	do {
		char call[24];
		snprintf(call, sizeof(call), "m.%u", ++calls);
		n = rig_pop(&rig, 100, 1048576, MAX, call, 0, p, NULL);
		for (i = 0; i < n; i++) {
			took(&p[i]);
			assert_string_equal(rig_settle(&rig, "ack", &p[i], NULL),
			    expect_settle(&p[i], 0, "", false));
		}
		rig_popped_done(p, n);
		assert_true(++rounds < 1000);
	} while (n > 0);
	model_check();
	rig_do(&rig, "DEL alerts");
	assert_int_equal(ntags + nlist, 0);
	rig_do(&rig, "DEL %s", rig_key(&rig, KEY_DEAD));
	assert_int_equal(rig_left(&rig), 0);
	rig_popped_done(known, (int)nknown);
}
