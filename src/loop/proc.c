/*
 * Processes as /proc shows them; see proc.h.
 *
 * In the stat file the state stands behind the last ')': a process's name may hold anything.
 *
 * The kernel lists the children of each thread in /proc/PID/task/TID/children.
 * collect() finds all of them before the first is signalled: when a process dies its
 * children move to us and are no longer found below it.
 */
#include "loop/proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEPTH_MAX	256

/* Whether there is such a process, and it is no zombie. */
static bool
is_alive(pid_t pid)
{
	char path[64], text[512];
	const char *p;
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd == -1)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	text[n > 0 ? n : 0] = '\0';
	p = strrchr(text, ')');
	return p != NULL && p[1] == ' ' && p[2] != 'Z' && p[2] != 'X';
}

/* A process's children are listed per thread. */
void
proc_children(pid_t pid, struct buf *b)
{
	char path[128];
	struct dirent *e;
	DIR *dir;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%ld/task", (long)pid);
	if ((dir = opendir(path)) == NULL)
		return;
	while ((e = readdir(dir)) != NULL) {
		if (e->d_name[0] == '.')
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%ld/task/%.20s/children", (long)pid,
		    e->d_name);
		if ((fd = open(path, O_RDONLY | O_CLOEXEC)) != -1) {
			(void)!buf_read(b, fd, SIZE_MAX);
			(void)close(fd);
		}
		(void)buf_str(b);
	}
	(void)closedir(dir);
}

/* Appends all descendants of pid as pid_t.  depth bounds the recursion. */
static void
collect(pid_t pid, struct buf *found, unsigned depth)
{
	struct buf b = BUF_INIT;
	char *p, *end;
	pid_t child;

	proc_children(pid, &b);
	for (p = buf_str(&b); (child = (pid_t)strtol(p, &end, 10)) > 0; p = end) {
		if (is_alive(child))
			buf_add(found, &child, sizeof(child));
		if (depth < DEPTH_MAX)
			collect(child, found, depth + 1);
	}
	buf_done(&b);
}

unsigned
proc_kill_below(int signo)
{
	struct buf found = BUF_INIT;
	unsigned n;
	pid_t pid;

	collect(getpid(), &found, 0);
	for (size_t at = 0; at < found.len; at += sizeof(pid)) {
		memcpy(&pid, found.data + at, sizeof(pid));
		(void)kill(pid, signo);
	}
	n = (unsigned)(found.len / sizeof(pid));
	buf_done(&found);
	return n;
}
