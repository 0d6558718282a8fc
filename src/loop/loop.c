/*
 * The event loop.
 *
 * A turn is one event_base_loop(EVLOOP_ONCE), then the due timers, then the deferred
 * calls until there are none.  Our timers are in a heap; a timerfd, the
 * alarm, ends the wait when the first of them falls due.  The alarm is moved only if it
 * would come too late: most timers are stopped before they fire, and one needless
 * wake-up costs less than a system call for each timer.  Without timers the alarm is
 * off, and an idle loop sleeps in one system call.  (libevent would move its own
 * precise timer in every turn.)
 *
 * A simulated loop has no event base.  Its turn moves the fake clock to the
 * next timer instead of waiting.
 *
 * While the log has records that wait, the loop watches its descriptor.
 */
#include "loop/loop.h"

#include <sys/timerfd.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include <event2/event.h>

#include "base/log.h"
#include "loop/child.h"
#include "loop/timer.h"

#define HEAP_MIN	64

struct loop_signal {
	struct event	 *event;	/* owned; NULL: not watched */
	void		(*fn)(int, void *);
	void		 *arg;
};

struct loop {
	struct event_base	 *base;		/* NULL: simulated */
	int			  alarm_fd;	/* timerfd: a turn waits until alarm_at at most */
	struct io		  alarm;
	usec_t			  alarm_at;	/* mono; USEC_MAX: not set */
	bool			  stopping;	/* loop_stop() was called */

	TAILQ_HEAD(, defer)	  deferred[LOOP_STAGES];
	struct loop_signal	  signals[NSIG];	/* by their numbers */

	struct timer		**heap;		/* heap[1 .. timers]; [0] is unused */
	unsigned		  timers;
	unsigned		  heap_cap;
	bool			  firing;	/* timer_run_due() runs, and ... */
	usec_t			  firing_at;	/* ... fires timers due by then */

	struct io		  log_io;	/* watches log_waiting_fd() */
};

/* -- timers ------------------------------------------------------------------- */

/*
 * A binary heap of pointers, least deadline at the top.  Each timer knows its place in the heap,
 * so moving and stopping one costs O(log n) and no search.  The heap starts at 1: pos 0 means
 * "not set".
 */
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
	if (t->pos != 0) {
		settle(l, t->pos, t);
		return;
	}
	if (l->timers + 1 >= l->heap_cap) {
		l->heap_cap = l->heap_cap == 0 ? HEAP_MIN : l->heap_cap * 2;
		l->heap = xreallocarray(l->heap, l->heap_cap, sizeof(*l->heap));
	}
	sift_up(l, ++l->timers, t);
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

/* -- the log's descriptor ----------------------------------------------------- */

static void watch_log(void *);

static void
log_writable(int what UNUSED, void *arg)
{
	log_flush();
	watch_log(arg);
}

/* Registers the descriptor anew each time: its number may belong to another file now. */
static void
watch_log(void *arg)
{
	struct loop *l = arg;
	int fd = log_waiting_fd();

	io_done(&l->log_io);
	if (fd == -1)
		return;
	io_init(&l->log_io, l, fd, IO_WRITE, log_writable, l);
	io_start(&l->log_io);
}

/* libevent's own complaints become records, and never block. */
static void
event_complaint(int severity, const char *text)
{
	if (severity >= EVENT_LOG_WARN)
		log_event(LOG_LV_WARN, "warning", NULL,
		    LF_STR("reason", "libevent"), LF_STR("error", text));
}

/* libevent cannot continue, for instance without its signals' socket pair. */
static void
event_end(int error UNUSED)
{
	fatal_os("libevent failed");
}

/* -- life --------------------------------------------------------------------- */

static void
alarm_rang(int what UNUSED, void *arg)
{
	struct loop *l = arg;
	uint64_t times;

	if (read(l->alarm_fd, &times, sizeof(times)) > 0)
		l->alarm_at = USEC_MAX;
}

struct loop *
loop_new_simulated(void)
{
	struct loop *l = NEW(struct loop, .alarm_at = USEC_MAX, .alarm_fd = -1);

	for (int i = 0; i < LOOP_STAGES; i++)
		TAILQ_INIT(&l->deferred[i]);
	return l;
}

struct loop *
loop_new(void)
{
	struct event_config *config = event_config_new();
	struct loop *l = loop_new_simulated();

	event_set_log_callback(event_complaint);
	event_set_fatal_callback(event_end);
	if (config != NULL && event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK) == 0)
		l->base = event_base_new_with_config(config);
	if (l->base == NULL)
		fatal_os("cannot make an event loop");
	event_config_free(config);
	l->alarm_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (l->alarm_fd == -1)
		fatal_os("cannot make an event loop's timer");
	io_init(&l->alarm, l, l->alarm_fd, IO_READ, alarm_rang, l);
	io_start(&l->alarm);
	log_hold(true);
	log_set_waiting_cb(watch_log, l);
	watch_log(l);
	return l;
}

static struct defer *
next_deferred(const struct loop *l)
{
	struct defer *d = NULL;

	for (int i = 0; i < LOOP_STAGES && d == NULL; i++)
		d = TAILQ_FIRST(&l->deferred[i]);
	return d;
}

static void
run_deferred(struct loop *l)
{
	struct defer *d;

	while ((d = next_deferred(l)) != NULL) {
		loop_defer_cancel(l, d);
		d->fn(d->arg);
	}
}

/*
 * libevent restores the default action of a signal with its last event, and the
 * default of most is to end the process.  Signals that the loop watched are ignored
 * after it: a second SIGTERM must not change the exit status of a process that exits.
 */
static void
signals_free(struct loop *l)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	sigset_t set, old;

	sigfillset(&set);
	(void)sigprocmask(SIG_BLOCK, &set, &old);
	sigemptyset(&ignore.sa_mask);
	for (int signo = 1; signo < NSIG; signo++) {
		if (l->signals[signo].event == NULL)
			continue;
		event_free(l->signals[signo].event);
		(void)sigaction(signo, &ignore, NULL);
	}
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
}

void
loop_free(struct loop *l)
{
	if (l == NULL)
		return;
	run_deferred(l);
	child_done(l);
	signals_free(l);
	while (l->timers > 0)
		l->heap[l->timers--]->pos = 0;
	free(l->heap);
	if (l->base != NULL) {
		log_hold(false);
		log_set_waiting_cb(NULL, NULL);
		io_done(&l->log_io);
		io_done(&l->alarm);
		(void)close(l->alarm_fd);
		event_base_free(l->base);
	}
	free(l);
}

struct event_base *
loop_base(struct loop *l)
{
	return l->base;
}

/* -- turns -------------------------------------------------------------------- */

/* Sets the alarm to ring at this moment or earlier; USEC_MAX: never. */
static void
set_alarm(struct loop *l, usec_t at)
{
	struct itimerspec it = { .it_value = { 0, 0 } };
	usec_t left;

	if (at == l->alarm_at || (at > l->alarm_at && at != USEC_MAX))
		return;
	l->alarm_at = at;
	if (at != USEC_MAX) {
		left = at - clock_mono();
		it.it_value.tv_sec = left > 0 ? (time_t)(left / SEC) : 0;
		it.it_value.tv_nsec = left > 0 ? (long)(left % SEC) * 1000 : 1;
	}
	if (timerfd_settime(l->alarm_fd, 0, &it, NULL) == -1)
		fatal_os("cannot set the event loop's timer");
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
timer_next(const struct loop *l)
{
	return l->timers == 0 ? USEC_MAX : l->heap[1]->at;
}

/* One turn.  Waits for events until this moment, not at all while a call is deferred. */
static void
turn(struct loop *l, usec_t until)
{
	int flags = EVLOOP_ONCE | EVLOOP_NO_EXIT_ON_EMPTY;
	usec_t next = timer_next(l);

	if (next_deferred(l) != NULL)
		until = 0;
	else if (next < until)
		until = next;
	if (l->base == NULL) {
		if (until != USEC_MAX && until > clock_mono())
			clock_fake_advance(until - clock_mono());
	} else {
		if (until <= clock_mono())
			flags |= EVLOOP_NONBLOCK;
		else
			set_alarm(l, until);
		if (event_base_loop(l->base, flags) == -1)
			fatal_os("the event loop failed");
	}
	timer_run_due(l);
	run_deferred(l);
	log_release();
}

void
loop_turn(struct loop *l, usec_t max)
{
	turn(l, clock_after(max));
}

void
loop_run(struct loop *l)
{
	while (!l->stopping) {
		if (l->base == NULL && l->timers == 0 && next_deferred(l) == NULL)
			break;
		turn(l, USEC_MAX);
	}
	l->stopping = false;
}

void
loop_run_for(struct loop *l, usec_t span)
{
	usec_t end = clock_after(span);

	do {
		turn(l, end);
	} while (!l->stopping && clock_mono() < end);
	l->stopping = false;
}

void
loop_stop(struct loop *l)
{
	l->stopping = true;
}

/* -- deferred calls and signals -------------------------------------------------- */

void
loop_defer(struct loop *l, struct defer *d, void (*fn)(void *), void *arg)
{
	if (d->queued)
		return;
	d->fn = fn;
	d->arg = arg;
	d->queued = true;
	TAILQ_INSERT_TAIL(&l->deferred[d->stage], d, entry);
}

void
loop_defer_cancel(struct loop *l, struct defer *d)
{
	if (d->queued)
		TAILQ_REMOVE(&l->deferred[d->stage], d, entry);
	d->queued = false;
}

static void
signal_came(evutil_socket_t signo, short what UNUSED, void *arg)
{
	struct loop_signal *s = arg;

	s->fn((int)signo, s->arg);
}

void
loop_signal(struct loop *l, int signo, void (*fn)(int, void *), void *arg)
{
	struct loop_signal *s = &l->signals[signo];
	sigset_t set;

	if (l->base == NULL)
		return;
	(void)sigemptyset(&set);
	(void)sigaddset(&set, signo);
	if (s->event == NULL) {
		s->event = evsignal_new(l->base, signo, signal_came, s);
		if (s->event == NULL || event_add(s->event, NULL) == -1)
			fatal_os("cannot watch signal %d", signo);
	}
	s->fn = fn;
	s->arg = arg;
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
}
