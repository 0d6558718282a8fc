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
#include <sys/un.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <systemd/sd-daemon.h>

#define SEND_WAIT	(100 * MSEC)

/* "/path" or, as "@name", an abstract one; 0 when it does not fit. */
static socklen_t
set_address(struct sockaddr_un *sa, const char *name)
{
	size_t len = strlen(name);

	if (len >= sizeof(sa->sun_path))
		return 0;
	memcpy(sa->sun_path, name, len);
	if (name[0] == '@')
		sa->sun_path[0] = '\0';
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
}

static void
send_unix(const char *name, const char *text)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	struct timeval wait = { .tv_usec = SEND_WAIT };
	socklen_t len = set_address(&sa, name);
	int fd = len == 0 ? -1 :
	    socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd == -1)
		return;
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
	(void)sendto(fd, text, strlen(text), MSG_NOSIGNAL,
	    (struct sockaddr *)&sa, len);
	(void)close(fd);
}

void
notify(const char *fmt, ...)
{
	const char *name = getenv("NOTIFY_SOCKET");
	va_list ap;
	char *text;

	if (name == NULL || name[0] == '\0')
		return;
	va_start(ap, fmt);
	text = xvasprintf(fmt, ap);
	va_end(ap);
	if (name[0] == '/' || name[0] == '@')
		send_unix(name, text);
	else
		(void)sd_notify(0, text);
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
