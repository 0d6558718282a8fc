/*
 * Files that only root may read; see secret.h.
 */
#include "redis/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>

static int	(*opener)(const char *, void *);
static void	*opener_arg;

/* Non-blocking, since opening a fifo could block the daemon. */
int
secret_open(const char *path)
{
	int fd = opener != NULL ? opener(path, opener_arg) : -1;

	/* EPERM: root does not trust this path, but this user may open it. */
	if (fd != -1 || (opener != NULL && errno != EPERM))
		return fd;
	return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

int
secret_connect(const char *path)
{
	if (opener != NULL)
		return opener(path, opener_arg);
	errno = EACCES;
	return -1;
}

void
secret_set_opener(int (*open_file)(const char *, void *), void *arg)
{
	opener = open_file;
	opener_arg = arg;
}
