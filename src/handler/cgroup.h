/*
 * A cgroup for each run of a handler (cgroup v2), so that nothing outlives it, whatever
 * sessions and groups it makes, and so that the kernel limits all of its processes together.
 *
 *	OURS/				the cgroup that rqd was started in
 *	  rqd.daemon.PID.N/		of this rqd
 *	    main/			the main process, the spawner and its helpers
 *	    runs/			its cgroup.kill is open and locked in both processes
 *	      1/ 2/ ...			a run each; used again, by the same user, when it is empty
 *
 * Other rqds may have theirs in OURS, too.  If the spawner is killed, the main process kills
 * all in runs/.  The kernel gives up the lock when the last process of an rqd ends; the next rqd
 * that starts there kills and removes what is left.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

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
/* In the main process, when the spawner was forked: from now on it can only kill them. */
void	cgroup_leave_to_spawner(void);
/* Kills all runs, with all that they have left.  None starts in their cgroups any more. */
void	cgroup_kill_runs(void);

/* -- in the spawner ----------------------------------------------------------------------- */

struct cgroup;

/*
 * An empty cgroup for a run of this user, and *dir, which the caller closes.  A limit of 0 is
 * none; one that is not to be had here is left out.  NULL with errno; 0: there are no cgroups
 * here.
 */
struct cgroup *cgroup_take(uid_t, uint64_t memory_max, uint64_t pids_max, int *dir);

/* What became of a run. */
struct cgroup_end {
	unsigned left;		/* processes that outlived it, at most a few hundred */
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

/*
 * Bytes that stay charged to a cgroup without processes whatever its next run needs, by its
 * memory.current and memory.stat: the kernel's own for sockets, queues and inodes, and files in
 * memory, such as those of /dev/shm.  Only the pages of other files can be had back.
 */
uint64_t cgroup_unreclaimable(const char *current, const char *stat);
