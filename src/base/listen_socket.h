/*
 * A listening socket: "127.0.0.1:17379", "[::1]:17379" or "unix:/path".
 *
 * Names are not resolved, on purpose: that could block, and a listener should
 * not move with DNS.  Port 0 is any free one.
 *
 * A unix socket is made with mode 0660.  A socket file that nobody listens on
 * any more (a daemon was killed) is replaced; anything else that stands there is
 * left alone, and is an error.
 */
#pragma once

#include <stdbool.h>

#include "base/util.h"

struct listen_socket {
	int	 fd;		/* -1: not open */
	char	*address;	/* as configured, with the port in use; owned; NULL: not open */
	char	*path;		/* of the unix socket's file; owned; NULL: TCP */
	bool	 loopback;	/* TCP that only this machine reaches */
};

#define LISTEN_SOCKET_INIT	{ .fd = -1 }

/* 0, or -1 with *cause where it is no address of one of the three forms. */
int	listen_socket_check(const char *where, char **cause) MUSTCHECK;

/*
 * 0, or -1 with *cause, and with errno where the address is right.  The socket is non-blocking
 * and close-on-exec.  Root makes a unix socket that this process may not make; see trust_lend().
 */
int	listen_socket_open(struct listen_socket *, const char *where, char **cause) MUSTCHECK;

/*
 * Closes the descriptor, unless the caller has set it to -1 because another object owns it.
 * Removes the unix socket's file.
 */
void	listen_socket_close(struct listen_socket *);

/*
 * Removes the file of a unix socket, unless somebody listens on it.  0, or -1 with errno:
 * EADDRINUSE if somebody does, or it is no socket.
 */
int	listen_socket_remove(const char *path);
