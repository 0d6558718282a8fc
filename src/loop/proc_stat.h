/* What /proc/PID/stat says of a process. */
#ifndef RQD_LOOP_PROC_STAT_H
#define RQD_LOOP_PROC_STAT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct proc_stat {
	bool		zombie;		/* or about to be taken away */
	pid_t		parent;
	pid_t		group;
	pid_t		session;
	uint64_t	started;	/* clock ticks since boot */
};

/* False: there is no such process, or /proc hides it.  Allocates nothing. */
bool	proc_stat_read(pid_t, struct proc_stat *);

#endif
