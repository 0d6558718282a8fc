/*
 * Starts a command without waiting for its execve(2).
 *
 * The child runs in its parent's memory, on a stack of its own and with its own copies
 * of all that it reads (struct spawn_memory).  The parent goes on meanwhile.  So it can
 * start the next child before this one has come to execve(2): on two processors that
 * gives half as many starts again.  A child that hangs does not delay the parent, for
 * example in a directory on a server that is down, or because its user has stopped it.
 *
 * This needs discipline between clone(2) and execve(2):
 *
 * - All signals are blocked.  The child sets every disposition to its default before
 *   it unblocks them, so no handler of the parent runs in it.
 * - The child makes system calls only.  It calls nothing of libc that allocates, locks
 *   or synchronises threads (as setuid(3) does), and no instrumented code.
 * - The child must not write to errno, which is the parent's, too.  syscall(2) writes to it,
 *   so spawn_raw() makes the calls in assembler: on x86-64 and ARM64.
 *
 * On other machines, under emulators, and before Linux 5.11 (close_range), memory is
 * not shared: spawn.c waits for the child, or a launcher's child gets a copy.
 *
 * A launcher starts children that become another user, who may then send them signals.
 * So such a child makes its memory not dumpable, and keeps its limit of core dumps at
 * one byte, which rules out pipes, too, until just before execve(2).  The memory is the
 * launcher's, which never holds a message.
 */
#include "handler/spawn_private.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#define KEPT	((size_t)64 * 1024)	/* bytes of its memory kept for the next child */

static struct spawn_memory	*memories;

/* -- system calls ------------------------------------------------------------------- */

#if defined(__x86_64__) || defined(__aarch64__)
const bool spawn_nowait_has_raw_calls = true;
#else
const bool spawn_nowait_has_raw_calls = false;
#endif

long
spawn_raw(const struct spawn_job *j, long n, long a, long b, long c, long d, long e)
{
	long r;

#if defined(__x86_64__)
	if (j->shares) {
		register long r10 __asm__("r10") = d;
		register long r8 __asm__("r8") = e;
		register long r9 __asm__("r9") = 0;

		__asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c),
		    "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
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
		register long x5 __asm__("x5") = 0;

		__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3),
		    "r"(x4), "r"(x5) : "memory");
		return x0;
	}
#endif
	r = syscall(n, a, b, c, d, e, 0L);
	return r == -1 ? -errno : r;
}

/* -- the child's memory -------------------------------------------------------------- */

/* The pid was used before: drops the unread report of that process. */
static void
forget_predecessor(const struct spawn_memory *now)
{
	struct spawn_memory *m;

	for (m = memories; m != NULL; m = m->next) {
		if (m->pid == now->pid && m != now)
			m->report.error = 0;
	}
}

/* Reads with acquire semantics, so that the child's writes before are visible. */
static bool
is_busy(const struct spawn_memory *m)
{
	return __atomic_load_n(&m->busy, __ATOMIC_ACQUIRE) != 0;
}

static struct spawn_memory *
free_memory(void)
{
	struct spawn_memory *m;

	for (m = memories; m != NULL; m = m->next) {
		if (!is_busy(m) && m->report.error == 0)
			return m;
	}
	m = (struct spawn_memory *)(void *)spawn_map_stack(sizeof(*m));
	m->next = memories;
	memories = m;
	return m;
}

/* Gives pages that a large environment has used back to the kernel. */
static void
clear(struct spawn_memory *m)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = ((uintptr_t)m->text + KEPT + page - 1) & ~(page - 1);
	uintptr_t to = (uintptr_t)(m->text + m->used);

	if (to > from)
		(void)madvise((void *)from, to - from, MADV_DONTNEED);
	m->used = 0;
}

/* Copies n bytes; NULL: there is no space. */
static void *
copy(struct spawn_memory *m, const void *p, size_t n)
{
	char *to = m->text + m->used;

	if (n > sizeof(m->text) - m->used)
		return NULL;
	if (n > 0)
		memcpy(to, p, n);
	m->used += (n + 7) & ~(size_t)7;
	if (m->used > sizeof(m->text))
		m->used = sizeof(m->text);
	return to;
}

static char *const *
copy_words(struct spawn_memory *m, char *const *words)
{
	size_t n = 0, i;
	char **to;

	while (words[n] != NULL)
		n++;
	to = copy(m, words, (n + 1) * sizeof(*words));
	for (i = 0; to != NULL && i < n; i++) {
		to[i] = copy(m, words[i], strlen(words[i]) + 1);
		if (to[i] == NULL)
			return NULL;
	}
	return to;
}

static bool
copy_proxy(struct spawn_memory *m, const struct spawn_proxy *p)
{
	struct spawn_proxy *to = copy(m, p, sizeof(*p));

	m->spawn.proxy = to;
	if (to == NULL)
		return false;
	to->message = copy(m, p->message, p->size);
	return to->message != NULL;
}

/* Copies all that the child reads; false if it does not fit. */
static bool
copy_spawn(struct spawn_memory *m, const struct spawn *s)
{
	clear(m);
	m->spawn = *s;
	m->spawn.argv = copy_words(m, s->argv);
	m->spawn.envp = copy_words(m, s->envp);
	m->spawn.directory = copy(m, s->directory, strlen(s->directory) + 1);
	m->spawn.limits = copy(m, s->limits, s->nlimits * sizeof(*s->limits));
	m->spawn.groups = copy(m, s->groups, s->ngroups * sizeof(*s->groups));
	if (s->env_file != NULL)
		m->spawn.env_file = copy(m, s->env_file, strlen(s->env_file) + 1);
	if (s->proxy != NULL && !copy_proxy(m, s->proxy))
		return false;
	return m->spawn.argv != NULL && m->spawn.envp != NULL &&
	    m->spawn.directory != NULL && m->spawn.limits != NULL &&
	    m->spawn.groups != NULL && (s->env_file == NULL || m->spawn.env_file != NULL);
}

/* -- start and exit ------------------------------------------------------------------ */

pid_t
spawn_nowait(const struct spawn_job *job, enum spawn_step *step)
{
	struct spawn_memory *m = free_memory();
	const struct spawn_proxy *proxy = job->spawn->proxy;
	int flags = (proxy != NULL ? CLONE_PARENT : 0) |
	    (job->shares ? CLONE_VM | CLONE_CHILD_CLEARTID : 0);

	*step = STEP_EXEC;
	errno = E2BIG;
	if (!copy_spawn(m, job->spawn))
		return -1;
	*step = STEP_CLONE;
	m->report = (struct spawn_report){ STEP_NONE, 0 };
	m->job = *job;
	m->job.spawn = &m->spawn;
	m->job.memory = m;
	m->job.report = proxy != NULL ? proxy->report : &m->report;
	m->pid = 0;
	m->busy = job->shares;
	m->pid = spawn_clone(&m->job, (char *)m, flags, &m->busy);
	if (m->pid == -1)
		m->busy = 0;
	else
		forget_predecessor(m);
	return m->pid;
}

int
spawn_exited(pid_t pid, enum spawn_step *step)
{
	struct spawn_memory *m;
	int error = 0;

	for (m = memories; m != NULL; m = m->next) {
		if (m->pid != pid || m->report.error == 0)
			continue;
		error = m->report.error;
		*step = (enum spawn_step)m->report.step;
		m->report.error = 0;
	}
	return error;
}
