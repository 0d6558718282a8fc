/* Output of handlers: lines, limits, floods, the tail of stderr, late lines. */
#include "fixture.h"

FIXTURE_TEST(lines_of_both)
{
	struct got *g;

	SH("echo one; echo two >&2; printf 'a\\000b\\nno newline'");
	g = run("");
	assert_int_equal(t.lines, 4);
	assert_int_equal(t.out[1].len, 4 + 4 + 11);
	assert_memory_equal(t.out[1].data, "one\na\0b\nno newline\n", 19);
	assert_string_equal(output(2), "two\n");
	assert_int_equal(t.out_pid, g->result.pid);
	assert_int_equal(g->result.error_len, 4);
	assert_memory_equal(g->result.error_tail, "two\n", 4);
	got_free(g);
}

FIXTURE_TEST(no_stderr_is_no_tail)
{
	struct got *g;

	SH("echo out");
	g = run("");
	assert_null(g->result.error_tail);
	assert_int_equal(g->result.error_len, 0);
	got_free(g);
}

FIXTURE_TEST(output_none_is_dev_null)
{
	struct got *g;

	free(t.q->output);
	t.q->output = xstrdup("none");
	SH("[ /dev/fd/1 -ef /dev/null ] && [ /dev/fd/2 -ef /dev/null ] && echo x >&2; exit $?");
	g = run("");
	assert_int_equal(g->result.status, 0);
	assert_null(g->result.error_tail);
	assert_int_equal(t.lines, 0);
	got_free(g);
}

FIXTURE_TEST(long_lines_are_cut)
{
	struct got *g;

	SH("head -c 20000 /dev/zero | tr '\\0' x; echo; echo y");
	g = run("");
	assert_int_equal(t.lines, 4);		/* 8192, 8192, 3616; y */
	assert_int_equal(t.cut_lines, 2);
	assert_int_equal(t.longest, 8192);
	assert_int_equal(t.out[1].len, 20000 + 3 + 2);
	got_free(g);
}

FIXTURE_TEST(everything_is_read_at_exit)
{
	struct got *g;

	t.q->output_limit = 2 * 1024 * 1024;
	SH("seq 10000");			/* 48894 bytes: less than a pipe holds */
	g = run("");
	assert_int_equal(t.lines, 10000);
	assert_int_equal(t.out[1].len, 48894);
	got_free(g);
}

FIXTURE_TEST(tail_is_the_last_4_kib)
{
	struct got *g;

	SH("seq 100000 >&2; exit 1");
	t.q->output_limit = 16 * 1024 * 1024;
	g = run("");
	assert_int_equal(g->result.error_len, 4096);
	assert_memory_equal(g->result.error_tail + 4096 - 13, &"\n99999\n100000\n"[1], 13);
	assert_int_equal(t.lines, 100000);
	got_free(g);
	/* One write larger than the tail, then a small one. */
	SH("{ head -c 30000 /dev/zero | tr '\\0' x; printf end; } >&2; exit 1");
	g = run("");
	assert_int_equal(g->result.error_len, 4096);
	assert_memory_equal(g->result.error_tail + 4096 - 5, "xxend", 5);
	got_free(g);
}

FIXTURE_TEST(limit_cuts_once)
{
	struct got *g;

	t.q->output_limit = 110;	/* 100 of them are the first record's */
	SH("echo 12345; echo 67890; echo more; echo error >&2; exit 1");
	g = run("");
	assert_true(g->result.output_cut);
	assert_int_equal(t.cuts, 1);
	assert_string_equal(output(1), "12345\n6789\n");
	assert_string_equal(output(2), "");
	assert_memory_equal(g->result.error_tail, "error\n", 6);	/* the tail has no limit */
	got_free(g);
}

FIXTURE_TEST(limit_is_not_passed_by_reaching_it)
{
	struct got *g;

	t.q->output_limit = 6;
	SH("echo 12345");
	g = run("");
	assert_false(g->result.output_cut);
	assert_int_equal(t.cuts, 0);
	got_free(g);
}

/* A megabyte of empty lines is no hundred megabytes of log: each record counts 100 bytes more. */
FIXTURE_TEST(empty_lines_count)
{
	struct got *g;

	t.q->output_limit = 1024 * 1024;
	SH("head -c 1000000 /dev/zero | tr '\\0' '\\n'");
	g = run("");
	assert_true(g->result.output_cut);
	assert_int_equal(t.cuts, 1);
	assert_int_equal(t.lines, 1024 * 1024 / 101 + 1);
	got_free(g);
}

/* 300 MB of short lines are cut at output_limit; the loop turns many times meanwhile. */
FIXTURE_TEST(flood_does_not_stop_the_loop)
{
	struct got *g, *other;
	int turns = 0;

	t.q->output_limit = 64 * 1024;
	t.q->concurrency = 2;
	SH("yes | head -c 300000000; yes error | head -c 100000 >&2");
	g = start("");
	other = start("");
	while (g->done + other->done < 2) {
		loop_turn(t.loop, PATIENCE);
		turns++;
	}
	assert_true(g->result.output_cut);
	assert_int_equal(t.cuts, 2);
	assert_int_equal(g->result.end, END_EXIT);
	assert_int_equal(g->result.error_len, 4096);
	assert_true(t.out[1].len <= 2 * 64 * 1024 + 2);
	assert_true(turns > 1000);
	got_free(g);
	got_free(other);
}

FIXTURE_TEST(endless_flood_ends_at_its_time_limit)
{
	struct got *g;

	t.q->time_limit = SEC;		/* a busy machine needs a while to begin the flood */
	t.q->output_limit = 4096;
	SH("trap '' TERM; yes");
	t.q->kill_grace = 100 * MSEC;
	g = run("");
	assert_int_equal(g->result.stop, STOP_TIME_LIMIT);
	assert_true(g->result.output_cut);
	assert_int_equal(t.cuts, 1);
	got_free(g);
}

FIXTURE_TEST(pipes_closed_early)
{
	struct got *g;

	SH("echo first; exec >&- 2>&-; sleep 0.3; exit 4");
	g = run("");
	assert_int_equal(g->result.status, 4);
	assert_string_equal(output(1), "first\n");
	assert_true(g->took >= 300 * MSEC);
	got_free(g);
}

FIXTURE_TEST(late_lines_are_told)
{
	char path[] = "/tmp/rqd-test-XXXXXX", script[160];
	int fd = mkstemp(path);
	struct got *g;
	unsigned before;

	assert_int_not_equal(fd, -1);
	(void)close(fd);
	t.q->leftovers = LEFTOVERS_KEEP;
	(void)snprintf(script, sizeof(script), "(while [ -e %s ]; do sleep 0.01; done; "
	    "echo late; printf unfinished) & echo early; exit 0", path);
	SH(script);
	g = run("");
	assert_string_equal(output(1), "early\n");
	(void)unlink(path);
	assert_true(g->took < 20 * SEC);
	t.out_pid = 0;
	message_free(g->msg);		/* the caller may free it from done() on */
	before = t.lines;
	await_lines(before + 2);
	assert_string_equal(output(1), "early\nlate\nunfinished\n");
	assert_int_equal(t.out_pid, g->result.pid);
	assert_string_equal(t.out_id, "id-7");
	assert_int_equal(t.out_attempt, 3);
	result_done(&g->result);
	free(g);
}

/* A second after the exit, rqd passes on the part of a line that it has, and reads no more. */
FIXTURE_TEST(later_lines_are_not)
{
	struct got *g;
	pid_t pid;

	t.q->leftovers = LEFTOVERS_KEEP;
	SH("(printf part; sleep 4; echo too late; exec sleep 60) & echo $! >&2; exit 0");
	g = run("");
	pid = atoi(output(2));
	assert_true(pid > 1);
	turn_for(4500 * MSEC);
	assert_null(strstr(output(1), "too late"));
	assert_non_null(strstr(output(1), "part\n"));
	(void)kill(pid, SIGKILL);
	assert_true(g->result.pid > 1);
	(void)kill(-g->result.pid, SIGKILL);
	got_free(g);
}

FIXTURE_TEST(leftover_that_floods_is_read_a_second)
{
	struct got *g;
	usec_t began;

	t.q->leftovers = LEFTOVERS_KEEP;
	SH("yes >&2 & exit 0");
	g = run("");
	began = clock_mono();
	close_handler();
	assert_true(clock_mono() - began < 20 * SEC);
	assert_true(g->result.pid > 1);
	(void)kill(-g->result.pid, SIGKILL);
	got_free(g);
}

/* -- without callbacks: records ------------------------------------------------------- */

static char	records[4096];

static void
keep_record(void *arg UNUSED, enum log_level level UNUSED, const char *p, size_t n)
{
	size_t len = strlen(records);

	(void)snprintf(records + len, sizeof(records) - len, "%.*s\n", (int)n, p);
}

FIXTURE_TEST(without_callbacks_it_is_logged)
{
	static const struct handler_events quiet = { .done = got_done };
	struct got *g;
	char want[128];

	t.q->output_limit = 220;
	SH("echo one; sleep 0.1; printf 'es\\033c\\n' >&2; sleep 0.1; echo too much of it");
	launch();
	t.handler = handler_open(&t.env, t.config, t.q, &quiet, NULL);
	log_set_sink(keep_record, NULL);
	g = run("");
	log_set_sink(NULL, NULL);
	(void)snprintf(want, sizeof(want), "event=output queue=q id=id-7 attempt=3 pid=%d "
	    "fd=1 line=one\n", (int)g->result.pid);
	assert_non_null(strstr(records, want));
	assert_non_null(strstr(records, "fd=2 line=\"es\\x1bc\"\n"));
	assert_non_null(strstr(records, "event=output_cut queue=q id=id-7"));
	got_free(g);
}
