/* Thin layers over close(2), pipe2(2), connect(2), memfd_create(2) and pwrite(2). */
#include "base/fd.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

void
fd_close(int *fd)
{
	int error = errno;

	if (*fd != -1)
		(void)close(*fd);
	*fd = -1;
	errno = error;
}

void
fd_close_all(int *fds, size_t n)
{
	while (n > 0)
		fd_close(&fds[--n]);
}

static int
make_pipe(int *ours, int *theirs, int end)
{
	int fd[2];

	if (pipe2(fd, O_CLOEXEC) == -1)
		return -1;
	(void)fcntl(fd[end], F_SETFL, O_NONBLOCK);
	*ours = fd[end];
	*theirs = fd[1 - end];
	return 0;
}

int
fd_pipe_from(int *ours, int *theirs)
{
	return make_pipe(ours, theirs, 0);
}

int
fd_pipe_to(int *ours, int *theirs)
{
	return make_pipe(ours, theirs, 1);
}

int
fd_connect(int type, const char *path)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	size_t n = strlen(path);
	int fd;

	errno = ENAMETOOLONG;
	if (n >= sizeof(sun.sun_path))
		return -1;
	memcpy(sun.sun_path, path, n);
	if (path[0] == '@')
		sun.sun_path[0] = '\0';
	fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd != -1 && connect(fd, (const struct sockaddr *)&sun,
	    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)) == -1)
		fd_close(&fd);
	return fd;
}

/* Kernels from 6.3 know the flag, and may demand it; kernel headers before that lack it. */
#define NOEXEC_SEAL	0x0008U		/* MFD_NOEXEC_SEAL */

int
fd_memory(const char *name)
{
	static bool old_kernel;
	int fd;

	if (!old_kernel) {
		fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | NOEXEC_SEAL);
		if (fd != -1 || errno != EINVAL)
			return fd;
		old_kernel = true;
	}
	return memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

int
fd_write_at(int fd, const char *p, size_t len, off_t at)
{
	ssize_t n;

	while (len > 0) {
		n = pwrite(fd, p, len, at);
		if (n > 0) {
			p += n;
			at += n;
			len -= (size_t)n;
		} else if (n == 0 || errno != EINTR) {
			if (n == 0)
				errno = ENOSPC;
			return -1;
		}
	}
	return 0;
}
