/*
 * Starting a command.
 *
 * clone(2) with CLONE_VM and CLONE_VFORK: the child runs in our memory, on a
 * stack of its own, while we are suspended, until it calls execve(2).  The cost
 * does not depend on how much memory the daemon has.
 *
 * The price is discipline between clone() and execve():
 * - All signals are blocked, and the child has every disposition back at its
 *   default before it unblocks them: no handler of ours runs in it.
 * - It makes raw system calls only.  Nothing of libc that allocates, locks or
 *   synchronises threads (as setuid(3) does), and no instrumented code.
 * - Changing ids makes the memory, which is ours too, not dumpable.  That keeps
 *   the target user from looking into it through the child; afterwards we make
 *   it dumpable again, or we would never dump core.
 *
 * What failed is written to a shared page.  valgrind and other emulators turn
 * such a clone into a fork(2): the memory is then a copy, and we are not
 * suspended.  The first call finds that out, by a variable that the child sets;
 * where it is so, a close-on-exec pipe tells when execve() is over.
 */
#include "handler/spawn.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Code that runs between clone() and execve(). */
#define CHILD	__attribute__((__noinline__, __no_sanitize__("address"), \
    __no_sanitize__("undefined"))) static

#define STACK_SIZE	((size_t)64 * 1024)
#define KERNEL_SIGSET	8		/* bytes in the kernel's sigset_t */
#define KERNEL_ACTION	64		/* at least those in its struct sigaction */

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC	(1U << 2)
#endif
#ifdef SYS_setresuid32			/* 32-bit machines: ids of 32 bits */
#define SYS_SETRESUID	SYS_setresuid32
#define SYS_SETRESGID	SYS_setresgid32
#define SYS_SETGROUPS	SYS_setgroups32
#else
#define SYS_SETRESUID	SYS_setresuid
#define SYS_SETRESGID	SYS_setresgid
#define SYS_SETGROUPS	SYS_setgroups
#endif

enum step {
	STEP_NONE, STEP_SETSID, STEP_SIGNALS, STEP_NULL, STEP_DUP, STEP_LIMIT,
	STEP_NICE, STEP_GROUPS, STEP_GID, STEP_UID, STEP_CHDIR, STEP_CLOSE,
	STEP_EXEC, STEP_MAX
};

static const char *const step_names[] = {
	[STEP_NONE] = "clone", [STEP_SETSID] = "setsid",
	[STEP_SIGNALS] = "signals", [STEP_NULL] = "/dev/null",
	[STEP_DUP] = "dup", [STEP_LIMIT] = "limit", [STEP_NICE] = "nice",
	[STEP_GROUPS] = "setgroups", [STEP_GID] = "setgid",
	[STEP_UID] = "setuid", [STEP_CHDIR] = "directory",
	[STEP_CLOSE] = "close", [STEP_EXEC] = "exec"
};
_Static_assert(ARRAY_LEN(step_names) == STEP_MAX, "a step has no name");

/* Written by the child, in memory that a fork shares too. */
struct report {
	int	step;		/* enum step; STEP_NONE: nothing failed */
	int	error;		/* valid unless STEP_NONE */
};

#define SIGNAL_BIT(signo)	((uint64_t)1 << ((signo) - 1))

/* Signals whose dispositions the daemon changes by itself, now and then. */
#define DAEMONS_SIGNALS	(SIGNAL_BIT(SIGHUP) | SIGNAL_BIT(SIGINT) | \
    SIGNAL_BIT(SIGTERM) | SIGNAL_BIT(SIGUSR1) | SIGNAL_BIT(SIGUSR2) | \
    SIGNAL_BIT(SIGPIPE) | SIGNAL_BIT(SIGXFSZ))

/* What the child needs; on our stack, which stands still meanwhile. */
struct job {
	const struct spawn	*spawn;
	pid_t			 parent;
};

/* Set up by the first call, and kept: one child at a time is in here. */
static char			*stack;		/* lowest address; the page below is a guard */
static volatile struct report	*report;
static volatile int		 child_ran;	/* stays 0 where the memory is a copy */
static bool			 has_close_range;
static uint64_t			 signals;	/* those that a child must reset */
static enum { MEMORY_UNKNOWN, MEMORY_SHARED, MEMORY_COPIED } memory;

/* -- the child ------------------------------------------------------------------ */

CHILD NORETURN void
fail(enum step step)
{
	report->error = errno;
	report->step = (int)step;
	for (;;)
		(void)syscall(SYS_exit_group, 127);
}

CHILD void
set_signals(void)
{
	uint64_t dfl[KERNEL_ACTION / sizeof(uint64_t)];
	size_t i;
	int signo;

	for (i = 0; i < ARRAY_LEN(dfl); i++)
		dfl[i] = 0;
	for (signo = 1; signo <= 64; signo++) {
		if ((signals & SIGNAL_BIT(signo)) == 0)
			continue;
		if (syscall(SYS_rt_sigaction, signo, dfl, NULL, KERNEL_SIGSET) == -1)
			fail(STEP_SIGNALS);
	}
}

/* First all out of the way of 0 to 2, so that none overwrites another. */
CHILD void
set_fds(const struct spawn *s)
{
	int fd[3], i;

	for (i = 0; i < 3; i++) {
		fd[i] = s->fd[i];
		if (fd[i] == -1)
			fd[i] = (int)syscall(SYS_openat, AT_FDCWD, "/dev/null",
			    O_RDWR | O_CLOEXEC);
		if (fd[i] == -1)
			fail(STEP_NULL);
		if (fd[i] < 3)
			fd[i] = (int)syscall(SYS_fcntl, fd[i], F_DUPFD_CLOEXEC, 3);
		if (fd[i] == -1)
			fail(STEP_DUP);
	}
	for (i = 0; i < 3; i++) {
		if (syscall(SYS_dup3, fd[i], i, 0) == -1)
			fail(STEP_DUP);
	}
	if (has_close_range &&
	    syscall(SYS_close_range, 3, UINT_MAX, CLOSE_RANGE_CLOEXEC) == -1)
		fail(STEP_CLOSE);
}

/* A limit means "at most": where the hard one may not be changed, it is kept. */
CHILD void
set_limit(const struct spawn_limit *l)
{
	uint64_t new[2] = { l->value.rlim_cur, l->value.rlim_max }, old[2];

	if (syscall(SYS_prlimit64, 0, l->resource, new, NULL) == 0)
		return;
	if (errno != EPERM ||
	    syscall(SYS_prlimit64, 0, l->resource, NULL, old) == -1)
		fail(STEP_LIMIT);
	new[0] = new[0] < old[1] ? new[0] : old[1];
	new[1] = old[1];
	if (syscall(SYS_prlimit64, 0, l->resource, new, NULL) == -1)
		fail(STEP_LIMIT);
}

/*
 * RLIMIT_NPROC comes after the change of user: set before it, execve() would
 * fail where the user has that many processes already.
 */
CHILD void
set_limits(const struct spawn *s, bool nproc)
{
	size_t i;

	for (i = 0; i < s->nlimits; i++) {
		if ((s->limits[i].resource == RLIMIT_NPROC) == nproc)
			set_limit(&s->limits[i]);
	}
}

CHILD void
set_ids(const struct spawn *s)
{
	gid_t g = s->gid;
	uid_t u = s->uid;

	if (s->ngroups > 0 &&
	    syscall(SYS_SETGROUPS, s->ngroups, s->groups) == -1)
		fail(STEP_GROUPS);
	if (g != (gid_t)-1 && syscall(SYS_SETRESGID, g, g, g) == -1)
		fail(STEP_GID);
	if (u != (uid_t)-1 && syscall(SYS_SETRESUID, u, u, u) == -1)
		fail(STEP_UID);
}

/* The kernel kills us with the daemon; but it may be dead already. */
CHILD void
tie_to_parent(const struct job *j)
{
	(void)syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if ((pid_t)syscall(SYS_getppid) != j->parent)
		fail(STEP_NONE);
}

CHILD int
child_main(void *arg)
{
	const struct job *j = arg;
	const struct spawn *s = j->spawn;
	uint64_t none[KERNEL_SIGSET / sizeof(uint64_t)] = { 0 };

	if (s->slot != NULL)
		*s->slot = (pid_t)syscall(SYS_getpid);
	child_ran = 1;
	if (syscall(SYS_setsid) == -1)
		fail(STEP_SETSID);
	set_signals();
	set_fds(s);
	set_limits(s, false);
	if (s->umask != -1)
		(void)syscall(SYS_umask, s->umask);
	if (s->nice != 0 &&
	    syscall(SYS_setpriority, PRIO_PROCESS, 0, s->nice) == -1)
		fail(STEP_NICE);
	set_ids(s);
	set_limits(s, true);
	tie_to_parent(j);
	if (syscall(SYS_chdir, s->directory) == -1)
		fail(STEP_CHDIR);
	(void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, none, NULL, KERNEL_SIGSET);
	(void)syscall(SYS_execve, s->argv[0], s->argv, s->envp);
	fail(STEP_EXEC);
}

/* -- the parent ------------------------------------------------------------------ */

static void
set_up(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *p;

	p = mmap(NULL, page + STACK_SIZE, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED || mprotect(p, page, PROT_NONE) == -1)
		fatalx("cannot map a stack: %s", strerror(errno));
	report = mmap(NULL, page, PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (report == MAP_FAILED)
		fatalx("cannot map shared memory: %s", strerror(errno));
	stack = p + page;
	has_close_range = syscall(SYS_close_range, UINT_MAX, UINT_MAX,
	    CLOSE_RANGE_CLOEXEC) == 0;
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

static bool
changes_ids(const struct spawn *s)
{
	return s->uid != (uid_t)-1 || s->gid != (gid_t)-1 || s->ngroups > 0;
}

static pid_t
clone_child(struct job *j)
{
	bool ids = changes_ids(j->spawn);
	int dumpable = ids ? prctl(PR_GET_DUMPABLE) : 0, error;
	sigset_t all, old;
	pid_t pid;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &old);
	pid = clone(child_main, stack + STACK_SIZE,
	    CLONE_VM | CLONE_VFORK | SIGCHLD, j);
	error = errno;
	if (dumpable == 1)
		(void)prctl(PR_SET_DUMPABLE, 1);
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	errno = error;
	return pid;
}

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

pid_t
spawn_run(const struct spawn *s, const char **step)
{
	struct job job = { .spawn = s, .parent = getpid() };
	int fd[2], error;
	pid_t pid;

	*step = "clone";
	if (stack == NULL)
		set_up();
	if (signals == 0)
		spawn_look_at_signals();
	if (!has_close_range)
		mark_cloexec();
	if (memory != MEMORY_SHARED && pipe2(fd, O_CLOEXEC) == -1)
		return -1;
	report->step = STEP_NONE;
	report->error = 0;
	child_ran = 0;
	pid = clone_child(&job);
	error = errno;
	if (memory != MEMORY_SHARED)
		wait_exec(fd);
	if (pid != -1)
		memory = child_ran ? MEMORY_SHARED : MEMORY_COPIED;
	if (pid != -1 && report->error != 0) {
		error = report->error;
		*step = step_names[report->step];
		pid = -1;
	}
	errno = error;
	return pid;
}
