/* Persistent handlers: the protocol, its breaches, limits, recycling, the end. */
#include "fixture.h"

static int
set_up_persistent(void **state)
{
	(void)set_up(state);
	t.q->mode = MODE_PERSISTENT;
	t.q->pipeline = 1;
	t.q->framing = FRAMING_LINE;
	log_set_level(LOG_LV_ERROR);
	return 0;
}

#undef TEST
#define TEST(f)	cmocka_unit_test_setup_teardown(f, set_up_persistent, tear_down)

#define LOOP	"while read -r n a l id && IFS= read -r m; do "

static void
expect(struct got *g, enum end end, enum stop stop)
{
	await(&g->done, 1);
	assert_int_equal(g->result.end, end);
	assert_int_equal(g->result.stop, stop);
	got_free(g);
}

static void
answers_are_told(void **state UNUSED)
{
	struct got *g;

	SH(LOOP "echo \"$n $m\"; done");
	expect(start("ok"), END_ANSWER_OK, STOP_NONE);
	g = run("retry 1.5 not yet");
	assert_int_equal(g->result.delay, 1500 * MSEC);
	assert_string_equal(g->result.reason, "not yet");
	expect(g, END_ANSWER_RETRY, STOP_NONE);
	g = run("dead no use");
	assert_string_equal(g->result.reason, "no use");
	expect(g, END_ANSWER_DEAD, STOP_NONE);
}

static void
newline_cannot_be_framed(void **state UNUSED)
{
	SH(LOOP "echo \"$n ok\"; done");
	expect(start("a\nb"), END_UNFRAMEABLE, STOP_NONE);
	expect(start_bytes("a\0b", 3), END_UNFRAMEABLE, STOP_NONE);
	expect(start(""), END_ANSWER_OK, STOP_NONE);
}

static void
any_order(void **state UNUSED)
{
	struct got *a, *b;

	t.q->pipeline = 2;
	SH("read x; read y; read x; read y; echo 2 dead; echo 1 ok; cat >&2");
	a = start("a");
	b = start("b");
	expect(a, END_ANSWER_OK, STOP_NONE);
	expect(b, END_ANSWER_DEAD, STOP_NONE);
}

static void
breach_fails_the_oldest(void **state UNUSED)
{
	static const char *const said[] = { "hello", "9 ok", "1 OK", "" };
	char script[128];
	struct got *a, *b;
	size_t i;

	for (i = 0; i < ARRAY_LEN(said); i++) {
		t.q->pipeline = 2;
		(void)snprintf(script, sizeof(script), "echo '%s'; exec cat >&2", said[i]);
		SH(script);
		a = start("a");
		b = start("b");
		expect(a, END_ANSWER_RETRY, STOP_NONE);
		await(&b->done, 1);
		assert_int_equal(b->result.stop, STOP_PEER);
		got_free(b);
	}
}

static void
exit_fails_the_oldest(void **state UNUSED)
{
	struct got *a, *b;

	t.q->pipeline = 2;
	SH("read x; exit 3");
	a = start("a");
	b = start("b");
	await(&b->done, 1);
	assert_int_equal(a->result.status, 3);
	expect(a, END_EXIT, STOP_NONE);
	assert_int_equal(b->result.stop, STOP_PEER);
	got_free(b);
	SH("exit 0");
	expect(start("a"), END_ANSWER_RETRY, STOP_NONE);
}

static void
time_limit_ends_it(void **state UNUSED)
{
	t.q->time_limit = 200 * MSEC;
	SH("exec sleep 600");
	expect(start("a"), END_SIGNAL, STOP_TIME_LIMIT);
	t.q->kill_grace = 200 * MSEC;
	SH("trap '' TERM; sleep 600; sleep 600");
	expect(start("a"), END_SIGNAL, STOP_TIME_LIMIT);
}

static void
polite_end_at_the_limit_is_a_timeout(void **state UNUSED)
{
	t.q->time_limit = 200 * MSEC;
	t.q->max_messages = 1;
	SH("trap 'exit 0' TERM; sleep 600 & wait");
	expect(start("a"), END_EXIT, STOP_TIME_LIMIT);
}

static void
recycled(void **state UNUSED)
{
	pid_t first;
	struct got *g;

	t.q->max_messages = 2;
	SH(LOOP "echo \"$n ok\"; done");
	g = run("a");
	first = g->result.pid;
	expect(g, END_ANSWER_OK, STOP_NONE);
	g = run("b");
	assert_int_equal(g->result.pid, first);
	expect(g, END_ANSWER_OK, STOP_NONE);
	g = run("c");
	assert_int_not_equal(g->result.pid, first);
	expect(g, END_ANSWER_OK, STOP_NONE);
}

static void
big_payload(void **state UNUSED)
{
	size_t n = 4 << 20;
	char *p = xcalloc(1, n + 1);

	t.q->framing = FRAMING_LENGTH;
	SH("read n a l id; sleep 0.2; head -c 4194305 | wc -c >&2; echo \"$n ok\"; cat");
	expect(start_bytes(p, n), END_ANSWER_OK, STOP_NONE);
	free(p);
}

static void
stopped(void **state UNUSED)
{
	struct got *a, *b;

	t.q->pipeline = 2;
	SH("exec sleep 600");
	a = start("a");
	b = start("b");
	handler_stop(a->run, STOP_LOST);
	await(&b->done, 1);
	assert_int_equal(a->result.stop, STOP_LOST);
	assert_int_equal(b->result.stop, STOP_PEER);
	got_free(a);
	got_free(b);
}

static void
cannot_be_started(void **state UNUSED)
{
	COMMAND("/no/such/command");
	expect_not_started(ENOENT, "exec");
}

static void
many(void **state UNUSED)
{
	int i;

	SH(LOOP "echo \"$n ok\"; done");
	for (i = 0; i < 10000; i++)
		expect(start("m"), END_ANSWER_OK, STOP_NONE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(answers_are_told), TEST(newline_cannot_be_framed),
		TEST(any_order), TEST(breach_fails_the_oldest),
		TEST(exit_fails_the_oldest), TEST(time_limit_ends_it),
		TEST(polite_end_at_the_limit_is_a_timeout), TEST(recycled), TEST(big_payload), TEST(stopped),
		TEST(cannot_be_started), TEST(many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
