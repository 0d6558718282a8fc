/* Signals to all descendants of this process; and the timer on CLOCK_BOOTTIME. */
#include "unit.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "loop/timer.h"
#include "loop/child.h"
#include "loop/proc.h"
#include "loop/loop.h"

#define DEEP	20

/* Forks a chain of processes, each in a session of its own; the last one reports. */
static void
grow(int depth, int report)
{
	while (depth > 0 && fork() == 0)
		depth--;
	if (depth == 0)
		(void)!write(report, "x", 1);
	setsid();
	for (;;)
		pause();
}

TEST(test_kill)
{
	struct loop *l = loop_new();
	int fd[2], i;
	char c;

	child_init(l);
	assert_int_equal(proc_kill_below(SIGTERM), 0);
	assert_int_equal(pipe(fd), 0);
	for (i = 0; i < 3; i++) {
		if (fork() == 0)
			grow(DEEP, fd[1]);
	}
	for (i = 0; i < 3; i++)
		assert_int_equal(read(fd[0], &c, 1), 1);
	assert_int_equal(proc_kill_below(0), 3 * (DEEP + 1));
	assert_int_equal(proc_kill_below(SIGTERM), 3 * (DEEP + 1));
	while (proc_kill_below(SIGKILL) > 0)
		loop_turn(l, 10 * MSEC);
	close(fd[0]);
	close(fd[1]);
	child_done(l);
	loop_free(l);
}

static int fired;

static void
on_timer(void *arg)
{
	(void)arg;
	fired++;
}

TEST(test_boot_timer)
{
	struct loop *l = loop_new();
	struct boot_timer t;
	boot_t at;
	int i;

	boot_timer_init(&t, l, on_timer, NULL);
	loop_turn(l, 0);
	assert_int_equal(fired, 0);
	boot_timer_set_at(&t, clock_boot() - SEC);
	for (i = 0; fired == 0 && i < 1000; i++)
		loop_turn(l, 10 * MSEC);
	assert_int_equal(fired, 1);
	at = clock_boot() + 30 * MSEC;
	boot_timer_set_at(&t, clock_boot() + HOUR);
	boot_timer_set_at(&t, at);
	while (fired == 1)
		loop_turn(l, 10 * MSEC);
	assert_true(clock_boot() >= at);
	boot_timer_set_at(&t, 0);
	boot_timer_stop(&t);
	loop_turn(l, 20 * MSEC);
	assert_int_equal(fired, 2);
	boot_timer_done(&t);
	loop_free(l);
}
