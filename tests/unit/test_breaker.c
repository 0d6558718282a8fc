/* Suspension, as scenarios: what happens when, and what the breaker says. */
#include "unit.h"

#include "policy/breaker.h"

enum what { OK, FAIL, TRIP, REFUSE, UNPROVED, BEGIN };

struct step {
	enum what		what;
	usec_t			at;
	enum breaker_event	event;
	enum breaker_state	state;
	usec_t			probe_at;	/* while OPEN */
};

#define CLOSED		BREAKER_CLOSED, 0
#define PROBING		BREAKER_PROBING, 0
#define OPEN(at)	BREAKER_OPEN, (at)
#define NONE		BREAKER_NOTHING

static enum breaker_event
do_step(struct breaker *b, const struct step *s)
{
	switch (s->what) {
	case OK:
		return breaker_success(b);
	case FAIL:
		return breaker_failure(b, s->at);
	case TRIP:
		return breaker_trip(b, REASON_CANNOT_EXECUTE, s->at);
	case REFUSE:
		return breaker_trip(b, REASON_FAILING, s->at);
	case UNPROVED:
		breaker_unproved(b, s->at);
		break;
	case BEGIN:
		breaker_probe_begun(b);
		break;
	}
	return BREAKER_NOTHING;
}

static void
check_allows(const struct breaker *b, usec_t now)
{
	bool single;

	switch (b->state) {
	case BREAKER_CLOSED:
		assert_true(breaker_allows(b, now, &single));
		assert_false(single);
		break;
	case BREAKER_OPEN:
		assert_false(breaker_allows(b, b->probe_at - 1, &single));
		assert_true(breaker_allows(b, b->probe_at, &single));
		assert_true(single);
		break;
	case BREAKER_PROBING:
		assert_false(breaker_allows(b, now + HOUR, &single));
		break;
	}
}

static void
run(int limit, const struct step *steps, size_t n)
{
	struct breaker b;
	size_t i;

	breaker_init(&b, limit);
	check_allows(&b, 0);
	for (i = 0; i < n; i++) {
		assert_int_equal(do_step(&b, &steps[i]), steps[i].event);
		assert_int_equal(b.state, steps[i].state);
		if (b.state == BREAKER_OPEN)
			assert_int_equal(b.probe_at, steps[i].probe_at);
		check_allows(&b, steps[i].at);
	}
}

#define RUN(limit, steps)	run((limit), (steps), ARRAY_LEN(steps))

static void
test_failures_in_a_row(void **state UNUSED)
{
	static const struct step steps[] = {
		{ FAIL, 1, NONE, CLOSED },
		{ FAIL, 2, NONE, CLOSED },
		{ OK, 3, NONE, CLOSED },
		{ FAIL, 4, NONE, CLOSED },
		{ FAIL, 5, NONE, CLOSED },
		{ FAIL, 6, BREAKER_SUSPENDED, OPEN(6 + SEC) },
		/* These had begun before. */
		{ FAIL, 7, NONE, OPEN(6 + SEC) },
		{ TRIP, 8, NONE, OPEN(6 + SEC) },
		{ UNPROVED, 9, NONE, OPEN(6 + SEC) },
		{ BEGIN, 6 + SEC, NONE, PROBING },
		{ OK, 6 + SEC, BREAKER_RESUMED, CLOSED },
		{ FAIL, 7 + SEC, NONE, CLOSED },
		{ FAIL, 8 + SEC, NONE, CLOSED },
		{ FAIL, 9 + SEC, BREAKER_SUSPENDED, OPEN(9 + 2 * SEC) },
		/* A late success proves that the command works. */
		{ OK, 10 + SEC, BREAKER_RESUMED, CLOSED },
	};

	RUN(3, steps);
}

static void
test_probes_double(void **state UNUSED)
{
	static const struct step steps[] = {
		{ TRIP, 0, BREAKER_SUSPENDED, OPEN(1 * SEC) },
		{ BEGIN, 1, NONE, PROBING },
		{ TRIP, 100, BREAKER_STILL, OPEN(100 + 2 * SEC) },
		{ BEGIN, 101, NONE, PROBING },
		{ FAIL, 200, BREAKER_STILL, OPEN(200 + 4 * SEC) },
		{ BEGIN, 201, NONE, PROBING },
		/* Nothing proved: open again, with the same delay. */
		{ UNPROVED, 300, NONE, OPEN(300 + 4 * SEC) },
		{ BEGIN, 301, NONE, PROBING },
		{ UNPROVED, 400, NONE, OPEN(400 + 4 * SEC) },
		{ BEGIN, 401, NONE, PROBING },
		{ FAIL, 500, BREAKER_STILL, OPEN(500 + 8 * SEC) },
		{ BEGIN, 501, NONE, PROBING },
		{ FAIL, 600, BREAKER_STILL, OPEN(600 + 16 * SEC) },
		{ BEGIN, 601, NONE, PROBING },
		{ FAIL, 700, BREAKER_STILL, OPEN(700 + 32 * SEC) },
		{ BEGIN, 701, NONE, PROBING },
		{ FAIL, 800, BREAKER_STILL, OPEN(800 + MINUTE) },
		{ BEGIN, 801, NONE, PROBING },
		{ FAIL, 900, BREAKER_STILL, OPEN(900 + MINUTE) },
		{ BEGIN, 901, NONE, PROBING },
		{ OK, 1000, BREAKER_RESUMED, CLOSED },
		{ TRIP, 2000, BREAKER_SUSPENDED, OPEN(2000 + SEC) },
	};

	RUN(20, steps);
}

static void
test_no_limit(void **state UNUSED)
{
	static const struct step after[] = {
		{ TRIP, 5, BREAKER_SUSPENDED, OPEN(5 + SEC) },
	};
	struct breaker b;
	int i;

	breaker_init(&b, 0);
	for (i = 0; i < 100000; i++)
		assert_int_equal(breaker_failure(&b, i), BREAKER_NOTHING);
	assert_int_equal(b.state, BREAKER_CLOSED);
	RUN(0, after);
}

static void
test_limit_of_one(void **state UNUSED)
{
	static const struct step steps[] = {
		{ FAIL, 5, BREAKER_SUSPENDED, OPEN(5 + SEC) },
		{ BEGIN, 5 + SEC, NONE, PROBING },
		{ OK, 6 + SEC, BREAKER_RESUMED, CLOSED },
		{ FAIL, 7 + SEC, BREAKER_SUSPENDED, OPEN(7 + 2 * SEC) },
	};

	RUN(1, steps);
}

static void
test_reason(void **state UNUSED)
{
	struct breaker b;

	breaker_init(&b, 1);
	(void)breaker_failure(&b, 77);
	assert_int_equal(b.reason, REASON_FAILING);
	assert_int_equal(b.since, 77);
	breaker_probe_begun(&b);
	(void)breaker_trip(&b, REASON_CANNOT_EXECUTE, 99);
	assert_int_equal(b.reason, REASON_CANNOT_EXECUTE);
	assert_int_equal(b.since, 77);
	breaker_probe_begun(&b);
	(void)breaker_failure(&b, 100);
	assert_int_equal(b.reason, REASON_CANNOT_EXECUTE);
}

/* Weeks of failing probes. */
static void
test_long(void **state UNUSED)
{
	struct breaker b;
	usec_t now = 0;
	int i;

	breaker_init(&b, 20);
	(void)breaker_trip(&b, REASON_FAILING, now);
	for (i = 0; i < 1000000; i++) {
		now = b.probe_at;
		breaker_probe_begun(&b);
		assert_int_equal(breaker_failure(&b, now), BREAKER_STILL);
		assert_in_range(b.probe_at - now, SEC, MINUTE);
	}
	assert_int_equal(breaker_success(&b), BREAKER_RESUMED);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_failures_in_a_row),
		cmocka_unit_test(test_probes_double),
		cmocka_unit_test(test_no_limit),
		cmocka_unit_test(test_limit_of_one),
		cmocka_unit_test(test_reason),
		cmocka_unit_test(test_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
