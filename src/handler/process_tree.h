/*
 * From which process another one descends.  The launcher signals only descendants of
 * the main process.
 */
#ifndef RQD_HANDLER_PROCESS_TREE_H
#define RQD_HANDLER_PROCESS_TREE_H

#include <stdbool.h>
#include <sys/types.h>

pid_t	process_tree_parent(pid_t);	/* 0: there is no such process */

/*
 * Whether the processes of this group, whose leader is gone, descend from root.  A
 * group belongs to one session, so one of its processes is enough.  True also where
 * /proc hides the processes.
 */
bool	process_tree_has_group(pid_t root, pid_t group);

#endif
