/*
 * Timers on CLOCK_BOOTTIME; see timer.h.  loop.c has the others.
 */
#include "loop/timer.h"

#include <sys/timerfd.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"

static void
boot_timer_fired(int what UNUSED, void *arg)
{
	struct boot_timer *t = arg;
	uint64_t times;

	if (read(t->fd, &times, sizeof(times)) == sizeof(times))
		t->fn(t->arg);
}

void
boot_timer_init(struct boot_timer *t, struct loop *loop, void (*fn)(void *), void *arg)
{
	t->fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (t->fd == -1)
		fatal_os("timerfd_create: %s", strerror(errno));
	t->fn = fn;
	t->arg = arg;
	io_init(&t->io, loop, t->fd, IO_READ, boot_timer_fired, t);
	io_start(&t->io);
}

void
boot_timer_set_at(struct boot_timer *t, boot_t at)
{
	struct itimerspec spec = { .it_value = { .tv_sec = (time_t)(at / SEC),
	    .tv_nsec = (long)(at % SEC) * 1000 } };

	/* A value of zero would disarm the timer. */
	if (at <= 0)
		spec.it_value = (struct timespec){ .tv_nsec = 1 };
	(void)timerfd_settime(t->fd, TFD_TIMER_ABSTIME, &spec, NULL);
}

void
boot_timer_stop(struct boot_timer *t)
{
	const struct itimerspec never = { .it_value = { .tv_sec = 0 } };

	(void)timerfd_settime(t->fd, 0, &never, NULL);
}

void
boot_timer_done(struct boot_timer *t)
{
	io_done(&t->io);
	(void)close(t->fd);
}
