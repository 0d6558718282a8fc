/* The handler without processes (tests/sim/fake.c), on a simulated loop. */
#include "../unit/unit.h"

#include <errno.h>
#include <signal.h>

#include "base/buf.h"
#include "../sim/fake.h"
#include "handler/handler.h"

static struct loop	 *loop;
static struct config	 *config;
static struct queue_config *q;
static struct fake	  fake;
static struct handler	 *handler;
static struct fake_end	  next;		/* the script's answer for each message */
static struct result	  last;
static usec_t		  last_at;
static int		  done, closed;
static struct buf	  lines;

static struct fake_end
script(struct message *msg, void *arg)
{
	assert_ptr_equal(arg, &fake);
	assert_string_equal(msg->id, "7");
	return next;
}

static void
on_done(struct message *msg, struct result *result, void *arg UNUSED)
{
	last = *result;
	last_at = clock_mono();
	done++;
	message_free(msg);
}

static void
on_output(const struct log_ctx *ctx, int fd, const char *p, size_t n, bool cut UNUSED,
    void *arg UNUSED)
{
	assert_int_equal(fd, 2);
	assert_string_equal(ctx->id, "7");
	buf_add(&lines, p, n);
}

static const struct handler_events events = { .done = on_done, .output = on_output };

static int
set_up(void **state UNUSED)
{
	clock_fake(1000 * SEC, 0);
	loop = loop_new_simulated();
	config = config_new();
	config->queues = xreallocarray(config->queues, 2, sizeof(*config->queues));
	config->queues[0] = q = xcalloc(1, sizeof(*q));
	config->queues[1] = NULL;
	config->nqueues = 1;
	q->name = xstrdup("q");
	q->kill_grace = 5 * SEC;
	fake = (struct fake){ .script = script, .arg = &fake, .env.loop = loop };
	handler = handler_open(&fake.env, config, q, &events, NULL);
	next = (struct fake_end){ .after = 0 };
	done = closed = 0;
	return 0;
}

static int
tear_down(void **state UNUSED)
{
	handler_free(handler);
	loop_free(loop);
	config_unref(config);
	buf_done(&lines);
	clock_real(0);
	return 0;
}

#define FIXTURE_TEST(name)	TEST_WITH(name, set_up, tear_down)

static struct run *
start(void)
{
	struct message *msg = message_new(config, q);

	msg->id = xstrdup("7");
	last = (struct result){ .end = END_NOT_RUN };
	return handler_start(handler, msg);
}

FIXTURE_TEST(as_scripted)
{
	usec_t began = clock_mono();

	next = (struct fake_end){ .after = HOUR, .status = 3, .error_tail = "oh" };
	(void)start();
	assert_int_equal(fake.running, 1);
	loop_run(loop);
	assert_int_equal(done, 1);
	assert_int_equal(last_at - began, HOUR);
	assert_int_equal(last.duration, HOUR);
	assert_int_equal(last.end, END_EXIT);
	assert_int_equal(last.status, 3);
	assert_int_equal(last.stop, STOP_NONE);
	assert_int_equal(last.error_len, 2);
	assert_memory_equal(lines.data, "oh", 2);
	assert_int_equal(fake.running, 0);
	assert_int_equal(fake.started, 1);
	result_done(&last);
}

FIXTURE_TEST(not_started)
{
	next = (struct fake_end){ .end = END_NOT_STARTED, .error = EAGAIN, .after = HOUR };
	(void)start();
	assert_int_equal(done, 0);
	loop_turn(loop, 0);
	assert_int_equal(done, 1);
	assert_int_equal(last.error, EAGAIN);
	assert_int_equal(last.pid, 0);
}

FIXTURE_TEST(time_limit)
{
	usec_t began = clock_mono();

	q->time_limit = MINUTE;
	next = (struct fake_end){ .after = HOUR, .term_after = SEC };
	(void)start();
	loop_run(loop);
	assert_int_equal(last_at - began, MINUTE + SEC);
	assert_int_equal(last.end, END_SIGNAL);
	assert_int_equal(last.signo, SIGTERM);
	assert_int_equal(last.stop, STOP_TIME_LIMIT);
	next = (struct fake_end){ .after = USEC_MAX, .term_after = USEC_MAX };
	began = clock_mono();
	(void)start();
	loop_run(loop);
	assert_int_equal(last_at - began, MINUTE + 5 * SEC);
	assert_int_equal(last.signo, SIGKILL);
	assert_int_equal(done, 2);
}

FIXTURE_TEST(stopped)
{
	struct run *r;

	next = (struct fake_end){ .after = USEC_MAX, .traps_term = true };
	r = start();
	loop_run_for(loop, HOUR);
	assert_int_equal(done, 0);
	handler_stop(r, STOP_DRAIN);
	handler_stop(r, STOP_LOST);
	assert_int_equal(done, 0);
	loop_run(loop);
	assert_int_equal(done, 1);
	assert_int_equal(last.end, END_EXIT);
	assert_int_equal(last.status, 0);
	assert_int_equal(last.stop, STOP_DRAIN);
	next.term_after = USEC_MAX;
	r = start();
	handler_stop(r, STOP_LOST);
	handler_kill(r);
	handler_kill(r);
	loop_turn(loop, 0);
	assert_int_equal(done, 2);
	assert_int_equal(last.signo, SIGKILL);
	assert_int_equal(last.stop, STOP_LOST);
}

static void
on_closed(void *arg)
{
	++*(int *)arg;
}

FIXTURE_TEST(many_and_close)
{
	int i;

	for (i = 0; i < 10; i++) {
		next.after = i * SEC;
		(void)start();
	}
	handler_close(handler, on_closed, &closed);
	loop_run_for(loop, 8500 * MSEC);
	assert_int_equal(done, 9);
	assert_int_equal(closed, 0);
	loop_run(loop);
	assert_int_equal(closed, 1);
	assert_int_equal(fake.peak, 10);
}

FIXTURE_TEST(without_a_script_all_succeed)
{
	fake.script = NULL;
	(void)start();
	loop_run(loop);
	assert_int_equal(last.end, END_EXIT);
	assert_int_equal(last.status, 0);
}
