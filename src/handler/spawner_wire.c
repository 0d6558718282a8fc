/*
 * Orders and replies as bytes; see spawner_wire.h.
 */
#include "handler/spawner_wire.h"

#include <sys/socket.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>

#include "base/fd.h"
#include "handler/env_file.h"
#include "handler/environment.h"
#include "policy/message.h"

/* -- orders ------------------------------------------------------------------------------ */

/*
 * Whether it is a variable of a message, with a value that a message may have: numbers are
 * digits, because a shell that calculates with anything else may execute it.
 */
static bool
is_word(const char *entry)
{
	const char *value = strchr(entry, '=') + 1;

	if (strncmp(entry, "RQD_ID=", 7) == 0)
		return message_id_ok(value, strlen(value));
	if (strncmp(entry, "RQD_CHANNEL=", 12) == 0)
		return true;
	return value[0] != '\0' && value[strspn(value, "0123456789")] == '\0';
}

/*
 * Whether all words are variables of the message.  The spawner and the administrator
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
		if (count == ENVIRONMENT_WORDS || !env_file_is_reserved(p) || !is_word(p))
			return false;
		p += strlen(p) + 1;
	}
	return true;
}

static bool
is_start(const struct spawner_order *o, size_t nfds)
{
	return o->head.slot < SPAWNER_SLOTS && o->head.value <= SPAWNER_FD_MASK &&
	    nfds == (size_t)__builtin_popcount(o->head.value) &&
	    are_words(o->bytes, o->head.size);
}

static bool
is_signal(const struct spawner_order *o)
{
	return o->head.slot < SPAWNER_SLOTS && (o->head.value == SIGTERM ||
	    o->head.value == SIGKILL || o->head.value == SIGCONT);
}

static bool
is_path(const struct spawner_order *o)
{
	return o->head.size > 1 && o->head.size < SPAWNER_PATH && o->bytes[1] == '/' &&
	    memchr(o->bytes, '\0', o->head.size) == NULL;
}

/* Only starts may have descriptors, and only starts and paths may have bytes. */
static bool
is_right(const struct spawner_order *o, size_t nfds)
{
	bool bare = nfds == 0 && o->head.size == 0;

	switch (o->head.op) {
	case SPAWNER_START:
		return is_start(o, nfds);
	case SPAWNER_OPEN:
		return nfds == 0 && is_path(o);
	case SPAWNER_SIGNAL:
		return bare && is_signal(o);
	case SPAWNER_LOAD:
	case SPAWNER_RETIRE:
		return bare;
	default:
		return false;
	}
}

int
spawner_parse(const void *p, size_t n, size_t nfds, struct spawner_order *o)
{
	if (n < sizeof(o->head) || n > sizeof(o->head) + SPAWNER_BYTES)
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
	char		space[CMSG_SPACE(SPAWNER_FDS * sizeof(int))];
};

int
spawner_send(int fd, const void *p, size_t n, const int *fds, size_t nfds, int flags)
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

/* There is room for one control message of SPAWNER_FDS descriptors; the kernel drops others. */
ssize_t
spawner_receive(int fd, void *p, size_t size, int *fds, size_t *nfds, int flags)
{
	struct iovec iov = { p, size };
	union fd_control control;
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
	    .msg_controllen = sizeof(control) };
	struct cmsghdr *c;
	ssize_t r;

	*nfds = 0;
	r = TEMP_FAILURE_RETRY(recvmsg(fd, &m, flags | MSG_CMSG_CLOEXEC));
	if (r == -1)
		return -1;
	c = CMSG_FIRSTHDR(&m);
	if (c != NULL && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
		*nfds = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(fds, CMSG_DATA(c), *nfds * sizeof(int));
	}
	if ((m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0)
		return r;
	fd_close_all(fds, *nfds);
	*nfds = 0;
	errno = EMSGSIZE;
	return (m.msg_flags & MSG_TRUNC) != 0 ? -1 : r;
}
