/*
 * A cgroup for each run of a handler (cgroup v2), so that nothing outlives it, whatever
 * sessions and groups it makes, and so that the kernel limits all of its processes together.
 *
 *	OURS/				the cgroup that rqd was started in
 *	  rqd.runs.PID.N/		of this rqd, which holds a lock on it
 *	    main/			the main process, the spawner and its helpers
 *	    1/ 2/ ...			a run each; used again when it is empty
 *
 * Other rqds may have theirs in OURS, too.  The kernel gives up the lock when the last process
 * of an rqd ends; the next rqd that starts there kills and removes what is left.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum cgroup_part { CGROUP_RUNS, CGROUP_MEMORY, CGROUP_PIDS, CGROUP_PARTS };

/*
 * Call it before the spawner is forked, in a process with one thread; only the first call
 * counts.  Moves this process into main/.  Without enter it changes nothing, and looks at
 * what there would be.
 */
void	cgroup_open(bool enter);
/* Why runs have no cgroups, or no such limit, here; NULL: they have. */
const char *cgroup_lacks(enum cgroup_part);
/* This process will have no right to them. */
void	cgroup_give_up(const char *why);

/* -- in the spawner ----------------------------------------------------------------------- */

struct cgroup;

/*
 * An empty cgroup for a run, and *dir, which the caller closes.  A limit of 0 is none; one that
 * is not to be had here is left out.  NULL with errno; 0: there are no cgroups here.
 */
struct cgroup *cgroup_take(uint64_t memory_max, uint64_t pids_max, int *dir);

/* What became of a run. */
struct cgroup_end {
	bool	left;		/* processes that outlived it */
	bool	oom;		/* the kernel killed some, for want of memory */
};

/*
 * Gives it back when its leader was reaped.  Kills what is left, or lets it go on.  failed: look
 * whether memory was short.
 */
struct cgroup_end cgroup_leave(struct cgroup *, bool kills, bool failed);

/* Of a run that could not be started: another gets a new one. */
void	cgroup_destroy(struct cgroup *);

/* Removes those of runs; their processes have ended. */
void	cgroup_close(void);
