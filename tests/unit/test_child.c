/* Child processes: exits, signals, orphans. */
#include "unit.h"

#include <sys/wait.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>

#include "loop/child.h"
#include "loop/loop.h"

#define PATIENCE	(60 * SEC)

struct watched {
	struct child		child;
	struct child_exit	result;
	int			calls;
};

static struct loop *loop;

static void
keep_exit(struct child *c, const struct child_exit *x)
{
	struct watched *w = CONTAINER_OF(c, struct watched, child);

	assert_int_equal(c->pid, 0);
	w->result = *x;
	w->calls++;
}

static int
start_loop(void **state UNUSED)
{
	loop = loop_new();
	child_init(loop);
	return 0;
}

/* Fails if a process remains. */
static int
end_loop(void **state UNUSED)
{
	loop_free(loop);
	return waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD ? 0 : -1;
}

#define FIXTURE_TEST(name)	TEST_WITH(name, start_loop, end_loop)

/* Call it in the child: it waits until it is killed, at most a minute. */
static void
hang(void)
{
	alarm(180);	/* later than PATIENCE */
	for (;;)
		pause();
}

static void
say(int fd, pid_t pid)
{
	if (write(fd, &pid, sizeof(pid)) != sizeof(pid))
		_exit(99);
}

static pid_t
hear(int fd)
{
	pid_t pid = 0;

	assert_int_equal(read(fd, &pid, sizeof(pid)), sizeof(pid));
	return pid;
}

static void
await(const int *calls, int want)
{
	usec_t end = clock_mono() + PATIENCE;

	while (*calls < want && clock_mono() < end)
		loop_turn(loop, end - clock_mono());
	assert_int_equal(*calls, want);
}

static bool
is_gone(pid_t pid)
{
	return kill(pid, 0) == -1 && errno == ESRCH;
}

/* Turns the loop until pid has been killed and reaped by it. */
static void
await_gone(pid_t pid)
{
	usec_t end = clock_mono() + PATIENCE;

	while (!is_gone(pid) && clock_mono() < end)
		loop_turn(loop, 10 * MSEC);
	assert_true(is_gone(pid));
}

static void
watch(struct watched *w, pid_t pid)
{
	assert_true(pid > 0);
	*w = (struct watched){ .child = { .exited = keep_exit } };
	child_watch(&w->child, pid);
}

FIXTURE_TEST(test_codes)
{
	static struct watched w[4];
	pid_t pid;
	int i;

	for (i = 0; i < 3; i++) {
		if ((pid = fork()) == 0)
			_exit((int[]){ 0, 75, 255 }[i]);
		watch(&w[i], pid);
	}
	if ((pid = fork()) == 0)
		hang();
	watch(&w[3], pid);
	assert_int_equal(child_kill(&w[3].child, SIGTERM), 0);
	for (i = 0; i < 4; i++)
		await(&w[i].calls, 1);
	assert_int_equal(w[0].result.code, 0);
	assert_int_equal(w[1].result.code, 75);
	assert_int_equal(w[2].result.code, 255);
	for (i = 0; i < 3; i++)
		assert_false(w[i].result.signaled);
	assert_true(w[3].result.signaled);
	assert_int_equal(w[3].result.code, SIGTERM);
	assert_int_equal(child_kill(&w[3].child, SIGTERM), -1);
	loop_turn(loop, 0);
	for (i = 0; i < 4; i++)
		assert_int_equal(w[i].calls, 1);
}

/* A child that exited before child_watch() is reported, although no SIGCHLD comes. */
FIXTURE_TEST(test_already_exited)
{
	static struct watched w;
	siginfo_t si;
	pid_t pid;

	child_done(loop);
	if ((pid = fork()) == 0)
		_exit(7);
	assert_int_equal(waitid(P_PID, (id_t)pid, &si, WEXITED | WNOWAIT), 0);
	child_init(loop);
	watch(&w, pid);
	await(&w.calls, 1);
	assert_int_equal(w.result.code, 7);
}

/* Many children exit at once: each exit is reported once, with the child's own status. */
FIXTURE_TEST(test_many)
{
	enum { MANY = 300 };
	static struct watched w[MANY];
	pid_t pid;
	int i, seen;

	for (i = 0; i < MANY; i++) {
		if ((pid = fork()) == 0)
			_exit(i % 200);
		watch(&w[i], pid);
		if (unit_below(10) == 0)
			loop_turn(loop, 0);
	}
	for (seen = 0; seen < MANY; seen++)
		await(&w[seen].calls, 1);
	for (i = 0; i < MANY; i++) {
		assert_int_equal(w[i].calls, 1);
		assert_int_equal(w[i].result.code, i % 200);
	}
}

/* The owner may free its child in the callback, and start another. */
static int reborn;

static void
free_and_fork(struct child *c, const struct child_exit *x)
{
	pid_t pid;

	assert_int_equal(x->code, reborn);
	free(c);
	if (++reborn == 5)
		return;
	c = xcalloc(1, sizeof(*c));
	c->exited = free_and_fork;
	if ((pid = fork()) == 0)
		_exit(reborn);
	child_watch(c, pid);
}

FIXTURE_TEST(test_free_in_callback)
{
	struct child *c = xcalloc(1, sizeof(*c));
	pid_t pid;

	reborn = 0;
	c->exited = free_and_fork;
	if ((pid = fork()) == 0)
		_exit(0);
	child_watch(c, pid);
	await(&reborn, 5);
}

/* -- orphans -------------------------------------------------------------------- */

FIXTURE_TEST(test_orphans_reaped)
{
	pid_t pid, orphan;
	static struct watched w;
	int fd[2], hold[2];
	char c;

	assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
	assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
	if ((pid = fork()) == 0) {
		if (fork() == 0) {
			close(hold[1]);
			say(fd[1], getpid());
			_exit(read(hold[0], &c, 1) == 0 ? 0 : 1);
		}
		_exit(0);
	}
	watch(&w, pid);
	orphan = hear(fd[0]);
	await(&w.calls, 1);
	assert_int_equal(kill(orphan, 0), 0);
	close(hold[1]);
	await_gone(orphan);
	close(hold[0]);
	close(fd[0]);
	close(fd[1]);
}

FIXTURE_TEST(test_forget)
{
	static struct watched w;
	pid_t pid;

	if ((pid = fork()) == 0)
		hang();
	watch(&w, pid);
	child_forget(&w.child);
	child_forget(&w.child);
	assert_int_equal(child_kill(&w.child, SIGKILL), -1);
	kill(pid, SIGKILL);
	await_gone(pid);
	assert_int_equal(w.calls, 0);
}
