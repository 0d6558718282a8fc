/*
 * Child processes: only this file reaps them.  (The spawner, another process, reaps its own.)
 *
 * The process becomes a subreaper: it inherits processes that its children leave behind, and
 * reaps them.  As PID 1 of a container it reaps orphans the same way.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "loop/loop.h"

struct child_exit {
	bool		signaled;	/* ended by a signal: code is its number */
	int		code;
};

struct child {
	/* set by the owner before child_watch(): */
	void	(*exited)(struct child *, const struct child_exit *);
	/* private: */
	pid_t	  pid;			/* 0: not watched */
	LIST_ENTRY(child) entry;
};

void	child_init(struct loop *);	/* watches SIGCHLD, becomes a subreaper; once */
void	child_done(struct loop *);

/*
 * The loop calls exited() exactly once, after it has reaped the zombie; the owner
 * may free the child in it.  Call child_watch() in the turn of the fork(): a later
 * turn may already have reaped the process as an orphan.  A process that has exited
 * meanwhile is fine.
 */
void	child_watch(struct child *, pid_t);

/* No callback comes any more; the loop still reaps the child. */
void	child_forget(struct child *);

/* Signals the process; 0, or -1: it is gone. */
int	child_kill(struct child *, int signo);
