/* Mode exec, one process per message: results, stdin, limits, leftovers, close and free. */
#include "fixture.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <limits.h>

#include "loop/proc.h"

/* -- outcomes ------------------------------------------------------------------------- */

FIXTURE_TEST(exit_status_is_told)
{
	expect_exit("exit 0", 0);
	expect_exit("exit 1", 1);
	expect_exit("exit 65", 65);
	expect_exit("exit 255", 255);
	expect_exit("/etc/passwd", 126);
	expect_exit("no-such-command-here", 127);
}

FIXTURE_TEST(signal_is_told)
{
	struct got *g;

	SH("kill -SEGV $$");
	g = run("");
	assert_int_equal(g->result.end, END_SIGNAL);
	assert_int_equal(g->result.signo, SIGSEGV);
	assert_int_equal(g->result.stop, STOP_NONE);
	got_free(g);
}

/* CPU time and memory, also of what the command has waited for. */
FIXTURE_TEST(usage_is_told)
{
	struct got *g;

	SH("i=0; while [ $i -lt 30000 ]; do i=$((i + 1)); done");
	g = run("");
	assert_in_range(g->result.usage.cpu, 1000, 60 * SEC);
	assert_in_range(g->result.usage.maxrss, 256 << 10, 40 << 20);
	got_free(g);
	SH("/bin/dd if=/dev/zero of=/dev/null bs=48M count=1 2>/dev/null; kill -SEGV $$");
	g = run("");
	assert_in_range(g->result.usage.maxrss, 48 << 20, 90 << 20);
	got_free(g);
	COMMAND("/no/such/command");
	g = run("");
	assert_int_equal(g->result.usage.maxrss, 0);
	got_free(g);
}

/* Makes a file of this text and mode the queue's command; *path: 64 bytes, its name. */
static void
make_script(char *path, const char *text, mode_t mode)
{
	int fd;

	strcpy(path, "/tmp/rqd-test-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	(void)close(fd);
	COMMAND(path);
}

FIXTURE_TEST(what_cannot_be_started_says_why)
{
	char path[64];

	COMMAND("/no/such/command");
	expect_not_started(ENOENT, "exec");
	make_script(path, "#!/bin/sh\nexit 0\n", 0644);
	expect_not_started(EACCES, "exec");
	(void)unlink(path);
	make_script(path, "exit 0\n", 0755);
	expect_not_started(ENOEXEC, "exec");
	(void)unlink(path);
	make_script(path, "#!/no/such/interpreter\n", 0755);
	expect_not_started(ENOENT, "exec");
	(void)unlink(path);
	make_script(path, "#!/bin/sh\r\nexit 0\r\n", 0755);
	expect_not_started(ENOENT, "exec");
	(void)unlink(path);
	COMMAND("/tmp");
	expect_not_started(EACCES, "exec");
	COMMAND("/bin/true");
	set(&t.q->directory, "/no/such/directory");
	expect_not_started(ENOENT, "directory");
	set(&t.q->directory, "/");
	expect_exit("exit 3", 3);	/* the handler works again */
}

/* Returns the RLIMIT_NOFILE that leaves exactly n descriptors free. */
static rlim_t
limit_for(int n)
{
	rlim_t fd;

	for (fd = 0; n > 0; fd++)
		n -= fcntl((int)fd, F_GETFD) == -1;
	return fd;
}

FIXTURE_TEST(no_descriptors_is_not_started)
{
	struct rlimit old, few;
	struct got *g;
	int n;

	expect_exit("exit 0", 0);
	(void)getrlimit(RLIMIT_NOFILE, &old);
	for (n = 0; n < 8; n++) {
		few = (struct rlimit){ limit_for(n), old.rlim_max };
		(void)setrlimit(RLIMIT_NOFILE, &few);
		g = run("x");
		(void)setrlimit(RLIMIT_NOFILE, &old);
		if (n < 7) {
			assert_int_equal(g->result.end, END_NOT_STARTED);
			assert_int_equal(g->result.error, EMFILE);
			assert_string_equal(g->result.step, n == 0 ? "memfd" : "pipe");
		} else {
			assert_int_equal(g->result.end, END_EXIT);
		}
		got_free(g);
	}
}

FIXTURE_TEST(payload_beyond_our_file_size_is_not_started)
{
	char *p = xcalloc(1, (1 << 20) + 1);
	struct rlimit old, small;
	struct got *g;

	(void)getrlimit(RLIMIT_FSIZE, &old);
	small = (struct rlimit){ 65536, old.rlim_max };
	(void)setrlimit(RLIMIT_FSIZE, &small);
	g = start_bytes(p, 1 << 20);
	(void)setrlimit(RLIMIT_FSIZE, &old);
	await(&g->done, 1);
	assert_int_equal(g->result.end, END_NOT_STARTED);
	assert_int_equal(g->result.error, EFBIG);
	assert_string_equal(g->result.step, "memfd");
	got_free(g);
	free(p);
}

/* -- standard input -------------------------------------------------------------------- */

/* Runs a handler that compares its stdin with a file of the same bytes. */
static void
expect_same(const char *p, size_t n)
{
	char path[] = "/tmp/rqd-test-XXXXXX", script[128];
	int fd = mkstemp(path);
	struct got *g;

	assert_int_equal(write(fd, p, n), n);
	(void)close(fd);
	(void)snprintf(script, sizeof(script), "cmp - %s", path);
	SH(script);
	g = start_bytes(p, n);
	await(&g->done, 1);
	(void)unlink(path);
	assert_int_equal(g->result.end, END_EXIT);
	assert_int_equal(g->result.status, 0);
	got_free(g);
}

FIXTURE_TEST(payload_arrives_byte_for_byte)
{
	static const size_t sizes[] = { 1, 4096, 65537, 1 << 20, 20 << 20 };
	char *p = xmalloc((20 << 20) + 1);
	size_t i;

	for (i = 0; i < 20 << 20; i += sizeof(uint64_t))
		*(uint64_t *)(void *)(p + i) = unit_random();
	expect_same("", 0);
	expect_same("a\0b\n\0\0", 6);
	expect_same("no newline", 10);
	expect_same("\xff\xfe\r\n\x80", 5);
	for (i = 0; i < ARRAY_LEN(sizes); i++)
		expect_same(p, sizes[i]);
	free(p);
}

FIXTURE_TEST(no_payload_is_an_empty_file)
{
	struct got *g;

	SH("test -f /dev/stdin && cat | wc -c");
	g = start_bytes(NULL, 0);
	await(&g->done, 1);
	assert_string_equal(output(1), "0\n");
	got_free(g);
}

FIXTURE_TEST(stdin_may_be_ignored_or_closed)
{
	char *p = xcalloc(1, (1 << 20) + 1);
	struct got *g;

	COMMAND("/bin/true");
	g = start_bytes(p, 1 << 20);
	await(&g->done, 1);
	assert_int_equal(g->result.status, 0);
	got_free(g);
	SH("exec <&-; exit 3");
	g = start_bytes(p, 1 << 20);
	await(&g->done, 1);
	assert_int_equal(g->result.status, 3);
	got_free(g);
	free(p);
}

/* -- many ---------------------------------------------------------------------------------- */

static long
resident_kib(void)
{
	char text[128];
	long size, resident = 0;
	int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);

	text[read(fd, text, sizeof(text) - 1)] = '\0';
	(void)close(fd);
	(void)sscanf(text, "%ld %ld", &size, &resident);
	return resident * 4;
}

static void
many_at_once(int n)
{
	struct got *g[8];
	int i, j, fds = count_fds();

	for (i = 0; i < n; i += 8) {
		for (j = 0; j < 8; j++)
			g[j] = start("{}");
		for (j = 0; j < 8; j++) {
			await(&g[j]->done, 1);
			assert_int_equal(g[j]->result.end, END_EXIT);
			assert_int_equal(g[j]->result.status, 0);
			got_free(g[j]);
		}
	}
	loop_turn(t.loop, 0);
	assert_int_equal(count_fds(), fds);
}

FIXTURE_TEST(thousands_leave_nothing)
{
	siginfo_t si;
	long before;

	COMMAND("/bin/true");
	launch();
	many_at_once(400);
	before = resident_kib();
	many_at_once(1600);
#ifndef RQD_SANITIZERS
	assert_true(resident_kib() - before < 512);
#else
	(void)before;
#endif
	close_handler();
	assert_int_equal(waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT), -1);
	assert_int_equal(errno, ECHILD);
}

FIXTURE_TEST(they_run_side_by_side)
{
	struct got *g[4];
	usec_t began = clock_mono();
	int i;

	SH("sleep 2");
	for (i = 0; i < 4; i++)
		g[i] = start("");
	for (i = 0; i < 4; i++) {
		await(&g[i]->done, 1);
		got_free(g[i]);
	}
	assert_true(clock_mono() - began < slow(7500 * MSEC));
}

/* -- ended early ------------------------------------------------------------------------- */

FIXTURE_TEST(time_limit_ends_it)
{
	struct got *g;

	t.q->time_limit = 300 * MSEC;
	SH("sleep 60");
	g = run("");
	assert_int_equal(g->result.end, END_SIGNAL);
	assert_int_equal(g->result.signo, SIGTERM);
	assert_int_equal(g->result.stop, STOP_TIME_LIMIT);
	assert_true(g->took >= 300 * MSEC);
	got_free(g);
}

FIXTURE_TEST(term_ignored_is_killed)
{
	struct got *g;

	t.q->time_limit = 300 * MSEC;
	t.q->kill_grace = 300 * MSEC;
	SH("trap '' TERM; while :; do sleep 1; done");
	g = run("");
	assert_int_equal(g->result.end, END_SIGNAL);
	assert_int_equal(g->result.signo, SIGKILL);
	assert_int_equal(g->result.stop, STOP_TIME_LIMIT);
	assert_true(g->took >= 600 * MSEC);
	got_free(g);
}

FIXTURE_TEST(stopped_process_is_ended)
{
	struct got *g;

	t.q->time_limit = 300 * MSEC;
	t.q->kill_grace = MINUTE;
	SH("kill -STOP $$; sleep 60");
	g = run("");
	assert_int_equal(g->result.end, END_SIGNAL);
	assert_int_equal(g->result.signo, SIGTERM);
	assert_int_equal(g->result.stop, STOP_TIME_LIMIT);
	assert_true(g->took < slow(30 * SEC));		/* not by SIGKILL */
	got_free(g);
}

FIXTURE_TEST(exit_0_after_term_shows_the_stop)
{
	struct got *g;

	SH("trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done");
	g = start("");
	await_lines(1);
	handler_stop(g->run, STOP_DRAIN);
	assert_int_equal(g->done, 0);
	await(&g->done, 1);
	assert_int_equal(g->result.end, END_EXIT);
	assert_int_equal(g->result.status, 0);
	assert_int_equal(g->result.stop, STOP_DRAIN);
	got_free(g);
}

FIXTURE_TEST(first_reason_counts)
{
	struct got *g;

	t.q->kill_grace = MINUTE;
	SH("trap '' TERM; echo ready; while :; do sleep 0.05; done");
	g = start("");
	await_lines(1);
	handler_stop(g->run, STOP_LOST);
	handler_stop(g->run, STOP_DRAIN);
	turn_for(100 * MSEC);
	assert_int_equal(g->done, 0);
	handler_kill(g->run);
	await(&g->done, 1);
	assert_int_equal(g->result.stop, STOP_LOST);
	assert_int_equal(g->result.signo, SIGKILL);
	assert_true(g->took < slow(30 * SEC));
	got_free(g);
}

FIXTURE_TEST(stop_before_it_failed)
{
	struct got *g;

	COMMAND("/no/such/command");
	g = start("");
	handler_stop(g->run, STOP_DRAIN);
	handler_kill(g->run);
	await(&g->done, 1);
	/* The signal may come before it has tried. */
	assert_true(g->result.end == END_NOT_STARTED || g->result.end == END_SIGNAL);
	assert_int_equal(g->result.stop, STOP_DRAIN);
	got_free(g);
}

/* The group gets the signal, not only the leader. */
FIXTURE_TEST(group_is_signalled)
{
	struct got *g;

	SH("trap 'wait; exit 7' TERM;"
	    "sh -c 'trap \"echo child; exit 0\" TERM; echo up;"
	    "    while :; do sleep 0.05; done' & wait");
	g = start("");
	await_lines(1);
	handler_stop(g->run, STOP_TIME_LIMIT);
	await(&g->done, 1);
	assert_string_equal(output(1), "up\nchild\n");
	got_free(g);
}

/* -- leftovers --------------------------------------------------------------------------- */

static bool
exists(pid_t pid)
{
	return kill(pid, 0) == 0;
}

static void
await_gone(pid_t pid)
{
	usec_t end = clock_mono() + PATIENCE;

	while (exists(pid) && clock_mono() < end)
		loop_turn(t.loop, 10 * MSEC);
	assert_false(exists(pid));
}

FIXTURE_TEST(grandchild_that_holds_the_pipe_does_not_delay)
{
	struct got *g;

	SH("sleep 60 & echo $!; exit 4");
	g = run("");
	assert_int_equal(g->result.status, 4);
	assert_int_equal(g->result.leftovers, 1);
	assert_true(g->took < 20 * SEC);
	await_gone(printed_pid());
	got_free(g);
}

/* The children of a process, and how many of them are no zombies. */
static unsigned
count_children(pid_t pid, unsigned *alive)
{
	struct buf b = BUF_INIT;
	char path[64], text[512], *p, *rest, *state;
	unsigned n = 0;
	long child;
	FILE *f;

	*alive = 0;
	proc_children(pid, &b);
	for (p = buf_str(&b); (child = strtol(p, &rest, 10)) > 0; p = rest, n++) {
		(void)snprintf(path, sizeof(path), "/proc/%ld/stat", child);
		if ((f = fopen(path, "r")) == NULL)
			continue;
		state = fgets(text, sizeof(text), f) != NULL ? strrchr(text, ')') : NULL;
		*alive += state != NULL && state[2] != 'Z';
		(void)fclose(f);
	}
	buf_done(&b);
	return n;
}

#define ORPHANS	3000

/*
 * The orphans of a handler end, and so does a handler that was started after it: how many
 * orphans there still are when that is reported.
 */
static unsigned
orphans_behind(const char *command)
{
	usec_t end = clock_mono() + unit_time(2 * MINUTE);
	struct got *many, *one;
	unsigned alive, left;
	pid_t spawner;

	buf_clear(&t.out[1]);
	t.lines = 0;
	t.q->concurrency = 2;
	t.q->leftovers = LEFTOVERS_KEEP;
	SH(command);
	many = start("many\n");
	await_lines(1);
	spawner = printed_pid();
	while (count_children(spawner, &alive) <= ORPHANS) {
		turn_for(10 * MSEC);
		assert_true(clock_mono() < end);
	}
	one = start("one\n");
	await_lines(2);
	/* All are to be seen at once, and the spawner is to be no faster than this process. */
	(void)setpriority(PRIO_PROCESS, (id_t)spawner, 19);
	assert_int_equal(kill(spawner, SIGSTOP), 0);
	assert_int_equal(kill(many->run->pid, SIGKILL), 0);
	assert_int_equal(kill(one->run->pid, SIGKILL), 0);
	while (count_children(spawner, &alive) > 0 && alive > 0) {
		(void)usleep(10000);
		assert_true(clock_mono() < end);
	}
	assert_int_equal(kill(spawner, SIGCONT), 0);
	await(&one->done, 1);
	left = count_children(spawner, &alive);
	await(&many->done, 1);
	got_free(one);
	got_free(many);
	close_handler();
	return left;
}

/* No handler's end is reported behind those of another user's thousands of orphans. */
FIXTURE_TEST(orphans_delay_no_handler)
{
	char self[PATH_MAX], *command;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	unsigned left = 0;

	assert_true(n > 0);
	self[n] = '\0';
	*strrchr(self, '/') = '\0';
	command = xasprintf("echo $PPID; read -r what; [ $what = many ] || exec sleep 1000; "
	    "exec %s/../helpers/forks %d 0 /none", self, ORPHANS);
	/* If this process gets no processor for long, the spawner has reaped all meanwhile. */
	for (int i = 0; i < 5 && left == 0; i++)
		left = orphans_behind(command);
	free(command);
	assert_true(left > 0);
}

FIXTURE_TEST(leftovers_may_be_kept)
{
	struct got *g;
	pid_t pid;

	t.q->leftovers = LEFTOVERS_KEEP;
	SH("sleep 60 & echo $!; exit 0");
	g = run("");
	assert_int_equal(g->result.status, 0);
	pid = printed_pid();
	turn_for(300 * MSEC);
	assert_true(exists(pid));
	(void)kill(pid, SIGKILL);
	got_free(g);
}

/* After rqd stopped a run, its leftovers are killed: they must not run beside the next one. */
FIXTURE_TEST(nothing_is_kept_of_a_stopped_run)
{
	struct got *g;

	t.q->leftovers = LEFTOVERS_KEEP;
	SH("(trap '' TERM; while :; do sleep 0.1; done) & echo $!; wait");
	g = start("");
	await_lines(1);
	handler_stop(g->run, STOP_DRAIN);
	await(&g->done, 1);
	await_gone(printed_pid());
	got_free(g);
}

/* Leftovers of a stopped run in a group of their own are killed before its result comes. */
FIXTURE_TEST(jobs_end_with_a_stopped_run)
{
	usec_t end;
	struct got *g;
	pid_t job;
	int i;

	for (i = 0; i < 2; i++) {	/* the second round is soon after a sweep */
		buf_clear(&t.out[1]);
		t.lines = 0;
		SH("timeout 60 sh -c 'echo $PPID; exec sleep 60' & wait");
		g = start("");
		await_lines(1);
		job = printed_pid();
		assert_int_equal(getpgid(job), job);
		handler_stop(g->run, STOP_DRAIN);
		await(&g->done, 1);
		end = clock_mono() + 10 * SEC;	/* it dies soon after SIGKILL */
		while (exists(job) && clock_mono() < end)
			(void)usleep(1000);
		assert_false(exists(job));
		got_free(g);
	}
}

/* Many commands end between two sweeps: what each has left in a group of its own is killed. */
FIXTURE_TEST(jobs_of_many_end)
{
	enum { MANY = 100 };
	struct got *g[MANY];
	pid_t pid;
	char *p;
	int i;

	t.q->concurrency = MANY;
	SH("set -m; sleep 60 & echo $!; exit 0");
	for (i = 0; i < MANY; i++)
		g[i] = start("");
	for (i = 0; i < MANY; i++) {
		await(&g[i]->done, 1);
		assert_int_equal(g[i]->result.end, END_EXIT);
		got_free(g[i]);
	}
	await_lines(MANY);
	for (p = output(1); *p != '\0'; p = strchr(p, '\n') + 1) {
		pid = (pid_t)strtol(p, NULL, 10);
		assert_true(pid > 1);
		await_gone(pid);
	}
}

/* A zombie that the command has not waited for is no leftover.  Shells wait, awk does not. */
FIXTURE_TEST(zombies_are_no_leftovers)
{
	for (int i = 0; i < 10; i++)
		expect_exit("sh -c 'exit 1' & exec awk -v f=/proc/$!/status 'BEGIN { for (;;) {"
		    "while ((getline l <f) > 0) if (l ~ /^State:.Z/) exit; close(f) } }'", 0);
}

FIXTURE_TEST(escapee_is_left_alone)
{
	struct got *g;
	pid_t pid;

	SH("setsid -f sh -c 'echo $$; exec sleep 60'; sleep 0.2; exit 5");
	g = run("");
	await_lines(1);
	assert_int_equal(g->result.status, 5);
	pid = printed_pid();
	turn_for(1300 * MSEC);
	assert_true(exists(pid));
	(void)kill(pid, SIGKILL);
	await_gone(pid);
	got_free(g);
}

FIXTURE_TEST(double_fork_is_found)
{
	struct got *g;

	SH("f=$(mktemp); (timeout 60 sh -c 'echo $PPID; echo >'$f'; exec sleep 60' &) & "
	    "until [ -s $f ]; do sleep 0.01; done; rm $f; exit 0");
	g = run("");
	await_lines(1);
	assert_int_equal(g->result.status, 0);
	await_gone(printed_pid());
	got_free(g);
}

/* -- close and free -------------------------------------------------------------------------- */

FIXTURE_TEST(close_waits_for_late_output)
{
	char path[] = "/tmp/rqd-test-XXXXXX", script[128];
	int fd = mkstemp(path);
	struct got *g;

	assert_int_not_equal(fd, -1);
	(void)close(fd);
	t.q->leftovers = LEFTOVERS_KEEP;
	(void)snprintf(script, sizeof(script),
	    "(while [ -e %s ]; do sleep 0.01; done; echo late) & exit 0", path);
	SH(script);
	g = run("");
	assert_int_equal(t.lines, 0);
	(void)unlink(path);
	close_handler();
	assert_string_equal(output(1), "late\n");
	got_free(g);
}

FIXTURE_TEST(free_while_output_is_open)
{
	struct got *g;

	t.q->leftovers = LEFTOVERS_KEEP;
	SH("(sleep 0.3; echo late) & exit 0");
	g = run("");
	handler_close(t.handler, got_closed, &t.closed);
	handler_free(t.handler);
	t.handler = NULL;
	turn_for(500 * MSEC);
	assert_int_equal(t.closed, 0);
	assert_int_equal(t.lines, 0);
	got_free(g);
}

FIXTURE_TEST(free_while_running)
{
	struct got *g;
	pid_t pid;

	SH("echo $$; sleep 60");
	g = start("");
	await_lines(1);
	pid = printed_pid();
	handler_free(t.handler);
	t.handler = NULL;
	await_gone(pid);
	assert_int_equal(g->done, 0);
	message_free(g->msg);
	free(g);
	handler_free(NULL);
}

FIXTURE_TEST(free_before_failure_is_told)
{
	struct got *g;

	COMMAND("/no/such/command");
	g = start("");
	handler_free(t.handler);
	t.handler = NULL;
	loop_turn(t.loop, 0);
	assert_int_equal(g->done, 0);
	message_free(g->msg);
	free(g);
}

static void
free_in_done(struct message *msg UNUSED, struct result *result, void *arg)
{
	result_done(result);
	handler_free(t.handler);
	t.handler = NULL;
	++*(int *)arg;
}

FIXTURE_TEST(free_inside_done)
{
	static const struct handler_events freeing = { .done = free_in_done };
	static const char *const commands[] = { "/bin/true", "/no/such/command" };
	struct message *msg;
	size_t i;
	int done;

	for (i = 0; i < ARRAY_LEN(commands); i++) {
		done = 0;
		COMMAND(commands[i]);
		launch();
		t.handler = handler_open(&t.env, t.config, t.q, &freeing, &done);
		msg = message_new(t.config, t.q);
		msg->id = xstrdup("x");
		(void)handler_start(t.handler, msg);
		await(&done, 1);
		loop_turn(t.loop, 0);
		assert_int_equal(done, 1);
		message_free(msg);
	}
}

/* The loop has not begun to read its output when it is stopped. */
FIXTURE_TEST(a_handler_that_is_stopped_early_is_read)
{
	struct got *g;

	SH("trap 'head -c 200000 /dev/zero | tr \"\\0\" x; exit 0' TERM; "
	    "while :; do sleep 0.01; done");
	t.q->kill_grace = 20 * SEC;
	g = start("");
	(void)usleep(500000);
	handler_stop(g->run, STOP_DRAIN);
	await(&g->done, 1);
	assert_int_equal(g->result.end, END_EXIT);
	assert_int_equal(g->result.status, 0);
	got_free(g);
}

/* The descriptor of a configuration is lost, and nothing else. */
static void
got_loaded(const struct spawner_loaded *loaded, void *arg)
{
	assert_int_equal(loaded->config, -1);
	++*(int *)arg;
}

FIXTURE_TEST(a_load_without_a_free_descriptor_is_answered)
{
	struct rlimit old, few;
	int loads = 0, fd;

	expect_exit("exit 0", 0);
	fd = dup(0);
	(void)close(fd);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	few = (struct rlimit){ (rlim_t)fd, old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	spawner_load(t.env.spawner, got_loaded, &loads);
	await(&loads, 1);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	got_free(run(""));
}
