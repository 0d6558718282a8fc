/* Questions to the launcher; see launch_ask.h. */
#include "handler/launch_ask.h"

#include <sys/socket.h>
#include <errno.h>
#include <poll.h>

#include "base/clock.h"
#include "base/fd.h"
#include "handler/launch_wire.h"

#define PATIENCE	(5 * SEC)

/* Drops answers to questions that were given up. */
static void
drop_late_answers(int s)
{
	int fds[LAUNCH_FDS];
	struct launch_reply r;
	size_t nfds;

	while (launch_receive(s, &r, sizeof(r), fds, &nfds, MSG_DONTWAIT) > 0)
		fd_close_all(fds, nfds);
}

static int
receive_answer(int s)
{
	struct pollfd p = { .fd = s, .events = POLLIN };
	int fds[LAUNCH_FDS];
	struct launch_reply r;
	size_t nfds;

	errno = ETIMEDOUT;
	if (poll(&p, 1, (int)(PATIENCE / MSEC)) != 1)
		return -1;
	if (launch_receive(s, &r, sizeof(r), fds, &nfds, 0) != sizeof(r)) {
		errno = EPIPE;
		return -1;
	}
	if (nfds == 1 && r.error == 0)
		return fds[0];
	fd_close_all(fds, nfds);
	errno = r.error != 0 ? r.error : EPROTO;
	return -1;
}

int
launch_ask_fd(int s, const void *order, size_t n)
{
	drop_late_answers(s);
	if (launch_send(s, order, n, NULL, 0, MSG_DONTWAIT) == -1)
		return -1;
	return receive_answer(s);
}
