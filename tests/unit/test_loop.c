/* The loop: turns, deferred calls, descriptors, signals, simulation, the log. */
#include "unit.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>

#include "base/buf.h"
#include "base/log.h"
#include "loop/io.h"
#include "loop/loop.h"
#include "loop/timer.h"

static char trace[256];

static void
add_trace(const char *s)
{
	strcat(trace, s);
}

static int
start_clean(void **state UNUSED)
{
	trace[0] = '\0';
	clock_real(0);
	return 0;
}

#define FIXTURE_TEST(name)	TEST_WITH(name, start_clean, NULL)

static void
trace_it(void *arg)
{
	add_trace(arg);
}

/* -- deferred calls ------------------------------------------------------------ */

struct chain {
	struct loop	*loop;
	struct defer	 a, b, c;
};

static void
chain_a(void *arg)
{
	struct chain *ch = arg;

	add_trace("a");
	loop_defer(ch->loop, &ch->c, trace_it, (char *)"c");
}

static void
run_chain(struct loop *l)
{
	struct chain ch = { .loop = l };
	struct defer gone = { .queued = false };

	loop_defer(l, &ch.a, chain_a, &ch);
	loop_defer(l, &ch.b, trace_it, (char *)"b");
	loop_defer(l, &ch.b, trace_it, (char *)"B");	/* ignored: it is deferred already */
	loop_defer(l, &gone, trace_it, (char *)"x");
	loop_defer_cancel(l, &gone);
	loop_defer_cancel(l, &gone);
	assert_string_equal(trace, "");
	loop_turn(l, HOUR);		/* does not wait: there is work */
	assert_string_equal(trace, "abc");
	assert_false(ch.a.queued || ch.b.queued || ch.c.queued || gone.queued);
}

FIXTURE_TEST(test_defer)
{
	struct loop *l = loop_new();
	struct defer last = { .queued = false };

	run_chain(l);
	loop_defer(l, &last, trace_it, (char *)"z");
	loop_free(l);
	assert_string_equal(trace, "abcz");
	loop_free(NULL);
}

static void
last_one(void *arg)
{
	struct chain *ch = arg;

	add_trace("l");
	loop_defer(ch->loop, &ch->b, trace_it, (char *)"d");
}

/* Stage after stage: rqd writes to Redis first, then to handlers. */
FIXTURE_TEST(test_defer_order)
{
	struct loop *l = loop_new();
	struct chain ch = { .loop = l, .a.stage = LOOP_FEED, .c.stage = LOOP_SEND };
	struct defer allot = { .stage = LOOP_ALLOT };

	loop_defer(l, &ch.a, trace_it, (char *)"f");
	loop_defer(l, &ch.c, last_one, &ch);
	loop_defer(l, &allot, trace_it, (char *)"a");
	loop_defer(l, &ch.b, trace_it, (char *)"d");
	loop_turn(l, HOUR);
	assert_string_equal(trace, "daldf");
	loop_free(l);
}

static void
free_it(void *arg)
{
	struct chain *ch = arg;

	add_trace("f");
	free(ch);
}

FIXTURE_TEST(test_defer_frees)
{
	struct loop *l = loop_new();
	struct chain *ch = xcalloc(1, sizeof(*ch));

	loop_defer(l, &ch->a, free_it, ch);
	loop_turn(l, 0);
	assert_string_equal(trace, "f");
	loop_free(l);
}

/* -- a real loop ----------------------------------------------------------------- */

struct world {
	struct loop	*loop;
	struct defer	 defer;
	struct timer	 timer;
	struct io	 io;
	int		 fd[2];
	int		 count;
};

static void
world_deferred(void *arg)
{
	struct world *w = arg;

	add_trace("d");
	if (w->count == 3)
		loop_stop(w->loop);
}

static void
world_readable(int what, void *arg)
{
	struct world *w = arg;
	char c;

	assert_int_equal(what, IO_READ);
	assert_int_equal(read(w->fd[0], &c, 1), 1);
	add_trace("r");
	loop_defer(w->loop, &w->defer, world_deferred, w);
	timer_set(&w->timer, 0);
	if (++w->count == 3)
		io_done(&w->io);
}

static void
world_timer(void *arg)
{
	struct world *w = arg;

	add_trace("t");
	if (w->count < 3)
		assert_int_equal(write(w->fd[1], "x", 1), 1);
}

/* A turn runs events first, then timers, then deferred calls. */
FIXTURE_TEST(test_order)
{
	struct world w = { .loop = loop_new() };

	assert_int_equal(pipe(w.fd), 0);
	io_init(&w.io, w.loop, w.fd[0], IO_READ, world_readable, &w);
	assert_false(w.io.on);
	io_start(&w.io);
	io_start(&w.io);
	timer_init(&w.timer, w.loop, world_timer, &w);
	timer_set(&w.timer, 0);
	loop_run(w.loop);
	assert_string_equal(trace, "trtdrtdrtd");
	io_done(&w.io);
	loop_free(w.loop);
	close(w.fd[0]);
	close(w.fd[1]);
}

static void
stop_loop(void *arg)
{
	struct loop *l = arg;

	loop_stop(l);
}

FIXTURE_TEST(test_time)
{
	struct loop *l = loop_new();
	struct timer t, far;
	usec_t start = clock_mono(), took;
	int i;

	timer_init(&far, l, trace_it, (char *)"x");
	timer_set(&far, HOUR);
	timer_init(&t, l, stop_loop, l);
	for (i = 0; i < 20; i++) {	/* each shorter than a millisecond */
		timer_set(&t, 200);
		loop_run(l);
	}
	took = clock_mono() - start;
	assert_true(took >= 20 * 200);
	start = clock_mono();
	loop_turn(l, 0);
	loop_turn(l, 5 * MSEC);
	took = clock_mono() - start;
	assert_true(took >= 5 * MSEC);
	loop_free(l);
	assert_string_equal(trace, "");
}

/* A loop that has nothing to do sleeps until its timer; a stopped one returns at once. */
FIXTURE_TEST(test_idle)
{
	struct loop *l = loop_new();
	struct timer t;
	struct rusage before, after;
	long switches;

	timer_init(&t, l, stop_loop, l);
	loop_stop(l);
	loop_run(l);		/* stopped before it began: returns at once */
	timer_set(&t, 50 * MSEC);
	getrusage(RUSAGE_SELF, &before);
	loop_run(l);
	getrusage(RUSAGE_SELF, &after);
	switches = after.ru_nvcsw - before.ru_nvcsw;
	assert_true(switches < 10);
	loop_free(l);
}

static void
got_signal(int signo, void *arg)
{
	struct loop *l = arg;

	add_trace(signo == SIGUSR1 ? "1" : "2");
	if (signo == SIGUSR2)
		loop_stop(l);
}

static void
other_signal(int signo UNUSED, void *arg UNUSED)
{
	add_trace("o");
}

FIXTURE_TEST(test_signals)
{
	struct loop *l = loop_new();
	struct sigaction sa;

	loop_signal(l, SIGUSR1, got_signal, l);
	loop_signal(l, SIGUSR2, got_signal, l);
	raise(SIGUSR1);
	assert_string_equal(trace, "");
	loop_turn(l, SEC);
	assert_string_equal(trace, "1");
	loop_signal(l, SIGUSR1, other_signal, NULL);
	raise(SIGUSR1);
	loop_turn(l, SEC);
	assert_string_equal(trace, "1o");
	raise(SIGUSR2);
	loop_run(l);
	assert_string_equal(trace, "1o2");
	loop_free(l);
	sigaction(SIGUSR2, NULL, &sa);
	assert_true(sa.sa_handler == SIG_IGN);
	raise(SIGUSR2);
}

/* -- simulation ------------------------------------------------------------------ */

struct retry {
	struct loop	*loop;
	struct timer	 timer;
	struct defer	 defer;
	usec_t		 delay;
	int		 tries;
};

static void
retry_deferred(void *arg)
{
	struct retry *r = arg;

	if (++r->tries == 12)
		return;
	timer_set(&r->timer, r->delay);
	r->delay *= 2;
}

static void
retry_due(void *arg)
{
	struct retry *r = arg;

	loop_defer(r->loop, &r->defer, retry_deferred, r);
}

FIXTURE_TEST(test_simulated_hour)
{
	struct retry r = { .delay = SEC };
	usec_t start;

	start = clock_mono();
	clock_fake(0, 1000 * SEC);
	r.loop = loop_new_simulated();
	assert_null(loop_base(r.loop));
	run_chain(r.loop);
	timer_init(&r.timer, r.loop, retry_due, &r);
	timer_set(&r.timer, 0);
	loop_run(r.loop);	/* ends by itself: nothing is left */
	assert_int_equal(r.tries, 12);
	assert_int_equal(clock_mono(), 2047 * SEC);
	assert_int_equal(clock_wall(), 3047 * SEC);

	r.tries = 0;
	r.delay = SEC;
	timer_set(&r.timer, 0);
	loop_run_for(r.loop, 2 * SEC + 1);
	assert_int_equal(r.tries, 2);
	assert_int_equal(clock_mono(), 2049 * SEC + 1);
	loop_run_for(r.loop, HOUR);
	assert_int_equal(r.tries, 12);
	assert_int_equal(clock_mono(), 2049 * SEC + 1 + HOUR);

	timer_set(&r.timer, HOUR);
	loop_turn(r.loop, 0);
	assert_int_equal(timer_left(&r.timer), HOUR);
	loop_turn(r.loop, MINUTE);
	assert_int_equal(timer_left(&r.timer), HOUR - MINUTE);
	loop_signal(r.loop, SIGUSR1, got_signal, NULL);
	loop_free(r.loop);
	clock_real(0);
	assert_true(clock_mono() - start < 10 * SEC);
}

/* -- the log ----------------------------------------------------------------------- */

/* The loop alone writes out the records that a blocked stderr has kept, then stops watching. */
FIXTURE_TEST(test_log_drains)
{
	struct loop *l = loop_new();
	struct pollfd p = { .events = POLLIN };
	struct buf got = BUF_INIT;
	int fd[2], old, i, reports = 0;
	char piece[4096], fill[1000], *s;
	ssize_t n;

	log_hold(false);	/* writes each record at once */
	memset(fill, 'x', sizeof(fill));
	assert_int_equal(pipe(fd), 0);
	fflush(stderr);
	old = fcntl(2, F_DUPFD_CLOEXEC, 10);
	assert_int_equal(dup2(fd[1], 2), 2);
	close(fd[1]);
	assert_int_equal(log_open("stderr", NULL), 0);
	for (i = 0; i < 1000; i++)
		log_event(LOG_LV_INFO, "flood", NULL,
		    LF_MEM("fill", fill, sizeof(fill)));
	p.fd = fd[0];
	for (i = 0; i < 10000 && log_waiting_fd() != -1; i++) {
		n = read(fd[0], piece, sizeof(piece));
		assert_true(n > 0);
		buf_add(&got, piece, (size_t)n);
		loop_turn(l, 0);
	}
	assert_int_equal(log_waiting_fd(), -1);
	while (poll(&p, 1, 0) == 1 && (n = read(fd[0], piece, sizeof(piece))) > 0)
		buf_add(&got, piece, (size_t)n);
	for (s = buf_str(&got); (s = strstr(s, "dropped=")) != NULL; s++)
		reports++;
	assert_int_equal(reports, 1);

	/* stderr is blocked again, and the log's target changes while the loop watches it */
	for (i = 0; i < 200; i++)
		log_event(LOG_LV_INFO, "flood", NULL,
		    LF_MEM("fill", fill, sizeof(fill)));
	assert_true(log_waiting_fd() != -1);
	assert_int_equal(log_open("/dev/null", NULL), 0);
	assert_int_equal(log_waiting_fd(), -1);
	loop_turn(l, 0);
	assert_int_equal(log_open("stderr", NULL), 0);
	for (i = 0; i < 200 && log_waiting_fd() == -1; i++)
		log_event(LOG_LV_INFO, "flood", NULL);
	assert_true(log_waiting_fd() != -1);
	log_close();
	loop_turn(l, 0);
	dup2(old, 2);
	close(old);
	close(fd[0]);
	buf_done(&got);
	loop_free(l);
}

static void
writable(int what, void *arg)
{
	struct world *w = arg;

	assert_int_equal(what & IO_WRITE, IO_WRITE);
	w->count++;
	io_stop(&w->io);
}

FIXTURE_TEST(test_io)
{
	struct world w = { .loop = loop_new() };

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, w.fd), 0);
	io_init(&w.io, w.loop, w.fd[0], IO_READ | IO_WRITE, writable, &w);
	loop_turn(w.loop, 0);
	assert_int_equal(w.count, 0);
	io_start(&w.io);
	loop_turn(w.loop, SEC);
	loop_turn(w.loop, 0);
	assert_int_equal(w.count, 1);
	io_start(&w.io);
	loop_turn(w.loop, SEC);
	assert_int_equal(w.count, 2);
	io_done(&w.io);
	io_done(&w.io);
	close(w.fd[0]);
	close(w.fd[1]);
	loop_free(w.loop);
}
