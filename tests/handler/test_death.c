/* When the daemon or the spawner is killed, no handler survives. */
#define UNIT_OWN_MAIN
#include "fixture.h"

#include <sys/socket.h>
#include <sys/syscall.h>

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

static NORETURN void
be_daemon(const char *const *scripts, int fd)
{
	static const struct handler_events telling = {
		.done = got_done, .output = tell_line
	};
	size_t i;

	(void)set_up(NULL);
	for (i = 0; scripts[i] != NULL; i++) {
		/* A spawner for each. */
		t.handler = NULL;
		t.env.spawner = NULL;
		t.running = 0;
		SH(scripts[i]);
		launch();
		t.handler = handler_open(&t.env, t.config, t.q, &telling, &fd);
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

/* The spawner kills all groups of a handler's session, and stopped processes, too. */
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

/* Also those with a session of their own. */
TEST(other_sessions_die)
{
	VANISH(2, "setsid sh -c 'echo up; exec sleep 77' & echo up; wait");
	VANISH(1, "setsid -f sh -c 'echo up; sleep 77; sleep 77'; sleep 0.2");
}

TEST(without_handlers_the_spawner_just_ends)
{
	static const char *const none[] = { NULL };
	pid_t pid = start_daemon(none, 0);

	(void)usleep(50000);
	(void)kill(pid, SIGKILL);
	assert_true(time_to_vanish() < slow(10 * SEC));
}

/* Signals do not end the spawner, and spawner_stop() ends it even while it is stopped. */
FIXTURE_TEST(only_its_parent_ends_it)
{
	static const int signals[] = { SIGTERM, SIGHUP, SIGINT, SIGUSR1, SIGSEGV };
	struct got *g = run("");
	int pid;

	got_free(g);
	SH("echo $PPID");
	got_free(run(""));
	pid = printed_pid();
	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		(void)kill(pid, signals[i]);
	turn_for(50 * MSEC);
	got_free(run(""));
	assert_int_equal(atoi(output(1)), pid);
	(void)kill(pid, SIGSTOP);
	close_handler();
	assert_int_equal(kill(pid, 0), -1);
}

/* -- a shortage in the kernel ---------------------------------------------------------------- */

static int	receives_fail;		/* so many; the spawner has a copy of its own */

/* In place of libc's. */
ssize_t
recvmsg(int fd, struct msghdr *m, int flags)
{
	if (receives_fail == 0)
		return syscall(SYS_recvmsg, fd, m, flags);
	receives_fail--;
	errno = ENOMEM;
	return -1;
}

/* For want of memory recvmsg(2) fails in both processes, and both read on. */
FIXTURE_TEST(a_failed_receive_is_repeated)
{
	struct got *g;

	receives_fail = 2;
	launch();		/* both while the answer to the load is awaited */
	assert_int_equal(receives_fail, 0);
	receives_fail = 2;
	g = run("");
	assert_int_equal(receives_fail, 0);
	assert_int_equal(g->result.end, END_EXIT);
	got_free(g);
}

int
main(void)
{
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	return unit_run(NULL, NULL);
}
