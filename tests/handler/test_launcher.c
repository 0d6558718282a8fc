/*
 * The launcher, and a main process that an attacker has taken over.  Whatever the orders,
 * it starts only the configured command of a configured queue, as that queue's user.
 * It sends no signal to other processes.  It opens only files that the configuration
 * names, and none that another user than root could replace.
 */
#include <config.h>

#include "../unit/unit.h"

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <linux/sched.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "handler/launch_wire.h"
#include "handler/launcher.h"
#include "handler/launcher_serve.h"
#include "config/launch_config.h"
#include "handler/privilege.h"

#define PATIENCE	20000		/* milliseconds */

static struct {
	int			 orders;
	int			 files;
	struct launch_slot	*slots;
	pid_t			 pid;		/* 0: it has ended */
	char			 dir[64];
} t;

/* -- a launcher with one queue ------------------------------------------------------------- */

static int
load(int text UNUSED, int report UNUSED, void *arg UNUSED)
{
	return 0;
}

static char **
words(const char *a, const char *b, const char *c)
{
	char **list = xcalloc(4, sizeof(*list));

	list[0] = xstrdup(a);
	list[1] = b != NULL ? xstrdup(b) : NULL;
	list[2] = c != NULL ? xstrdup(c) : NULL;
	return list;
}

/* Its one queue prints its user, words and capabilities; the id "wait" makes it sleep. */
static struct config *
read_config(int text UNUSED, void *arg UNUSED)
{
	struct config *c = config_new();
	struct queue_config *q = xcalloc(1, sizeof(*q));

	*q = (struct queue_config){
		.name = xstrdup("q"), .file = xstrdup(""), .key = xstrdup("q"),
		.rate = xstrdup(""), .user = xstrdup("daemon"), .group = xstrdup(""),
		.directory = xstrdup("/"), .env_file = xstrdup(""), .umask = -1,
		.limit_nofile = 1024, .limit_as = CONFIG_LIMIT_INHERIT,
		.limit_cpu = CONFIG_LIMIT_INHERIT, .limit_fsize = CONFIG_LIMIT_INHERIT,
		.limit_nproc = CONFIG_LIMIT_INHERIT, .limit_core = CONFIG_LIMIT_INHERIT,
		.env = xcalloc(1, sizeof(char *)), .max_attempts = 25,
		.command = words("/bin/sh", "-c", "id -u; echo \"$RQD_QUEUE $RQD_ID $PATH\"; "
		    "grep -h '^Cap[IPEA]' /proc/self/status | cut -f 2 | sort -u; "
		    "[ \"$RQD_ID\" != wait ] || exec sleep 100"),
	};
	c->file = xstrdup("/none.conf");
	c->redis.password_file = xasprintf("%s/password", t.dir);
	c->redis.tls_ca = xstrdup("");
	c->redis.tls_cert = xstrdup("");
	c->redis.tls_key = xstrdup("");
	c->redis.sentinel_password_file = xstrdup("");
	c->log.target = xasprintf("%s/log", t.dir);
	c->http.listen = xasprintf("unix:%s/http", t.dir);
	c->queues = xreallocarray(c->queues, 2, sizeof(*c->queues));
	c->queues[c->nqueues++] = q;
	c->queues[1] = NULL;
	return c;
}

static void
write_file(const char *name, const char *what)
{
	char *path = xasprintf("%s/%s", t.dir, name);
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(what, f);
	(void)fclose(f);
	free(path);
}

static void	order(int op, uint32_t slot, uint32_t value, const char *bytes, size_t n,
		    const int *fds, size_t nfds);
static bool	answer(int fd, struct launch_reply *, int *got);

static int
set_up(void **state UNUSED)
{
	static struct launcher_ops ops;
	int orders[2], files[2];
	struct launch_reply r;

	ops = launch_config_ops;
	ops.load = load;
	ops.read = read_config;
	strcpy(t.dir, "/tmp/rqd-test.XXXXXX");
	assert_non_null(mkdtemp(t.dir));
	write_file("password", "secret\n");
	write_file("other", "other\n");
	t.slots = mmap(NULL, LAUNCH_SLOTS * sizeof(*t.slots), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, orders), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, files), 0);
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	t.pid = fork();
	if (t.pid == 0) {
		sigset_t all;

		(void)close(orders[0]);
		(void)close(files[0]);
		(void)sigfillset(&all);
		(void)sigprocmask(SIG_SETMASK, &all, NULL);
		launcher_serve(orders[1], files[1], t.slots, &ops, NULL);
	}
	(void)close(orders[1]);
	(void)close(files[1]);
	t.orders = orders[0];
	t.files = files[0];
	order(LAUNCH_LOAD, 0, 0, NULL, 0, NULL, 0);
	assert_true(answer(t.orders, &r, NULL));
	assert_int_equal(r.answer, LAUNCH_LOADED);
	assert_int_equal(r.generation, 1);
	return 0;
}

/* When the orders' socket closes, the launcher must end with status 0. */
static int
tear_down(void **state UNUSED)
{
	char *command = xasprintf("rm -r %s", t.dir);
	int status, r;

	(void)close(t.orders);
	(void)close(t.files);
	r = t.pid == 0 || (waitpid(t.pid, &status, 0) == t.pid && status == 0) ? 0 : -1;
	while (waitpid(-1, NULL, 0) > 0)
		continue;
	(void)munmap(t.slots, LAUNCH_SLOTS * sizeof(*t.slots));
	r |= system(command);
	free(command);
	return r;
}

#define FIXTURE_TEST(name)	ROOT_TEST_WITH(name, set_up, tear_down)

/* -- orders and answers ---------------------------------------------------- */

static void
order_of(int generation, unsigned queue, int op, uint32_t slot, uint32_t value,
    const char *bytes, size_t n, const int *fds, size_t nfds)
{
	struct launch_head head = { .op = (uint32_t)op, .slot = slot,
	    .generation = (uint32_t)generation, .queue = queue, .value = value,
	    .size = (uint32_t)n };
	char all[sizeof(head) + 4096];

	assert_true(n <= 4096);
	memcpy(all, &head, sizeof(head));
	if (n > 0)
		memcpy(all + sizeof(head), bytes, n);
	assert_int_equal(launch_send(LAUNCH_IS_FOR_FILES(op) ? t.files : t.orders, all,
	    sizeof(head) + n, fds, nfds, 0), 0);
}

static void
order(int op, uint32_t slot, uint32_t value, const char *bytes, size_t n, const int *fds,
    size_t nfds)
{
	order_of(1, 0, op, slot, value, bytes, n, fds, nfds);
}

/* Reads an answer; false: the launcher has ended.  *got: the first descriptor, or -1. */
static bool
answer(int fd, struct launch_reply *r, int *got)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int fds[LAUNCH_FDS];
	size_t nfds, i;
	ssize_t n;

	assert_int_equal(poll(&p, 1, PATIENCE), 1);
	n = launch_receive(fd, r, sizeof(*r), fds, &nfds, 0);
	if (got != NULL)
		*got = nfds > 0 ? fds[0] : -1;
	for (i = got != NULL ? 1 : 0; i < nfds; i++)
		(void)close(fds[i]);
	return n == sizeof(*r);
}

/* Starts the queue with these words; returns the reading end of its stdout. */
static int
start(const char *bytes, size_t n, uint32_t slot, struct launch_reply *r)
{
	int out[2];

	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	order(LAUNCH_START, slot, 2, bytes, n, &out[1], 1);
	(void)close(out[1]);
	assert_true(answer(t.orders, r, NULL));
	return out[0];
}

static char *
read_all(int fd)
{
	static char text[4096];
	size_t len = 0;
	ssize_t n;

	while ((n = read(fd, text + len, sizeof(text) - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	(void)close(fd);
	return text;
}

static void
expect_end(void)
{
	struct launch_reply r;

	assert_false(answer(t.orders, &r, NULL));
}

/* -- tests ----------------------------------------------------------------- */

FIXTURE_TEST(what_is_configured_is_started)
{
	static const char w[] = "RQD_ID=7";
	struct launch_reply r;
	int fd = start(w, sizeof(w), 5, &r);

	assert_int_equal(r.answer, LAUNCH_STARTED);
	assert_int_equal(r.slot, 5);
	assert_string_equal(read_all(fd),
	    "1\nq 7 /usr/local/bin:/usr/bin:/bin\n0000000000000000\n");
	assert_int_equal(waitpid(r.pid, NULL, 0), r.pid);	/* it is the test's child */
}

/* An order for a queue or generation that does not exist starts nothing. */
FIXTURE_TEST(nothing_else_is_started)
{
	struct launch_reply r;
	unsigned i;

	for (i = 0; i < 4; i++) {
		order_of(i == 3 ? 99 : 1, i == 0 ? 1 : i == 1 ? 0xffffffff : i == 2 ? 70000 : 0,
		    LAUNCH_START, 1, 0, NULL, 0, NULL, 0);
		assert_true(answer(t.orders, &r, NULL));
		assert_int_equal(r.answer, LAUNCH_FAILED);
	}
	order(LAUNCH_RETIRE, 0, 0, NULL, 0, NULL, 0);	/* its only generation */
	order(LAUNCH_START, 1, 0, NULL, 0, NULL, 0);
	assert_true(answer(t.orders, &r, NULL));
	assert_int_equal(r.answer, LAUNCH_FAILED);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), 0);	/* only the launcher is a child */
}

/* A start with a variable that is not a message's ends the launcher. */
FIXTURE_TEST(no_other_variables)
{
	static const char w[] = "RQD_ID=7\0LD_PRELOAD=/tmp/x.so";

	order(LAUNCH_START, 1, 0, w, sizeof(w), NULL, 0);
	expect_end();
}

FIXTURE_TEST(not_another_queue_s_name)
{
	static const char w[] = "RQD_QUEUE=other";

	order(LAUNCH_START, 1, 0, w, sizeof(w), NULL, 0);
	expect_end();
}

/* Another RQD_ variable, too: getenv() finds it before one of the option env. */
FIXTURE_TEST(not_an_administrator_s_variable)
{
	static const char w[] = "RQD_MODE=test";

	order(LAUNCH_START, 1, 0, w, sizeof(w), NULL, 0);
	expect_end();
}

/* A slot in use is not used again, or its first handler would outlive the daemon. */
FIXTURE_TEST(a_slot_is_used_once)
{
	static const char w[] = "RQD_ID=wait";
	struct launch_reply r, second;
	int fd = start(w, sizeof(w), 3, &r);

	(void)close(start(w, sizeof(w), 3, &second));
	assert_int_equal(second.answer, LAUNCH_FAILED);
	order(LAUNCH_SIGNAL, 3, SIGKILL, NULL, 0, NULL, 0);
	(void)read_all(fd);
	assert_int_equal(waitpid(r.pid, NULL, 0), r.pid);
}

/* No order signals a process that the launcher has not started. */
FIXTURE_TEST(nobody_else_is_signalled)
{
	pid_t other = fork();
	uint32_t i;

	if (other == 0) {
		(void)pause();
		_exit(0);
	}
	for (i = 0; i < 100; i++)
		order(LAUNCH_SIGNAL, i, SIGKILL, NULL, 0, NULL, 0);
	/* A process of the test, the launcher, the test, and its parent. */
	order(LAUNCH_END, 0, (uint32_t)other, NULL, 0, NULL, 0);
	order(LAUNCH_END, 0, (uint32_t)t.pid, NULL, 0, NULL, 0);
	order(LAUNCH_END, 0, (uint32_t)getpid(), NULL, 0, NULL, 0);
	order(LAUNCH_END, 0, (uint32_t)getppid(), NULL, 0, NULL, 0);
	what_is_configured_is_started(NULL);		/* so the orders above were read */
	assert_int_equal(waitpid(other, NULL, WNOHANG), 0);
	(void)kill(other, SIGKILL);
	assert_int_equal(waitpid(other, NULL, 0), other);
}

static void
try_file(const char *path, int error)
{
	struct launch_reply r;
	int fd;

	order(LAUNCH_FILE, 0, 0, path, strlen(path), NULL, 0);
	assert_true(answer(t.files, &r, &fd));
	assert_int_equal(r.error, error);
	assert_int_equal(fd == -1, error != 0);
	if (fd != -1)
		assert_string_equal(read_all(fd), "secret\n");
}

FIXTURE_TEST(only_named_files_are_opened)
{
	char *path = xasprintf("%s/password", t.dir), *other = xasprintf("%s/other", t.dir);
	char *dots = xasprintf("%s/../%s/password", t.dir, t.dir + 5);

	try_file(path, 0);
	try_file("/etc/shadow", EACCES);
	try_file(other, EACCES);
	try_file(dots, EACCES);
	free(path);
	free(other);
	free(dots);
}

/* The launcher opens nothing in a folder that others than root may change. */
FIXTURE_TEST(nothing_is_opened_where_others_write)
{
	char *path = xasprintf("%s/password", t.dir);

	assert_int_equal(chmod(t.dir, 0707), 0);
	try_file(path, EPERM);
	assert_int_equal(chmod(t.dir, 0700), 0);
	assert_int_equal(chown(t.dir, 1, 0), 0);
	try_file(path, EPERM);
	assert_int_equal(chown(t.dir, 0, 0), 0);
	try_file(path, 0);
	free(path);
}

/* Sends an order for a file, which must end with this error; returns the descriptor or -1. */
static int
ask(int op, int generation, int error)
{
	struct launch_reply r;
	int fd;

	order_of(generation, 0, op, 0, 0, NULL, 0, NULL, 0);
	assert_true(answer(t.files, &r, &fd));
	assert_int_equal(r.answer, LAUNCH_OPENED);
	assert_int_equal(r.error, error);
	assert_int_equal(fd == -1, error != 0);
	return fd;
}

FIXTURE_TEST(the_log_is_appended_to)
{
	char *path = xasprintf("%s/log", t.dir), *other = xasprintf("%s/other", t.dir);
	char text[8] = "";
	struct stat st;
	int fd = ask(LAUNCH_LOG, 1, 0), again = ask(LAUNCH_LOG, 1, 0);

	assert_int_equal(write(fd, "ab", 2), 2);
	assert_int_equal(write(again, "cd", 2), 2);
	(void)close(fd);
	(void)close(again);
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	assert_int_equal(read(fd, text, sizeof(text)), 4);
	assert_string_equal(text, "abcd");
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
	assert_int_equal(st.st_uid, 0);
	(void)close(fd);
	(void)ask(LAUNCH_LOG, 2, EINVAL);		/* no such generation */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink(other, path), 0);
	(void)ask(LAUNCH_LOG, 1, ELOOP);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(chown(t.dir, 1, 0), 0);
	(void)ask(LAUNCH_LOG, 1, EPERM);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(chown(t.dir, 0, 0), 0);
	free(path);
	free(other);
}

static bool
answers(const char *path)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool does;

	assert_true(strlen(path) < sizeof(sun.sun_path));
	strcpy(sun.sun_path, path);
	does = connect(fd, (struct sockaddr *)&sun, sizeof(sun)) == 0;
	(void)close(fd);
	return does;
}

FIXTURE_TEST(the_socket_is_listened_on)
{
	char *path = xasprintf("%s/http", t.dir);
	struct stat st;
	int fd = ask(LAUNCH_LISTEN, 1, 0);

	assert_true(answers(path));
	assert_int_equal(lstat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0660);
	(void)ask(LAUNCH_LISTEN, 1, EADDRINUSE);
	assert_true(answers(path));
	(void)close(fd);
	fd = ask(LAUNCH_LISTEN, 1, 0);			/* replaces a socket that nobody serves */
	assert_true(answers(path));
	(void)close(fd);
	order(LAUNCH_UNLISTEN, 0, 0, NULL, 0, NULL, 0);
	/* The answer, about a generation that does not exist, shows that UNLISTEN was read. */
	(void)ask(LAUNCH_LISTEN, 2, EINVAL);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(chmod(t.dir, 0707), 0);
	(void)ask(LAUNCH_LISTEN, 1, EPERM);
	assert_int_equal(access(path, F_OK), -1);
	free(path);
}

FIXTURE_TEST(no_path_of_a_log)
{
	order(LAUNCH_LOG, 0, 0, "/etc/shadow", 11, NULL, 0);
	expect_end();
}

/* Random bytes, and orders with random members: the launcher answers, or ends with status 0. */
FIXTURE_TEST(random_bytes)
{
	struct launch_head head;
	char bytes[128];
	struct launch_reply r;
	unsigned i;
	size_t n, k;

	for (i = 0; i < 20; i++) {
		n = random_u64() % sizeof(bytes) + 1;
		for (k = 0; k < n; k++)
			bytes[k] = (char)random_u64();
		if (n >= sizeof(head)) {
			memcpy(&head, bytes, sizeof(head));
			head.op %= 12;
			head.slot %= 70000;
			head.generation %= 3;
			head.queue %= 3;
			head.size = (uint32_t)(n - sizeof(head));
			memcpy(bytes, &head, sizeof(head));
		}
		if (launch_send(t.orders, bytes, n, NULL, 0, 0) == -1)
			break;
	}
	(void)shutdown(t.orders, SHUT_WR);
	while (answer(t.orders, &r, NULL))
		continue;
}

/* The launcher ends with the main process, even if another process has its sockets. */
FIXTURE_TEST(it_ends_with_the_main_process)
{
	struct { pid_t launcher, heir; } got;
	int fd[2], i;
	pid_t pid, ended = 0;
	char *command;

	assert_int_equal(pipe(fd), 0);
	pid = fork();
	if (pid == 0) {
		if (set_up(NULL) == -1)
			_exit(1);
		command = xasprintf("rm -r %s", t.dir);
		(void)!system(command);
		got.launcher = t.pid;
		got.heir = fork();
		if (got.heir == 0)
			(void)pause();
		(void)!write(fd[1], &got, sizeof(got));
		_exit(0);
	}
	assert_int_equal(read(fd[0], &got, sizeof(got)), sizeof(got));
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	for (i = 0; i < PATIENCE / 10 && ended == 0; i++) {
		ended = waitpid(got.launcher, NULL, WNOHANG);
		(void)usleep(10000);
	}
	(void)kill(got.heir, SIGKILL);
	assert_int_equal(waitpid(got.heir, NULL, 0), got.heir);
	assert_int_equal(ended, got.launcher);
	(void)close(fd[0]);
	(void)close(fd[1]);
}

/* -- what the main process can do by itself -------------------------------- */

/*
 * In a child: drops privileges as the main process does, then tries what an attacker would.
 * Returns 0 if nothing succeeds, else the number of what did.
 */
static int
try_everything(void)
{
	char *const argv[] = { (char *)"/bin/true", NULL };
	char *cause = NULL;

	if (privilege_drop(&cause) == -1 || privilege_seal(&cause) == -1)
		return 1;
	if (getuid() == 0 || geteuid() == 0 || setuid(0) != -1 || setresuid(0, 0, 0) != -1 ||
	    setgroups(0, NULL) != -1)
		return 2;
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		return 3;
#ifndef RQD_SANITIZERS
	if (prctl(PR_GET_DUMPABLE) != 0)
		return 9;
#endif
	if (kill(t.pid, 0) != -1 || errno != EPERM)
		return 4;
	if (ptrace(PTRACE_ATTACH, t.pid, NULL, NULL) != -1)
		return 5;
#ifdef HAVE_SECCOMP
	if (prctl(PR_GET_SECCOMP) != 2)
		return 6;
	if (execv(argv[0], argv) != -1 || errno != EPERM)
		return 7;
	if (syscall(SYS_execveat, AT_FDCWD, argv[0], argv, argv + 1, 0) != -1 || errno != EPERM)
		return 8;
	/* In a user namespace of its own, the process would be root again. */
	if (syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0) != -1 || errno != EPERM)
		return 10;
	if (syscall(SYS_clone3, NULL, 0) != -1 || errno != ENOSYS)
		return 11;
	/* This is no terminal: without the seccomp filter the error would be ENOTTY. */
	if (ioctl(t.orders, TIOCSTI, "x") != -1 || errno != EPERM)
		return 12;
#else
	(void)argv;
#endif
	return 0;
}

FIXTURE_TEST(the_main_process_is_powerless)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(try_everything());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* -- pids that the kernel has given to another process ------------------------------------- */

/* Forks a child with that pid, in a session of its own; -1: this machine cannot do that. */
static pid_t
take_number(pid_t number)
{
	struct clone_args args = { .exit_signal = SIGCHLD, .set_tid = (uintptr_t)&number,
	    .set_tid_size = 1 };
	pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));

	if (pid == 0)
		(void)setsid();
	return pid;
}

/* Returns the pid of a handler that has ended, and whose slot was not released. */
static pid_t
number_of_a_dead_handler(uint32_t slot)
{
	static const char w[] = "RQD_ID=7";
	struct launch_reply r;

	(void)read_all(start(w, sizeof(w), slot, &r));
	assert_int_equal(r.answer, LAUNCH_STARTED);
	assert_int_equal(waitpid(r.pid, NULL, 0), r.pid);
	return r.pid;
}

/* Makes the next process start over a second later: the launcher compares start times. */
static void
let_time_pass(void)
{
	(void)usleep(1500 * 1000);
}

FIXTURE_TEST(a_number_of_another_is_not_swept)
{
	pid_t number = number_of_a_dead_handler(4), other;
	int status;

	let_time_pass();
	other = take_number(number);
	if (other == 0) {
		(void)pause();
		_exit(0);
	}
	if (other == -1)
		skip();
	assert_int_equal(shutdown(t.orders, SHUT_RDWR), 0);
	assert_int_equal(waitpid(t.pid, &status, 0), t.pid);
	assert_int_equal(waitpid(other, NULL, WNOHANG), 0);
	(void)kill(other, SIGKILL);
	assert_int_equal(waitpid(other, NULL, 0), other);
	t.pid = 0;
}

/*
 * Makes a session with this number whose leader has ended, and one process stays, like a
 * daemon.  Returns that process, or -1; *alive is readable (end of file) when it ends.
 */
static pid_t
foreign_group(pid_t number, int *alive)
{
	int fd[2];
	pid_t pid, got = -1;

	assert_int_equal(pipe(fd), 0);
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
	pid = take_number(number);
	if (pid == 0) {
		got = fork();
		if (got == 0) {
			(void)close(fd[0]);
			while (getppid() == number)
				(void)usleep(1000);
			got = getpid();
			(void)!write(fd[1], &got, sizeof(got));
			(void)pause();
		}
		_exit(0);
	}
	(void)close(fd[1]);
	if (pid != -1) {
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		assert_int_equal(read(fd[0], &got, sizeof(got)), sizeof(got));
	}
	*alive = fd[0];
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	return got;
}

FIXTURE_TEST(a_group_of_another_gets_no_signal)
{
	struct pollfd p = { .events = POLLIN };
	pid_t number = number_of_a_dead_handler(4), other = foreign_group(number, &p.fd);

	if (other == -1)
		skip();
	order(LAUNCH_SIGNAL, 4, SIGKILL, NULL, 0, NULL, 0);
	what_is_configured_is_started(NULL);		/* so the order above was read */
	assert_int_equal(poll(&p, 1, 300), 0);
	(void)kill(other, SIGKILL);
	assert_int_equal(poll(&p, 1, PATIENCE), 1);
	(void)close(p.fd);
}
