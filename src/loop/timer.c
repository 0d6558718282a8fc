/*
 * Timers: a binary heap of pointers, least deadline at the top.
 *
 * Each timer knows its place in the heap, so moving and stopping one costs
 * O(log n) and no search.  The heap starts at 1: pos 0 means "not set".
 *
 * A timer that is set from a timer's callback never fires in the same run,
 * even with a delay of 0; a run therefore always ends.
 */
#include "loop/timer.h"

#include <sys/timerfd.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loop/loop_private.h"

#define HEAP_MIN	64

static void
place(struct loop *l, unsigned pos, struct timer *t)
{
	l->heap[pos] = t;
	t->pos = pos;
}

/* Moves t from pos towards the top, to its place. */
static void
sift_up(struct loop *l, unsigned pos, struct timer *t)
{
	for (; pos > 1 && l->heap[pos / 2]->at > t->at; pos /= 2)
		place(l, pos, l->heap[pos / 2]);
	place(l, pos, t);
}

/* Moves t from pos towards the leaves, to its place. */
static void
sift_down(struct loop *l, unsigned pos, struct timer *t)
{
	unsigned child;

	while ((child = pos * 2) <= l->timers) {
		if (child < l->timers &&
		    l->heap[child + 1]->at < l->heap[child]->at)
			child++;
		if (l->heap[child]->at >= t->at)
			break;
		place(l, pos, l->heap[child]);
		pos = child;
	}
	place(l, pos, t);
}

/* Puts t, whose time is new, to pos, and moves it to its place from there. */
static void
settle(struct loop *l, unsigned pos, struct timer *t)
{
	if (pos > 1 && l->heap[pos / 2]->at > t->at)
		sift_up(l, pos, t);
	else
		sift_down(l, pos, t);
}

static unsigned
new_leaf(struct loop *l)
{
	if (l->timers + 1 >= l->heap_cap) {
		l->heap_cap = l->heap_cap == 0 ? HEAP_MIN : l->heap_cap * 2;
		l->heap = xreallocarray(l->heap, l->heap_cap, sizeof(*l->heap));
	}
	return ++l->timers;
}

void
timer_init(struct timer *t, struct loop *l, void (*fn)(void *), void *arg)
{
	*t = (struct timer){ .loop = l, .fn = fn, .arg = arg };
}

void
timer_set_at(struct timer *t, usec_t at)
{
	struct loop *l = t->loop;

	if (l->firing && at <= l->firing_at)
		at = l->firing_at + 1;
	t->at = at;
	if (t->pos == 0)
		sift_up(l, new_leaf(l), t);
	else
		settle(l, t->pos, t);
}

void
timer_set(struct timer *t, usec_t after)
{
	timer_set_at(t, clock_after(after > 0 ? after : 0));
}

void
timer_stop(struct timer *t)
{
	struct loop *l = t->loop;
	struct timer *last;
	unsigned pos = t->pos;

	if (pos == 0)
		return;
	t->pos = 0;
	last = l->heap[l->timers--];
	if (last != t)
		settle(l, pos, last);
}

bool
timer_is_set(const struct timer *t)
{
	return t->pos != 0;
}

usec_t
timer_left(const struct timer *t)
{
	usec_t now;

	if (t->pos == 0)
		return 0;
	now = clock_mono();
	return t->at > now ? t->at - now : 0;
}

/* A callback may set, stop or free any timer, its own included. */
void
timer_run_due(struct loop *l)
{
	struct timer *t;

	if (l->timers == 0)
		return;
	l->firing_at = clock_mono();
	l->firing = true;
	while (l->timers > 0 && l->heap[1]->at <= l->firing_at) {
		t = l->heap[1];
		timer_stop(t);
		t->fn(t->arg);
	}
	l->firing = false;
}

usec_t
timer_next(struct loop *l)
{
	return l->timers == 0 ? USEC_MAX : l->heap[1]->at;
}

void
timer_forget_all(struct loop *l)
{
	while (l->timers > 0)
		l->heap[l->timers--]->pos = 0;
	free(l->heap);
	l->heap = NULL;
	l->heap_cap = 0;
}

/* -- on CLOCK_BOOTTIME --------------------------------------------------------- */

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
