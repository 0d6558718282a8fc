/*
 * The other end of NOTIFY_SOCKET: binds a datagram socket at the path given
 * and prints every message that comes, a variable a line, until it is killed.
 *
 *	notify-wait /tmp/x/notify >/tmp/x/notified &
 *
 * A message of several variables is followed by an empty line, so that a test
 * can see what came together.
 */
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <err.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A bound datagram socket at path. */
static int
notify_bind(const char *path)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd;

	if (strlen(path) >= sizeof(sun.sun_path))
		errx(64, "%s: too long for a socket", path);
	strcpy(sun.sun_path, path);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd == -1)
		err(71, "socket");
	/* As systemd's: any user's process may say something, as soon as the file is there. */
	umask(0);
	if (bind(fd, (struct sockaddr *)&sun, sizeof(sun)) == -1)
		err(71, "%s", path);
	return fd;
}

int
main(int argc, char **argv)
{
	char buf[8192];
	ssize_t n;
	int fd;

	if (argc != 2)
		errx(64, "usage: notify-wait SOCKET");
	fd = notify_bind(argv[1]);
	for (;;) {
		n = recv(fd, buf, sizeof(buf), 0);
		if (n == -1)
			err(71, "recv");
		fwrite(buf, 1, (size_t)n, stdout);
		if (n > 0 && buf[n - 1] != '\n')
			putchar('\n');
		putchar('\n');
		if (fflush(stdout) == EOF)
			err(74, "stdout");
	}
}
