/* Verdicts of exec handlers on descriptor 3. */
#include "fixture.h"

#define TELL	"while read -r l; do echo \"$l\" >&3; done; "

/* Runs a handler that writes these lines to descriptor 3, and exits with 75. */
static struct got *
say(const char *lines)
{
	SH(TELL "exit 75");
	return run(lines);
}

static void
expect_said(struct got *g, enum said said, const char *answer)
{
	assert_int_equal(g->result.said, said);
	if (answer == NULL)
		assert_null(g->result.answer);
	else
		assert_string_equal(g->result.answer, answer);
	got_free(g);
}

FIXTURE_TEST(the_last_one_counts)
{
	struct got *g = say("dead no use\nretry 5m carrier is down\n");

	assert_int_equal(g->result.end, END_EXIT);
	assert_int_equal(g->result.status, 75);
	assert_int_equal(g->result.delay, 5 * MINUTE);
	expect_said(g, SAID_RETRY, "carrier is down");
	g = say("retry 1 x\ndefer 10m\n");
	assert_int_equal(g->result.delay, 10 * MINUTE);
	expect_said(g, SAID_DEFER, NULL);
	g = say("defer 10m x\nretry\n");
	assert_int_equal(g->result.delay, -1);
	expect_said(g, SAID_RETRY, NULL);
	expect_said(say("progress x\ndead y\nprogress z\n"), SAID_DEAD, "y");
}

FIXTURE_TEST(nothing_is_said)
{
	expect_said(say(""), SAID_NOTHING, NULL);
	expect_said(say("ok\n"), SAID_NOTHING, NULL);
	expect_said(say("dead x\nok\n"), SAID_NOTHING, NULL);
	expect_said(say("progress 1/2\n"), SAID_NOTHING, NULL);
}

FIXTURE_TEST(a_wrong_line_beats_all)
{
	expect_said(say("retyr 5m\n"), SAID_WRONG, "not a statement: retyr 5m");
	expect_said(say("dead x\n\nretry 5\nok\n"), SAID_WRONG, "not a statement: ");
	expect_said(say("defer x\n"), SAID_WRONG, "not a statement: defer x");
	expect_said(say("1 ok\n"), SAID_WRONG, "not a statement: 1 ok");
	expect_said(say("what\npush items x\nwho\n"), SAID_WRONG, "not a statement: what");
}

FIXTURE_TEST(pushes_need_the_option)
{
	static const char text[] =
	    "a message for the queue \"items\", which \"pushes\" does not list";

	expect_said(say("push items x\ndead y\nok\n"), SAID_PUSHES, text);
	expect_said(say("push items x\nwhat\n"), SAID_WRONG, "not a statement: what");
	SH("{ printf 'push items '; head -c 300000 /dev/zero | tr '\\0' x; echo; } >&3; exit 0");
	expect_said(run(""), SAID_PUSHES, text);
}

FIXTURE_TEST(a_line_may_have_8_kib)
{
	struct got *g;

	SH("{ printf 'dead '; head -c 8187 /dev/zero | tr '\\0' x; echo; } >&3");
	g = run("");
	assert_int_equal(g->result.said, SAID_DEAD);
	assert_int_equal(strlen(g->result.answer), 8187);
	got_free(g);
	SH("{ printf 'dead '; head -c 8188 /dev/zero | tr '\\0' x; echo; } >&3");
	g = run("");
	assert_int_equal(g->result.said, SAID_WRONG);
	assert_memory_equal(g->result.answer, "a line of more than 8 KiB: dead xxx", 35);
	got_free(g);
}

FIXTURE_TEST(the_last_line_needs_no_newline)
{
	SH("printf 'dead x' >&3");
	expect_said(run(""), SAID_DEAD, "x");
	SH("printf 'dea' >&3; printf 'd x\nretr' >&3; sleep 0.1; printf 'y' >&3");
	expect_said(run(""), SAID_RETRY, NULL);
}

FIXTURE_TEST(a_signal_voids_it)
{
	struct got *g;

	SH("echo dead x >&3; kill -TERM $$");
	g = run("");
	assert_int_equal(g->result.end, END_SIGNAL);
	expect_said(g, SAID_NOTHING, NULL);
	SH("echo what >&3; kill -KILL $$");
	expect_said(run(""), SAID_NOTHING, NULL);
	t.q->time_limit = slow(SEC);	/* a busy machine needs a while to set the trap */
	SH("trap 'echo dead x >&3; exit 65' TERM; echo retry >&3; sleep 100 & wait");
	g = run("");
	assert_int_equal(g->result.stop, STOP_TIME_LIMIT);
	assert_int_equal(g->result.end, END_EXIT);
	expect_said(g, SAID_NOTHING, NULL);
}

/*
 * Statements of a handler's children count while its command runs.  A child that outlives
 * the command finds the pipe closed.
 */
FIXTURE_TEST(children_speak_while_it_runs)
{
	char path[] = "/tmp/rqd-test-XXXXXX";
	int fd = mkstemp(path);
	char script[320];

	assert_true(fd >= 0);
	SH("(echo dead child >&3) & wait; exit 0");
	expect_said(run(""), SAID_DEAD, "child");
	t.q->leftovers = LEFTOVERS_KEEP;
	/* It speaks a second after the command has exited: what it said before would count. */
	(void)snprintf(script, sizeof(script), "(trap '' PIPE; "
	    "while grep -qs '^State:.[^ZX]' /proc/$$/status; do sleep 0.01; done; sleep 1; "
	    "while echo dead late >&3; do sleep 0.01; done; echo x >%s) 2>/dev/null & "
	    "echo retry first >&3; exit 0", path);
	SH(script);
	expect_said(run(""), SAID_RETRY, "first");
	while (lseek(fd, 0, SEEK_END) == 0)
		turn_for(10 * MSEC);
	(void)close(fd);
	(void)unlink(path);
}

/* rqd reads all statements, even more than a pipe holds, so that no handler blocks. */
FIXTURE_TEST(floods_are_read)
{
	struct got *g;

	SH("i=0; while [ $i -lt 20000 ]; do echo retry 7 $i; i=$((i+1)); done >&3");
	g = run("");
	assert_int_equal(g->result.delay, 7 * SEC);
	expect_said(g, SAID_RETRY, "19999");
	SH("yes no-statement | head -c 3000000 >&3; echo ok >&3");
	expect_said(run(""), SAID_WRONG, "not a statement: no-statement");
	SH("head -c 3000000 /dev/zero >&3");
	g = run("");
	assert_int_equal(g->result.said, SAID_WRONG);
	got_free(g);
	/* A leftover that never stops writing does not delay the result. */
	t.q->leftovers = LEFTOVERS_KEEP;
	SH("yes 'progress x' >&3 2>/dev/null & sleep 0.2; exit 0");
	g = run("");
	assert_true(g->took < slow(20 * SEC));
	expect_said(g, SAID_NOTHING, NULL);
}

static void
await_progress(const struct got *g, const char *want)
{
	usec_t end = clock_mono() + PATIENCE;

	while ((g->run->progress == NULL || strcmp(g->run->progress, want) != 0) &&
	    clock_mono() < end)
		loop_turn(t.loop, 10 * MSEC);
	assert_non_null(g->run->progress);
	assert_string_equal(g->run->progress, want);
}

FIXTURE_TEST(progress_is_kept)
{
	struct got *g;

	SH("cat >&3; exec sleep 100");
	g = start("progress 1/100\nprogress 40/100 pages\n");
	assert_null(g->run->progress);
	await_progress(g, "40/100 pages");
	handler_stop(g->run, STOP_DRAIN);
	await(&g->done, 1);
	got_free(g);
	/* Control characters, invisible ones and bad UTF-8 become question marks. */
	g = start("progress a\033[2J\377\342\202\254\342\200\256b\342\202\n");
	await_progress(g, "a?[2J?\342\202\254?b??");
	handler_stop(g->run, STOP_DRAIN);
	await(&g->done, 1);
	got_free(g);
	SH("{ printf 'progress '; head -c 5000 /dev/zero | tr '\\0' y; echo; } >&3; "
	    "exec sleep 100");
	g = start("");
	while (g->run->progress == NULL)
		loop_turn(t.loop, 10 * MSEC);
	assert_int_equal(strlen(g->run->progress), PROGRESS_MAX);
	handler_stop(g->run, STOP_DRAIN);
	await(&g->done, 1);
	got_free(g);
}

FIXTURE_TEST(it_may_be_off)
{
	t.q->verdicts = false;
	SH("test -z \"$RQD_VERDICT_FD\" && ! (: >&3) 2>/dev/null");
	expect_said(run(""), SAID_NOTHING, NULL);
	expect_exit("test -e /proc/self/fd/3", 1);
}

FIXTURE_TEST(it_is_named_and_can_be_opened)
{
	SH("echo dead \"$RQD_VERDICT_FD\" >/dev/fd/3");
	expect_said(run(""), SAID_DEAD, "3");
	free(t.q->output);
	t.q->output = xstrdup("none");
	SH("sleep 0.1; echo \"dead quiet\" >&$RQD_VERDICT_FD");
	expect_said(run(""), SAID_DEAD, "quiet");
}

/* Statements work the same when a spawner starts the process. */
LAUNCHED_TEST(launched)
{
	struct got *g = say("retry 5m carrier is down\n");

	assert_int_equal(g->result.delay, 5 * MINUTE);
	expect_said(g, SAID_RETRY, "carrier is down");
	SH("echo dead x >/dev/fd/3");
	expect_said(run(""), SAID_DEAD, "x");
	t.q->verdicts = false;
	expect_exit("test -e /proc/self/fd/3", 1);
}
