/*
 * Orders and replies as bytes; see launch_wire.h.
 */
#include "handler/launch_wire.h"

#include <sys/socket.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "handler/env_file.h"
#include "handler/environment.h"

/* -- orders ------------------------------------------------------------------------------ */

/*
 * Whether all words are variables of the message.  The launcher and the administrator
 * set all others.
 */
static bool
are_words(const char *p, size_t n)
{
	const char *end = p + n;

	if (n == 0)
		return true;
	if (end[-1] != '\0')
		return false;
	for (size_t count = 0; p < end; count++) {
		if (count == ENVIRONMENT_WORDS || !env_file_is_reserved(p))
			return false;
		p += strlen(p) + 1;
	}
	return true;
}

static bool
is_start(const struct launch_order *o, size_t nfds)
{
	return o->head.slot < LAUNCH_SLOTS && o->head.value <= LAUNCH_FD_MASK &&
	    nfds == (size_t)__builtin_popcount(o->head.value) &&
	    are_words(o->bytes, o->head.size);
}

static bool
is_signal(const struct launch_order *o)
{
	return o->head.slot < LAUNCH_SLOTS && (o->head.value == SIGTERM ||
	    o->head.value == SIGKILL || o->head.value == SIGCONT);
}

static bool
is_path(const struct launch_order *o)
{
	return o->head.size > 0 && o->head.size < LAUNCH_PATH && o->bytes[0] == '/' &&
	    memchr(o->bytes, '\0', o->head.size) == NULL;
}

/* Only starts may have descriptors, and only starts and paths may have bytes. */
static bool
is_right(const struct launch_order *o, size_t nfds)
{
	if (o->head.op == LAUNCH_START)
		return is_start(o, nfds);
	if (nfds != 0)
		return false;
	if (o->head.op == LAUNCH_FILE)
		return is_path(o);
	if (o->head.size != 0)
		return false;
	switch (o->head.op) {
	case LAUNCH_SIGNAL:
		return is_signal(o);
	case LAUNCH_END:
		return o->head.value > 1 && o->head.value <= INT32_MAX;
	case LAUNCH_LOAD:
	case LAUNCH_RETIRE:
	case LAUNCH_LOG:
	case LAUNCH_LISTEN:
	case LAUNCH_UNLISTEN:
		return true;
	default:
		return false;
	}
}

int
launch_parse(const void *p, size_t n, size_t nfds, struct launch_order *o)
{
	if (n < sizeof(o->head) || n > sizeof(o->head) + LAUNCH_BYTES)
		return -1;
	memcpy(&o->head, p, sizeof(o->head));
	o->bytes = (const char *)p + sizeof(o->head);
	if (o->head.size != n - sizeof(o->head))
		return -1;
	return is_right(o, nfds) ? 0 : -1;
}

/* -- datagrams ---------------------------------------------------------------------------- */

union fd_control {
	struct cmsghdr	head;
	char		space[CMSG_SPACE(LAUNCH_FDS * sizeof(int))];
};

int
launch_send(int fd, const void *p, size_t n, const int *fds, size_t nfds, int flags)
{
	struct iovec iov = { (void *)(uintptr_t)p, n };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	union fd_control control = { .space = "" };

	if (nfds > 0) {
		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(&control.head), fds, nfds * sizeof(int));
	}
	return TEMP_FAILURE_RETRY(sendmsg(fd, &m, flags | MSG_NOSIGNAL)) == -1 ? -1 : 0;
}

static size_t
take_fds(struct msghdr *m, int *fds)
{
	struct cmsghdr *c;
	size_t n = 0, i, count;
	int fd;

	for (c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (i = 0; i < count; i++) {
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (n < LAUNCH_FDS)
				fds[n++] = fd;
			else
				(void)close(fd);
		}
	}
	return n;
}

ssize_t
launch_receive(int fd, void *p, size_t size, int *fds, size_t *nfds, int flags)
{
	struct iovec iov = { p, size };
	union fd_control control;
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
	    .msg_controllen = sizeof(control) };
	ssize_t r;

	*nfds = 0;
	r = TEMP_FAILURE_RETRY(recvmsg(fd, &m, flags | MSG_CMSG_CLOEXEC));
	if (r == -1)
		return -1;
	*nfds = take_fds(&m, fds);
	if ((m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0)
		return r;
	fd_close_all(fds, *nfds);
	*nfds = 0;
	errno = EMSGSIZE;
	return -1;
}
