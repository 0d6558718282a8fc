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
 * In each period of `every` milliseconds each connection passes on at most `up` bytes to
 * the server and `down` bytes to the client; 0: no limit.  The link listens on path.link.
 */
void	link_start(struct link *, const char *path, size_t up, size_t down, int every);
void	link_stop(struct link *);
