/*
 * All processes below this one: children, their children and so on, in any group or
 * session.  After child_init() this includes orphans: the subreaper inherits them.
 */
#ifndef RQD_LOOP_DESCENDANTS_H
#define RQD_LOOP_DESCENDANTS_H

#include <sys/types.h>

#include "base/buf.h"

/*
 * Appends the pids of a process's children, decimal, a blank after each.  Appends
 * nothing where the kernel does not list children.
 */
void	 descendants_list(pid_t, struct buf *);

/*
 * Signals all descendants and returns how many there were, zombies excluded.  A
 * process that is being forked meanwhile may be missed: repeat SIGKILL until it
 * returns 0.  Returns 0 where the kernel does not list children.
 */
unsigned descendants_kill(int signo);

#endif
