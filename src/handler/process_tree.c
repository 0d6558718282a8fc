/*
 * Looks through /proc.  A process may go away between two looks; the whole look is
 * then repeated.
 */
#include "handler/process_tree.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>

#include "loop/proc.h"

#define LOOKS		16		/* for a group whose members come and go */
#define ANCESTORS	1000

enum descent { NO, YES, GONE };

pid_t
process_tree_parent(pid_t pid)
{
	struct proc_stat st;

	return proc_stat_read(pid, &st) ? st.parent : 0;
}

/* GONE: a process on the way has gone meanwhile. */
static enum descent
descends(pid_t root, pid_t pid)
{
	struct proc_stat st;

	for (int i = 0; pid > 0 && i < ANCESTORS; i++) {
		if (pid == root)
			return YES;
		if (!proc_stat_read(pid, &st))
			return GONE;
		pid = st.parent;
	}
	return NO;
}

/* GONE: no process of the group was there long enough. */
static enum descent
look(pid_t root, pid_t group)
{
	DIR *dir = opendir("/proc");
	enum descent is = GONE;
	struct proc_stat st;
	struct dirent *d;
	pid_t pid;

	while (is == GONE && dir != NULL && (d = readdir(dir)) != NULL) {
		pid = atoi(d->d_name);
		if (pid > 0 && proc_stat_read(pid, &st) && st.group == group)
			is = descends(root, pid);
	}
	if (dir != NULL)
		(void)closedir(dir);
	return is;
}

bool
process_tree_has_group(pid_t root, pid_t group)
{
	enum descent is = GONE;

	for (int i = 0; is == GONE && i < LOOKS; i++) {
		if (kill(-group, 0) == -1)
			return false;
		is = look(root, group);
	}
	return is == YES || (is == GONE && process_tree_parent(root) == 0);
}
