/* Persistent handlers: the protocol and its violations, limits, recycling, close and free. */
#include "fixture.h"

static int
set_up_persistent(void **state)
{
	(void)set_up(state);
	t.q->mode = MODE_PERSISTENT;
	t.q->pipeline = 1;
	t.q->framing = FRAMING_LINE;
	t.q->env = xreallocarray(t.q->env, 2, sizeof(char *));
	t.q->env[0] = xasprintf("GO=/tmp/rqd-test-go.%d", (int)getpid());
	t.q->env[1] = NULL;
	log_set_level(LOG_LV_ERROR);
	return 0;
}

#define PERSISTENT_TEST(name)	TEST_WITH(name, set_up_persistent, tear_down)

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
expect_said(struct got *g, enum said said)
{
	await(&g->done, 1);
	assert_int_equal(g->result.said, said);
	expect(g, END_ANSWER, STOP_NONE);
}

static void
await_gone(pid_t pid)
{
	usec_t end = clock_mono() + PATIENCE;

	while (kill(pid, 0) == 0 && clock_mono() < end)
		loop_turn(t.loop, 10 * MSEC);
	assert_int_equal(kill(pid, 0), -1);
}

PERSISTENT_TEST(answers_are_told)
{
	struct got *g;

	SH(LOOP "echo \"$n $m\"; done");
	expect_said(start("ok"), SAID_OK);
	g = run("retry 1.5 not yet");
	assert_int_equal(g->result.delay, 1500 * MSEC);
	assert_string_equal(g->result.answer, "not yet");
	expect_said(g, SAID_RETRY);
	g = run("defer 10m the shop is closed");
	assert_int_equal(g->result.delay, 10 * MINUTE);
	assert_string_equal(g->result.answer, "the shop is closed");
	expect_said(g, SAID_DEFER);
	g = run("dead no use");
	assert_string_equal(g->result.answer, "no use");
	expect_said(g, SAID_DEAD);
}

PERSISTENT_TEST(progress_is_no_answer)
{
	struct got *g;
	pid_t first;

	SH(LOOP "echo \"$n progress 1/2\"; echo \"$n progress 2/2 $m\"; echo \"$n $m\"; done");
	expect_said(start("ok"), SAID_OK);
	SH(LOOP "echo \"$n progress 1/2\"; sleep 100; done");
	close_handler();
	g = start("x");
	while (g->run->progress == NULL)
		loop_turn(t.loop, 10 * MSEC);
	assert_string_equal(g->run->progress, "1/2");
	handler_stop(g->run, STOP_DRAIN);
	await(&g->done, 1);
	got_free(g);
	close_handler();
	/* Progress of a message that is done violates the protocol, and fails no message. */
	SH(LOOP "echo \"$n ok\"; echo \"$n progress late\"; done");
	g = run("a");
	first = g->result.pid;
	expect_said(g, SAID_OK);
	await_gone(first);
	expect_said(start("b"), SAID_OK);
}

PERSISTENT_TEST(pushes_need_the_option)
{
	struct got *g;

	SH(LOOP "echo \"$n push items $m\"; echo \"$n ok\"; done");
	g = run("x");
	assert_string_equal(g->result.answer, "a message for the queue \"items\", which "
	    "\"pushes\" does not list");
	expect_said(g, SAID_PUSHES);
}

PERSISTENT_TEST(newline_cannot_be_framed)
{
	SH(LOOP "echo \"$n ok\"; done");
	expect(start("a\nb"), END_UNFRAMEABLE, STOP_NONE);
	expect(start_bytes("a\0b", 3), END_UNFRAMEABLE, STOP_NONE);
	expect_said(start(""), SAID_OK);
}

PERSISTENT_TEST(any_order)
{
	struct got *a, *b;

	t.q->pipeline = 2;
	SH("read x; read y; read x; read y; echo 2 dead; echo 1 ok; cat >&2");
	a = start("a");
	b = start("b");
	expect_said(a, SAID_OK);
	expect_said(b, SAID_DEAD);
}

PERSISTENT_TEST(breach_fails_the_oldest)
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
		expect_said(a, SAID_WRONG);
		await(&b->done, 1);
		assert_int_equal(b->result.stop, STOP_PEER);
		got_free(b);
	}
}

PERSISTENT_TEST(breach_is_quoted)
{
	struct got *g;

	SH("echo why >&2; echo hello; exec cat >&2");
	g = run("a");
	assert_string_equal(g->result.answer, "not an answer: hello");
	assert_memory_equal(g->result.error_tail, "why\n", 4);
	expect_said(g, SAID_WRONG);
}

/* A second answer to the same message fails no message, but ends the process. */
PERSISTENT_TEST(answers_twice)
{
	struct got *g;
	pid_t first;

	SH(LOOP "echo \"$n ok\"; echo \"$n ok\"; done");
	g = run("a");
	first = g->result.pid;
	expect_said(g, SAID_OK);
	await_gone(first);
	expect_said(start("b"), SAID_OK);
}

PERSISTENT_TEST(too_long_an_answer)
{
	SH("read x; yes | head -c 100000 | tr -d '\\n'; exec cat >&2");
	expect_said(start("a"), SAID_WRONG);
}

/* An answer without a newline may be incomplete: it does not count. */
PERSISTENT_TEST(half_an_answer)
{
	struct got *g;

	SH("read x; printf '1 ok'");
	g = run("a");
	assert_int_equal(g->result.status, 0);
	expect(g, END_EXIT, STOP_NONE);
}

PERSISTENT_TEST(closes_its_pipes)
{
	static const char *const scripts[] = {
		"exec 1>&-; exec sleep 600", "exec 0<&-; exec sleep 600",
		"exec 0<&- 1>&- 2>&-; exec sleep 600",
		"exec 1>&-; trap '' TERM; sleep 600; sleep 600",
	};
	size_t i, n = 200 * 1024;
	char *p = xcalloc(1, n + 1);

	t.q->framing = FRAMING_LENGTH;
	t.q->kill_grace = 100 * MSEC;
	for (i = 0; i < ARRAY_LEN(scripts); i++) {
		SH(scripts[i]);
		expect_said(start_bytes(p, n), SAID_WRONG);
	}
	free(p);
}

PERSISTENT_TEST(exit_fails_the_oldest)
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
	expect(start("a"), END_EXIT, STOP_NONE);
	SH("kill -USR1 $$");
	a = run("a");
	assert_int_equal(a->result.signo, SIGUSR1);
	expect(a, END_SIGNAL, STOP_NONE);
}

/* Answers that the handler gave before it died count. */
PERSISTENT_TEST(answers_then_dies)
{
	struct got *a, *b, *c;

	t.q->pipeline = 3;
	SH("read x; read y; echo 2 ok; echo 1 retry 7; kill -KILL $$");
	a = start("a");
	b = start("b");
	c = start("c");
	await(&c->done, 1);
	expect_said(b, SAID_OK);
	assert_int_equal(a->result.delay, 7 * SEC);
	expect_said(a, SAID_RETRY);
	expect(c, END_SIGNAL, STOP_NONE);
}

/* Each start after a process that answered nothing waits longer. */
PERSISTENT_TEST(starts_with_pauses)
{
	usec_t start_at = clock_mono();
	int i;

	SH("exit 1");
	for (i = 0; i < 5; i++)
		expect(start("a"), END_EXIT, STOP_NONE);
	assert_true(clock_mono() - start_at >= (100 + 200 + 400) * MSEC / 2);
}

PERSISTENT_TEST(time_limit_ends_it)
{
	t.q->time_limit = 200 * MSEC;
	SH("exec sleep 600");
	expect(start("a"), END_SIGNAL, STOP_TIME_LIMIT);
	t.q->kill_grace = 200 * MSEC;
	SH("trap '' TERM; sleep 600; sleep 600");
	expect(start("a"), END_SIGNAL, STOP_TIME_LIMIT);
}

PERSISTENT_TEST(polite_end_at_the_limit_is_a_timeout)
{
	t.q->time_limit = 1 * SEC;	/* a busy machine needs a while to set the trap */
	t.q->max_messages = 1;
	SH("trap 'exit 0' TERM; sleep 600 & wait");
	expect(start("a"), END_EXIT, STOP_TIME_LIMIT);
}

PERSISTENT_TEST(recycled)
{
	pid_t first;
	struct got *g;

	t.q->max_messages = 2;
	SH(LOOP "echo \"$n ok\"; done");
	g = run("a");
	first = g->result.pid;
	expect_said(g, SAID_OK);
	g = run("b");
	assert_int_equal(g->result.pid, first);
	expect_said(g, SAID_OK);
	g = run("c");
	assert_int_not_equal(g->result.pid, first);
	expect_said(g, SAID_OK);
}

/* A process that does not end after max_messages is replaced, and killed after kill_grace. */
PERSISTENT_TEST(recycled_though_it_lingers)
{
	pid_t pid[3];
	struct got *g;
	int i;

	t.q->max_messages = 1;
	t.q->kill_grace = 300 * MSEC;
	SH("trap '' TERM; read x; read m; echo 1 ok; sleep 600; sleep 600");
	for (i = 0; i < 3; i++) {
		g = run("a");
		pid[i] = g->result.pid;
		expect_said(g, SAID_OK);
	}
	assert_int_not_equal(pid[0], pid[1]);
	assert_int_not_equal(pid[1], pid[2]);
	await_gone(pid[0]);
}

PERSISTENT_TEST(too_old)
{
	struct got *g;
	pid_t first;

	t.q->max_age = 100 * MSEC;
	SH(LOOP "sleep 0.5; echo \"$n ok\"; done");
	g = run("a");
	first = g->result.pid;
	expect_said(g, SAID_OK);
	await_gone(first);
	g = run("b");
	assert_int_not_equal(g->result.pid, first);
	expect_said(g, SAID_OK);
}

/* max_age also ends a process that has nothing to do. */
PERSISTENT_TEST(idle_one_ages)
{
	struct got *g;
	pid_t first;

	t.q->max_age = SEC;
	SH(LOOP "echo \"$n ok\"; done");
	g = run("a");
	first = g->result.pid;
	expect_said(g, SAID_OK);
	await_gone(first);
}

/* Lets a handler wait until the test creates the file. */
#define WAIT	"while [ ! -e $GO ]; do sleep 0.01; done; "

static void
go(int want)
{
	char path[64];
	int fd;

	(void)snprintf(path, sizeof(path), "/tmp/rqd-test-go.%d", (int)getpid());
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	assert_true(fd != -1);
	(void)close(fd);
	await(&t.done, want);
	(void)unlink(path);
}

/* The next process starts before the last message of the old one is done. */
PERSISTENT_TEST(successor_is_warm)
{
	struct got *a, *b;

	t.q->max_messages = 1;
	SH("echo up >&2; read x; read m; " WAIT "echo 1 ok; cat");
	a = start("a");
	await_lines(2);
	assert_int_equal(a->done, 0);
	go(1);
	b = start("b");
	assert_int_not_equal(b->run->pid, 0);
	assert_int_not_equal(b->run->pid, a->result.pid);
	await_lines(3);
	go(2);
	expect_said(a, SAID_OK);
	expect_said(b, SAID_OK);
}

/* There are as many processes as concurrency says, and each gets `pipeline` messages. */
PERSISTENT_TEST(several)
{
	struct got *g[8];
	int i, j, seen = 0;

	t.q->concurrency = 4;
	t.q->pipeline = 2;
	SH("read x; read y; " WAIT "echo 1 ok; read x; read y; echo 2 ok; cat");
	for (i = 0; i < 8; i++)
		g[i] = start("a");
	go(8);
	for (i = 0; i < 8; i++) {
		for (j = 0; j < i && g[j]->result.pid != g[i]->result.pid; j++)
			continue;
		seen += j == i;
		assert_int_equal(g[i]->result.said, SAID_OK);
	}
	assert_int_equal(seen, 4);
	for (i = 0; i < 8; i++)
		got_free(g[i]);
}

PERSISTENT_TEST(what_it_is_told)
{
	unsigned char bytes[3840];
	char hex[2 * sizeof(bytes) + 1];
	size_t i;

	t.q->framing = FRAMING_LENGTH;
	for (i = 0; i < sizeof(bytes); i++) {
		bytes[i] = (unsigned char)(i * 7 + i / 256);
		(void)snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
	}
	SH("while read -r n a l id; do { echo \"$n $a $l $id\"; "
	    "head -c \"$l\" | od -An -v -tx1 | tr -d ' \\n'; echo; } >&2; "
	    "read -r x; echo \"$n ok\"; done");
	expect_said(start_bytes((char *)bytes, sizeof(bytes) - 1), SAID_OK);
	hex[2 * (sizeof(bytes) - 1)] = '\0';
	assert_memory_equal(output(2), "1 3 3839 id-7\n", 14);
	assert_memory_equal(output(2) + 14, hex, 2 * (sizeof(bytes) - 1));
	buf_clear(&t.out[2]);
	expect_said(start(""), SAID_OK);
	assert_string_equal(output(2), "2 3 0 id-7\n\n");
}

/* The environment of a persistent process has nothing of a single message. */
PERSISTENT_TEST(environment)
{
	SH(LOOP "echo \"${RQD_ID-none} ${RQD_ATTEMPT-none} ${RQD_DEADLINE-none} $RQD_QUEUE "
	    "$RQD_MAX_ATTEMPTS\" >&2; echo \"$n ok\"; done");
	expect_said(start("a"), SAID_OK);
	assert_string_equal(output(2), "none none none q 25\n");
}

PERSISTENT_TEST(stderr_has_a_name)
{
	SH(LOOP "echo \"of $m\" >&2; echo \"$n ok\"; done; echo last words >&2");
	expect_said(start("a"), SAID_OK);
	assert_string_equal(output(2), "of a\n");
	assert_string_equal(t.out_id, "id-7");
	assert_int_equal(t.out_attempt, 3);
	handler_close(t.handler, got_closed, &t.closed);
	await(&t.closed, 1);
	assert_string_equal(output(2), "of a\nlast words\n");
	assert_int_equal(t.out_attempt, 0);
	handler_free(t.handler);
	t.handler = NULL;
}

/* output_limit and the tail of stderr are for each message. */
PERSISTENT_TEST(output_is_counted_per_message)
{
	struct got *g;

	t.q->output_limit = 100;
	SH(LOOP "head -c \"$m\" /dev/zero | tr '\\0' x >&2; echo \"$n retry\"; done");
	g = run("80");
	assert_false(g->result.output_cut);
	assert_int_equal(g->result.error_len, 80);
	got_free(g);
	g = run("90");
	assert_false(g->result.output_cut);
	assert_int_equal(g->result.error_len, 90);
	got_free(g);
	g = run("5000");
	assert_true(g->result.output_cut);
	assert_int_equal(g->result.error_len, 4096);
	got_free(g);
	g = run("70");
	assert_false(g->result.output_cut);
	assert_int_equal(g->result.error_len, 70);
	got_free(g);
	assert_int_equal(t.cuts, 1);
}

PERSISTENT_TEST(floods_stderr)
{
	int i;

	SH("yes >&2 & " LOOP "echo \"$n ok\"; done");
	for (i = 0; i < 100; i++)
		expect_said(start("a"), SAID_OK);
}

PERSISTENT_TEST(no_output)
{
	free(t.q->output);
	t.q->output = xstrdup("none");
	SH(LOOP "echo nothing >&2; echo \"$n ok\"; done");
	expect_said(start("a"), SAID_OK);
	assert_int_equal(t.lines, 0);
}

/* A handler may answer after the header; rqd still writes the rest of the message. */
PERSISTENT_TEST(answers_early)
{
	size_t n = 1 << 20;
	char *p = xcalloc(1, n + 1);
	struct got *g;

	t.q->framing = FRAMING_LENGTH;
	SH("read -r n a l id; echo \"$n ok\"; head -c 1048577 >/dev/null; "
	    "read -r n a l id; echo \"$n ok\"; exit 3");
	g = start_bytes(p, n);
	expect_said(g, SAID_OK);
	expect_said(start_bytes(p, n), SAID_OK);
	free(p);
}

PERSISTENT_TEST(answers_what_it_has_not_read)
{
	size_t n = 1 << 20;
	char *p = xcalloc(1, n + 1);
	struct got *a, *b;

	t.q->framing = FRAMING_LENGTH;
	t.q->pipeline = 2;
	SH("read x; echo 2 ok; exec sleep 600");
	a = start_bytes(p, n);
	b = start_bytes(p, n);
	expect_said(a, SAID_WRONG);
	await(&b->done, 1);
	assert_int_equal(b->result.pid, 0);
	assert_int_equal(b->result.duration, 0);
	expect(b, END_NOT_RUN, STOP_PEER);
	free(p);
}

PERSISTENT_TEST(never_reads)
{
	size_t n = 1 << 20;
	char *p = xcalloc(1, n + 1);
	struct got *a, *b;

	t.q->framing = FRAMING_LENGTH;
	t.q->pipeline = 2;
	t.q->time_limit = 200 * MSEC;
	SH("exec sleep 600");
	a = start_bytes(p, n);
	b = start_bytes(p, n);
	expect(a, END_SIGNAL, STOP_TIME_LIMIT);
	await(&b->done, 1);
	assert_int_equal(b->result.stop, STOP_PEER);
	got_free(b);
	free(p);
}

/* Four messages take longer than time_limit, but each answer comes within it. */
PERSISTENT_TEST(limit_is_per_answer)
{
	struct got *g[4];
	int i;

	t.q->pipeline = 4;
	t.q->time_limit = slow(2 * SEC);
	SH(LOOP "sleep 0.7; echo \"$n ok\"; done");
	for (i = 0; i < 4; i++)
		g[i] = start("a");
	for (i = 0; i < 4; i++)
		expect_said(g[i], SAID_OK);
}

/* Stops a run after its handler has printed a line. */
static void
stop_when_up(struct got *g, enum stop reason)
{
	await_lines(1);
	handler_stop(g->run, reason);
}

PERSISTENT_TEST(done_at_the_last_moment)
{
	struct got *g;

	SH("trap 'echo 1 ok; exit 0' TERM; read x; echo up >&2; sleep 600 & wait");
	g = start("a");
	stop_when_up(g, STOP_DRAIN);
	expect_said(g, SAID_OK);
}

PERSISTENT_TEST(only_ok_counts_then)
{
	struct got *g;

	SH("trap 'echo 1 retry; exit 0' TERM; read x; echo up >&2; sleep 600 & wait");
	g = start("a");
	stop_when_up(g, STOP_DRAIN);
	expect(g, END_EXIT, STOP_DRAIN);
}

PERSISTENT_TEST(not_where_it_is_lost)
{
	struct got *g;

	SH("trap 'echo 1 ok; exit 0' TERM; read x; echo up >&2; sleep 600 & wait");
	g = start("a");
	stop_when_up(g, STOP_LOST);
	expect(g, END_EXIT, STOP_LOST);
}

PERSISTENT_TEST(killed_at_once)
{
	struct got *g;

	t.q->kill_grace = HOUR;
	SH("trap '' TERM; echo up >&2; sleep 600; sleep 600");
	g = start("a");
	stop_when_up(g, STOP_DRAIN);
	handler_kill(g->run);
	expect(g, END_SIGNAL, STOP_DRAIN);
}

/* A message that waits for a process is returned at once when it is stopped. */
PERSISTENT_TEST(waiting_ones_go_back)
{
	struct got *a, *b, *c;

	SH("echo up >&2; exec sleep 600");
	a = start("a");
	b = start("b");
	c = start("c");
	handler_stop(b->run, STOP_DRAIN);
	expect(b, END_NOT_RUN, STOP_DRAIN);
	handler_stop(c->run, STOP_LOST);
	expect(c, END_NOT_RUN, STOP_LOST);
	stop_when_up(a, STOP_DRAIN);
	expect(a, END_SIGNAL, STOP_DRAIN);
}

/* handler_close() ends a process by end of input, else SIGTERM, else SIGKILL. */
PERSISTENT_TEST(close_has_three_steps)
{
	static const char *const scripts[] = {
		LOOP "echo \"$n ok\"; done",
		LOOP "echo \"$n ok\"; done; exec sleep 600",
		"trap '' TERM; " LOOP "echo \"$n ok\"; done; sleep 600; sleep 600",
	};
	size_t i;

	t.q->kill_grace = 100 * MSEC;
	for (i = 0; i < ARRAY_LEN(scripts); i++) {
		SH(scripts[i]);
		t.closed = 0;
		expect_said(start("a"), SAID_OK);
		close_handler();
	}
}

/* handler_close(): a process may finish its message, and a waiting message is returned. */
PERSISTENT_TEST(closed_at_work)
{
	struct got *a, *b;

	SH(LOOP "sleep 0.3; echo \"$n ok\"; done");
	a = start("a");
	b = start("b");
	handler_close(t.handler, got_closed, &t.closed);
	await(&b->done, 1);
	assert_int_equal(t.closed, 0);
	assert_int_equal(b->result.pid, 0);
	expect(b, END_NOT_RUN, STOP_NONE);
	expect_said(a, SAID_OK);
	await(&t.closed, 1);
	handler_free(t.handler);
	t.handler = NULL;
}

static void
free_in_done(struct message *msg, struct result *result, void *arg)
{
	got_done(msg, result, arg);
	if (t.handler != NULL)
		handler_free(t.handler);
	t.handler = NULL;
}

PERSISTENT_TEST(freed_inside_done)
{
	static const struct handler_events own = { .done = free_in_done };
	struct got *a, *b, *c;

	t.q->pipeline = 3;
	SH("read x; read y; echo 1 ok; echo 2 ok; exec sleep 600");
	launch();
	t.handler = handler_open(&t.env, t.config, t.q, &own, &t);
	a = start("a");
	b = start("b");
	c = start("c");
	expect_said(a, SAID_OK);
	assert_int_equal(b->done + c->done, 0);
	b->done = c->done = 1;
	got_free(b);
	got_free(c);
}

PERSISTENT_TEST(big_payload)
{
	size_t n = 4 << 20;
	char *p = xcalloc(1, n + 1);

	t.q->framing = FRAMING_LENGTH;
	SH("read n a l id; sleep 0.2; head -c 4194305 | wc -c >&2; echo \"$n ok\"; cat");
	expect_said(start_bytes(p, n), SAID_OK);
	free(p);
}

PERSISTENT_TEST(stopped)
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

PERSISTENT_TEST(cannot_be_started)
{
	COMMAND("/no/such/command");
	expect_not_started(ENOENT, "exec");
}

PERSISTENT_TEST(many)
{
	int i;

	SH(LOOP "echo \"$n ok\"; done");
	for (i = 0; i < 10000; i++)
		expect_said(start("m"), SAID_OK);
}
