/* Orders to the launcher; see launch_queue.h. */
#include "handler/launch_queue.h"

#include <sys/socket.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "handler/launch_wire.h"

/* An order that waits for room in the socket. */
struct waiting_order {
	TAILQ_ENTRY(waiting_order)	 entry;
	char			*bytes;
	size_t			 n;
	int			 fd[LAUNCH_FDS];	/* copies */
	size_t			 nfds;
};

static bool
is_full(void)
{
	return errno == EAGAIN || errno == ENOBUFS;
}

static void
waiting_free(struct waiting_order *w)
{
	fd_close_all(w->fd, w->nfds);
	free(w->bytes);
	free(w);
}

static void
has_room(int what UNUSED, void *arg)
{
	struct launch_queue *q = arg;
	struct waiting_order *w;

	while ((w = TAILQ_FIRST(&q->waiting)) != NULL) {
		if (launch_send(q->fd, w->bytes, w->n, w->fd, w->nfds, MSG_DONTWAIT) == -1 &&
		    is_full())
			return;
		TAILQ_REMOVE(&q->waiting, w, entry);
		waiting_free(w);
	}
	io_stop(&q->out);
}

/* Queues the order; -1 if its descriptors cannot be copied. */
static int
wait_for_room(struct launch_queue *q, const void *p, size_t n, const int *fds, size_t nfds)
{
	struct waiting_order *w = xcalloc(1, sizeof(*w));

	for (; w->nfds < nfds; w->nfds++) {
		w->fd[w->nfds] = fcntl(fds[w->nfds], F_DUPFD_CLOEXEC, 3);
		if (w->fd[w->nfds] == -1) {
			waiting_free(w);
			return -1;
		}
	}
	w->bytes = xmemdup(p, n);
	w->n = n;
	TAILQ_INSERT_TAIL(&q->waiting, w, entry);
	io_start(&q->out);
	return 0;
}

int
launch_queue_send(struct launch_queue *q, const void *p, size_t n, const int *fds, size_t nfds)
{
	if (TAILQ_EMPTY(&q->waiting)) {
		if (launch_send(q->fd, p, n, fds, nfds, MSG_DONTWAIT) == 0)
			return 0;
		if (!is_full())
			return -1;
	}
	if (q->loop == NULL)
		return -1;
	return wait_for_room(q, p, n, fds, nfds);
}

void
launch_queue_init(struct launch_queue *q, int fd)
{
	*q = (struct launch_queue){ .fd = fd };
	TAILQ_INIT(&q->waiting);
}

void
launch_queue_attach(struct launch_queue *q, struct loop *loop)
{
	q->loop = loop;
	io_init(&q->out, loop, q->fd, IO_WRITE, has_room, q);
}

void
launch_queue_done(struct launch_queue *q)
{
	struct waiting_order *w;

	while ((w = TAILQ_TAKE(&q->waiting, entry)) != NULL)
		waiting_free(w);
	if (q->loop != NULL)
		io_done(&q->out);
	(void)close(q->fd);
}
