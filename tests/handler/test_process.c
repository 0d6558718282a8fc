/* The process of a handler: signals, descriptors, session, limits, user. */
#include "fixture.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <grp.h>
#include <poll.h>

/* -- attributes in the kernel ---------------------------------------------------------------- */

static void
expect_line(const char *line)
{
	char *all = output(1), *at = strstr(all, line);

	while (at != NULL && at > all && at[-1] != '\n')
		at = strstr(at + 1, line);
	if (at == NULL)
		print_message("# \"%s\" is not in:\n%s\n", line, all);
	assert_non_null(at);
}

static void
no_action(int signo UNUSED)
{
}

FIXTURE_TEST(signals_are_at_their_defaults)
{
	struct got *g;
	sigset_t set, old;

	(void)signal(SIGHUP, SIG_IGN);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGUSR1, no_action);
	(void)signal(SIGRTMIN + 2, SIG_IGN);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGUSR2);
	(void)sigaddset(&set, SIGTERM);
	(void)sigprocmask(SIG_BLOCK, &set, &old);
	COMMAND("/bin/cat", "/proc/self/status");
	g = run("");
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	(void)signal(SIGHUP, SIG_DFL);
	(void)signal(SIGPIPE, SIG_DFL);
	(void)signal(SIGUSR1, SIG_DFL);
	(void)signal(SIGRTMIN + 2, SIG_DFL);
	expect_line("SigBlk:\t0000000000000000\n");
	expect_line("SigIgn:\t0000000000000000\n");
	expect_line("SigCgt:\t0000000000000000\n");
	got_free(g);
}

/* Descriptors without O_CLOEXEC, such as those rqd inherited, do not reach the handler. */
FIXTURE_TEST(only_its_descriptors)
{
	int a = open("/dev/null", O_RDONLY), b = dup(a), c = fcntl(a, F_DUPFD, 500);
	struct got *g;

	COMMAND("/bin/ls", "/proc/self/fd");
	g = run("");
	assert_string_equal(output(1), "0\n1\n2\n3\n4\n");	/* 4 is ls' own */
	(void)close(a);
	(void)close(b);
	(void)close(c);
	got_free(g);
}

FIXTURE_TEST(leads_its_session)
{
	int pid, ppid, group, session;
	struct got *g;

	COMMAND("/bin/cat", "/proc/self/stat");
	g = run("");
	assert_int_equal(sscanf(output(1), "%d (cat) %*c %d %d %d", &pid, &ppid,
	    &group, &session), 4);
	assert_int_equal(pid, g->result.pid);
	assert_int_not_equal(ppid, getpid());		/* the spawner is its parent */
	assert_int_equal(group, pid);
	assert_int_equal(session, pid);
	assert_int_equal(t.out_pid, pid);
	assert_string_equal(t.out_id, "id-7");
	assert_int_equal(t.out_attempt, 3);
	got_free(g);
}

FIXTURE_TEST(umask_nice_limits_directory)
{
	struct got *g;

	t.q->umask = 027;
	t.q->nice = 7;
	t.q->limit_nofile = 99;
	t.q->limit_cpu = 1234;
	t.q->limit_fsize = 4096 * 1024;
	t.q->limit_core = 0;
	t.q->limit_nproc = 7777;
	t.q->limit_as = (uint64_t)3 << 30;
	set(&t.q->directory, "/usr");
	SH("umask; nice; pwd; cat /proc/self/limits; id -u");
	g = run("");
	assert_int_equal(g->result.status, 0);
	expect_line("0027\n");
	expect_line("7\n");
	expect_line("/usr\n");
	expect_line("Max open files            99                   99 ");
	expect_line("Max cpu time              1234                 1235 ");
	expect_line("Max file size             4194304              4194304 ");
	expect_line("Max core file size        0                    0 ");
	expect_line("Max processes             7777                 7777 ");
	expect_line("Max address space         3221225472           3221225472 ");
	got_free(g);
}

FIXTURE_TEST(nothing_set_is_inherited)
{
	mode_t mask = umask(0123);
	struct got *g;
	char want[32];

	t.q->limit_nofile = CONFIG_LIMIT_INHERIT;
	SH("umask; nice; pwd; id -u");
	g = run("");
	(void)umask(mask);
	(void)snprintf(want, sizeof(want), "0123\n%d\n/\n%u\n", getpriority(PRIO_PROCESS, 0),
	    (unsigned)getuid());
	assert_string_equal(output(1), want);
	got_free(g);
}

FIXTURE_TEST(cpu_limit_says_so)
{
	struct got *g;

	t.q->limit_cpu = 1;
	SH("while :; do :; done");
	g = run("");
	assert_int_equal(g->result.end, END_SIGNAL);
	assert_int_equal(g->result.signo, SIGXCPU);
	got_free(g);
}

/* -- orders that must wait ------------------------------------------------------------------- */

/* A start that is too large for the socket is not kept waiting for room that never comes. */
FIXTURE_TEST(too_large_for_the_socket)
{
	struct pollfd orders = { .fd = 2, .events = POLLOUT };
	struct got *g[100], *large;
	int type = 0, n = 0;
	char channel[100000];
	pid_t spawner;

	SH("echo $PPID");
	got_free(run(""));
	spawner = printed_pid();
	while (type != SOCK_SEQPACKET && ++orders.fd < 100)
		(void)getsockopt(orders.fd, SOL_SOCKET, SO_TYPE, &type,
		    &(socklen_t){ sizeof(type) });
	assert_int_equal(setsockopt(orders.fd, SOL_SOCKET, SO_SNDBUF, &(int){ 1 }, sizeof(int)), 0);
	assert_int_equal(kill(spawner, SIGSTOP), 0);
	/* It counts as full when a quarter of it is used. */
	while (n < 80 && poll(&orders, 1, 0) == 1)
		g[n++] = start("");
	assert_true(n < 80);
	while (n < 99)
		g[n++] = start("");
	memset(channel, 'x', sizeof(channel));
	channel[sizeof(channel) - 1] = '\0';
	t.channel = channel;
	large = start("");
	assert_int_equal(kill(spawner, SIGCONT), 0);
	await(&large->done, 1);
	assert_int_equal(large->result.end, END_NOT_STARTED);
	assert_int_equal(large->result.error, E2BIG);
	got_free(large);
	while (n-- > 0) {
		await(&g[n]->done, 1);
		assert_int_equal(g[n]->result.end, END_EXIT);
		got_free(g[n]);
	}
}

/* -- as root ------------------------------------------------------------------------------ */

LAUNCHED_TEST(runs_as_its_user)
{
	struct got *g;

	set(&t.q->user, "nobody");
	SH("id -u; id -un; id -g; id -G; echo $HOME $USER $LOGNAME; cat /dev/stdin;"
	    "grep -c '^CapEff:.0000000000000000$' /proc/self/status");
	g = run("payload\n");
	assert_int_equal(g->result.status, 0);
	assert_string_equal(output(1), "65534\nnobody\n65534\n65534\n"
	    "/nonexistent nobody nobody\npayload\n1\n");
	got_free(g);
}

LAUNCHED_TEST(runs_in_its_group)
{
	struct got *g;

	set(&t.q->user, "65534");
	set(&t.q->group, "daemon");
	SH("id -u; id -g; id -G");
	g = run("");
	assert_string_equal(output(1), "65534\n1\n1\n");
	got_free(g);
}

LAUNCHED_TEST(number_without_a_name)
{
	struct got *g;

	set(&t.q->user, "54321");
	expect_not_started(ENOENT, "user");
	set(&t.q->group, "54322");
	SH("id -u; id -g; id -G; echo $HOME $USER $SHELL");
	g = run("");
	assert_string_equal(output(1), "54321\n54322\n54322\n/ 54321 /bin/sh\n");
	got_free(g);
}

/* The spawner's supplementary groups do not reach the handler. */
LAUNCHED_TEST(groups_of_ours_are_not_its)
{
	const gid_t more[] = { 0, 54323 };
	gid_t ours[256];
	int n = getgroups(ARRAY_LEN(ours), ours);
	struct got *g;

	assert_true(n >= 0);
	assert_int_equal(setgroups(ARRAY_LEN(more), more), 0);
	set(&t.q->user, "nobody");
	SH("id -G");
	g = run("");
	assert_int_equal(setgroups((size_t)n, ours), 0);
	assert_string_equal(output(1), "65534\n");
	got_free(g);
}

LAUNCHED_TEST(root_gets_its_groups)
{
	struct got *g;

	set(&t.q->user, "root");
	SH("id -u; id -g; echo $PATH");
	g = run("");
	assert_string_equal(output(1), "0\n0\n"
	    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n");
	got_free(g);
}

/* The queue's user enters the directory: here it must not. */
LAUNCHED_TEST(directory_of_others)
{
	char dir[] = "/tmp/rqd-test-XXXXXX";

	assert_non_null(mkdtemp(dir));
	set(&t.q->user, "nobody");
	set(&t.q->directory, dir);
	expect_not_started(EACCES, "directory");
	(void)rmdir(dir);
}

LAUNCHED_TEST(no_such_user_or_group)
{
	set(&t.q->user, "no-such-user");
	expect_not_started(ENOENT, "user");
	set(&t.q->user, "nobody");
	set(&t.q->group, "no-such-group");
	expect_not_started(ENOENT, "group");
	set(&t.q->group, "");
	expect_exit("exit 6", 6);
}

/* Run it in a child: as an ordinary user with so many processes, clone() fails. */
static int
start_without_processes(void)
{
	struct rlimit four = { 4, 4 };	/* it, its spawner, and the loader or two handlers */
	struct got *g, *other[2];
	bool ok;

	(void)setrlimit(RLIMIT_NPROC, &four);
	if (setresgid(54321, 54321, 54321) == -1 || setresuid(54321, 54321, 54321) == -1)
		return 1;
	(void)set_up(NULL);
	COMMAND("/bin/sleep", "60");
	for (int i = 0; i < 2; i++)
		other[i] = start("");
	g = run("");
	ok = g->result.end == END_NOT_STARTED && g->result.error == EAGAIN &&
	    strcmp(g->result.step, "clone") == 0;
	got_free(g);
	for (int i = 0; i < 2; i++) {
		handler_stop(other[i]->run, STOP_DRAIN);
		await(&other[i]->done, 1);
		got_free(other[i]);
	}
	return ok && tear_down(NULL) == 0 ? 0 : 2;
}

ROOT_TEST(no_processes_is_not_started)
{
	pid_t pid;
	int status;

	fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(start_without_processes());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* limit_nproc does not fail the start, but a fork of the handler. */
LAUNCHED_TEST(process_limit_is_for_the_handler)
{
	struct got *other, *g;

	set(&t.q->user, "54321");
	set(&t.q->group, "54321");
	t.q->limit_nproc = 1;
	SH("[ \"$RQD_ATTEMPT\" ] && read -r what; [ \"$what\" = wait ] && exec sleep 60; "
	    "(exit 0) 2>/dev/null; exit 9");
	other = start("wait\n");
	g = run("go\n");
	assert_int_equal(g->result.end, END_EXIT);
	assert_int_not_equal(g->result.status, 9);	/* its fork failed */
	handler_stop(other->run, STOP_DRAIN);
	await(&other->done, 1);
	got_free(other);
	got_free(g);
}

/* Run it in a child: the daemon of an ordinary user can run handlers as that user only. */
static int
run_unprivileged(void)
{
	struct got *g;

	if (setresgid(65534, 65534, 65534) == -1 || setresuid(65534, 65534, 65534) == -1)
		return 1;
	(void)set_up(NULL);
	set(&t.q->user, "nobody");
	t.q->limit_nofile = (uint64_t)1 << 40;	/* set to the highest that is allowed */
	SH("exit 8");
	g = run("");
	if (g->result.end != END_EXIT || g->result.status != 8)
		return 2;
	got_free(g);
	close_handler();
	set(&t.q->user, "daemon");
	g = run("");
	if (g->result.end != END_NOT_STARTED || g->result.error != EPERM)
		return 3;
	got_free(g);
	return tear_down(NULL) == 0 ? 0 : 4;
}

ROOT_TEST(unprivileged_daemon)
{
	pid_t pid;
	int status;

	fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(run_unprivileged());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

#ifdef __x86_64__
#define HOSTILE		60321		/* an id without other processes: all are stopped */
#define HELD		(5 * SEC)
#define MANY		10		/* handlers started beside the hostile process */

/* Forks a process of the queue's user that stops all processes of this user for HELD. */
static pid_t
start_hostile(void)
{
	usec_t end = clock_mono() + HELD;
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	closefrom(3);		/* the spawner's socket */
	if (setresgid(HOSTILE, HOSTILE, HOSTILE) == -1 ||
	    setresuid(HOSTILE, HOSTILE, HOSTILE) == -1)
		_exit(1);
	while (clock_mono() < end)
		(void)kill(-1, SIGSTOP);
	_exit(kill(-1, SIGCONT) == 0 || errno == ESRCH ? 0 : 2);
}

/* Whether the process is stopped, or still on its way, before its execve(). */
static bool
is_held_before_exec(pid_t pid)
{
	char path[64], theirs[256], ours[256];
	ssize_t n, m;

	(void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	n = readlink(path, theirs, sizeof(theirs));
	m = readlink("/proc/self/exe", ours, sizeof(ours));
	return n > 0 && n == m && memcmp(theirs, ours, (size_t)n) == 0;
}

/* Sets a directory that takes long to enter, so that most processes are stopped there. */
static void
set_far_directory(const char *end)
{
	char path[4000] = "";

	while (strlen(path) < 3900)
		(void)strcat(path, "/tmp/..");
	(void)strcat(path, end);
	set(&t.q->directory, path);
}

/* Starts handlers until one is stopped before its execve(); returns whether one was. */
static bool
start_beside_hostile(int error)
{
	struct got *g[MANY];
	unsigned held = 0;
	usec_t began;
	siginfo_t si;
	pid_t hostile;
	int i;

	launch();		/* while its loader can look that user up */
	hostile = start_hostile();
	for (i = 0; i < MANY && held == 0; i++) {
		began = clock_mono();
		g[i] = start("");
		assert_true(clock_mono() - began < HELD - 500 * MSEC);
		turn_for(10 * MSEC);
		held += g[i]->run != NULL && g[i]->run->pid != 0 &&
		    is_held_before_exec(g[i]->run->pid);
	}
	(void)kill(hostile, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)hostile, &si, WEXITED | WNOWAIT), 0);
	while (--i >= 0) {
		/* Its pid may become known only now. */
		for (began = clock_mono(); g[i]->done == 0 && clock_mono() - began < PATIENCE;) {
			if (g[i]->run != NULL && g[i]->run->pid != 0)
				(void)kill(g[i]->run->pid, SIGCONT);
			turn_for(10 * MSEC);
		}
		assert_int_equal(g[i]->result.end, error != 0 ? END_NOT_STARTED : END_EXIT);
		assert_int_equal(g[i]->result.error, error);
		got_free(g[i]);
	}
	return held > 0;
}

static void
expect_not_held_up(enum mode mode, const char *directory, int error)
{
	bool held = false;

	log_set_level(LOG_LV_ERROR);	/* a record would open a descriptor for stderr */
	set(&t.q->user, "60321");
	set(&t.q->group, "60321");
	t.q->mode = mode;
	t.q->pipeline = 1;
	t.q->concurrency = MANY;
	set_far_directory(directory);
	for (int i = 0; i < 10 && !held; i++)
		held = start_beside_hostile(error);
	if (!held)
		skip();		/* no process was stopped in time: that shows nothing */
}

/* A user who stops its process before the execve() does not block the daemon. */
LAUNCHED_TEST(stopped_by_its_user)
{
	expect_not_held_up(MODE_EXEC, "/", 0);
}

LAUNCHED_TEST(stopped_and_not_executed)
{
	expect_not_held_up(MODE_EXEC, "/no/such/directory", ENOENT);
}

LAUNCHED_TEST(stopped_persistent)
{
	expect_not_held_up(MODE_PERSISTENT, "/no/such/directory", ENOENT);
}
#endif
