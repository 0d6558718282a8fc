/*
 * systemd's notification protocol.
 *
 * A notification is one datagram.  sd_notify(3) would wait while the manager's queue
 * is full, for instance because the manager is stuck.  So this file sends datagrams
 * to a Unix socket itself and waits 0.1 s at most.  libsystemd does the rest: other
 * address families, for which it may wait, and the watchdog's environment.
 *
 * Nothing is cached: each call reads $NOTIFY_SOCKET and opens a socket.
 */
#include "loop/notify.h"

#include <sys/socket.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <systemd/sd-daemon.h>

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

	if (name == NULL || name[0] == '\0')
		return;
	va_start(ap, fmt);
	text = xvasprintf(fmt, ap);
	va_end(ap);
	if (name[0] != '/' && name[0] != '@') {
		(void)sd_notify(0, text);
	} else if ((fd = fd_connect(SOCK_DGRAM, name)) != -1) {
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

usec_t
notify_watchdog_interval(void)
{
	uint64_t usec;

	if (sd_watchdog_enabled(0, &usec) <= 0 || usec > INT64_MAX)
		return 0;
	return (usec_t)(usec / 2);
}
