/*
 * Child processes.  In the main process only this file reaps them, except one that
 * spawn.c makes to test clone(2).  The launcher, another process, reaps its own.
 *
 * The process becomes a subreaper: it inherits and reaps the processes that a
 * handler leaves behind.  As PID 1 of a container it reaps orphans the same way.
 *
 * This file sees an exit before it reaps the zombie.  Until then the kernel does not
 * reuse the id, so the process group of a leader is killed safely.  A sweep finds
 * processes that the handler left in other groups of its session, and kills them.
 * There are at most ten sweeps a second; the last one is in child_done().
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "loop/loop.h"

struct child_exit {
	bool		signaled;	/* ended by a signal: code is its number */
	int		code;
	bool		leftovers;	/* processes of its group outlived it */
};

struct child {
	/* set by the owner before child_watch(): */
	void	(*exited)(struct child *, const struct child_exit *);
	bool	  leader;		/* leads a session and group of its own pid */
	bool	  kill_leftovers;	/* needs leader */
	void	(*kill)(struct child *, int signo);	/* sends the signal; NULL: kill(2) */
	/* private: */
	pid_t	  pid;			/* 0: not watched */
	LIST_ENTRY(child) entry;
};

void	child_init(struct loop *);	/* watches SIGCHLD, becomes a subreaper; once per loop */
void	child_done(struct loop *);	/* waits for leftovers to die, a second at most */

/*
 * The loop calls exited() exactly once, after it has reaped the zombie; the owner
 * may free the child in it.  Call child_watch() in the turn of the fork(): a later
 * turn may already have reaped the process as an orphan.  A process that has exited
 * meanwhile is fine.
 */
void	child_watch(struct loop *, struct child *, pid_t);

/*
 * No callback comes any more; the child is still reaped.  With kill_leftovers its
 * session counts as finished: the owner has killed it, or kills it now.
 */
void	child_forget(struct loop *, struct child *);

/*
 * Call in exited(): sweeps leftovers in other groups in this turn, before a result
 * is sent, instead of within 0.1 s.  Use this when the message may already be
 * running on another daemon.
 */
void	child_hurry(struct loop *);

/* Blocks until the child, which must be about to exit, is reaped; no callback. */
void	child_wait(struct child *);

/* Like child_wait(), for one that is not watched: after child_done(). */
void	child_wait_pid(pid_t);

/*
 * For a process whose children another process starts and signals.  introduce() is
 * called before an unwatched child is reaped, and may call child_watch() for it.  end()
 * kills the group of an unwatched child.  NULL: neither.
 */
void	child_set_proxy(struct loop *, void (*introduce)(void *), void (*end)(pid_t, void *),
	    void *arg);

/*
 * Signals the group (leader) or the process; 0, or -1: it is gone.  Always 0 if kill()
 * is set.
 */
int	child_kill(struct child *, int signo);
