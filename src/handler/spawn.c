/*
 * Starting a command without waiting for its execve(2).
 *
 * The child runs in the spawner's memory (CLONE_VM), on a stack of its own and with its own
 * copies of all that it reads (struct spawn_memory), and the spawner goes on meanwhile.  It
 * starts half as many handlers again as with fork(2).  Not vfork(2): a child that has become
 * another user can be stopped by that user, and one may hang in a directory on a server that
 * is down; the spawner would stop with it.  At most CHILDREN of such children are on their
 * way at a time; where more hang, the next get a copy of the memory, as by fork(2).  So do those
 * with memory_max: where memory is short, the kernel kills all processes that share the child's.
 * And so do all of a daemon that the kernel spares then: a change of oom_score_adj is of all
 * processes that share the memory.
 *
 * This needs discipline between clone(2) and execve(2):
 *
 * - All signals are blocked, and at their defaults: the spawner has no handlers.
 * - The child makes system calls only.  It calls nothing of libc that allocates, locks
 *   or synchronises threads (as setuid(3) does), and no instrumented code.
 * - The child must not write to errno, which is the spawner's, too.  syscall(2) writes to
 *   it, so raw() makes the calls in assembler, on x86-64 and ARM64.  Other machines and
 *   emulators, which turn CLONE_VM into a fork(2), always copy the memory.
 *
 * A child that becomes another user may get signals from that user.  So it makes its memory
 * not dumpable, and keeps its limit of core dumps at one byte, which rules out pipes, too,
 * until just before execve(2).
 */
#include "handler/spawn.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/sched.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of Linux 5.9, the same on each processor; glibc 2.31 has no name for it. */
#ifndef SYS_close_range
#define SYS_close_range	436
#endif

#define CHILDREN	64
#define STACK_SIZE	((size_t)64 * 1024)
#define INHERITED	1024		/* descriptors below may be our parent's */
#define OOM_SCORE_ADJ	"/proc/self/oom_score_adj"
#define KERNEL_SIGSET	8		/* bytes in the kernel's sigset_t */
#define KERNEL_ACTION	64		/* at least those in its struct sigaction */

#ifdef SYS_setresuid32			/* 32-bit machines: ids of 32 bits */
#define SYS_SETRESUID	SYS_setresuid32
#define SYS_SETRESGID	SYS_setresgid32
#define SYS_SETGROUPS	SYS_setgroups32
#else
#define SYS_SETRESUID	SYS_setresuid
#define SYS_SETRESGID	SYS_setresgid
#define SYS_SETGROUPS	SYS_setgroups
#endif

/* Code that runs between clone() and execve(). */
#define CHILD	__attribute__((__noinline__, __no_sanitize__("address"), \
    __no_sanitize__("undefined")))

/*
 * All that a child needs until execve(2).  The child's stack lies below.  The kernel clears
 * busy when the child leaves our memory: in execve() or at its exit.
 */
struct spawn_memory {
	int		 busy;
	pid_t		 parent;	/* that the child must have */
	int		 fd[SPAWN_FDS];
	struct spawn_report *report;
	char		**argv;		/* owned; all others lead into its memory, too */
	char		**envp;
	struct spawn_row *row;
	char		*directory;
};

static const char *const step_names[] = {
	[STEP_NONE] = "", [STEP_CLONE] = "clone", [STEP_SETSID] = "setsid",
	[STEP_NULL] = "/dev/null", [STEP_DUP] = "dup", [STEP_LIMIT] = "limit",
	[STEP_NICE] = "nice", [STEP_GROUPS] = "setgroups", [STEP_GID] = "setgid",
	[STEP_UID] = "setuid", [STEP_DUMPABLE] = "dumpable", [STEP_CAPS] = "capset",
	[STEP_ENV_FILE] = "env_file", [STEP_ENVIRONMENT] = "environment",
	[STEP_CHDIR] = "directory", [STEP_EXEC] = "exec",
	[STEP_USER] = "user", [STEP_GROUP] = "group", [STEP_SPAWNER] = "spawner",
	[STEP_CGROUP] = "cgroup", [STEP_OOM_SCORE] = "oom_score_adj"
};
_Static_assert(ARRAY_LEN(step_names) == STEP_MAX, "a step has no name");

static struct spawn_memory	*memories[CHILDREN + 1];	/* the last: for copies */
static bool			 shares;	/* memory with children */
static bool			 privileged;	/* see spawn_init() */
static bool			 spared;	/* oom_score_adj is below 0 */
static volatile int		 probe_ran;

const char *
spawn_step_name(enum spawn_step step)
{
	return (unsigned)step < STEP_MAX ? step_names[step] : "";
}

/* -- the child ---------------------------------------------------------------------- */

/* A system call; a sixth argument is 0.  Returns minus the error. */
CHILD static long
raw(long n, long a, long b, long c, long d, long e)
{
#if defined(__x86_64__)
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = 0;
	long r;

	__asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c),
	    "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
	return r;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = n;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = 0;

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3),
	    "r"(x4), "r"(x5) : "memory");
	return x0;
#else
	long r = syscall(n, a, b, c, d, e, 0L);

	return r == -1 ? -errno : r;
#endif
}

#define RAW(n, a, b, c, d)	raw((n), (long)(a), (long)(b), (long)(c), (long)(d), 0)

CHILD NORETURN static void
fail(const struct spawn_memory *m, enum spawn_step step, long r)
{
	m->report->error = (int)-r;
	m->report->step = (int)step;
	for (;;)
		(void)RAW(SYS_exit_group, 127, 0, 0, 0);
}

CHILD static void
check(const struct spawn_memory *m, enum spawn_step step, long r)
{
	if (r < 0)
		fail(m, step, r);
}

/*
 * Sets the descriptors; first moves all above 3, so that none overwrites another.  Closes
 * all others: execve(2) may come late, and would be awaited by those who wait for an end of
 * file.  Where the kernel has no close_range(2), execve(2) closes them.
 */
CHILD static void
set_fds(const struct spawn_memory *m)
{
	int i, n = m->fd[3] != -1 ? SPAWN_FDS : 3;
	long fd[SPAWN_FDS];

	for (i = 0; i < n; i++) {
		fd[i] = m->fd[i];
		if (fd[i] == -1)
			fd[i] = RAW(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC, 0);
		check(m, STEP_NULL, fd[i]);
		if (fd[i] < n)
			fd[i] = RAW(SYS_fcntl, fd[i], F_DUPFD_CLOEXEC, n, 0);
		check(m, STEP_DUP, fd[i]);
	}
	for (i = 0; i < n; i++)
		check(m, STEP_DUP, RAW(SYS_dup3, fd[i], i, 0, 0));
	(void)RAW(SYS_close_range, n, UINT_MAX, 0, 0);
}

/*
 * Sets the limits.  A limit means "at most": if the child may not raise the hard one, that
 * stays.  RLIMIT_NPROC comes after the change of user.  Set before it, execve() would fail
 * if the user has that many processes already.
 */
CHILD static void
set_limits(const struct spawn_memory *m, bool nproc)
{
	static const int resources[SPAWN_LIMITS] = { RLIMIT_NOFILE, RLIMIT_AS, RLIMIT_CPU,
	    RLIMIT_FSIZE, RLIMIT_NPROC, RLIMIT_CORE };

	for (size_t i = 0; i < SPAWN_LIMITS; i++) {
		uint64_t value = m->row->limits[i], new[2] = { value, value }, old[2];
		int resource = resources[i];
		long r;

		if (value == (uint64_t)-1 || (resource == RLIMIT_NPROC) != nproc)
			continue;
		/* There the kernel sends SIGKILL; SIGXCPU, one second before it, tells why. */
		if (resource == RLIMIT_CPU)
			new[1]++;
		if ((r = RAW(SYS_prlimit64, 0, resource, new, NULL)) == -EPERM) {
			check(m, STEP_LIMIT, RAW(SYS_prlimit64, 0, resource, NULL, old));
			new[0] = new[0] < old[1] ? new[0] : old[1];
			new[1] = old[1];
			r = RAW(SYS_prlimit64, 0, resource, new, NULL);
		}
		check(m, STEP_LIMIT, r);
	}
}

/*
 * A daemon that the kernel shall spare when memory is short does not pass that on: handlers may
 * use as much memory as they like.  The file is open to an ordinary user only while its own
 * memory is dumpable.
 */
CHILD static void
unprotect(const struct spawn_memory *m)
{
	long fd;

	if (!privileged)
		(void)RAW(SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0);
	fd = RAW(SYS_openat, AT_FDCWD, OOM_SCORE_ADJ, O_WRONLY | O_CLOEXEC, 0);
	check(m, STEP_OOM_SCORE, fd);
	check(m, STEP_OOM_SCORE, RAW(SYS_write, fd, "0", 1, 0));
	(void)RAW(SYS_close, fd, 0, 0, 0);
	(void)RAW(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0);
}

CHILD static void
hold_core(const struct spawn_memory *m, uint64_t old[2])
{
	uint64_t new[2] = { 1, 0 };

	check(m, STEP_LIMIT, RAW(SYS_prlimit64, 0, RLIMIT_CORE, NULL, old));
	new[1] = old[1];
	if (old[0] > 1)
		check(m, STEP_LIMIT, RAW(SYS_prlimit64, 0, RLIMIT_CORE, new, NULL));
}

/*
 * Lets the kernel kill the child with the spawner, which may be dead already; a change of ids
 * forgets that, so it comes right behind.  Root's children get capabilities from execve(2);
 * all others have none.
 */
CHILD static void
set_ids(const struct spawn_memory *m)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3];
	gid_t g = m->row->gid;
	uid_t u = m->row->uid;

	if (m->row->ngroups > 0)
		check(m, STEP_GROUPS, RAW(SYS_SETGROUPS, m->row->ngroups, m->row->groups, 0, 0));
	if (g != (gid_t)-1)
		check(m, STEP_GID, RAW(SYS_SETRESGID, g, g, g, 0));
	if (u != (uid_t)-1)
		check(m, STEP_UID, RAW(SYS_SETRESUID, u, u, u, 0));
	(void)RAW(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0);
	if ((pid_t)RAW(SYS_getppid, 0, 0, 0, 0) != m->parent)
		fail(m, STEP_SPAWNER, -ESRCH);
	if (!privileged)
		return;
	check(m, STEP_DUMPABLE, RAW(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0));
	if (u == (uid_t)-1 || u == 0)
		return;
	for (size_t i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		none[i].effective = none[i].permitted = none[i].inheritable = 0;
	check(m, STEP_CAPS, RAW(SYS_capset, &head, none, 0, 0));
}

/* The child's function for clone(2); does not return. */
CHILD static int
child(void *arg)
{
	const struct spawn_memory *m = arg;
	uint64_t none[KERNEL_SIGSET / sizeof(uint64_t)] = { 0 }, core[2] = { 0 };

	check(m, STEP_SETSID, RAW(SYS_setsid, 0, 0, 0, 0));
	if (spared)
		unprotect(m);
	set_fds(m);
	set_limits(m, false);
	if (m->row->umask != -1)
		(void)RAW(SYS_umask, m->row->umask, 0, 0, 0);
	if (m->row->nice != INT32_MIN)
		check(m, STEP_NICE, RAW(SYS_setpriority, PRIO_PROCESS, 0, m->row->nice, 0));
	if (privileged)
		hold_core(m, core);
	set_ids(m);
	set_limits(m, true);
	check(m, STEP_CHDIR, RAW(SYS_chdir, m->directory, 0, 0, 0));
	(void)RAW(SYS_rt_sigprocmask, SIG_SETMASK, none, NULL, KERNEL_SIGSET);
	if (core[0] > 1)
		check(m, STEP_LIMIT, RAW(SYS_prlimit64, 0, RLIMIT_CORE, core, NULL));
	fail(m, STEP_EXEC, RAW(SYS_execve, m->argv[0], m->argv, m->envp, 0));
}

/*
 * clone(2), or clone3(2), which alone starts a child in another cgroup, so that none of what
 * it forks is missed: a C library has no function for the one, or refuses flags of the other.
 * The child calls child() on its own stack.  Returns -errno on failure.
 */
CHILD static long
clone_raw(long number, long first, long second, struct spawn_memory *m)
{
#if defined(__x86_64__)
	register int *r10 __asm__("r10") = &m->busy;
	register void *r8 __asm__("r8") = (void *)child;
	register void *r9 __asm__("r9") = m;
	long r;

	__asm__ volatile("syscall\n\ttest %%rax, %%rax\n\tjnz 1f\n\t"
	    "xor %%ebp, %%ebp\n\tmov %%r9, %%rdi\n\tcall *%%r8\n\thlt\n1:"
	    : "=a"(r) : "a"(number), "D"(first), "S"(second), "d"(0L), "r"(r10),
	    "r"(r8), "r"(r9) : "rcx", "r11", "memory");
	return r;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = first;
	register long x1 __asm__("x1") = second;
	register void *x2 __asm__("x2") = (void *)child;
	register void *x3 __asm__("x3") = m;
	register int *x4 __asm__("x4") = &m->busy;

	__asm__ volatile("svc 0\n\tcbnz x0, 1f\n\tmov x29, xzr\n\tmov x0, x3\n\t"
	    "blr x2\n\tbrk 1\n1:" : "+r"(x0)
	    : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "x30", "memory");
	return x0;
#else
	struct clone_args *args = (struct clone_args *)first;
	long r;

	args->stack = args->stack_size = 0;
	r = raw(number, first, second, 0, 0, 0);
	if (r == 0)
		(void)child(m);
	return r;
#endif
}

/* -- its memory --------------------------------------------------------------------- */

/* Maps it behind a stack with a guard. */
static struct spawn_memory *
map_memory(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *p = mmap(NULL, page + STACK_SIZE + sizeof(struct spawn_memory),
	    PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED || mprotect(p, page, PROT_NONE) == -1)
		fatal_os("cannot map a stack: %s", strerror(errno));
	return (struct spawn_memory *)(void *)(p + page + STACK_SIZE);
}

/* Reads busy with acquire semantics, so that we do not overwrite what the child still reads. */
static struct spawn_memory *
free_memory(bool share, bool *shared)
{
	size_t i = 0;

	while (i < CHILDREN && memories[i] != NULL &&
	    __atomic_load_n(&memories[i]->busy, __ATOMIC_ACQUIRE) != 0)
		i++;
	if (!share)
		i = CHILDREN;
	if (memories[i] == NULL)
		memories[i] = map_memory();
	*shared = i < CHILDREN;
	return memories[i];
}

/* Copies all that the child reads. */
static void
fill(struct spawn_memory *m, const struct spawn_row *row, const char *words, size_t len)
{
	size_t n = row->argc + row->envc + 2;
	char **list, *p, *end;

	for (size_t i = 0; i < len; i++)
		n += words[i] == '\0';
	free(m->argv);
	m->argv = list = xmalloc(n * sizeof(*list) + row->size + len);
	m->row = memcpy(list + n, row, row->size);
	m->directory = (char *)(m->row->groups + row->ngroups);
	p = m->directory + strlen(m->directory) + 1;
	for (size_t i = 0; i < row->argc; i++, p += strlen(p) + 1)
		*list++ = p;
	*list++ = NULL;
	m->envp = list;
	for (size_t i = 0; i < row->envc; i++, p += strlen(p) + 1)
		*list++ = p;
	p = memcpy((char *)m->row + row->size, words, len);
	for (end = p + len; p < end; p += strlen(p) + 1)
		*list++ = p;
	*list = NULL;
}

/* -- the spawner -------------------------------------------------------------------- */

static bool
is_spared(void)
{
	char text[16] = "";
	int fd = open(OOM_SCORE_ADJ, O_RDONLY | O_CLOEXEC);

	if (fd != -1 && read(fd, text, sizeof(text) - 1) == -1)
		text[0] = '\0';
	if (fd != -1)
		(void)close(fd);
	return text[0] == '-';
}

CHILD static int
probe(void *arg UNUSED)
{
	probe_ran = 1;
	return 0;
}

void
spawn_init(bool is_privileged)
{
	uint64_t dfl[KERNEL_ACTION / sizeof(uint64_t)] = { 0 };
	sigset_t all;
	pid_t pid;

	privileged = is_privileged;
	/* Asks the kernel: libc hides two signals, which our parent may have ignored. */
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	for (int signo = 1; signo <= 64; signo++)
		(void)syscall(SYS_rt_sigaction, signo, dfl, NULL, KERNEL_SIGSET);
	for (int fd = 3; fd < INHERITED; fd++)
		(void)fcntl(fd, F_SETFD, FD_CLOEXEC);

	/*
	 * Handlers get no key of the login session that rqd was started from.  A kernel without
	 * keys has none.
	 */
	if (privileged)
		(void)syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);

	/* With CLONE_VFORK the child is over when clone(2) returns. */
	memories[CHILDREN] = map_memory();
	pid = clone(probe, memories[CHILDREN], CLONE_VM | CLONE_VFORK, NULL);
	if (pid != -1)
		(void)RETRY(waitpid(pid, NULL, __WALL));
#if defined(__x86_64__) || defined(__aarch64__)
	shares = probe_ran != 0;
#endif
	spared = is_spared();
	shares = shares && !spared;
}

pid_t
spawn_start(const struct spawn_row *row, const char *words, size_t len,
    const int fd[SPAWN_FDS], int cgroup, struct spawn_report *report)
{
	bool shared;
	struct spawn_memory *m = free_memory(shares && row->memory_max == 0, &shared);
	struct clone_args args = { .exit_signal = SIGCHLD };
	long pid;

	fill(m, row, words, len);
	*report = (struct spawn_report){ STEP_NONE, 0 };
	m->report = report;
	memcpy(m->fd, fd, sizeof(m->fd));
	m->parent = getpid();
	m->busy = shared;
	args.flags = shared ? CLONE_VM | CLONE_CHILD_CLEARTID : 0;
	if (cgroup != -1) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)cgroup;
		args.child_tid = (uintptr_t)&m->busy;
		args.stack = (uintptr_t)m - STACK_SIZE;
		args.stack_size = STACK_SIZE;
		pid = clone_raw(SYS_clone3, (long)&args, sizeof(args), m);
	} else if (shared) {
		pid = clone_raw(SYS_clone, SIGCHLD | (long)args.flags, (long)m, m);
	} else {
		pid = clone(child, (char *)m, SIGCHLD, m);
		pid = pid == -1 ? -errno : pid;
	}
	if (pid >= 0)
		return (pid_t)pid;
	m->busy = 0;
	errno = (int)-pid;
	return -1;
}
