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
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <linux/capability.h>
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

#include "handler/env_file.h"

/* Code that runs between clone() and execve(). */
#define CHILD	__attribute__((__noinline__, __no_sanitize__("address"), \
    __no_sanitize__("undefined"))) static

#define STACK_SIZE	((size_t)64 * 1024)
#define KERNEL_SIGSET	8		/* bytes in the kernel's sigset_t */
#define KERNEL_ACTION	64		/* at least those in its struct sigaction */
#define ROOM_SIZE	((size_t)2 * 1024 * 1024)
#define ROOM_KEPT	((size_t)64 * 1024)	/* of memory, for the next one */

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

#define SIGNAL_BIT(signo)	((uint64_t)1 << ((signo) - 1))

/* Signals whose dispositions the daemon changes by itself, now and then. */
#define DAEMONS_SIGNALS	(SIGNAL_BIT(SIGHUP) | SIGNAL_BIT(SIGINT) | \
    SIGNAL_BIT(SIGTERM) | SIGNAL_BIT(SIGUSR1) | SIGNAL_BIT(SIGUSR2) | \
    SIGNAL_BIT(SIGPIPE) | SIGNAL_BIT(SIGXFSZ))

/* What the child needs. */
struct job {
	const struct spawn	*spawn;
	struct room		*room;		/* NULL: it is waited for */
	volatile struct spawn_report *report;
	uint64_t		 signals;	/* to be reset */
	pid_t			 parent;	/* that it must have */
	bool			 shares;	/* our memory, while we go on */
};

/*
 * Copies of all that a child needs until execve(2).  Its stack lies below.  The
 * kernel clears busy when the child lets go of our memory: in execve() or at its
 * exit.
 */
struct room {
	struct room		*next;
	int			 busy;		/* see is_busy() */
	pid_t			 pid;		/* the last one */
	struct spawn_report	 report;	/* of it; kept until spawn_exited() */
	struct job		 job;
	struct spawn		 spawn;
	size_t			 used;		/* of text */
	char			 text[ROOM_SIZE];	/* what is not used costs nothing */
};

static struct room		*rooms;

/* Set up by the first call, and kept: a child that is waited for is in here. */
static char			*stack;		/* its end; stacks grow down */
static volatile struct spawn_report *report;
static volatile int		 child_ran;	/* stays 0 where the memory is a copy */
static bool			 has_close_range;
static uint64_t			 signals;	/* those that a child must reset */
static enum { MEMORY_UNKNOWN, MEMORY_SHARED, MEMORY_COPIED } memory;

/* -- the child ------------------------------------------------------------------ */

/*
 * A system call: returns minus the error.  In shared memory errno is left alone,
 * for it is our parent's too.
 */
CHILD long
raw(const struct job *j, long n, long a, long b, long c, long d, long e)
{
	long r;

#if defined(__x86_64__)
	if (j->shares) {
		register long r10 __asm__("r10") = d;
		register long r8 __asm__("r8") = e;

		__asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c),
		    "r"(r10), "r"(r8) : "rcx", "r11", "memory");
		return r;
	}
#elif defined(__aarch64__)
	if (j->shares) {
		register long x8 __asm__("x8") = n;
		register long x0 __asm__("x0") = a;
		register long x1 __asm__("x1") = b;
		register long x2 __asm__("x2") = c;
		register long x3 __asm__("x3") = d;
		register long x4 __asm__("x4") = e;

		__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3),
		    "r"(x4) : "memory");
		return x0;
	}
#endif
	r = syscall(n, a, b, c, d, e);
	return r == -1 ? -errno : r;
}

/* In functions with a job j. */
#define RAW(n, a, b, c, d)	raw(j, (n), (long)(a), (long)(b), (long)(c), (long)(d), 0)
#define RAW5(n, a, b, c, d, e)	\
	raw(j, (n), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e))

CHILD NORETURN void
fail(const struct job *j, enum spawn_step step, long r)
{
	j->report->error = (int)-r;
	j->report->step = (int)step;
	for (;;)
		(void)RAW(SYS_exit_group, 127, 0, 0, 0);
}

CHILD void
check(const struct job *j, enum spawn_step step, long r)
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
 * First all out of the way of 0 to 2, so that none overwrites another.  Nobody waits
 * for a child that shares memory, so it holds none of our descriptors, however long
 * execve() takes to come.
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
		    j->room != NULL ? 0 : CLOSE_RANGE_CLOEXEC, 0));
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

/* Root's children have what execve(2) gives to root; all others have no capability. */
CHILD void
drop_capabilities(const struct job *j)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3];
	size_t i;

	for (i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		none[i].effective = none[i].permitted = none[i].inheritable = 0;
	check(j, STEP_CAPS, RAW(SYS_capset, &head, none, 0, 0));
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
	if (s->proxy == NULL)
		return;
	check(j, STEP_DUMPABLE, RAW(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0));
	if (u != (uid_t)-1 && u != 0)
		drop_capabilities(j);
}

/* The kernel kills us with the daemon; but it may be dead already. */
CHILD void
tie_to_parent(const struct job *j)
{
	(void)RAW(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0);
	if ((pid_t)RAW(SYS_getppid, 0, 0, 0, 0) != j->parent)
		fail(j, STEP_NONE, 0);
}

/* -- the child's env_file -- */

/* Of two entries NAME=value. */
CHILD bool
same_name(const char *a, const char *b)
{
	while (*a == *b && *a != '=' && *a != '\0')
		a++, b++;
	return *a == '=' && *b == '=';
}

/* What is free of the room. */
CHILD char *
room_left(struct room *r, size_t *left)
{
	size_t used = (r->used + 7) & ~(size_t)7;

	*left = used < ROOM_SIZE ? ROOM_SIZE - used : 0;
	return r->text + used;
}

/* The whole file, at the free end of the room; one byte after it is free, too. */
CHILD char *
read_env_file(const struct job *j, size_t *len)
{
	struct statx st;
	size_t left, at = 0;
	char *p = room_left(j->room, &left);
	long fd, n;

	fd = RAW(SYS_openat, AT_FDCWD, j->spawn->env_file,
	    O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
	check(j, STEP_ENV_FILE, fd);
	check(j, STEP_ENV_FILE, RAW5(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_TYPE, &st));
	if (!S_ISREG(st.stx_mode))
		fail(j, STEP_ENV_FILE, -EINVAL);
	if (left > ENV_FILE_MAX + 2)
		left = ENV_FILE_MAX + 2;
	while (at + 1 < left && (n = RAW(SYS_read, fd, p + at, left - 1 - at, 0)) != 0) {
		check(j, STEP_ENV_FILE, n);
		at += (size_t)n;
	}
	if (at + 1 >= left)
		fail(j, STEP_ENV_FILE, -EFBIG);
	j->room->used += at + 1 + 8;
	*len = at;
	return p;
}

/* Adds the entry, or drops it: what is not weak prevails, a later one over an earlier one. */
CHILD size_t
merge(const struct spawn *s, char **envp, size_t n, size_t first_new, char *entry)
{
	size_t i;

	if (env_file_is_reserved(entry))
		return n;
	for (i = 0; i < n; i++) {
		if (!same_name(envp[i], entry))
			continue;
		if (i >= first_new || (i >= s->env_first && i < s->env_first + s->env_weak))
			envp[i] = entry;
		return n;
	}
	envp[n] = entry;
	return n + 1;
}

CHILD char *const *
add_env_file(const struct job *j)
{
	const struct spawn *s = j->spawn;
	struct env_text text;
	size_t len, left, max, n = 0, first_new;
	char *p = read_env_file(j, &len), *entry, **envp;

	envp = (char **)(void *)room_left(j->room, &left);
	max = left / sizeof(*envp);
	while (s->envp[n] != NULL && n + 1 < max) {
		envp[n] = s->envp[n];
		n++;
	}
	first_new = n;
	env_file_begin(&text, p, len);
	while ((entry = env_file_next(&text)) != NULL && n + 1 < max)
		n = merge(s, envp, n, first_new, entry);
	if (n + 1 >= max)
		fail(j, STEP_ENV_FILE, -E2BIG);
	if (text.bad)
		fail(j, STEP_ENV_FILE, -EINVAL);
	envp[n] = NULL;
	j->room->used += (n + 2) * sizeof(*envp);
	return envp;
}

/* -- its life -- */

/* The first of all: our parent must know the pid before it can see the exit. */
CHILD void
introduce(const struct job *j)
{
	const struct spawn_proxy *p = j->spawn->proxy;
	long r;

	if (j->spawn->slot != NULL)
		*j->spawn->slot = (pid_t)RAW(SYS_getpid, 0, 0, 0, 0);
	if (p == NULL)
		return;
	*(pid_t *)(void *)((char *)(uintptr_t)p->message + p->pid_at) =
	    (pid_t)RAW(SYS_getpid, 0, 0, 0, 0);
	do {
		r = RAW5(SYS_sendto, p->socket, p->message, p->size, MSG_NOSIGNAL, NULL);
	} while (r == -EINTR);
	check(j, STEP_LAUNCHER, r);
}

CHILD void
hold_core(const struct job *j, uint64_t old[2])
{
	uint64_t new[2] = { 1, 0 };

	check(j, STEP_LIMIT, RAW(SYS_prlimit64, 0, RLIMIT_CORE, NULL, old));
	new[1] = old[1];
	if (old[0] > 1)
		check(j, STEP_LIMIT, RAW(SYS_prlimit64, 0, RLIMIT_CORE, new, NULL));
}

CHILD int
child_main(void *arg)
{
	const struct job *j = arg;
	const struct spawn *s = j->spawn;
	uint64_t none[KERNEL_SIGSET / sizeof(uint64_t)] = { 0 }, core[2];
	char *const *envp = s->envp;

	introduce(j);
	check(j, STEP_SETSID, RAW(SYS_setsid, 0, 0, 0, 0));
	set_signals(j);
	set_fds(j);
	set_limits(j, false);
	if (s->umask != -1)
		(void)RAW(SYS_umask, s->umask, 0, 0, 0);
	if (s->nice != 0)
		check(j, STEP_NICE, RAW(SYS_setpriority, PRIO_PROCESS, 0, s->nice, 0));
	if (s->proxy != NULL)
		hold_core(j, core);
	set_ids(j);
	set_limits(j, true);
	tie_to_parent(j);
	if (s->env_file != NULL)
		envp = add_env_file(j);
	check(j, STEP_CHDIR, RAW(SYS_chdir, s->directory, 0, 0, 0));
	(void)RAW(SYS_rt_sigprocmask, SIG_SETMASK, none, NULL, KERNEL_SIGSET);
	if (s->proxy != NULL && core[0] > 1)
		check(j, STEP_LIMIT, RAW(SYS_prlimit64, 0, RLIMIT_CORE, core, NULL));
	fail(j, STEP_EXEC, RAW(SYS_execve, s->argv[0], s->argv, envp, 0));
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
clone_child(struct job *j, char *end, int flags, int *busy)
{
	sigset_t all, old;
	pid_t pid;
	int error;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &old);
	pid = clone(child_main, end, flags | SIGCHLD, j, NULL, NULL, busy);
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

CHILD int
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
	struct job job = { .spawn = s, .report = report, .signals = signals, .parent = getpid() };
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
	r->job = (struct job){
		.spawn = &r->spawn, .room = r, .signals = signals, .shares = shares,
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
