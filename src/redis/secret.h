/*
 * Files that only root may read (passwords and keys), and a server's unix socket that
 * only root may connect to.  If rqd has a launcher, the launcher opens them.
 */
#pragma once

#include "base/util.h"

/* A descriptor, or -1 with errno. */
int	secret_open(const char *path) MUSTCHECK;
/* A connected, non-blocking unix socket, or -1 with errno; EACCES without an opener. */
int	secret_connect(const char *path) MUSTCHECK;

/*
 * From now on open() does both; it connects if path is that of a server.  If it fails
 * with EPERM for a file, secret_open() tries open(2).  NULL: use open(2) and connect(2)
 * only.
 */
void	secret_set_opener(int (*open)(const char *path, void *arg), void *arg);
