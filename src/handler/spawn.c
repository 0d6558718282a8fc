/*
 * Starting a command.
 *
 * clone(2) with CLONE_VM: the child runs in our memory, on a stack and with words
 * of its own (a berth), until it calls execve(2).  The cost does not depend on how
 * much memory the daemon has.
 *
 * We go on meanwhile.  So the next one can be started before this one has come to
 * execve(), which on two processors is worth half as many starts again, and more
 * where others want them too.  And nothing that keeps the child from it keeps us:
 * a directory on a server that is gone, or the user that it has become, who may
 * stop it.
 *
 * The price is discipline between clone() and execve():
 * - All signals are blocked, and the child has every disposition back at its
 *   default before it unblocks them: no handler of ours runs in it.
 * - It makes raw system calls only.  Nothing of libc that allocates, locks or
 *   synchronises threads (as setuid(3) does), and no instrumented code.  They must
 *   not touch errno, which is ours as well: hence raw().
 * - Changing ids makes the memory, which is ours too, not dumpable.  That keeps
 *   the target user from looking into it through the child; when no such child is
 *   in it any more we make it dumpable again, or we would never dump core.
 *
 * Where that is not possible the child is waited for, with CLONE_VFORK, and tells
 * what failed in a shared page.  valgrind and other emulators turn such a clone
 * into a fork(2): the memory is then a copy, and we are not suspended.  The first
 * call finds that out, by a variable that the child sets; where it is so, a
 * close-on-exec pipe tells when execve() is over.
 */
#include "handler/spawn.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <linux/futex.h>
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
#define PATIENCE	1		/* seconds: spawn_run() waits no longer for a berth */

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

/* What the child needs. */
struct job {
	const struct spawn	*spawn;
	volatile struct report	*report;
	uint64_t		 signals;	/* to be reset */
	pid_t			 parent;
	bool			 beside;	/* it runs; we do not wait */
};

/*
 * A child that runs beside us until execve(2), with copies of all that it needs.
 * Its stack lies below.  The kernel clears busy when the child lets go of our
 * memory: in execve() or at its exit.
 */
struct berth {
	struct berth		*next;
	int			 busy;		/* see is_busy() */
	pid_t			 pid;		/* the last one */
	struct report		 report;	/* of it; kept until spawn_exited() */
	struct job		 job;
	struct spawn		 spawn;
	size_t			 used;		/* of text */
	char			 text[64 * 1024];	/* what is not used costs nothing */
};

static struct berth		*berths;
static bool			 covered;	/* we were dumpable, and shall be again */

/* Set up by the first call, and kept: the child that is waited for is in here. */
static char			*stack;		/* its end; stacks grow down */
static volatile struct report	*report;
static volatile int		 child_ran;	/* stays 0 where the memory is a copy */
static bool			 has_close_range;
static uint64_t			 signals;	/* those that a child must reset */
static enum { MEMORY_UNKNOWN, MEMORY_SHARED, MEMORY_COPIED } memory;

/* -- the child ------------------------------------------------------------------ */

/*
 * A system call: returns minus the error.  Beside our parent errno is left alone,
 * for it is the parent's too.
 */
CHILD long
raw(const struct job *j, long n, long a, long b, long c, long d)
{
	long r;

#ifdef __x86_64__
	if (j->beside) {
		register long r10 __asm__("r10") = d;

		__asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c),
		    "r"(r10) : "rcx", "r11", "memory");
		return r;
	}
#endif
	r = syscall(n, a, b, c, d);
	return r == -1 ? -errno : r;
}

/* In functions with a job j. */
#define RAW(n, a, b, c, d)	raw(j, (n), (long)(a), (long)(b), (long)(c), (long)(d))

CHILD NORETURN void
fail(const struct job *j, enum step step, long r)
{
	j->report->error = (int)-r;
	j->report->step = (int)step;
	for (;;)
		(void)RAW(SYS_exit_group, 127, 0, 0, 0);
}

CHILD void
check(const struct job *j, enum step step, long r)
{
	if (r < 0)
		fail(j, step, r);
}

CHILD void
set_signals(const struct job *j)
{
	uint64_t dfl[KERNEL_ACTION / sizeof(uint64_t)];
	size_t i;
	int signo;

	for (i = 0; i < ARRAY_LEN(dfl); i++)
		dfl[i] = 0;
	for (signo = 1; signo <= 64; signo++) {
		if ((j->signals & SIGNAL_BIT(signo)) != 0)
			check(j, STEP_SIGNALS, RAW(SYS_rt_sigaction, signo, dfl, NULL,
			    KERNEL_SIGSET));
	}
}

/*
 * First all out of the way of 0 to 2, so that none overwrites another.  Beside our
 * parent nothing of its is held on to, however long execve() takes to come.
 */
CHILD void
set_fds(const struct job *j)
{
	long fd[3];
	int i;

	for (i = 0; i < 3; i++) {
		fd[i] = j->spawn->fd[i];
		if (fd[i] == -1)
			fd[i] = RAW(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC, 0);
		check(j, STEP_NULL, fd[i]);
		if (fd[i] < 3)
			fd[i] = RAW(SYS_fcntl, fd[i], F_DUPFD_CLOEXEC, 3, 0);
		check(j, STEP_DUP, fd[i]);
	}
	for (i = 0; i < 3; i++)
		check(j, STEP_DUP, RAW(SYS_dup3, fd[i], i, 0, 0));
	if (has_close_range)
		check(j, STEP_CLOSE, RAW(SYS_close_range, 3, UINT_MAX,
		    j->beside ? 0 : CLOSE_RANGE_CLOEXEC, 0));
}

/* A limit means "at most": where the hard one may not be changed, it is kept. */
CHILD void
set_limit(const struct job *j, const struct spawn_limit *l)
{
	uint64_t new[2] = { l->value.rlim_cur, l->value.rlim_max }, old[2];
	long r = RAW(SYS_prlimit64, 0, l->resource, new, NULL);

	if (r == 0)
		return;
	if (r != -EPERM)
		fail(j, STEP_LIMIT, r);
	check(j, STEP_LIMIT, RAW(SYS_prlimit64, 0, l->resource, NULL, old));
	new[0] = new[0] < old[1] ? new[0] : old[1];
	new[1] = old[1];
	check(j, STEP_LIMIT, RAW(SYS_prlimit64, 0, l->resource, new, NULL));
}

/*
 * RLIMIT_NPROC comes after the change of user: set before it, execve() would
 * fail where the user has that many processes already.
 */
CHILD void
set_limits(const struct job *j, bool nproc)
{
	const struct spawn *s = j->spawn;
	size_t i;

	for (i = 0; i < s->nlimits; i++) {
		if ((s->limits[i].resource == RLIMIT_NPROC) == nproc)
			set_limit(j, &s->limits[i]);
	}
}

CHILD void
set_ids(const struct job *j)
{
	const struct spawn *s = j->spawn;
	gid_t g = s->gid;
	uid_t u = s->uid;

	if (s->ngroups > 0)
		check(j, STEP_GROUPS, RAW(SYS_SETGROUPS, s->ngroups, s->groups, 0, 0));
	if (g != (gid_t)-1)
		check(j, STEP_GID, RAW(SYS_SETRESGID, g, g, g, 0));
	if (u != (uid_t)-1)
		check(j, STEP_UID, RAW(SYS_SETRESUID, u, u, u, 0));
}

/* The kernel kills us with the daemon; but it may be dead already. */
CHILD void
tie_to_parent(const struct job *j)
{
	(void)RAW(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0);
	if ((pid_t)RAW(SYS_getppid, 0, 0, 0, 0) != j->parent)
		fail(j, STEP_NONE, 0);
}

CHILD int
child_main(void *arg)
{
	const struct job *j = arg;
	const struct spawn *s = j->spawn;
	uint64_t none[KERNEL_SIGSET / sizeof(uint64_t)] = { 0 };

	if (s->slot != NULL)
		*s->slot = (pid_t)RAW(SYS_getpid, 0, 0, 0, 0);
	child_ran = 1;
	check(j, STEP_SETSID, RAW(SYS_setsid, 0, 0, 0, 0));
	set_signals(j);
	set_fds(j);
	set_limits(j, false);
	if (s->umask != -1)
		(void)RAW(SYS_umask, s->umask, 0, 0, 0);
	if (s->nice != 0)
		check(j, STEP_NICE, RAW(SYS_setpriority, PRIO_PROCESS, 0, s->nice, 0));
	set_ids(j);
	set_limits(j, true);
	tie_to_parent(j);
	check(j, STEP_CHDIR, RAW(SYS_chdir, s->directory, 0, 0, 0));
	(void)RAW(SYS_rt_sigprocmask, SIG_SETMASK, none, NULL, KERNEL_SIGSET);
	fail(j, STEP_EXEC, RAW(SYS_execve, s->argv[0], s->argv, s->envp, 0));
}

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

static bool
changes_ids(const struct spawn *s)
{
	return s->uid != (uid_t)-1 || s->gid != (gid_t)-1 || s->ngroups > 0;
}

/* This pid is another's now: nobody will ask about its predecessor. */
static void
forget_predecessor(pid_t pid)
{
	struct berth *b;

	for (b = berths; b != NULL; b = b->next) {
		if (b->pid == pid)
			b->report.error = 0;
	}
}

static pid_t
clone_child(struct job *j, char *end, int flags, int *busy)
{
	sigset_t all, old;
	pid_t pid;
	int error;

	if (changes_ids(j->spawn) && !covered)
		covered = prctl(PR_GET_DUMPABLE) == 1;
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &old);
	pid = clone(child_main, end, CLONE_VM | flags | SIGCHLD, j, NULL, NULL, busy);
	error = errno;
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	forget_predecessor(pid);
	errno = error;
	return pid;
}

/* Acquires: what the child wrote before is there. */
static bool
is_busy(const struct berth *b)
{
	return __atomic_load_n(&b->busy, __ATOMIC_ACQUIRE) != 0;
}

/* If no child with other ids is in our memory any more. */
static void
uncover(void)
{
	const struct berth *b;

	if (!covered)
		return;
	for (b = berths; b != NULL; b = b->next) {
		if (is_busy(b) && changes_ids(&b->spawn))
			return;
	}
	(void)prctl(PR_SET_DUMPABLE, 1);
	covered = false;
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

static void
set_up(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	stack = map_stack(0);
	report = mmap(NULL, page, PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (report == MAP_FAILED)
		fatal_os("cannot map shared memory: %s", strerror(errno));
	has_close_range = syscall(SYS_close_range, UINT_MAX, UINT_MAX,
	    CLOSE_RANGE_CLOEXEC) == 0;
	if (signals == 0)
		spawn_look_at_signals();
}

static pid_t
run_waited(const struct spawn *s, const char **step)
{
	struct job job = { .spawn = s, .parent = getpid() };
	int fd[2], error;
	pid_t pid;

	*step = "clone";
	if (stack == NULL)
		set_up();
	job.report = report;
	job.signals = signals;
	if (!has_close_range)
		mark_cloexec();
	if (memory != MEMORY_SHARED && pipe2(fd, O_CLOEXEC) == -1)
		return -1;
	report->step = STEP_NONE;
	report->error = 0;
	child_ran = 0;
	pid = clone_child(&job, stack, CLONE_VFORK, NULL);
	error = errno;
	uncover();
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

/* -- beside it -------------------------------------------------------------------- */

/* Where it is not set here, no child runs beside us. */
#ifdef __x86_64__
static const bool can_run_beside = true;
#else
static const bool can_run_beside = false;
#endif

static struct berth *
free_berth(void)
{
	struct berth *b;

	for (b = berths; b != NULL; b = b->next) {
		if (!is_busy(b) && b->report.error == 0)
			return b;
	}
	b = (struct berth *)(void *)map_stack(sizeof(*b));
	b->next = berths;
	berths = b;
	return b;
}

/* NULL: there is no room. */
static void *
copy(struct berth *b, const void *p, size_t n)
{
	char *to = b->text + b->used;

	if (n > sizeof(b->text) - b->used)
		return NULL;
	if (n > 0)
		memcpy(to, p, n);
	b->used += (n + 7) & ~(size_t)7;
	if (b->used > sizeof(b->text))
		b->used = sizeof(b->text);
	return to;
}

static char *const *
copy_words(struct berth *b, char *const *words)
{
	size_t n = 0, i;
	char **to;

	while (words[n] != NULL)
		n++;
	to = copy(b, words, (n + 1) * sizeof(*words));
	for (i = 0; to != NULL && i < n; i++) {
		to[i] = copy(b, words[i], strlen(words[i]) + 1);
		if (to[i] == NULL)
			return NULL;
	}
	return to;
}

/* All that the child looks at; false where it does not fit. */
static bool
copy_spawn(struct berth *b, const struct spawn *s)
{
	b->used = 0;
	b->spawn = *s;
	b->spawn.argv = copy_words(b, s->argv);
	b->spawn.envp = copy_words(b, s->envp);
	b->spawn.directory = copy(b, s->directory, strlen(s->directory) + 1);
	b->spawn.limits = copy(b, s->limits, s->nlimits * sizeof(*s->limits));
	b->spawn.groups = copy(b, s->groups, s->ngroups * sizeof(*s->groups));
	return b->spawn.argv != NULL && b->spawn.envp != NULL &&
	    b->spawn.directory != NULL && b->spawn.limits != NULL &&
	    b->spawn.groups != NULL;
}

/* NULL: it must be waited for. */
static struct berth *
find_berth(const struct spawn *s)
{
	struct berth *b;

	if (!can_run_beside || memory != MEMORY_SHARED || !has_close_range)
		return NULL;
	b = free_berth();
	return copy_spawn(b, s) ? b : NULL;
}

static pid_t
run_beside(struct berth *b, const char **step)
{
	*step = "clone";
	b->report = (struct report){ STEP_NONE, 0 };
	b->job = (struct job){ &b->spawn, &b->report, signals, getpid(), true };
	b->busy = 1;
	b->pid = 0;
	b->pid = clone_child(&b->job, (char *)b, CLONE_CHILD_CLEARTID, &b->busy);
	if (b->pid == -1)
		b->busy = 0;
	return b->pid;
}

/* The kernel wakes us when it clears busy.  False: it takes too long. */
static bool
wait_berth(struct berth *b)
{
	const struct timespec patience = { .tv_sec = PATIENCE };

	while (is_busy(b)) {
		if (syscall(SYS_futex, &b->busy, FUTEX_WAIT, 1, &patience, NULL, 0) == -1 &&
		    errno == ETIMEDOUT)
			return false;
	}
	return true;
}

pid_t
spawn_start(const struct spawn *s, const char **step)
{
	struct berth *b = find_berth(s);

	return b != NULL ? run_beside(b, step) : run_waited(s, step);
}

pid_t
spawn_run(const struct spawn *s, const char **step)
{
	struct berth *b = find_berth(s);
	int error;
	pid_t pid;

	if (b == NULL)
		return run_waited(s, step);
	pid = run_beside(b, step);
	if (pid == -1 || !wait_berth(b))
		return pid;
	error = spawn_exited(pid, step);
	if (error == 0)
		return pid;
	errno = error;
	return -1;
}

int
spawn_exited(pid_t pid, const char **step)
{
	struct berth *b;
	int error = 0;

	uncover();
	for (b = berths; b != NULL; b = b->next) {
		if (b->pid != pid || b->report.error == 0)
			continue;
		error = b->report.error;
		*step = step_names[b->report.step];
		b->report.error = 0;
	}
	return error;
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
