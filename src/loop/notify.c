/*
 * systemd's notification protocol, as sd_notify(3) documents it.
 *
 * A notification is one datagram to the Unix socket that $NOTIFY_SOCKET names, by a path or
 * by "@" and an abstract name.  Virtual machines have other addresses ("vsock:"), which are
 * for their first process, not for a service: they are ignored.
 *
 * libsystemd would wait while the manager's queue is full, for instance because the manager is
 * stuck.  This file waits 0.1 s at most.
 *
 * Nothing is cached: each call reads $NOTIFY_SOCKET and opens a socket.
 */
#include "loop/notify.h"

#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"

#define SEND_WAIT	(100 * MSEC)

void
notify(const char *fmt, ...)
{
	const char *name = getenv("NOTIFY_SOCKET");
	struct timeval wait = { .tv_usec = SEND_WAIT };
	va_list ap;
	char *text;
	int fd;

	if (name == NULL || (name[0] != '/' && name[0] != '@'))
		return;
	va_start(ap, fmt);
	text = xvasprintf(fmt, ap);
	va_end(ap);
	fd = fd_connect(SOCK_DGRAM, name);
	if (fd != -1) {
		/* Waits while the manager's queue is full, but for SEND_WAIT at most. */
		(void)fcntl(fd, F_SETFL, 0);
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
		(void)send(fd, text, strlen(text), MSG_NOSIGNAL);
		fd_close(&fd);
	}
	free(text);
}

/* Uses the system's clock, never the fake one: the manager compares the time with its own. */
void
notify_reloading(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	notify("RELOADING=1\nMONOTONIC_USEC=%" PRId64,
	    (int64_t)ts.tv_sec * SEC + ts.tv_nsec / 1000);
}

/* A decimal number in the environment; -1: there is none, or something else. */
static int64_t
env_number(const char *name)
{
	const char *text = getenv(name);
	long long n;
	char *end;

	if (text == NULL || text[0] < '0' || text[0] > '9')
		return -1;
	errno = 0;
	n = strtoll(text, &end, 10);
	return errno == 0 && *end == '\0' ? n : -1;
}

/* The manager sets both; a child that inherits them is not meant. */
usec_t
notify_watchdog_interval(void)
{
	int64_t usec = env_number("WATCHDOG_USEC");

	if (usec <= 0 || (getenv("WATCHDOG_PID") != NULL && env_number("WATCHDOG_PID") != getpid()))
		return 0;
	return usec / 2;
}
