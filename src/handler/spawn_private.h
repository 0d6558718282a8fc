/*
 * What spawn.c prepares and the child in spawn_child.c uses.
 */
#ifndef RQD_HANDLER_SPAWN_PRIVATE_H
#define RQD_HANDLER_SPAWN_PRIVATE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "handler/spawn.h"

/* Code that runs between clone() and execve(). */
#define CHILD	__attribute__((__noinline__, __no_sanitize__("address"), \
    __no_sanitize__("undefined")))

#define ROOM_SIZE	((size_t)2 * 1024 * 1024)
#define KERNEL_SIGSET	8		/* bytes in the kernel's sigset_t */
#define KERNEL_ACTION	64		/* at least those in its struct sigaction */
#define SIGNAL_BIT(signo)	((uint64_t)1 << ((signo) - 1))

/* What the child needs. */
struct spawn_job {
	const struct spawn	*spawn;
	struct room		*room;		/* NULL: it is waited for */
	volatile struct spawn_report *report;
	uint64_t		 signals;	/* to be reset */
	pid_t			 parent;	/* that it must have */
	bool			 shares;	/* our memory, while we go on */
	bool			 has_close_range;
};

/*
 * Copies of all that a child needs until execve(2).  Its stack lies below.  The
 * kernel clears busy when the child lets go of our memory: in execve() or at its
 * exit.
 */
struct room {
	struct room		*next;
	int			 busy;		/* see is_busy() */
	pid_t			 pid;		/* the last one */
	struct spawn_report	 report;	/* of it; kept until spawn_exited() */
	struct spawn_job		 job;
	struct spawn		 spawn;
	size_t			 used;		/* of text */
	char			 text[ROOM_SIZE];	/* what is not used costs nothing */
};

/* For clone(2); does not return where it can execute the command or exit. */
int	spawn_child(void *job) CHILD;

#endif
