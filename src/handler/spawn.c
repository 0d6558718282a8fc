/*
 * Starting a command.
 *
 * clone(2) with CLONE_VM: the child runs in our memory, on a stack and with words
 * of its own (a room), until it calls execve(2).  The cost does not depend on how
 * much memory the process has.
 *
 * We go on meanwhile.  So the next child can be started before this one has come to
 * execve(), which on two processors is worth half as many starts again.  And
 * nothing that delays the child delays us: a directory on a server that is gone,
 * or the user that it has become, who may stop it.
 *
 * The price is discipline between clone() and execve():
 * - All signals are blocked, and the child has every disposition back at its
 *   default before it unblocks them: no handler of ours runs in it.
 * - It makes raw system calls only.  Nothing of libc that allocates, locks or
 *   synchronises threads (as setuid(3) does), and no instrumented code.  They must
 *   not touch errno, which is ours as well: hence raw().
 *
 * A launcher starts children whose user is another one.  That user may send signals
 * to the child from the change of ids on.  So the child makes its memory not
 * dumpable, and holds its limit of core dumps at one byte (which rules out pipes,
 * too) until the last moment.  The memory is the launcher's, which never holds a
 * message.
 *
 * Where sharing memory is not possible a launcher forks; another process waits with
 * CLONE_VFORK: its children have its own user.  valgrind and other emulators turn such a
 * clone into a fork(2).  set_up() finds that out; a close-on-exec pipe then tells
 * when execve() is over.
 */
#include "handler/spawn.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "handler/spawn_private.h"

#define STACK_SIZE	((size_t)64 * 1024)
#define ROOM_KEPT	((size_t)64 * 1024)	/* of memory, for the next one */

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC	(1U << 2)
#endif

static const char *const step_names[] = {
	[STEP_NONE] = "", [STEP_CLONE] = "clone", [STEP_SETSID] = "setsid",
	[STEP_SIGNALS] = "signals", [STEP_NULL] = "/dev/null",
	[STEP_DUP] = "dup", [STEP_LIMIT] = "limit", [STEP_NICE] = "nice",
	[STEP_GROUPS] = "setgroups", [STEP_GID] = "setgid",
	[STEP_UID] = "setuid", [STEP_DUMPABLE] = "dumpable", [STEP_CAPS] = "capset",
	[STEP_ENV_FILE] = "env_file", [STEP_CHDIR] = "directory",
	[STEP_CLOSE] = "close", [STEP_EXEC] = "exec", [STEP_USER] = "user",
	[STEP_GROUP] = "group", [STEP_LAUNCHER] = "launcher"
};
_Static_assert(ARRAY_LEN(step_names) == STEP_MAX, "a step has no name");

/* Signals whose dispositions the daemon changes by itself, now and then. */
#define DAEMONS_SIGNALS	(SIGNAL_BIT(SIGHUP) | SIGNAL_BIT(SIGINT) | \
    SIGNAL_BIT(SIGTERM) | SIGNAL_BIT(SIGUSR1) | SIGNAL_BIT(SIGUSR2) | \
    SIGNAL_BIT(SIGPIPE) | SIGNAL_BIT(SIGXFSZ))

static struct room		*rooms;

/* Set up by the first call, and kept: a child that is waited for is in here. */
static char			*stack;		/* its end; stacks grow down */
static volatile struct spawn_report *report;
static volatile int		 child_ran;	/* stays 0 where the memory is a copy */
static bool			 has_close_range;
static uint64_t			 signals;	/* those that a child must reset */
static enum { MEMORY_UNKNOWN, MEMORY_SHARED, MEMORY_COPIED } memory;
/* -- the parent ------------------------------------------------------------------ */

/* A stack with a guard below it, and room above; returns where that begins. */
static char *
map_stack(size_t room)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *p;

	p = mmap(NULL, page + STACK_SIZE + room, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED || mprotect(p, page, PROT_NONE) == -1)
		fatal_os("cannot map a stack: %s", strerror(errno));
	return p + page + STACK_SIZE;
}

/* Older kernels (before 5.11): descriptors that libraries or our parent left open. */
static void
mark_cloexec(void)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *d;
	int fd;

	if (dir == NULL)
		return;
	while ((d = readdir(dir)) != NULL) {
		fd = atoi(d->d_name);
		if (fd > 2)
			(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	}
	(void)closedir(dir);
}

/*
 * Those that exec would leave ignored, and those that have a handler.  By the
 * raw call: libc hides the two signals that it keeps for itself, which our own
 * parent may have ignored.  The handler is the first word of the kernel's struct.
 */
void
spawn_look_at_signals(void)
{
	uint64_t action[KERNEL_ACTION / sizeof(uint64_t)];
	int signo;

	signals = DAEMONS_SIGNALS;
	for (signo = 1; signo <= 64; signo++) {
		if (syscall(SYS_rt_sigaction, signo, NULL, action, KERNEL_SIGSET) == 0 &&
		    action[0] != 0)
			signals |= SIGNAL_BIT(signo);
	}
}

/* This pid is another's now: nobody will ask about its predecessor. */
static void
forget_predecessor(pid_t pid)
{
	struct room *r;

	for (r = rooms; r != NULL; r = r->next) {
		if (r->pid == pid)
			r->report.error = 0;
	}
}

static pid_t
clone_child(struct spawn_job *j, char *end, int flags, int *busy)
{
	sigset_t all, old;
	pid_t pid;
	int error;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &old);
	pid = clone(spawn_child, end, flags | SIGCHLD, j, NULL, NULL, busy);
	error = errno;
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	if (pid != -1)
		forget_predecessor(pid);
	errno = error;
	return pid;
}

/* Acquires: what the child wrote before is there. */
static bool
is_busy(const struct room *r)
{
	return __atomic_load_n(&r->busy, __ATOMIC_ACQUIRE) != 0;
}

/* -- what this machine can do ------------------------------------------------------- */

CHILD static int
probe(void *arg UNUSED)
{
	child_ran = 1;
	return 0;
}

/* With CLONE_VFORK the child is over when clone(2) returns. */
static void
probe_memory(void)
{
	sigset_t all, old;
	int status;
	pid_t pid;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &old);
	pid = clone(probe, stack, CLONE_VM | CLONE_VFORK, NULL);
	if (pid != -1) {
		while (waitpid(pid, &status, __WALL) == -1 && errno == EINTR)
			continue;
		memory = child_ran ? MEMORY_SHARED : MEMORY_COPIED;
	}
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
}

static void
set_up(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (stack == NULL) {
		stack = map_stack(0);
		report = mmap(NULL, page, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (report == MAP_FAILED)
			fatal_os("cannot map shared memory: %s", strerror(errno));
		has_close_range = syscall(SYS_close_range, UINT_MAX, UINT_MAX,
		    CLOSE_RANGE_CLOEXEC) == 0;
	}
	if (memory == MEMORY_UNKNOWN)
		probe_memory();
	if (signals == 0)
		spawn_look_at_signals();
}

/* -- waiting for it --------------------------------------------------------------- */

/* Waits until no process but ours holds the writing end: execve() or exit is over. */
static void
wait_exec(int fd[2])
{
	char c;

	(void)close(fd[1]);
	while (read(fd[0], &c, 1) == -1 && errno == EINTR)
		continue;
	(void)close(fd[0]);
}

static pid_t
run_waited(const struct spawn *s, enum spawn_step *step)
{
	struct spawn_job job = { .spawn = s, .report = report, .signals = signals,
	    .parent = getpid(), .has_close_range = has_close_range };
	int fd[2], error;
	pid_t pid;

	if (!has_close_range)
		mark_cloexec();
	if (memory != MEMORY_SHARED && pipe2(fd, O_CLOEXEC) == -1)
		return -1;
	report->step = STEP_NONE;
	report->error = 0;
	pid = clone_child(&job, stack, CLONE_VM | CLONE_VFORK, NULL);
	error = errno;
	if (memory != MEMORY_SHARED)
		wait_exec(fd);
	if (pid != -1 && report->error != 0) {
		error = report->error;
		*step = (enum spawn_step)report->step;
		pid = -1;
	}
	errno = error;
	return pid;
}

/* -- not waiting for it -------------------------------------------------------------------- */

/* Whether raw() leaves errno alone. */
#if defined(__x86_64__) || defined(__aarch64__)
static const bool has_raw_calls = true;
#else
static const bool has_raw_calls = false;
#endif

static struct room *
free_room(void)
{
	struct room *r;

	for (r = rooms; r != NULL; r = r->next) {
		if (!is_busy(r) && r->report.error == 0)
			return r;
	}
	r = (struct room *)(void *)map_stack(sizeof(*r));
	r->next = rooms;
	rooms = r;
	return r;
}

/* What a large environment has taken is given back. */
static void
clear(struct room *r)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = ((uintptr_t)r->text + ROOM_KEPT + page - 1) & ~(page - 1);
	uintptr_t to = (uintptr_t)(r->text + r->used);

	if (to > from)
		(void)madvise((void *)from, to - from, MADV_DONTNEED);
	r->used = 0;
}

/* NULL: there is no space. */
static void *
copy(struct room *r, const void *p, size_t n)
{
	char *to = r->text + r->used;

	if (n > sizeof(r->text) - r->used)
		return NULL;
	if (n > 0)
		memcpy(to, p, n);
	r->used += (n + 7) & ~(size_t)7;
	if (r->used > sizeof(r->text))
		r->used = sizeof(r->text);
	return to;
}

static char *const *
copy_words(struct room *r, char *const *words)
{
	size_t n = 0, i;
	char **to;

	while (words[n] != NULL)
		n++;
	to = copy(r, words, (n + 1) * sizeof(*words));
	for (i = 0; to != NULL && i < n; i++) {
		to[i] = copy(r, words[i], strlen(words[i]) + 1);
		if (to[i] == NULL)
			return NULL;
	}
	return to;
}

static bool
copy_proxy(struct room *r, const struct spawn_proxy *p)
{
	struct spawn_proxy *to = copy(r, p, sizeof(*p));

	r->spawn.proxy = to;
	if (to == NULL)
		return false;
	to->message = copy(r, p->message, p->size);
	return to->message != NULL;
}

/* All that the child looks at; false where it does not fit. */
static bool
copy_spawn(struct room *r, const struct spawn *s)
{
	clear(r);
	r->spawn = *s;
	r->spawn.argv = copy_words(r, s->argv);
	r->spawn.envp = copy_words(r, s->envp);
	r->spawn.directory = copy(r, s->directory, strlen(s->directory) + 1);
	r->spawn.limits = copy(r, s->limits, s->nlimits * sizeof(*s->limits));
	r->spawn.groups = copy(r, s->groups, s->ngroups * sizeof(*s->groups));
	if (s->env_file != NULL)
		r->spawn.env_file = copy(r, s->env_file, strlen(s->env_file) + 1);
	if (s->proxy != NULL && !copy_proxy(r, s->proxy))
		return false;
	return r->spawn.argv != NULL && r->spawn.envp != NULL &&
	    r->spawn.directory != NULL && r->spawn.limits != NULL &&
	    r->spawn.groups != NULL && (s->env_file == NULL || r->spawn.env_file != NULL);
}

/* Sharing memory, or in a copy of it. */
static pid_t
run_in_room(const struct spawn *s, bool shares, enum spawn_step *step)
{
	struct room *r = free_room();
	int flags = s->proxy != NULL ? CLONE_PARENT : 0;

	*step = STEP_EXEC;
	errno = E2BIG;
	if (!copy_spawn(r, s))
		return -1;
	*step = STEP_CLONE;
	r->report = (struct spawn_report){ STEP_NONE, 0 };
	r->job = (struct spawn_job){
		.spawn = &r->spawn, .room = r, .signals = signals, .shares = shares,
		.has_close_range = has_close_range,
		.report = s->proxy != NULL ? s->proxy->report : &r->report,
		.parent = s->proxy != NULL ? getppid() : getpid()
	};
	if (!has_close_range)
		mark_cloexec();
	r->pid = 0;
	r->busy = shares;
	r->pid = clone_child(&r->job, (char *)r,
	    flags | (shares ? CLONE_VM | CLONE_CHILD_CLEARTID : 0), &r->busy);
	if (r->pid == -1)
		r->busy = 0;
	return r->pid;
}

pid_t
spawn_start(const struct spawn *s, enum spawn_step *step)
{
	bool shares;

	set_up();
	*step = STEP_CLONE;
	shares = has_raw_calls && memory == MEMORY_SHARED && has_close_range;
	if (shares || s->proxy != NULL)
		return run_in_room(s, shares, step);
	return run_waited(s, step);
}

int
spawn_exited(pid_t pid, enum spawn_step *step)
{
	struct room *r;
	int error = 0;

	for (r = rooms; r != NULL; r = r->next) {
		if (r->pid != pid || r->report.error == 0)
			continue;
		error = r->report.error;
		*step = (enum spawn_step)r->report.step;
		r->report.error = 0;
	}
	return error;
}

const char *
spawn_step_name(enum spawn_step step)
{
	return (unsigned)step < STEP_MAX ? step_names[step] : "";
}

void
spawn_close(const int fd[3])
{
	int i, error = errno;

	for (i = 0; i < 3; i++) {
		if (fd[i] != -1)
			(void)close(fd[i]);
	}
	errno = error;
}
