/*
 * A slow link between a client and a unix socket: a process that passes on only
 * so many bytes at a time.  It dies with the test program.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

struct link {
	char	 path[108];	/* the socket to connect to */
	char	 uri[116];	/* "unix:" and the socket */
	pid_t	 pid;
};

/*
 * Each way of each connection passes on at most up (down) bytes every `every`
 * milliseconds; 0: no limit.  The socket is at path.link.
 */
void	link_start(struct link *, const char *path, size_t up, size_t down, int every);
void	link_stop(struct link *);
