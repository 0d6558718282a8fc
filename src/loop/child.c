/*
 * Child processes.
 *
 * SIGCHLD only tells that there may be zombies.  It is blocked and read from a
 * signalfd: one read(2) a turn, however many processes have exited, and no handler.
 * waitid(WNOWAIT) shows one zombie at a time.  Until it is reaped the kernel does not
 * reuse its pid and group id, so its group can be killed safely.  Then waitpid() reaps
 * it.  A zombie without a watcher is reaped silently.
 *
 * Leftovers.  Processes in the group of a finished leader are killed at once.  Those in
 * another group of its session are found later: the session id stays in a table for
 * some seconds.  When a parent dies, its children become those of this process, the
 * subreaper.  A sweep looks at these, and kills the ones of such a session.  A sweep
 * follows the exit of a leader and the exit of any orphan, whose own children come to
 * the subreaper only then.  There are at most ten sweeps a second.  After child_hurry()
 * one more runs in the same turn, and child_done() sweeps until nothing is left.
 */
#include "loop/child.h"

#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "loop/proc.h"
#include "loop/io.h"
#include "loop/loop_private.h"
#include "loop/timer.h"

#define CHAINS		256
#define SWEEP_INTERVAL	(100 * MSEC)
#define SWEEP_PAUSE	(10 * MSEC)
#define LAST_SWEEPS	SEC
/* Many more sessions than can finish between two sweeps, also of those in one set. */
#define SETS		256
#define SET_SIZE	16
#define SESSION_LIFE	(10 * SEC)

/* A session whose leader has finished, and whose leftovers must be killed. */
struct session {
	pid_t	id;		/* 0: free */
	usec_t	until;		/* mono */
};

struct child_table {
	struct loop	*loop;
	LIST_HEAD(child_chain, child) chain[CHAINS];
	int		 fd;		/* signalfd */
	struct io	 io;
	sigset_t	 set;		/* SIGCHLD */
	bool		 was_blocked;
	struct sigaction old_action;
	struct defer	 reap;		/* for children that exited before child_init() */
	void		(*introduce)(void *);	/* NULL: no proxy */
	void		(*end)(pid_t, void *);
	void		*proxy_arg;
	struct timer	 sweep;
	bool		 hurry;		/* in reap_all(): child_hurry() was called */
	usec_t		 swept_at;	/* mono; 0: never */
	usec_t		 finished_until;	/* mono; of the last session remembered */
	struct session	 session[SETS][SET_SIZE];	/* each in the set of its id's remainder */
};

static struct child_chain *
chain_of(struct child_table *t, pid_t pid)
{
	return &t->chain[(unsigned)pid % CHAINS];
}

static struct child *
find(struct child_table *t, pid_t pid)
{
	struct child *c;

	LIST_FOREACH(c, chain_of(t, pid), entry) {
		if (c->pid == pid)
			return c;
	}
	return NULL;
}

/* Takes c out of the table; its pid is 0 after. */
static void
forget(struct child *c)
{
	LIST_REMOVE(c, entry);
	c->pid = 0;
}

/* -- the sweep ---------------------------------------------------------------- */

/* Finds a session; NULL: it is not in the table. */
static struct session *
find_session(struct child_table *t, pid_t id)
{
	struct session *set = t->session[(unsigned)id % SETS];

	for (int i = 0; i < SET_SIZE; i++) {
		if (set[i].id == id)
			return &set[i];
	}
	return NULL;
}

/* Adds a session in place of the one of its set that finished first. */
static void
remember_session(struct child_table *t, pid_t id)
{
	struct session *set = t->session[(unsigned)id % SETS], *s = find_session(t, id);

	if (s == NULL) {
		s = set;
		for (int i = 1; i < SET_SIZE; i++) {
			if (set[i].until < s->until)
				s = &set[i];
		}
	}
	t->finished_until = clock_mono() + SESSION_LIFE;
	*s = (struct session){ id, t->finished_until };
}

/*
 * Kills the child's group if its session is in the table.  The child cannot vanish
 * between getsid() and kill(), because only this file reaps it.  All processes of its
 * group belong to that session.
 */
static bool
sweep_child(struct child_table *t, pid_t pid, usec_t now)
{
	pid_t session, group;
	const struct session *s;

	if (find(t, pid) != NULL)
		return false;
	session = getsid(pid);
	if (session <= 0 || session == getsid(0) || find(t, session) != NULL)
		return false;
	s = find_session(t, session);
	if (s == NULL || s->until <= now)
		return false;
	group = getpgid(pid);
	if (t->end != NULL)
		t->end(pid, t->proxy_arg);
	else
		(void)kill(group > 1 ? -group : pid, SIGKILL);
	return true;
}

/* Looks at all children; returns whether there were any, zombies included. */
static bool
sweep(struct child_table *t)
{
	struct buf b = BUF_INIT;
	usec_t now = clock_mono();
	bool found = false;
	char *p, *end;
	long pid;

	t->swept_at = now;
	if (t->finished_until <= now)
		return false;
	proc_children(getpid(), &b);
	for (p = buf_str(&b); (pid = strtol(p, &end, 10)) > 0; p = end)
		found |= sweep_child(t, (pid_t)pid, now);
	buf_done(&b);
	return found;
}

static void
sweep_cb(void *arg)
{
	(void)sweep(arg);
}

static void
want_sweep(struct child_table *t)
{
	usec_t now = clock_mono();

	if (timer_is_set(&t->sweep) || t->finished_until <= now)
		return;
	timer_set_at(&t->sweep,
	    t->swept_at == 0 ? now : t->swept_at + SWEEP_INTERVAL);
}

/* -- reaping ------------------------------------------------------------------ */

/* Returns the pid of a zombie without reaping it; 0: none. */
static pid_t
next_zombie(idtype_t type, pid_t id)
{
	siginfo_t si = { .si_signo = 0 };
	int flags = WEXITED | WNOHANG | WNOWAIT;

	return TEMP_FAILURE_RETRY(waitid(type, (id_t)id, &si, flags)) == 0 ? si.si_pid : 0;
}

static int
reap(pid_t pid)
{
	int status = 0;

	(void)TEMP_FAILURE_RETRY(waitpid(pid, &status, 0));
	return status;
}

static bool
group_is_empty(pid_t group)
{
	return kill(-group, 0) == -1 && errno == ESRCH;
}

/*
 * Whether processes of a finished leader's group outlived it.  Processes that had
 * finished before the kill do not count; they are reaped first.  The signal that
 * ended a process tells the two apart.
 */
static bool
has_leftovers(struct child_table *t, pid_t group, bool killed)
{
	bool found = false;
	int status;
	pid_t pid;

	if (group_is_empty(group))
		return false;
	while ((pid = next_zombie(P_PGID, group)) != 0 && find(t, pid) == NULL) {
		status = reap(pid);
		if (killed && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
			found = true;
	}
	return found || !group_is_empty(group);
}

/*
 * c has become a zombie.  If another process kills leftovers, ask it only if there are
 * some: a group keeps its number while it has members.
 */
static void
child_over(struct child_table *t, struct child *c)
{
	struct child_exit x = { .leftovers = false };
	bool kills = c->leader && c->kill_leftovers;
	pid_t pid = c->pid;
	int status;

	if (kills && c->kill == NULL)
		(void)kill(-pid, SIGKILL);
	status = reap(pid);
	forget(c);
	if (c->leader)
		x.leftovers = has_leftovers(t, pid, kills && c->kill == NULL);
	if (kills && x.leftovers && c->kill != NULL)
		c->kill(c, SIGKILL);
	if (kills)
		remember_session(t, pid);
	x.signaled = WIFSIGNALED(status);
	x.code = x.signaled ? WTERMSIG(status) : WEXITSTATUS(status);
	c->exited(c, &x);
}

static struct child *
find_or_ask(struct child_table *t, pid_t pid)
{
	struct child *c = find(t, pid);

	if (c == NULL && t->introduce != NULL) {
		t->introduce(t->proxy_arg);
		c = find(t, pid);
	}
	return c;
}

static void
reap_all(void *arg)
{
	struct child_table *t = arg;
	struct child *c;
	bool any = false;
	pid_t pid;

	while ((pid = next_zombie(P_ALL, 0)) != 0) {
		c = find_or_ask(t, pid);
		if (c != NULL)
			child_over(t, c);
		else
			(void)reap(pid);
		any = true;
	}
	if (t->hurry)
		(void)sweep(t);
	t->hurry = false;
	if (any)
		want_sweep(t);
}

static void
child_signal(int what UNUSED, void *arg)
{
	struct child_table *t = arg;
	struct signalfd_siginfo si;

	if (read(t->fd, &si, sizeof(si)) > 0)
		reap_all(t);
}

/* An ignored SIGCHLD would leave no zombies: restore its default. */
static void
listen_to_signal(struct child_table *t)
{
	struct sigaction dfl = { .sa_handler = SIG_DFL };
	sigset_t old;

	(void)sigemptyset(&t->set);
	(void)sigaddset(&t->set, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &t->set, &old);
	t->was_blocked = sigismember(&old, SIGCHLD) == 1;
	(void)sigaction(SIGCHLD, &dfl, &t->old_action);
	t->fd = signalfd(-1, &t->set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (t->fd == -1)
		fatal_os("cannot watch child processes");
	io_init(&t->io, t->loop, t->fd, IO_READ, child_signal, t);
	io_start(&t->io);
}

/*
 * Kills the leftovers of all finished leaders before the daemon exits.  It repeats
 * because the children of a dying process come to the subreaper only then.
 */
static void
sweep_until_none(struct child_table *t)
{
	const struct timespec pause = { .tv_nsec = SWEEP_PAUSE * 1000 };
	usec_t until = clock_mono() + LAST_SWEEPS;
	pid_t pid;

	while (sweep(t) && clock_mono() < until) {
		(void)sigtimedwait(&t->set, NULL, &pause);
		while ((pid = next_zombie(P_ALL, 0)) != 0)
			(void)reap(pid);
	}
}

/* -- interface ------------------------------------------------------------------ */

void
child_init(struct loop *l)
{
	struct child_table *t = xcalloc(1, sizeof(*t));

	t->loop = l;
	l->children = t;
	timer_init(&t->sweep, l, sweep_cb, t);
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	listen_to_signal(t);
	loop_defer(l, &t->reap, reap_all, t);
}

void
child_done(struct loop *l)
{
	struct child_table *t = l->children;
	struct child *c;

	if (t == NULL)
		return;
	for (size_t i = 0; i < CHAINS; i++) {
		while ((c = LIST_FIRST(&t->chain[i])) != NULL)
			forget(c);
	}
	sweep_until_none(t);
	io_done(&t->io);
	(void)close(t->fd);
	(void)sigaction(SIGCHLD, &t->old_action, NULL);
	if (!t->was_blocked)
		(void)sigprocmask(SIG_UNBLOCK, &t->set, NULL);
	loop_defer_cancel(l, &t->reap);
	timer_stop(&t->sweep);
	free(t);
	l->children = NULL;
}

void
child_watch(struct loop *l, struct child *c, pid_t pid)
{
	struct child_table *t = l->children;
	struct session *finished = find_session(t, pid);

	if (finished != NULL)		/* its number is this leader's now */
		*finished = (struct session){ 0 };
	c->pid = pid;
	LIST_INSERT_HEAD(chain_of(t, pid), c, entry);
}

void
child_forget(struct loop *l, struct child *c)
{
	if (c->pid == 0)
		return;
	if (c->leader && c->kill_leftovers)
		remember_session(l->children, c->pid);
	forget(c);
}

void
child_wait(struct child *c)
{
	pid_t pid = c->pid;

	if (pid == 0)
		return;
	forget(c);
	(void)reap(pid);
}

void
child_wait_pid(pid_t pid)
{
	(void)reap(pid);
}

void
child_set_proxy(struct loop *l, void (*introduce)(void *), void (*end)(pid_t, void *), void *arg)
{
	struct child_table *t = l->children;

	if (t == NULL)
		return;
	t->introduce = introduce;
	t->end = end;
	t->proxy_arg = arg;
}

void
child_hurry(struct loop *l)
{
	l->children->hurry = true;
}

/* Falls back to the process: the child makes its group only after fork(). */
int
child_kill(struct child *c, int signo)
{
	if (c->kill != NULL) {
		c->kill(c, signo);
		return 0;
	}
	if (c->pid == 0)
		return -1;
	if (c->leader && kill(-c->pid, signo) == 0)
		return 0;
	return kill(c->pid, signo);
}
