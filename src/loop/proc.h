/*
 * Processes, by /proc: children, and all descendants of this one, in any group or session.
 * After child_init() these include orphans: the subreaper inherits them.
 */
#pragma once

#include <sys/types.h>

#include "base/buf.h"

/*
 * Appends the pids of a process's children, decimal, a blank after each.  Appends
 * nothing if the kernel does not list children.
 */
void	 proc_children(pid_t, struct buf *);

/*
 * Signals all descendants and returns how many there were, zombies excluded.  A process
 * that is being forked meanwhile may be missed: repeat SIGKILL until it returns 0.
 * Returns 0 if the kernel does not list children.
 */
unsigned proc_kill_below(int signo);
