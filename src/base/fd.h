/*
 * Descriptors: closing them, pipes and unix sockets made the way rqd needs them, and
 * writing all bytes.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/util.h"

/* Closes it unless it is -1; it is -1 afterwards.  Keeps errno. */
void	fd_close(int *);
void	fd_close_all(int *fds, size_t n);

/*
 * A pipe, both ends close-on-exec.  Only our end is non-blocking: the flag belongs to an
 * end, and a child's copies of the other end must block.  Returns 0, or -1 with errno.
 */
int	fd_pipe_from(int *ours, int *theirs) MUSTCHECK;	/* we read */
int	fd_pipe_to(int *ours, int *theirs) MUSTCHECK;	/* we write */

/*
 * A close-on-exec, non-blocking unix socket of this type, connected to path, or to the
 * abstract name "@NAME", without waiting.  Returns the descriptor, or -1 with errno.
 */
int	fd_connect(int type, const char *path) MUSTCHECK;

/*
 * An empty file without a path, close-on-exec; it may be sealed, and is not executable where
 * the kernel knows such files.  Returns the descriptor, or -1 with errno.
 */
int	fd_memory(const char *name) MUSTCHECK;

/* Writes all bytes by pwrite(2), which keeps the file's position.  Returns 0, or -1 with errno. */
int	fd_write_at(int fd, const char *, size_t, off_t) MUSTCHECK;
