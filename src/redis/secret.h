/*
 * Opening files that only root may read, passwords and keys: by another process,
 * perhaps.
 */
#ifndef RQD_REDIS_SECRET_H
#define RQD_REDIS_SECRET_H

#include "base/util.h"

/* A descriptor, or -1 with errno. */
int	secret_open(const char *path) MUSTCHECK;

/* From now on open() does it; NULL: open(2). */
void	secret_set_opener(int (*open)(const char *path, void *arg), void *arg);

#endif
