/* The guardian: when the daemon is killed, no process of its handlers survives. */
#define UNIT_OWN_MAIN
#include "fixture.h"

#include <sys/mman.h>
#include <sys/prctl.h>

/* -- a daemon to be killed ------------------------------------------------------------------ */

/* Writes a byte for each line that a handler prints. */
static void
tell_line(const struct log_ctx *ctx UNUSED, int fd UNUSED, const char *p UNUSED,
    size_t n UNUSED, bool cut UNUSED, void *arg)
{
	if (write(*(int *)arg, ".", 1) != 1)
		_exit(1);
}

static bool guarded = true;

static NORETURN void
be_daemon(const char *const *scripts, int fd)
{
	static const struct handler_events telling = {
		.done = got_done, .output = tell_line
	};
	struct handler *h;
	size_t i;

	(void)set_up(NULL);
	if (guarded)
		t.env.guardian = guardian_start(t.loop);
	for (i = 0; scripts[i] != NULL; i++) {
		SH(scripts[i]);
		h = handler_open(&t.env, t.config, t.q, &telling, &fd);
		t.handler = h;
		(void)start("");
		loop_turn(t.loop, 0);
	}
	loop_run(t.loop);
	_exit(2);
}

static pid_t
start_daemon(const char *const *scripts, int lines)
{
	int fd[2];
	pid_t pid;
	char c;

	fflush(stdout);
	assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0)
		be_daemon(scripts, fd[1]);
	(void)close(fd[1]);
	while (lines-- > 0)
		assert_int_equal(read(fd[0], &c, 1), 1);
	(void)close(fd[0]);
	return pid;
}

/*
 * Returns the time until all processes below the test are gone.  The test is a subreaper,
 * so it inherits those that the daemon leaves.
 */
static usec_t
time_to_vanish(void)
{
	usec_t began = clock_mono(), end = began + PATIENCE;
	pid_t pid;

	for (;;) {
		pid = waitpid(-1, NULL, WNOHANG);
		if (pid == -1 && errno == ECHILD)
			return clock_mono() - began;
		assert_true(clock_mono() < end);
		if (pid == 0)
			(void)usleep(2000);
	}
}

static void
expect_vanish(const char *const *scripts, int lines)
{
	pid_t pid = start_daemon(scripts, lines);

	(void)kill(pid, SIGKILL);
	assert_true(time_to_vanish() < slow(10 * SEC));
}

#define VANISH(lines, ...) \
	expect_vanish((const char *const[]){ __VA_ARGS__, NULL }, lines)

TEST(handlers_die_with_the_daemon)
{
	VANISH(1, "echo up; exec sleep 77");
	VANISH(1, "echo up; sleep 77 & wait");
	VANISH(1, "trap '' TERM HUP INT; echo up; sleep 77 & sleep 77 & wait");
	VANISH(3, "echo up; sleep 77 & wait", "echo up; exec sleep 77",
	    "sh -c 'sleep 77 & echo up; wait'; exit 1");
}

/* Without a guardian, the kernel kills the commands (not their children). */
TEST(commands_die_without_a_guardian)
{
	guarded = false;
	VANISH(1, "echo up; exec sleep 77");
	VANISH(2, "echo up; exec sleep 77", "trap '' TERM HUP INT; echo up; exec sleep 77");
	guarded = true;
}

/* The guardian kills all groups of a handler's session, and stopped processes, too. */
TEST(all_groups_of_the_session_die)
{
	VANISH(2, "timeout 77 sh -c 'echo up; exec sleep 77' & "
	    "timeout 77 sh -c 'echo up; exec sleep 77' & wait");
	VANISH(1, "sleep 77 & kill -STOP $!; echo up; kill -STOP $$");
}

/* Orphans of a running leader are killed, and those that it forks meanwhile. */
TEST(forking_ones_die)
{
	VANISH(1, "(sleep 77 &); echo up; wait; sleep 77");
	VANISH(1, "echo up; while :; do (sleep 77 &); sleep 0.02; done");
}

TEST(without_handlers_the_guardian_just_ends)
{
	static const char *const none[] = { NULL };
	pid_t pid = start_daemon(none, 0);

	(void)usleep(50000);
	(void)kill(pid, SIGKILL);
	assert_true(time_to_vanish() < slow(10 * SEC));
}

/* -- the guardian itself --------------------------------------------------------------------- */

static char *
read_proc(pid_t pid, const char *name)
{
	static char text[8192];
	char path[64];
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd == -1 ? 0 : read(fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	if (fd != -1)
		(void)close(fd);
	return text;
}

static int
count_fds_of(pid_t pid)
{
	char path[64];
	DIR *dir;
	int n = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	while (dir != NULL && readdir(dir) != NULL)
		n++;
	if (dir != NULL)
		(void)closedir(dir);
	return n - 2;		/* . and .. */
}

static void
await_named(pid_t pid)
{
	usec_t end = clock_mono() + PATIENCE;

	while (strcmp(read_proc(pid, "comm"), "rqd-guardian\n") != 0 ||
	    count_fds_of(pid) != 1) {
		assert_true(clock_mono() < end);
		(void)usleep(1000);
	}
}

FIXTURE_TEST(it_holds_nothing_of_the_daemon)
{
	struct guardian *g = guardian_start(t.loop);
	pid_t pid = guardian_pid(g);
	char path[64], cwd[64] = "";

	assert_true(pid > 0);
	await_named(pid);
	assert_int_equal(getsid(pid), pid);
	(void)snprintf(path, sizeof(path), "/proc/%d/cwd", (int)pid);
	assert_int_equal(readlink(path, cwd, sizeof(cwd) - 1), 1);
	assert_string_equal(cwd, "/");
	(void)kill(pid, SIGTERM);
	(void)kill(pid, SIGHUP);
	(void)kill(pid, SIGUSR1);
	(void)kill(pid, SIGSEGV);
	turn_for(50 * MSEC);
	assert_int_equal(guardian_pid(g), pid);
	(void)kill(pid, SIGSTOP);
	guardian_stop(g);		/* ends it even while it is stopped */
	assert_int_equal(kill(pid, 0), -1);
	guardian_stop(NULL);
}

/* The daemon replaces a guardian that was killed; the new one kills older handlers, too. */
TEST(restarted_guardian_knows_all)
{
	pid_t *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t daemon, old;
	usec_t end = clock_mono() + PATIENCE;

	fflush(stdout);
	daemon = fork();
	if (daemon == 0) {
		(void)set_up(NULL);
		t.env.guardian = guardian_start(t.loop);
		SH("echo up; sleep 77 & wait");
		(void)start("");
		await_lines(1);
		old = guardian_pid(t.env.guardian);
		(void)kill(old, SIGKILL);
		while (guardian_pid(t.env.guardian) == old ||
		    guardian_pid(t.env.guardian) == 0)
			loop_turn(t.loop, PATIENCE);
		*shared = guardian_pid(t.env.guardian);
		loop_run(t.loop);
		_exit(0);
	}
	while (*(volatile pid_t *)shared == 0 && clock_mono() < end)
		(void)usleep(5000);
	assert_true(*shared > 0);
	(void)kill(daemon, SIGKILL);
	assert_true(time_to_vanish() < slow(10 * SEC));
	(void)munmap(shared, sizeof(*shared));
}

FIXTURE_TEST(slots_are_used_again)
{
	struct guardian *g = guardian_start(t.loop);
	volatile pid_t *slot[200], *again;
	int i, j;

	for (i = 0; i < 200; i++) {
		slot[i] = guardian_slot(g);
		assert_int_equal(*slot[i], 0);
		for (j = 0; j < i; j++)
			assert_ptr_not_equal(slot[i], slot[j]);
	}
	*slot[77] = 12345;
	guardian_release(g, slot[77]);
	assert_int_equal(*slot[77], 0);
	again = guardian_slot(g);
	assert_ptr_equal(again, slot[77]);
	for (i = 0; i < 200; i++)
		guardian_release(g, slot[i]);
	guardian_release(g, NULL);
	guardian_stop(g);
}

/* A handler that has ended, or could not be started, frees its slot of the guardian. */
FIXTURE_TEST(finished_ones_are_forgotten)
{
	volatile pid_t *before, *after;
	struct got *g;
	int i;

	t.env.guardian = guardian_start(t.loop);
	before = guardian_slot(t.env.guardian);
	guardian_release(t.env.guardian, before);
	for (i = 0; i < 4; i++) {
		COMMAND(i % 2 == 0 ? "/bin/true" : "/no/such/command");
		g = run("");
		got_free(g);
		after = guardian_slot(t.env.guardian);
		assert_ptr_equal(before, after);
		assert_int_equal(*after, 0);
		guardian_release(t.env.guardian, after);
	}
	close_handler();
	guardian_stop(t.env.guardian);
}

/* While a handler runs, its pid is in a slot of the guardian. */
FIXTURE_TEST(running_ones_are_known)
{
	volatile pid_t *first;
	struct got *g;

	t.env.guardian = guardian_start(t.loop);
	first = guardian_slot(t.env.guardian);
	guardian_release(t.env.guardian, first);
	SH("echo $$; sleep 60");
	g = start("");
	await_lines(1);	/* the child wrote it before it became the command */
	assert_int_equal(*first, printed_pid());
	handler_stop(g->run, STOP_DRAIN);
	await(&g->done, 1);
	assert_int_equal(*first, 0);
	close_handler();
	guardian_stop(t.env.guardian);
	got_free(g);
}

int
main(void)
{
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	return unit_run(NULL, NULL);
}
