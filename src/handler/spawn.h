/*
 * Starts a command: what the spawner does between fork and execve(2).
 *
 * The child leads a session and group of its own, and is killed with its parent.  It has
 * default signal dispositions, the limits, umask, nice, groups and ids, environment, directory
 * and descriptors that it is given, and no others.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/util.h"

/*
 * The descriptors of a child, all close-on-exec: stdin, stdout, stderr (-1: /dev/null),
 * and that of verdicts (-1: none).
 */
#define SPAWN_FDS	4

#define SPAWN_LIMITS	6		/* RLIMIT_NOFILE, _AS, _CPU, _FSIZE, _NPROC and _CORE */

/* The step of a start that failed; spawn_step_name() has the names. */
enum spawn_step {
	STEP_NONE, STEP_CLONE, STEP_SETSID, STEP_NULL, STEP_DUP, STEP_LIMIT, STEP_NICE,
	STEP_GROUPS, STEP_GID, STEP_UID, STEP_DUMPABLE, STEP_CAPS, STEP_ENV_FILE,
	STEP_ENVIRONMENT, STEP_CHDIR, STEP_EXEC, STEP_USER, STEP_GROUP, STEP_SPAWNER,
	STEP_CGROUP, STEP_OOM_SCORE, STEP_MAX
};

/* The child writes it if a step fails before execve(2) has succeeded. */
struct spawn_report {
	int	step;		/* enum spawn_step; STEP_NONE: nothing failed */
	int	error;		/* valid unless STEP_NONE */
};

/*
 * A command, as the loader writes it (rows.h): this head; the groups; and strings, each with
 * a NUL: the directory, the command line, the variables, and those of env_message, "NAME", or
 * "NAME=value" with a value for messages that have none.
 */
struct spawn_row {
	/* (uint64_t)-1: unchanged.  One above our hard limit is that, if it may not be raised. */
	uint64_t	limits[SPAWN_LIMITS];
	uint64_t	memory_max;	/* of the cgroup; 0: no limit */
	uint64_t	pids_max;
	uint32_t	size;		/* of all, a multiple of 8 */
	uint32_t	queue;		/* its number */
	int32_t		error;		/* why it cannot be started; 0: it can */
	int32_t		step;		/* enum spawn_step, of that */
	uint8_t		keeps;		/* leftovers: 0 or 1 */
	uint8_t		prompt;		/* its start must be reported at once: 0 or 1 */
	uint16_t	members;	/* variables of env_message */
	uid_t		uid;		/* (uid_t)-1: unchanged */
	gid_t		gid;		/* (gid_t)-1: unchanged */
	int32_t		umask;		/* -1: unchanged */
	int32_t		nice;		/* INT32_MIN: unchanged */
	uint32_t	argc;
	uint32_t	envc;
	uint32_t	ngroups;	/* 0: unchanged */
	gid_t		groups[];
};
_Static_assert(offsetof(struct spawn_row, groups) == sizeof(struct spawn_row), "no padding");

/*
 * Once, in the spawner, which has one thread: blocks all signals, sets them to their
 * defaults, and looks at what this machine can do.  privileged: children may become users who
 * attack them.
 */
void	spawn_init(bool privileged);

/*
 * words: "NAME=value" with a NUL after each, len bytes.  The report is in shared memory, and
 * kept until the exit.  cgroup: the directory of the child's cgroup; -1: ours.  Does not wait for
 * execve(2).  Returns the pid, or -1 with errno: no child.
 */
pid_t	spawn_start(const struct spawn_row *, const char *words, size_t len,
	    const int fd[SPAWN_FDS], int cgroup, struct spawn_report *) MUSTCHECK;

const char *spawn_step_name(enum spawn_step);	/* "clone", "setuid", "directory", "exec", ... */
