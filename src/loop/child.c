/*
 * Child processes.
 *
 * SIGCHLD only tells that there may be zombies.  It is blocked and read from a
 * signalfd: one read(2) a turn, however many processes have exited, and no handler.
 * Orphans may be many, or fork and exit for ever; so a turn reaps TURN processes, and the
 * next one goes on.  A zombie without a watcher is reaped silently.
 */
#include "loop/child.h"

#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "loop/io.h"
#include "loop/timer.h"

#define TURN	64

/* Of this process; NULL but between child_init() and child_done(). */
static struct child_table {
	struct loop	*loop;
	LIST_HEAD(, child) children;	/* few */
	int		 fd;		/* signalfd */
	struct io	 io;
	sigset_t	 set;		/* SIGCHLD */
	bool		 was_blocked;
	struct sigaction old_action;
	struct timer	 reap;		/* set: there may be zombies, whatever SIGCHLD says */
} *table;

static void
tell(struct child_table *t, pid_t pid, int status)
{
	struct child_exit x = { .signaled = WIFSIGNALED(status),
	    .code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status) };
	struct child *c;

	LIST_FOREACH(c, &t->children, entry) {
		if (c->pid != pid)
			continue;
		child_forget(c);
		c->exited(c, &x);
		return;
	}
}

static void
reap_some(void *arg)
{
	struct child_table *t = arg;
	int status;
	pid_t pid;

	for (int i = 0; i < TURN; i++) {
		if ((pid = RETRY(waitpid(-1, &status, WNOHANG))) <= 0)
			return;
		tell(t, pid, status);
	}
	timer_set(&t->reap, 0);
}

static void
child_signal(int what UNUSED, void *arg)
{
	struct child_table *t = arg;
	struct signalfd_siginfo si;

	if (read(t->fd, &si, sizeof(si)) > 0)
		reap_some(t);
}

/* An ignored SIGCHLD would leave no zombies: restores its default. */
void
child_init(struct loop *l)
{
	struct sigaction dfl = { .sa_handler = SIG_DFL };
	struct child_table *t = NEW(struct child_table, .loop = l);
	sigset_t old;

	table = t;
	timer_init(&t->reap, l, reap_some, t);
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	(void)sigemptyset(&t->set);
	(void)sigaddset(&t->set, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &t->set, &old);
	t->was_blocked = sigismember(&old, SIGCHLD) == 1;
	(void)sigaction(SIGCHLD, &dfl, &t->old_action);
	t->fd = signalfd(-1, &t->set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (t->fd == -1)
		fatal_os("cannot watch child processes");
	io_init(&t->io, l, t->fd, IO_READ, child_signal, t);
	io_start(&t->io);
	timer_set(&t->reap, 0);		/* some may have exited before */
}

void
child_done(struct loop *l)
{
	struct child_table *t = table;
	struct child *c;

	if (t == NULL || t->loop != l)
		return;
	while ((c = LIST_FIRST(&t->children)) != NULL)
		child_forget(c);
	io_done(&t->io);
	(void)close(t->fd);
	(void)sigaction(SIGCHLD, &t->old_action, NULL);
	if (!t->was_blocked)
		(void)sigprocmask(SIG_UNBLOCK, &t->set, NULL);
	timer_stop(&t->reap);
	free(t);
	table = NULL;
}

void
child_watch(struct child *c, pid_t pid)
{
	c->pid = pid;
	LIST_INSERT_HEAD(&table->children, c, entry);
}

void
child_forget(struct child *c)
{
	if (c->pid == 0)
		return;
	LIST_REMOVE(c, entry);
	c->pid = 0;
}

int
child_kill(struct child *c, int signo)
{
	return c->pid != 0 ? kill(c->pid, signo) : -1;
}
