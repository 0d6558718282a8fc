/* Child processes: exits, signals, leftovers, orphans. */
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

/* loop_free() ends and reaps all processes that a test has left; fails if one remains. */
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
watch(struct watched *w, pid_t pid, bool leader, bool kill_leftovers)
{
	assert_true(pid > 0);
	*w = (struct watched){ .child = { .exited = keep_exit,
	    .leader = leader, .kill_leftovers = kill_leftovers } };
	child_watch(loop, &w->child, pid);
}

FIXTURE_TEST(test_codes)
{
	static struct watched w[4];
	pid_t pid;
	int i;

	for (i = 0; i < 3; i++) {
		if ((pid = fork()) == 0)
			_exit((int[]){ 0, 75, 255 }[i]);
		watch(&w[i], pid, false, false);
	}
	if ((pid = fork()) == 0)
		hang();
	watch(&w[3], pid, false, false);
	assert_int_equal(child_kill(&w[3].child, SIGTERM), 0);
	for (i = 0; i < 4; i++)
		await(&w[i].calls, 1);
	assert_int_equal(w[0].result.code, 0);
	assert_int_equal(w[1].result.code, 75);
	assert_int_equal(w[2].result.code, 255);
	for (i = 0; i < 3; i++)
		assert_false(w[i].result.signaled || w[i].result.leftovers);
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
	watch(&w, pid, false, false);
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
		watch(&w[i], pid, false, false);
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
	child_watch(loop, c, pid);
}

FIXTURE_TEST(test_free_in_callback)
{
	struct child *c = xcalloc(1, sizeof(*c));
	pid_t pid;

	reborn = 0;
	c->exited = free_and_fork;
	if ((pid = fork()) == 0)
		_exit(0);
	child_watch(loop, c, pid);
	await(&reborn, 5);
}

/* -- leftovers ---------------------------------------------------------------- */

/*
 * Starts a leader that exits and leaves a process behind.  That is in the leader's group;
 * own_group: in another group of its session.  Returns the leader; *left is the other.
 */
static pid_t
start_leaver(bool own_group, pid_t *left)
{
	int fd[2];
	pid_t pid;

	assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
	if ((pid = fork()) == 0) {
		setsid();
		if ((pid = fork()) == 0) {
			if (own_group)
				setpgid(0, 0);
			say(fd[1], getpid());
			hang();
		}
		if (own_group)
			setpgid(pid, pid);
		_exit(3);
	}
	*left = hear(fd[0]);
	close(fd[0]);
	close(fd[1]);
	return pid;
}

FIXTURE_TEST(test_leftovers_killed)
{
	static struct watched w;
	pid_t left, pid = start_leaver(false, &left);

	watch(&w, pid, true, true);
	await(&w.calls, 1);
	assert_int_equal(w.result.code, 3);
	assert_false(w.result.signaled);
	assert_true(w.result.leftovers);
	await_gone(left);
}

/* The leader's group is killed as soon as the leader exits, not by a later sweep. */
FIXTURE_TEST(test_group_killed_at_once)
{
	static struct watched w;
	siginfo_t si;
	pid_t left;
	int i;

	for (i = 0; i < 2; i++) {	/* the second exit has no sweep yet */
		watch(&w, start_leaver(false, &left), true, true);
		await(&w.calls, 1);
		assert_true(w.result.leftovers);
		if (waitid(P_PID, (id_t)left, &si, WEXITED | WNOWAIT) == 0)
			assert_int_equal(si.si_status, SIGKILL);
	}
	await_gone(left);
}

FIXTURE_TEST(test_leftovers_left)
{
	static struct watched w;
	pid_t left, pid = start_leaver(false, &left);

	watch(&w, pid, true, false);
	await(&w.calls, 1);
	assert_true(w.result.leftovers);
	loop_run_for(loop, 150 * MSEC);
	assert_int_equal(kill(left, 0), 0);
	kill(left, SIGKILL);
	await_gone(left);
}

/* A zombie that the leader never waited for is not a leftover. */
FIXTURE_TEST(test_zombies_are_no_leftovers)
{
	static struct watched w;
	siginfo_t si;
	bool kills;
	pid_t pid;
	int round;

	for (round = 0; round < 10; round++) {
		kills = round % 2 == 0;
		if ((pid = fork()) == 0) {
			setsid();
			if ((pid = fork()) == 0)
				_exit(1);
			waitid(P_PID, (id_t)pid, &si, WEXITED | WNOWAIT);
			_exit(0);
		}
		watch(&w, pid, true, kills);
		await(&w.calls, 1);
		assert_false(w.result.leftovers);
	}
}

/* A sweep kills processes in other groups of the session. */
FIXTURE_TEST(test_session_swept)
{
	static struct watched w[5];
	pid_t left[5];
	int i;

	for (i = 0; i < 5; i++) {
		pid_t pid = start_leaver(true, &left[i]);

		watch(&w[i], pid, true, i < 4);
		await(&w[i].calls, 1);
		assert_false(w[i].result.leftovers);
	}
	for (i = 0; i < 4; i++)
		await_gone(left[i]);
	assert_int_equal(kill(left[4], 0), 0);	/* its leader did not ask for that */
	kill(left[4], SIGKILL);
	await_gone(left[4]);
}

/* Starts a leader and a chain of descendants, each in a group of its own. */
static pid_t
start_nested(int fd[2], pid_t *below, int depth)
{
	pid_t pid;
	int i;

	assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
	if ((pid = fork()) == 0) {
		setsid();
		for (i = 0; i < depth; i++) {
			if (fork() != 0)
				break;
			setpgid(0, 0);
			say(fd[1], getpid());
		}
		hang();
	}
	for (i = 0; i < depth; i++)
		below[i] = hear(fd[0]);
	return pid;
}

static void
end_nested(const int fd[2])
{
	close(fd[0]);
	close(fd[1]);
}

FIXTURE_TEST(test_nested_swept)
{
	enum { DEPTH = 4 };
	static struct watched w;
	pid_t below[DEPTH];
	int fd[2], i;

	watch(&w, start_nested(fd, below, DEPTH), true, true);
	assert_int_equal(child_kill(&w.child, SIGTERM), 0);
	await(&w.calls, 1);
	assert_true(w.result.signaled);
	for (i = 0; i < DEPTH; i++)
		await_gone(below[i]);
	end_nested(fd);
}

/* Many leaders exit between two sweeps: what each has left is killed. */
FIXTURE_TEST(test_many_swept)
{
	enum { MANY = 200 };
	static struct watched w[MANY];
	pid_t left[MANY];
	int i;

	for (i = 0; i < MANY; i++)
		watch(&w[i], start_leaver(true, &left[i]), true, true);
	for (i = 0; i < MANY; i++)
		await(&w[i].calls, 1);
	for (i = 0; i < MANY; i++)
		await_gone(left[i]);
}

/*
 * child_done() ends processes that were left after the last sweep, and a tree that
 * takes several sweeps.
 */
FIXTURE_TEST(test_swept_at_the_end)
{
	enum { DEPTH = 4 };
	static struct watched w[3];
	pid_t pid, left[3], below[DEPTH];
	int fd[2], i;

	for (i = 0; i < 2; i++) {
		watch(&w[i], start_leaver(true, &left[i]), true, true);
		await(&w[i].calls, 1);
	}
	pid = start_nested(fd, below, DEPTH);
	watch(&w[2], pid, true, true);
	assert_int_equal(kill(pid, SIGKILL), 0);
	await(&w[2].calls, 1);
	child_done(loop);
	for (i = 0; i < 2; i++)
		assert_true(is_gone(left[i]));
	for (i = 0; i < DEPTH; i++)
		assert_true(is_gone(below[i]));
	end_nested(fd);
}

/* A leader is killed and forgotten: child_done() ends its whole session. */
FIXTURE_TEST(test_forgotten_swept)
{
	enum { DEPTH = 2 };
	static struct watched w;
	pid_t pid, below[DEPTH];
	int fd[2], i;

	pid = start_nested(fd, below, DEPTH);
	watch(&w, pid, true, true);
	assert_int_equal(child_kill(&w.child, SIGKILL), 0);
	child_forget(loop, &w.child);
	child_done(loop);
	assert_true(is_gone(pid));
	for (i = 0; i < DEPTH; i++)
		assert_true(is_gone(below[i]));
	assert_int_equal(w.calls, 0);
	end_nested(fd);
}

/* The sweep for one leader spares the sessions of a running leader and of the test. */
FIXTURE_TEST(test_others_spared)
{
	static struct watched live, over;
	pid_t pid, left, mine;
	int fd[2];

	assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
	if ((mine = fork()) == 0)
		hang();		/* nobody watches it; it is in the test's session */
	if ((pid = fork()) == 0) {
		setsid();
		say(fd[1], getpid());
		hang();
	}
	watch(&live, pid, true, true);
	assert_int_equal(hear(fd[0]), pid);
	watch(&over, start_leaver(true, &left), true, true);
	await_gone(left);
	loop_run_for(loop, 150 * MSEC);
	assert_int_equal(live.calls, 0);
	assert_int_equal(kill(mine, 0), 0);
	kill(mine, SIGKILL);
	await_gone(mine);
	assert_int_equal(child_kill(&live.child, SIGKILL), 0);
	await(&live.calls, 1);
	assert_false(live.result.leftovers);
	close(fd[0]);
	close(fd[1]);
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
	watch(&w, pid, false, false);
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
	watch(&w, pid, false, false);
	child_forget(loop, &w.child);
	child_forget(loop, &w.child);
	assert_int_equal(child_kill(&w.child, SIGKILL), -1);
	kill(pid, SIGKILL);
	await_gone(pid);
	assert_int_equal(w.calls, 0);
}
