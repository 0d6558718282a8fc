/*
 * Starting a command.
 *
 * A child runs in its parent's memory (CLONE_VM) until it calls execve(2).  So the cost
 * does not depend on how much memory the parent has.  There are three ways:
 *
 * - spawn_nowait.c starts the child and goes on at once.
 * - Where that is not possible, we wait with CLONE_VFORK until execve(2) is over.
 * - A launcher must not wait: a user whose process it starts could stop that
 *   process.  There the child gets a copy of the memory, as by fork(2).
 *
 * valgrind and other emulators turn a clone with CLONE_VM into a fork(2).  set_up()
 * detects it.  A close-on-exec pipe then tells when execve(2) is over.
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

/* Signals whose dispositions the daemon itself changes. */
#define DAEMONS_SIGNALS	(SIGNAL_BIT(SIGHUP) | SIGNAL_BIT(SIGINT) | \
    SIGNAL_BIT(SIGTERM) | SIGNAL_BIT(SIGUSR1) | SIGNAL_BIT(SIGUSR2) | \
    SIGNAL_BIT(SIGPIPE) | SIGNAL_BIT(SIGXFSZ))

/* Set up by the first call, and kept, for a child that the parent waits for. */
static char			*stack;		/* its end; stacks grow down */
static volatile struct spawn_report *report;
static volatile int		 child_ran;	/* stays 0 if the child's memory is a copy */
static bool			 has_close_range;
static uint64_t			 signals;	/* signals that a child must reset */
static enum { MEMORY_UNKNOWN, MEMORY_SHARED, MEMORY_COPIED } memory;

/* -- the parent ------------------------------------------------------------------ */

char *
spawn_map_stack(size_t above)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *p = mmap(NULL, page + STACK_SIZE + above, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED || mprotect(p, page, PROT_NONE) == -1)
		fatal_os("cannot map a stack: %s", strerror(errno));
	return p + page + STACK_SIZE;
}

/* For kernels before 5.11: marks descriptors that libraries or the parent left open. */
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
 * Notes the signals that execve(2) would leave ignored, and those with a handler.  It
 * asks the kernel: libc hides two signals that it uses itself, which the parent may
 * have ignored.  The handler is the first word of the kernel's struct.
 */
void
spawn_look_at_signals(void)
{
	uint64_t action[KERNEL_ACTION / sizeof(uint64_t)];

	signals = DAEMONS_SIGNALS;
	for (int signo = 1; signo <= 64; signo++) {
		if (syscall(SYS_rt_sigaction, signo, NULL, action, KERNEL_SIGSET) == 0 &&
		    action[0] != 0)
			signals |= SIGNAL_BIT(signo);
	}
}

pid_t
spawn_clone(struct spawn_job *j, char *end, int flags, int *busy)
{
	sigset_t all, old;
	pid_t pid;
	int error;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &old);
	pid = clone(spawn_child, end, flags | SIGCHLD, j, NULL, NULL, busy);
	error = errno;
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	errno = error;
	return pid;
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
		(void)TEMP_FAILURE_RETRY(waitpid(pid, &status, __WALL));
		memory = child_ran ? MEMORY_SHARED : MEMORY_COPIED;
	}
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
}

static void
set_up(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (stack == NULL) {
		stack = spawn_map_stack(0);
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

/* Waits until the child has closed the writing end: execve(2) or its exit is over. */
static void
wait_exec(int fd[2])
{
	char c;

	(void)close(fd[1]);
	(void)!TEMP_FAILURE_RETRY(read(fd[0], &c, 1));
	(void)close(fd[0]);
}

static pid_t
run_waited(struct spawn_job *job, enum spawn_step *step)
{
	int fd[2], error;
	pid_t pid;

	if (memory != MEMORY_SHARED && pipe2(fd, O_CLOEXEC) == -1)
		return -1;
	job->report = report;
	report->step = STEP_NONE;
	report->error = 0;
	pid = spawn_clone(job, stack, CLONE_VM | CLONE_VFORK, NULL);
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

pid_t
spawn_start(const struct spawn *s, enum spawn_step *step)
{
	struct spawn_job job = { .spawn = s,
	    .parent = s->proxy != NULL ? getppid() : getpid() };

	set_up();
	job.signals = signals;
	job.has_close_range = has_close_range;
	job.shares = spawn_nowait_has_raw_calls && memory == MEMORY_SHARED && has_close_range;
	if (!has_close_range)
		mark_cloexec();
	*step = STEP_CLONE;
	if (job.shares || s->proxy != NULL)
		return spawn_nowait(&job, step);
	return run_waited(&job, step);
}

const char *
spawn_step_name(enum spawn_step step)
{
	return (unsigned)step < STEP_MAX ? step_names[step] : "";
}
