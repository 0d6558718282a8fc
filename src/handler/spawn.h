/*
 * Starting a command as cheaply as vfork(2), whatever the daemon's memory:
 * clone(2) with CLONE_VM on a stack of its own.
 *
 * The child: own session and group, default signal dispositions and mask,
 * limits, umask, nice, directory, groups and ids, PR_SET_PDEATHSIG, its three
 * descriptors and no other, then execve(2).
 */
#ifndef RQD_HANDLER_SPAWN_H
#define RQD_HANDLER_SPAWN_H

#include <sys/types.h>
#include <sys/resource.h>

#include "base/util.h"

/* One that may not be raised above the daemon's own hard limit is set to that. */
struct spawn_limit { int resource; struct rlimit value; };

/* Everything is borrowed and made before: the child only makes system calls. */
struct spawn {
	char *const		*argv;
	char *const		*envp;
	int			 fd[3];		/* stdin, stdout, stderr; all close-on-exec, or -1 for /dev/null */
	const char		*directory;	/* entered as the target user */
	uid_t			 uid;		/* (uid_t)-1: unchanged */
	gid_t			 gid;		/* (gid_t)-1: unchanged */
	const gid_t		*groups;
	size_t			 ngroups;	/* 0: unchanged */
	int			 umask;		/* -1: unchanged */
	int			 nice;		/* 0: unchanged */
	const struct spawn_limit *limits;
	size_t			 nlimits;
	volatile pid_t		*slot;		/* guardian's; NULL: none */
};

/*
 * Returns the pid, or -1 with errno and *step naming what failed ("clone",
 * "setuid", "chdir", "exec", ...; static); nothing is left running then but a
 * zombie that child.c reaps.  Waits until it is executed, a second at most.
 * Not for threads: all signals are blocked meanwhile.
 */
pid_t	spawn_run(const struct spawn *, const char **step) MUSTCHECK;

/* The same without waiting, where that is possible. */
pid_t	spawn_start(const struct spawn *, const char **step) MUSTCHECK;

/*
 * To be called once, at the exit of each process: why it could not be executed,
 * where that was not waited for: the error, and *step; else 0.
 */
int	spawn_exited(pid_t, const char **step);

/* Closes the caller's ends of what a child was given, where they are not -1; keeps errno. */
void	spawn_close(const int fd[3]);

/*
 * Notes which signals are not at their defaults; the first start does so by
 * itself.  To ask 64 times at each start would cost more than all else here.
 * What the daemon itself changes is reset in any case.
 */
void	spawn_look_at_signals(void);

#endif
