/* Timers: the heap compared with a model, and what callbacks may do with timers. */
#include "unit.h"

#include "loop/timer.h"

#define TIMERS	300

struct model {
	struct timer	timer;
	bool		set;
	usec_t		at;
};

static struct model model[TIMERS];
static usec_t last_fired;
static int fired;

static void
model_fired(void *arg)
{
	struct model *m = arg;

	assert_true(m->set);
	assert_true(m->at <= clock_mono());
	assert_true(m->at >= last_fired);
	assert_false(timer_is_set(&m->timer));
	last_fired = m->at;
	m->set = false;
	fired++;
}

static void
check_model(struct loop *l)
{
	usec_t least = USEC_MAX;
	int i;

	for (i = 0; i < TIMERS; i++) {
		assert_int_equal(timer_is_set(&model[i].timer), model[i].set);
		if (model[i].set && model[i].at < least)
			least = model[i].at;
		assert_true(timer_left(&model[i].timer) ==
		    (!model[i].set || model[i].at < clock_mono() ? 0 :
		    model[i].at - clock_mono()));
	}
	assert_true(timer_next(l) == least);
}

TEST(test_model)
{
	struct loop *l;
	struct model *m;
	usec_t d;
	int i, due, step;

	clock_fake(SEC, 0);
	l = loop_new_simulated();
	for (i = 0; i < TIMERS; i++)
		timer_init(&model[i].timer, l, model_fired, &model[i]);
	for (step = 0; step < 50000; step++) {
		m = &model[unit_below(TIMERS)];
		d = (usec_t)unit_below(1000) - 100;
		switch (unit_below(5)) {
		case 0:
		case 1:
			timer_set(&m->timer, d);
			m->set = true;
			m->at = clock_mono() + (d < 0 ? 0 : d);
			break;
		case 2:
			timer_set_at(&m->timer, clock_mono() + d);
			m->set = true;
			m->at = clock_mono() + d;
			break;
		case 3:
			timer_stop(&m->timer);
			m->set = false;
			break;
		case 4:
			clock_fake_advance((usec_t)unit_below(30));
			for (due = i = 0; i < TIMERS; i++)
				due += model[i].set && model[i].at <= clock_mono();
			fired = 0;
			last_fired = 0;
			timer_run_due(l);
			assert_int_equal(fired, due);
			break;
		}
		if (step % 100 == 0)
			check_model(l);
	}
	loop_free(l);
	for (i = 0; i < TIMERS; i++) {
		assert_false(timer_is_set(&model[i].timer));
		timer_stop(&model[i].timer);
	}
}

/* -- callbacks ---------------------------------------------------------------- */

static void
set_again(void *arg)
{
	fired++;
	timer_set(arg, 0);
}

TEST(test_again)
{
	struct loop *l;
	struct timer t;

	clock_fake(SEC, 0);
	l = loop_new_simulated();
	timer_init(&t, l, set_again, &t);
	timer_set(&t, 0);
	fired = 0;
	timer_run_due(l);
	assert_int_equal(fired, 1);
	assert_true(timer_is_set(&t));
	timer_run_due(l);
	assert_int_equal(fired, 1);
	clock_fake_advance(1);
	timer_run_due(l);
	assert_int_equal(fired, 2);
	loop_free(l);
}

static void
stop_and_free(void *arg)
{
	struct timer **pair = arg;

	fired++;
	timer_stop(pair[1]);
	free(pair[0]);
}

static void
never(void *arg UNUSED)
{
	fail_msg("a stopped timer fired");
}

TEST(test_stop_other)
{
	struct timer *pair[2], zero = { .loop = NULL };
	struct loop *l;
	int i;

	clock_fake(SEC, 0);
	l = loop_new_simulated();
	for (i = 0; i < 2; i++)
		pair[i] = xmalloc(sizeof(*pair[i]));
	timer_init(pair[0], l, stop_and_free, pair);
	timer_init(pair[1], l, never, NULL);
	timer_set_at(pair[0], 10);
	timer_set_at(pair[1], 20);
	fired = 0;
	timer_run_due(l);
	assert_int_equal(fired, 1);
	assert_true(timer_next(l) == USEC_MAX);
	timer_stop(&zero);
	assert_false(timer_is_set(&zero));
	assert_int_equal(timer_left(&zero), 0);
	timer_set(pair[1], USEC_MAX);
	assert_true(timer_next(l) == USEC_MAX);
	timer_run_due(l);
	timer_stop(pair[1]);
	free(pair[1]);
	loop_free(l);
}
