/*
 * The guardian.
 *
 * Only the daemon holds the writing end of a pipe: handlers do not get it, and the
 * guardian closes all but the reading end.  When the daemon dies, the kernel closes
 * the writing end, and the guardian's read(2) returns.
 *
 * A child holds a copy of the writing end until it has written its slot.  So when the
 * guardian wakes up, every child has done that.
 *
 * A slot is set from before the child's first act until its group has been
 * killed and reaped.  So while the daemon lives no other process can have that number
 * as its pid, group or session.  When the daemon dies the numbers become free.  The
 * kernel would have to use all pids within milliseconds to give one of them to another
 * process before the guardian has used it.
 *
 * The table has room for every pid that Linux can give out.  Its pages exist from their
 * first use on, so it costs address space only.
 */
#include "handler/guardian.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "handler/launch_wire.h"
#include "loop/child.h"
#include "loop/proc.h"
#include "loop/timer.h"

#define SLOTS		((size_t)4 * 1024 * 1024)	/* PID_MAX_LIMIT of 64-bit Linux */
#define SWEEP_TIME	(5 * SEC)
#define SWEEP_PAUSE	(5 * MSEC)
#define RESTART_PAUSE	SEC

/* Shared by the daemon, its guardian, and for one write each child. */
struct guardian_table {
	const struct launch_slot *shared;	/* of the launcher; NULL: none */
	volatile size_t	used;		/* slots at and above were never used */
	volatile pid_t	sid[SLOTS];	/* 0: free */
	volatile uint64_t started[SLOTS];	/* ticks since boot; 0: not noted */
};

struct guardian {
	struct loop	 *loop;
	struct guardian_table *table;
	size_t		 *free;		/* owned: slots below used that are free, a stack */
	size_t		  nfree;
	size_t		  free_cap;
	struct child	  child;
	pid_t		  pid;		/* 0: no process now, the timer is set */
	int		  fd;		/* writing end; -1 without a process */
	usec_t		  started;	/* mono */
	struct timer	  timer;
};

/* -- the process --------------------------------------------------------------------- */

static int
compare(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return x < y ? -1 : x > y;
}

/* Kills all processes of these sessions; returns whether there were any. */
static bool
kill_sessions(const pid_t *sid, size_t n)
{
	DIR *dir = opendir("/proc");
	struct dirent *d;
	bool found = false;
	struct proc_stat st;
	pid_t pid;

	if (dir == NULL)
		return false;
	while ((d = readdir(dir)) != NULL) {
		pid = atoi(d->d_name);
		if (pid <= 0 || !proc_stat_read(pid, &st) || st.zombie ||
		    (bsearch(&st.session, sid, n, sizeof(*sid), compare) == NULL &&
		    bsearch(&pid, sid, n, sizeof(*sid), compare) == NULL))
			continue;
		(void)kill(pid, SIGKILL);
		found = true;
	}
	(void)closedir(dir);
	return found;
}

/* Kills until no process is found, since processes may fork meanwhile. */
static void
end_sessions(const pid_t *sid, size_t n)
{
	const struct timespec pause = { .tv_nsec = SWEEP_PAUSE * 1000 };
	usec_t until = clock_mono() + SWEEP_TIME;

	do {
		for (size_t i = 0; i < n; i++)
			(void)kill(-sid[i], SIGKILL);
		if (!kill_sessions(sid, n))
			break;
		(void)nanosleep(&pause, NULL);
	} while (clock_mono() < until);
}

static uint64_t
ticks_per_second(void)
{
	return (uint64_t)sysconf(_SC_CLK_TCK);
}

/*
 * The main process of a launcher marks slots as done.  An attacker in it might mark
 * none, and wait until other processes get the numbers.  Those are younger than the
 * slot, so they are not killed.
 */
static bool
is_live(const struct guardian_table *t, size_t i)
{
	struct proc_stat st;

	if (t->sid[i] <= 0 || (t->shared != NULL && t->shared[i].done != 0))
		return false;
	return t->started[i] == 0 || !proc_stat_read(t->sid[i], &st) ||
	    st.started <= t->started[i] + ticks_per_second();
}

static void
sweep(const struct guardian_table *t)
{
	pid_t *sid = xmalloc((t->used + 1) * sizeof(*sid));
	size_t i, n = 0;

	for (i = 0; i < t->used; i++) {
		if (is_live(t, i))
			sid[n++] = t->sid[i];
	}
	qsort(sid, n, sizeof(*sid), compare);
	if (n > 0)
		end_sessions(sid, n);
	free(sid);
}

/* The guardian's process.  All signals are blocked already, so only SIGKILL ends it early. */
static NORETURN void
guard(int fd, const struct guardian_table *t)
{
	char c;

	(void)setsid();
	(void)prctl(PR_SET_NAME, "rqd-guardian");
	if (chdir("/") == -1 || dup2(fd, 0) == -1)
		_exit(1);
	closefrom(1);
	(void)!TEMP_FAILURE_RETRY(read(0, &c, 1));
	sweep(t);
	_exit(0);
}

/* -- the daemon's side ------------------------------------------------------------------ */

struct guardian_table *
guardian_table_new(const struct launch_slot *shared)
{
	struct guardian_table *t = mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (t == MAP_FAILED)
		fatal_os("cannot map the guardian's table: %s", strerror(errno));
	t->shared = shared;
	return t;
}

volatile pid_t *
guardian_table_slot(struct guardian_table *t, size_t i)
{
	if (i >= t->used)
		t->used = i + 1;
	return &t->sid[i];
}

void
guardian_table_note(struct guardian_table *t, size_t i)
{
	struct timespec now;

	if (clock_gettime(CLOCK_BOOTTIME, &now) == -1)
		return;
	t->started[i] = (uint64_t)now.tv_sec * ticks_per_second() +
	    (uint64_t)now.tv_nsec * ticks_per_second() / 1000000000;
}

pid_t
guardian_fork(const struct guardian_table *t, int *ret)
{
	sigset_t all, old;
	int fd[2];
	pid_t pid;

	if (pipe2(fd, O_CLOEXEC) == -1)
		return -1;
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &old);
	pid = fork();
	if (pid == 0)
		guard(fd[0], t);
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	(void)close(fd[0]);
	if (pid == -1) {
		(void)close(fd[1]);
		return -1;
	}
	*ret = fd[1];
	return pid;
}

static int
start(struct guardian *g)
{
	pid_t pid = guardian_fork(g->table, &g->fd);

	if (pid == -1)
		return -1;
	g->pid = pid;
	g->started = clock_mono();
	child_watch(g->loop, &g->child, pid);
	return 0;
}

static void
start_cb(void *arg)
{
	struct guardian *g = arg;

	if (start(g) == -1)
		timer_set(&g->timer, RESTART_PAUSE);
}

static void
exited(struct child *child, const struct child_exit *x UNUSED)
{
	struct guardian *g = CONTAINER_OF(child, struct guardian, child);

	(void)close(g->fd);
	g->fd = -1;
	g->pid = 0;
	timer_set_at(&g->timer, g->started + RESTART_PAUSE);
}

struct guardian *
guardian_start(struct loop *loop)
{
	struct guardian *g = NEW(struct guardian, .loop = loop, .fd = -1,
	    .child = { .exited = exited }, .table = guardian_table_new(NULL));

	timer_init(&g->timer, loop, start_cb, g);
	start_cb(g);
	return g;
}

void
guardian_stop(struct guardian *g)
{
	if (g == NULL)
		return;
	timer_stop(&g->timer);
	if (g->fd != -1)
		(void)close(g->fd);
	(void)child_kill(&g->child, SIGCONT);	/* if somebody has stopped it */
	child_wait(&g->child);
	(void)munmap(g->table, sizeof(*g->table));
	free(g->free);
	free(g);
}

volatile pid_t *
guardian_slot(struct guardian *g)
{
	if (g == NULL)
		return NULL;
	if (g->nfree > 0)
		return guardian_table_slot(g->table, g->free[--g->nfree]);
	if (g->table->used == SLOTS)
		fatalx("more handlers than pids");
	return guardian_table_slot(g->table, g->table->used);
}

void
guardian_release(struct guardian *g, volatile pid_t *slot)
{
	if (slot == NULL)
		return;
	*slot = 0;
	if (g->nfree == g->free_cap) {
		g->free_cap = g->free_cap == 0 ? 64 : g->free_cap * 2;
		g->free = xreallocarray(g->free, g->free_cap, sizeof(*g->free));
	}
	g->free[g->nfree++] = (size_t)(slot - g->table->sid);
}

pid_t
guardian_pid(const struct guardian *g)
{
	return g->pid;
}
