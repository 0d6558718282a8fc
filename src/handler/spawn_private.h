/*
 * The job that spawn.c and spawn_nowait.c prepare, and that the child in spawn_child.c
 * carries out.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "handler/spawn.h"

/* Code that runs between clone() and execve(). */
#define CHILD	__attribute__((__noinline__, __no_sanitize__("address"), \
    __no_sanitize__("undefined")))

#define SPAWN_MEMORY	((size_t)2 * 1024 * 1024)
#define KERNEL_SIGSET	8		/* bytes in the kernel's sigset_t */
#define KERNEL_ACTION	64		/* at least those in its struct sigaction */
#define SIGNAL_BIT(signo)	((uint64_t)1 << ((signo) - 1))

/* Everything that the child needs. */
struct spawn_job {
	const struct spawn	*spawn;
	struct spawn_memory	*memory;	/* NULL: its parent waits for it */
	volatile struct spawn_report *report;
	uint64_t		 signals;	/* to be reset */
	pid_t			 parent;	/* the parent that the child must have */
	bool			 shares;	/* the parent's memory, while the parent goes on */
	bool			 has_close_range;
};

/*
 * Copies of all that a child needs until execve(2).  The child's stack lies below.  The
 * kernel clears busy when the child leaves the parent's memory: in execve() or at its
 * exit.
 */
struct spawn_memory {
	struct spawn_memory	*next;
	int			 busy;		/* see is_busy() */
	pid_t			 pid;		/* the last one */
	struct spawn_report	 report;	/* of it; kept until spawn_exited() */
	struct spawn_job	 job;
	struct spawn		 spawn;
	size_t			 used;		/* of text */
	char			 text[SPAWN_MEMORY];	/* unused pages cost nothing */
};

/* In spawn.c: maps a stack with a guard below and this many bytes above; returns its end. */
char	*spawn_map_stack(size_t above);
/* In spawn.c: clone(2) with all signals blocked; busy is for CLONE_CHILD_CLEARTID. */
pid_t	 spawn_clone(struct spawn_job *, char *stack_end, int flags, int *busy);

/* Whether spawn_raw() leaves errno alone on this machine. */
extern const bool spawn_nowait_has_raw_calls;
/* As spawn_start(); the child shares memory if job->shares, else it has a copy. */
pid_t	 spawn_nowait(const struct spawn_job *, enum spawn_step *);
/*
 * A system call of five arguments; a sixth is 0.  Returns minus the error.  It does not
 * write to errno if memory is shared, because errno is the parent's, too.
 */
long	 spawn_raw(const struct spawn_job *, long, long, long, long, long, long) CHILD;

/* The child's function for clone(2); does not return if it can execute the command or exit. */
int	 spawn_child(void *job) CHILD;
