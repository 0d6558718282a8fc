/*
 * Child processes: the only caller of waitpid(2) and its kin.
 *
 * The process becomes a subreaper, so whatever a handler leaves behind is
 * inherited, found and reaped here; as PID 1 of a container it reaps orphans
 * for the same reason.
 *
 * The exit is seen before the zombie is reaped.  For a group leader the
 * group is then killed while its id cannot be reused, so that nothing the
 * handler left in its process group outlives it.  What it left in other
 * groups of its session is found in a sweep (at most ten a second) of this
 * process' children, and killed too: by child_done() at the latest.
 */
#ifndef RQD_LOOP_CHILD_H
#define RQD_LOOP_CHILD_H

#include <stdbool.h>
#include <sys/types.h>
#include <sys/resource.h>

#include "loop/loop.h"

struct child_exit {
	bool		signaled;	/* ended by a signal: code is its number */
	int		code;
	bool		leftovers;	/* processes of its group outlived it */
	struct rusage	usage;
};

struct child {
	/* set by the owner before child_watch(): */
	void	(*exited)(struct child *, const struct child_exit *);
	bool	  leader;		/* leads a session and group of its own pid */
	bool	  kill_leftovers;	/* needs leader */
	/* private: */
	pid_t	  pid;			/* 0: not watched */
	struct child *next;		/* hash chain */
};

void	child_init(struct loop *);	/* SIGCHLD and subreaper; once per loop */
void	child_done(struct loop *);	/* waits for leftovers to die, a second at most */

/*
 * exited() is called exactly once, from the loop, when the zombie has been
 * reaped; the owner may free the child in it.  A pid that has already exited
 * is fine, but watch it in the turn of its fork(): later it may have been
 * reaped as an orphan.
 */
void	child_watch(struct loop *, struct child *, pid_t);

/*
 * No callback any more; still reaped.  Where it was to have no leftovers its session
 * is finished: the owner has killed it, or does so now.
 */
void	child_forget(struct loop *, struct child *);

/*
 * In exited(): leftovers in other groups are swept in this turn, before anything
 * is sent; not within a tenth of a second.  For those whose work begins elsewhere.
 */
void	child_hurry(struct loop *);

/* Waits here for one that is sure to exit at once, and reaps it: no callback. */
void	child_wait(struct loop *, struct child *);

/* Signals the group (leader) or the process; 0, or -1 when it is gone. */
int	child_kill(const struct child *, int signo);

#endif
