/*
 * Starts a command as cheaply as vfork(2), whatever the size of the daemon's memory: by
 * clone(2) with CLONE_VM on a stack of its own.
 *
 * The child sets its own session and group, default signal dispositions and mask,
 * limits, umask, nice, groups and ids, PR_SET_PDEATHSIG, env_file, directory, and its
 * descriptors.  It closes all others, then calls execve(2).
 */
#pragma once

#include <sys/types.h>
#include <sys/resource.h>

#include "base/util.h"

/*
 * The descriptors of a child, all close-on-exec: stdin, stdout, stderr (-1: /dev/null),
 * and that of verdicts (-1: none).
 */
#define SPAWN_FDS	4

/* A limit above the daemon's own hard limit is set to that, if the child may not raise it. */
struct spawn_limit { int resource; struct rlimit value; };

/* The step of a start that failed; spawn_step_name() has the names. */
enum spawn_step {
	STEP_NONE, STEP_CLONE, STEP_SETSID, STEP_SIGNALS, STEP_NULL, STEP_DUP, STEP_LIMIT,
	STEP_NICE, STEP_GROUPS, STEP_GID, STEP_UID, STEP_DUMPABLE, STEP_CAPS, STEP_ENV_FILE,
	STEP_CHDIR, STEP_CLOSE, STEP_EXEC, STEP_USER, STEP_GROUP, STEP_LAUNCHER, STEP_MAX
};

/* The child writes it if a step fails before execve(2) has succeeded. */
struct spawn_report {
	int	step;		/* enum spawn_step; STEP_NONE: nothing failed */
	int	error;		/* valid unless STEP_NONE */
};

/*
 * All members are borrowed, and complete before the start: the child only makes system
 * calls.
 */
struct spawn {
	char *const		*argv;
	char *const		*envp;
	int			 fd[SPAWN_FDS];
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
	/* A file with more variables, which the child reads as the target user; NULL: none. */
	const char		*env_file;
	/* The file may replace the env_weak entries from envp[env_first] on, and no others. */
	size_t			 env_first;
	size_t			 env_weak;
	/* Set in a launcher; NULL in a process that starts children of its own. */
	const struct spawn_proxy *proxy;
};

/* A start on behalf of the launcher's parent, whose child the process becomes. */
struct spawn_proxy {
	int			 socket;	/* the child sends message there, first of all */
	const void		*message;
	size_t			 size;
	size_t			 pid_at;	/* offset in it for the child's pid, a pid_t */
	struct spawn_report	*report;	/* shared with our parent */
};

/*
 * Returns the pid, or -1 with errno and *step; then only a zombie may be left, which
 * child.c reaps.  It waits for execve(2) only in an emulator and on machines other than
 * x86-64 and ARM64, and never in a launcher.  spawn_exited() tells at the exit why a
 * child could not be executed.
 */
pid_t	spawn_start(const struct spawn *, enum spawn_step *step) MUSTCHECK;

/*
 * Call it once, at the exit of each process that the daemon itself has started.
 * Returns the error number and *step if the child did not come through execve(2), or 0.
 */
int	spawn_exited(pid_t, enum spawn_step *step);

const char *spawn_step_name(enum spawn_step);	/* "clone", "setuid", "directory", "exec", ... */

/*
 * Notes which signals are not at their defaults.  The first start calls it: 64 system
 * calls at each start would cost more than the rest.  A child always resets the signals
 * that the daemon changes.
 */
void	spawn_look_at_signals(void);
