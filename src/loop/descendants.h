/*
 * All processes below this one: children, theirs, and so on, in whatever group
 * or session.  After child_init() orphans among them count too: they come to
 * us.
 */
#ifndef RQD_LOOP_DESCENDANTS_H
#define RQD_LOOP_DESCENDANTS_H

#include <sys/types.h>

#include "base/buf.h"

/*
 * Appends the children of a process, as decimal numbers with a blank after each;
 * none where the kernel does not list them.
 */
void	 descendants_list(pid_t, struct buf *);

/*
 * Signals those that are there now; how many there were, zombies left out.
 * What is being forked meanwhile may be missed: SIGKILL is to be repeated
 * until none is left.  Where the kernel does not list children, none is found.
 */
unsigned descendants_kill(int signo);

#endif
