/*
 * Files that only root may read (passwords and keys), and a server's unix socket that
 * only root may connect to.  Where rqd has a launcher, that opens them.
 */
#ifndef RQD_REDIS_SECRET_H
#define RQD_REDIS_SECRET_H

#include "base/util.h"

/* A descriptor, or -1 with errno. */
int	secret_open(const char *path) MUSTCHECK;
/* A connected, non-blocking unix socket, or -1 with errno; EACCES without an opener. */
int	secret_connect(const char *path) MUSTCHECK;

/*
 * From now on open() does both: it connects where path is that of a server.  A file for
 * which it says EPERM is tried by open(2).  NULL: that alone.
 */
void	secret_set_opener(int (*open)(const char *path, void *arg), void *arg);

#endif
