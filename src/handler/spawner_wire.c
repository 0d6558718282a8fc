/*
 * Orders and replies as bytes; see spawner_wire.h.
 */
#include "handler/spawner_wire.h"

#include <sys/socket.h>
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/fd.h"
#include "policy/message.h"

/* -- orders ------------------------------------------------------------------------------ */

static const char *
next_string(const char *p)
{
	return p + strlen(p) + 1;
}

/* Strings of a start: an id, perhaps a channel or a saved text, and members; 0: no message. */
static uint32_t
count_strings(const struct spawner_order *o)
{
	uint32_t n = 0;

	for (const char *p = o->bytes; p < o->bytes + o->size; p = next_string(p))
		n++;
	return n;
}

static bool
is_start(const struct spawner_order *o, size_t nfds)
{
	const char *end = o->bytes + o->size, *p;
	uint32_t strings, i = 0;

	if (o->slot >= SPAWNER_SLOTS || o->value >= 1U << SPAWN_FDS ||
	    nfds != (size_t)__builtin_popcount(o->value) || o->members > CONFIG_MEMBERS_MAX)
		return false;
	if (o->size == 0)
		return o->members == 0;
	if (end[-1] != '\0' || !message_id_ok(o->bytes, strlen(o->bytes)))
		return false;
	strings = count_strings(o);
	if (strings != o->members + 1 && strings != o->members + 2)
		return false;
	for (p = o->bytes; p < end; p = next_string(p)) {
		if (i++ >= strings - o->members && *p != '\0' && *p != '=')
			return false;
	}
	return true;
}

/* Only starts may have descriptors, and only starts and paths may have bytes. */
bool
spawner_is_order(const struct spawner_order *o, size_t n, size_t nfds)
{
	if (n < sizeof(*o) || n > sizeof(*o) + SPAWNER_BYTES || o->size != n - sizeof(*o))
		return false;
	switch (o->op) {
	case SPAWNER_START:
		return is_start(o, nfds);
	case SPAWNER_OPEN:
		return nfds == 0 && o->size > 1 && o->size < SPAWNER_PATH && o->bytes[1] == '/' &&
		    memchr(o->bytes, '\0', o->size) == NULL;
	case SPAWNER_SIGNAL:
		return nfds == 0 && o->size == 0 && o->slot < SPAWNER_SLOTS &&
		    (o->value == SIGTERM || o->value == SIGKILL || o->value == SIGCONT);
	case SPAWNER_LOAD:
	case SPAWNER_RETIRE:
		return nfds == 0 && o->size == 0;
	}
	return false;
}

void
spawner_words(const struct spawner_order *o, const char *members, struct buf *b)
{
	uint32_t strings = count_strings(o), i;
	const char *p = o->bytes;

	if (strings == o->members + 2)
		buf_printf(b, "%s=%s%c", o->saved ? "RQD_SAVED" : "RQD_CHANNEL", next_string(p),
		    '\0');
	if (strings > 0)
		buf_printf(b, "RQD_ID=%s%cRQD_ATTEMPT=%u%c", p, '\0', o->attempt, '\0');
	if (o->batch > 0)
		buf_printf(b, "RQD_BATCH=%u%c", o->batch, '\0');
	if (o->deadline > 0)
		buf_printf(b, "RQD_DEADLINE=%u%c", o->deadline, '\0');
	buf_printf(b, "RQD_MAX_ATTEMPTS=%u%c", o->max_attempts, '\0');
	for (i = strings - o->members; i > 0; i--)
		p = next_string(p);
	for (; i < o->members; i++, p = next_string(p), members = next_string(members)) {
		if (*p != '\0') {
			buf_add(b, members, strcspn(members, "="));
			buf_add(b, p, strlen(p) + 1);
		} else if (strchr(members, '=') != NULL) {
			buf_add(b, members, strlen(members) + 1);
		}
	}
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
	return RETRY(sendmsg(fd, &m, flags | MSG_NOSIGNAL)) == -1 ? -1 : 0;
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
	r = RETRY(recvmsg(fd, &m, flags | MSG_CMSG_CLOEXEC));
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
