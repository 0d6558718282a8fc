/*
 * One read(2), and one sscanf(3) behind the last ')': a process's name may hold
 * anything.
 */
#include "loop/proc_stat.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool
parse(const char *p, struct proc_stat *ret)
{
	unsigned long long started;
	char state;

	if (p == NULL || sscanf(p + 1, " %c %d %d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u "
	    "%*d %*d %*d %*d %*d %*d %llu", &state, &ret->parent, &ret->group, &ret->session,
	    &started) != 5)
		return false;
	ret->zombie = state == 'Z' || state == 'X';
	ret->started = started;
	return true;
}

bool
proc_stat_read(pid_t pid, struct proc_stat *ret)
{
	char path[64], text[512];
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd == -1)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	return parse(strrchr(text, ')'), ret);
}
