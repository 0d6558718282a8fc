/*
 * The child's code between clone(2) and execve(2); the head of spawn_nowait.c says what
 * it may do.
 */
#include "handler/spawn_private.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <linux/capability.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "handler/env_file.h"

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

/* In functions with a job j. */
#define RAW(n, a, b, c, d)	spawn_raw(j, (n), (long)(a), (long)(b), (long)(c), (long)(d), 0)
#define RAW5(n, a, b, c, d, e)	\
	spawn_raw(j, (n), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e))

CHILD NORETURN static void
fail(const struct spawn_job *j, enum spawn_step step, long r)
{
	j->report->error = (int)-r;
	j->report->step = (int)step;
	for (;;)
		(void)RAW(SYS_exit_group, 127, 0, 0, 0);
}

CHILD static void
check(const struct spawn_job *j, enum spawn_step step, long r)
{
	if (r < 0)
		fail(j, step, r);
}

CHILD static void
set_signals(const struct spawn_job *j)
{
	uint64_t dfl[KERNEL_ACTION / sizeof(uint64_t)];

	for (size_t i = 0; i < ARRAY_LEN(dfl); i++)
		dfl[i] = 0;
	for (int signo = 1; signo <= 64; signo++) {
		if ((j->signals & SIGNAL_BIT(signo)) != 0)
			check(j, STEP_SIGNALS, RAW(SYS_rt_sigaction, signo, dfl, NULL,
			    KERNEL_SIGSET));
	}
}

/*
 * Sets the descriptors; first moves all above 3, so that none overwrites another.  A
 * child that shares memory closes all others at once: execve(2) may come late, and the
 * parent does not wait for it.
 */
CHILD static void
set_fds(const struct spawn_job *j)
{
	bool three = j->spawn->fd[3] != -1;
	int i, n = three ? SPAWN_FDS : 3;
	long fd[SPAWN_FDS];

	for (i = 0; i < n; i++) {
		fd[i] = j->spawn->fd[i];
		if (fd[i] == -1)
			fd[i] = RAW(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC, 0);
		check(j, STEP_NULL, fd[i]);
		if (fd[i] < n)
			fd[i] = RAW(SYS_fcntl, fd[i], F_DUPFD_CLOEXEC, n, 0);
		check(j, STEP_DUP, fd[i]);
	}
	for (i = 0; i < n; i++)
		check(j, STEP_DUP, RAW(SYS_dup3, fd[i], i, 0, 0));
	if (j->has_close_range)
		check(j, STEP_CLOSE, RAW(SYS_close_range, n, UINT_MAX,
		    j->memory != NULL ? 0 : CLOSE_RANGE_CLOEXEC, 0));
}

/*
 * Sets a limit.  A limit means "at most": if the child may not raise the hard one, that
 * stays.
 */
CHILD static void
set_limit(const struct spawn_job *j, const struct spawn_limit *l)
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
 * RLIMIT_NPROC comes after the change of user.  Set before it, execve() would fail if
 * the user has that many processes already.
 */
CHILD static void
set_limits(const struct spawn_job *j, bool nproc)
{
	const struct spawn *s = j->spawn;

	for (size_t i = 0; i < s->nlimits; i++) {
		if ((s->limits[i].resource == RLIMIT_NPROC) == nproc)
			set_limit(j, &s->limits[i]);
	}
}

/* Root's children get capabilities from execve(2); all others have none. */
CHILD static void
drop_capabilities(const struct spawn_job *j)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3];

	for (size_t i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		none[i].effective = none[i].permitted = none[i].inheritable = 0;
	check(j, STEP_CAPS, RAW(SYS_capset, &head, none, 0, 0));
}

CHILD static void
set_ids(const struct spawn_job *j)
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

/* Lets the kernel kill the child with the daemon, which may be dead already. */
CHILD static void
tie_to_parent(const struct spawn_job *j)
{
	(void)RAW(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0);
	if ((pid_t)RAW(SYS_getppid, 0, 0, 0, 0) != j->parent)
		fail(j, STEP_NONE, 0);
}

/* -- the child's env_file -- */

/* Whether two entries NAME=value have the same name. */
CHILD static bool
same_name(const char *a, const char *b)
{
	while (*a == *b && *a != '=' && *a != '\0')
		a++, b++;
	return *a == '=' && *b == '=';
}

/* The free end of the child's memory. */
CHILD static char *
memory_left(struct spawn_memory *m, size_t *left)
{
	size_t used = (m->used + 7) & ~(size_t)7;

	*left = used < SPAWN_MEMORY ? SPAWN_MEMORY - used : 0;
	return m->text + used;
}

/*
 * Reads the whole file to the free end of the child's memory, and leaves one byte free
 * after it.
 */
CHILD static char *
read_env_file(const struct spawn_job *j, size_t *len)
{
	struct statx st;
	size_t left, at = 0;
	char *p = memory_left(j->memory, &left);
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
	j->memory->used += at + 1 + 8;
	*len = at;
	return p;
}

/*
 * Adds the entry, or drops it.  It replaces a weak entry of its name, or an earlier one
 * of the file.
 */
CHILD static size_t
merge(const struct spawn *s, char **envp, size_t n, size_t first_new, char *entry)
{
	if (env_file_is_reserved(entry))
		return n;
	for (size_t i = 0; i < n; i++) {
		if (!same_name(envp[i], entry))
			continue;
		if (i >= first_new || (i >= s->env_first && i < s->env_first + s->env_weak))
			envp[i] = entry;
		return n;
	}
	envp[n] = entry;
	return n + 1;
}

CHILD static char *const *
add_env_file(const struct spawn_job *j)
{
	const struct spawn *s = j->spawn;
	struct env_text text;
	size_t len, left, max, n = 0, first_new;
	char *p = read_env_file(j, &len), *entry, **envp;

	envp = (char **)(void *)memory_left(j->memory, &left);
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
	j->memory->used += (n + 2) * sizeof(*envp);
	return envp;
}

/* -- its life -- */

/* Comes first: the parent must know the pid before it can see the exit. */
CHILD static void
introduce(const struct spawn_job *j)
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

CHILD static void
hold_core(const struct spawn_job *j, uint64_t old[2])
{
	uint64_t new[2] = { 1, 0 };

	check(j, STEP_LIMIT, RAW(SYS_prlimit64, 0, RLIMIT_CORE, NULL, old));
	new[1] = old[1];
	if (old[0] > 1)
		check(j, STEP_LIMIT, RAW(SYS_prlimit64, 0, RLIMIT_CORE, new, NULL));
}

int
spawn_child(void *arg)
{
	const struct spawn_job *j = arg;
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
