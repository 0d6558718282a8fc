/*
 * Runs a daemon and kills it at a named point of a message's life.
 *
 *	crashat POINT[:N] LOG COMMAND [ARGUMENT...]
 *
 * The daemon is the unchanged program.  A debugger process sees its system calls, and
 * kills it with SIGKILL in the middle of the Nth one that matches the point.  crashat
 * becomes the command, so signals and exit status are the daemon's own.
 *
 *	SCRIPT-before	a call of that Lua script is about to be written to Redis
 *	SCRIPT-sent	it is written; nothing has been read since
 *	SCRIPT-answered	what Redis said next has been read, and nothing done with it
 *	spawn-before	the spawner is about to be told to start a process
 *	spawn-after	it has been told
 *	exit-before	the spawner's report of an exit is about to be read
 *	exit-after	it has been read
 *	connect-before	the socket is about to be connected
 *	connect-after	it has been
 *	call		any system call, from the first connect() on
 *
 * "term+" before a point: only after SIGTERM has come.
 *
 * LOG gets every piece of settle's calls that was wholly written, so that a test can
 * see whether a result was sent; and at the end a line "CRASH POINT".
 */
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <linux/ptrace.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "handler/spawner_wire.h"
#include "redis/script.h"

#define OPTIONS	(PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC)

enum when { BEFORE, AFTER, ANSWERED };

static struct {
	char			 text[64];
	const struct script	*script;	/* NULL: calls of its own kind */
	long			 call;		/* -1: any; else its number */
	enum when		 when;
	bool			 term;
	long			 left;		/* times until it strikes */
} point;

static pid_t daemon_pid;
static int log_fd;
static const struct script *settle[3];	/* of kinds "ack" and "stream", and of groups */
static bool termed;		/* SIGTERM has come */
static bool connected;		/* connect() was called */
static unsigned running;	/* handlers, as the spawner has reported */

/* Of the system call that the daemon is in: */
static struct __ptrace_syscall_info entry;
static bool matches;		/* it is the point */
static char *settling;		/* settle's calls of what it writes; NULL: none */
static size_t settling_len, writing_len;
static int awaited = -1;	/* descriptor whose next reading is the point */

static void __attribute__((__noreturn__))
fail(const char *what)
{
	dprintf(2, "crashat: %s: %s\n", what, strerror(errno));
	_exit(99);
}

static void
point_parse(const char *arg)
{
	static const char *const whens[] = { "-before", "-after", "-sent", "-answered" };
	static const enum when values[] = { BEFORE, AFTER, AFTER, ANSWERED };
	static const struct { const char *name; long call; } calls[] = {
		{ "spawn", SYS_sendmsg }, { "exit", SYS_recvmsg }, { "connect", SYS_connect },
		{ "call", -1 },
	};
	const char *colon = strchr(arg, ':');
	char *p = point.text;
	size_t i;

	snprintf(point.text, sizeof(point.text), "%.*s",
	    (int)(colon != NULL ? (size_t)(colon - arg) : strlen(arg)), arg);
	point.left = colon != NULL ? atol(colon + 1) : 1;
	if (strncmp(p, "term+", 5) == 0) {
		point.term = true;
		p += 5;
	}
	for (i = 0; i < 4; i++) {
		char *at = strstr(p, whens[i]);

		if (at != NULL && at[strlen(whens[i])] == '\0') {
			*at = '\0';
			point.when = values[i];
		}
	}
	for (i = 0; i < 4 && strcmp(p, calls[i].name) != 0; i++)
		;
	if (i < 4)
		point.call = calls[i].call;
	else if ((point.script = script_find(p)) == NULL) {
		dprintf(2, "crashat: no such point: %s\n", arg);
		_exit(64);
	}
	snprintf(point.text, sizeof(point.text), "%s", arg);
}

static void __attribute__((__noreturn__))
crash(void)
{
	kill(daemon_pid, SIGKILL);
	dprintf(log_fd, "\nCRASH %s\n", point.text);
	_exit(0);
}

/* The daemon is at the point: whether it is the Nth time. */
static bool
strikes(void)
{
	return (!point.term || termed) && --point.left == 0;
}

/* -- what the daemon does ----------------------------------------------------- */

static bool
is_write(void)
{
	return entry.entry.nr == SYS_write || entry.entry.nr == SYS_sendto;
}

static bool
is_read(void)
{
	return entry.entry.nr == SYS_read || entry.entry.nr == SYS_recvfrom;
}

/* The bytes that the process is about to write; the caller frees them. */
static char *
written(size_t *len)
{
	char *bytes = malloc(entry.entry.args[2] + 1);
	struct iovec to = { bytes, entry.entry.args[2] };
	struct iovec from = { (void *)(uintptr_t)entry.entry.args[1], entry.entry.args[2] };
	ssize_t n;

	if (bytes == NULL)
		abort();
	n = process_vm_readv(daemon_pid, &to, 1, &from, 1, 0);
	*len = n > 0 ? (size_t)n : 0;
	return bytes;
}

static bool
holds(const char *bytes, size_t len, const struct script *s)
{
	return s != NULL && memmem(bytes, len, s->sha, strlen(s->sha)) != NULL;
}

/*
 * Keeps only settle's calls, since a renewal beside them has tags, too.  False: there
 * are none.
 */
static bool
keep_settles(char *bytes, size_t len)
{
	static const char word[] = "EVALSHA";
	char *at = memmem(bytes, len, word, strlen(word)), *next, *end = bytes + len;

	for (settling_len = 0; at != NULL; at = next) {
		next = memmem(at + 1, (size_t)(end - at - 1), word, strlen(word));
		len = (size_t)((next != NULL ? next : end) - at);
		if (!holds(at, len, settle[0]) && !holds(at, len, settle[1]) &&
		    !holds(at, len, settle[2]))
			continue;
		memmove(bytes + settling_len, at, len);
		settling_len += len;
	}
	return settling_len > 0;
}

static void
on_write(void)
{
	size_t len;
	char *bytes = written(&len);

	matches = holds(bytes, len, point.script);
	writing_len = len;
	if (keep_settles(bytes, len))
		settling = bytes;
	else
		free(bytes);
}

/* Whether it connects to Redis; the C library also connects to nscd, for users. */
static bool
is_connect(void)
{
	struct sockaddr_un address = { 0 };
	struct iovec to = { &address, sizeof(address) - 1 };
	struct iovec from = { (void *)(uintptr_t)entry.entry.args[1], sizeof(address) - 1 };

	if (entry.entry.nr != SYS_connect)
		return false;
	if (from.iov_len > entry.entry.args[2])
		from.iov_len = entry.entry.args[2];
	(void)process_vm_readv(daemon_pid, &to, 1, &from, 1, 0);
	return address.sun_family != AF_UNIX || strstr(address.sun_path, "nscd") == NULL;
}

/* The message of sendmsg(2) or recvmsg(2). */
static struct msghdr
message(void)
{
	struct msghdr m = { .msg_controllen = 0 };
	struct iovec to = { &m, sizeof(m) };
	struct iovec from = { (void *)(uintptr_t)entry.entry.args[1], sizeof(m) };

	(void)process_vm_readv(daemon_pid, &to, 1, &from, 1, 0);
	return m;
}

/* Whether a handler is to be started: only such an order has descriptors. */
static bool
is_spawn(void)
{
	return entry.entry.nr == SYS_sendmsg && message().msg_controllen > 0;
}

/* Counts the handlers in the spawner's reports; returns how many have ended. */
static unsigned
take_reports(long len)
{
	struct spawner_reply r[SPAWNER_REPLIES];
	struct msghdr m = message();
	struct iovec to = { r, sizeof(r) }, iov = { .iov_len = 0 };
	struct iovec from = { m.msg_iov, sizeof(iov) }, at = { &iov, sizeof(iov) };
	unsigned exits = 0;

	if (process_vm_readv(daemon_pid, &at, 1, &from, 1, 0) != (ssize_t)sizeof(iov) ||
	    len <= 0 || (size_t)len > sizeof(r) || (size_t)len % sizeof(*r) != 0)
		return 0;
	iov.iov_len = to.iov_len = (size_t)len;
	if (process_vm_readv(daemon_pid, &to, 1, &iov, 1, 0) != (ssize_t)len)
		return 0;
	for (size_t i = 0; i < (size_t)len / sizeof(*r); i++) {
		running += r[i].answer == SPAWNER_STARTED;
		exits += r[i].answer == SPAWNER_EXITED;
	}
	running -= exits;
	return exits;
}

/* Whether this call is the point. */
static bool
is_point_call(void)
{
	if (point.script != NULL || !connected)
		return false;
	if (point.call == SYS_connect)
		return is_connect();
	if (point.call == SYS_sendmsg)
		return is_spawn();
	if (point.call == SYS_recvmsg)
		return entry.entry.nr == SYS_recvmsg && (point.when == AFTER || running > 0);
	return point.call == -1;
}

static void
on_entry(void)
{
	matches = false;
	connected = connected || is_connect();
	if (is_write())
		on_write();
	if (point.script == NULL)
		matches = is_point_call();
	if (matches && point.when == BEFORE && strikes())
		crash();
}

static void
on_exit_call(long result)
{
	bool whole = settling != NULL && result == (long)writing_len;

	if (whole && write(log_fd, settling, settling_len) == -1)
		fail("log");
	free(settling);
	settling = NULL;
	if (entry.entry.nr == SYS_recvmsg && take_reports(result) == 0)
		matches = false;
	if (awaited != -1 && is_read() && (int)entry.entry.args[0] == awaited && result > 0)
		crash();
	if (!matches || result < 0)
		return;
	if (point.when == ANSWERED && strikes())
		awaited = (int)entry.entry.args[0];
	else if (point.when == AFTER && strikes())
		crash();
}

static void
on_syscall(void)
{
	struct __ptrace_syscall_info info;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, daemon_pid, sizeof(info), &info) == -1)
		return;
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
		entry = info;
		on_entry();
	} else if (info.op == PTRACE_SYSCALL_INFO_EXIT) {
		on_exit_call((long)info.exit.rval);
	}
}

/* -- the debugger ------------------------------------------------------------- */

static void
trace(void)
{
	int status, signo;

	while (waitpid(daemon_pid, &status, __WALL) == daemon_pid && WIFSTOPPED(status)) {
		signo = WSTOPSIG(status);
		if (signo == (SIGTRAP | 0x80)) {
			on_syscall();
			signo = 0;
		} else if (status >> 16 != 0) {		/* an event, or a group stopped */
			if (status >> 16 == PTRACE_EVENT_STOP && signo == SIGSTOP) {
				ptrace(PTRACE_LISTEN, daemon_pid, 0, 0);
				continue;
			}
			signo = 0;
		} else if (signo == SIGTERM) {
			termed = true;
		}
		ptrace(PTRACE_SYSCALL, daemon_pid, 0, signo);
	}
}

/*
 * The debugger must not be a child of the daemon, which would find a child that it
 * never made.
 */
static void
debugger(int ready)
{
	int status;

	if (ptrace(PTRACE_SEIZE, daemon_pid, 0, OPTIONS) == -1 ||
	    ptrace(PTRACE_INTERRUPT, daemon_pid, 0, 0) == -1 ||
	    waitpid(daemon_pid, &status, __WALL) == -1 ||
	    ptrace(PTRACE_SYSCALL, daemon_pid, 0, 0) == -1)
		fail("ptrace");
	if (write(ready, "", 1) != 1)
		fail("pipe");
	close(ready);
	trace();
	_exit(0);
}

int
main(int argc, char **argv)
{
	int fd[2];
	pid_t pid;
	char c;

	if (argc < 4)
		return 64;
	settle[0] = script_find("settle");
	settle[1] = script_find("stream_settle");
	settle[2] = script_find("groups_settle");
	point_parse(argv[1]);
	log_fd = open(argv[2], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
	if (log_fd == -1 || pipe2(fd, O_CLOEXEC) == -1)
		fail(argv[2]);
	daemon_pid = getpid();
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	if ((pid = fork()) == -1)
		fail("fork");
	if (pid == 0) {
		if (fork() == 0)
			debugger(fd[1]);
		_exit(0);
	}
	close(fd[1]);
	waitpid(pid, NULL, 0);
	if (read(fd[0], &c, 1) != 1)
		return 99;
	execv(argv[3], argv + 3);
	fail(argv[3]);
}
