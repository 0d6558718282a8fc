/*
 * Readiness of a descriptor: one persistent libevent event each.
 *
 * Nothing is touched after fn() has been called, since it may have freed the
 * io.  On a simulated loop nothing is ever ready.
 */
#include "loop/io.h"

#include <event2/event.h>

static void
io_ready(evutil_socket_t fd UNUSED, short what, void *arg)
{
	struct io *io = arg;

	io->fn(((what & EV_READ) ? IO_READ : 0) |
	    ((what & EV_WRITE) ? IO_WRITE : 0), io->arg);
}

void
io_init(struct io *io, struct loop *l, int fd, int what,
    void (*fn)(int, void *), void *arg)
{
	short flags = EV_PERSIST;

	*io = (struct io){ .loop = l, .fd = fd, .fn = fn, .arg = arg };
	if (loop_base(l) == NULL)
		return;
	if (what & IO_READ)
		flags |= EV_READ;
	if (what & IO_WRITE)
		flags |= EV_WRITE;
	io->event = event_new(loop_base(l), fd, flags, io_ready, io);
	if (io->event == NULL)
		fatal_os("cannot watch descriptor %d", fd);
}

void
io_start(struct io *io)
{
	if (io->on)
		return;
	io->on = true;
	if (io->event != NULL && event_add(io->event, NULL) == -1)
		fatal_os("cannot watch descriptor %d", io->fd);
}

void
io_stop(struct io *io)
{
	if (!io->on)
		return;
	io->on = false;
	if (io->event != NULL)
		(void)event_del(io->event);
}

void
io_done(struct io *io)
{
	io_stop(io);
	if (io->event != NULL)
		event_free(io->event);
	io->event = NULL;
}
