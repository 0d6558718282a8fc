/* The circuit breaker, as scenarios: events with their times, and what it must answer. */
#include "unit.h"

#include "policy/breaker.h"

enum what { OK, FAIL, TRIP, REFUSE, ACCEPT, JUDGED, UNPROVED, IDLE, BEGIN };

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
		return breaker_cannot_execute(b, s->at);
	case REFUSE:
		return breaker_refused(b, 10 * SEC, s->at);
	case ACCEPT:
		return breaker_accepted(b);
	case JUDGED:
		return breaker_judged(b, s->at);
	case IDLE:
		breaker_idle(b, s->at);
		break;
	case UNPROVED:
		breaker_unproved(b, s->at);
		break;
	case BEGIN:
		(void)breaker_turn(b);
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

TEST(test_failures_in_a_row)
{
	static const struct step steps[] = {
		{ FAIL, 1, NONE, CLOSED },
		{ FAIL, 2, NONE, CLOSED },
		{ OK, 3, NONE, CLOSED },
		{ FAIL, 4, NONE, CLOSED },
		{ FAIL, 5, NONE, CLOSED },
		{ FAIL, 6, BREAKER_SUSPENDED, OPEN(6 + SEC) },
		/* These runs began before the suspension. */
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

/* While the command fails, the delays between probes double up to 5 s. */
TEST(test_probes_of_failures)
{
	static const struct step steps[] = {
		{ FAIL, 0, BREAKER_SUSPENDED, OPEN(1 * SEC) },
		{ BEGIN, 1, NONE, PROBING },
		{ FAIL, 100, BREAKER_STILL, OPEN(100 + 2 * SEC) },
		{ BEGIN, 101, NONE, PROBING },
		{ FAIL, 200, BREAKER_STILL, OPEN(200 + 4 * SEC) },
		{ BEGIN, 201, NONE, PROBING },
		/* The probe proved nothing: the same delay again. */
		{ UNPROVED, 300, NONE, OPEN(300 + 4 * SEC) },
		{ BEGIN, 301, NONE, PROBING },
		{ FAIL, 400, BREAKER_STILL, OPEN(400 + 5 * SEC) },
		{ BEGIN, 401, NONE, PROBING },
		{ FAIL, 500, BREAKER_STILL, OPEN(500 + 5 * SEC) },
		/* A probe found no message, or judged it dead: the next may follow at once. */
		{ BEGIN, 501, NONE, PROBING },
		{ IDLE, 600, NONE, OPEN(600) },
		{ BEGIN, 601, NONE, PROBING },
		{ JUDGED, 700, NONE, OPEN(700) },
		{ IDLE, 701, NONE, OPEN(700) },
		{ JUDGED, 701, NONE, OPEN(700) },
		{ BEGIN, 701, NONE, PROBING },
		{ FAIL, 800, BREAKER_STILL, OPEN(800 + 5 * SEC) },
		{ BEGIN, 801, NONE, PROBING },
		{ OK, 900, BREAKER_RESUMED, CLOSED },
		{ FAIL, 1000, BREAKER_SUSPENDED, OPEN(1000 + SEC) },
	};

	RUN(1, steps);
}

/* While the command cannot be executed, the delays between probes double up to 1 min. */
TEST(test_probes_of_a_missing_command)
{
	static const struct step steps[] = {
		{ TRIP, 0, BREAKER_SUSPENDED, OPEN(1 * SEC) },
		{ BEGIN, 1, NONE, PROBING },
		{ TRIP, 100, BREAKER_STILL, OPEN(100 + 2 * SEC) },
		{ BEGIN, 101, NONE, PROBING },
		{ TRIP, 200, BREAKER_STILL, OPEN(200 + 4 * SEC) },
		{ BEGIN, 201, NONE, PROBING },
		{ TRIP, 300, BREAKER_STILL, OPEN(300 + 8 * SEC) },
		{ BEGIN, 301, NONE, PROBING },
		{ TRIP, 400, BREAKER_STILL, OPEN(400 + 16 * SEC) },
		{ BEGIN, 401, NONE, PROBING },
		{ TRIP, 500, BREAKER_STILL, OPEN(500 + 32 * SEC) },
		{ BEGIN, 501, NONE, PROBING },
		{ TRIP, 600, BREAKER_STILL, OPEN(600 + MINUTE) },
		{ BEGIN, 601, NONE, PROBING },
		{ TRIP, 700, BREAKER_STILL, OPEN(700 + MINUTE) },
		/* It can be executed now, and fails: delays begin at 1 s again. */
		{ BEGIN, 701, NONE, PROBING },
		{ FAIL, 800, BREAKER_STILL, OPEN(800 + SEC) },
		{ BEGIN, 801, NONE, PROBING },
		{ FAIL, 900, BREAKER_STILL, OPEN(900 + 2 * SEC) },
		{ BEGIN, 901, NONE, PROBING },
		{ TRIP, 1000, BREAKER_STILL, OPEN(1000 + SEC) },
		/* A verdict on a message shows that it can be executed. */
		{ JUDGED, 1001, NONE, OPEN(1000 + SEC) },
		{ BEGIN, 1001, NONE, PROBING },
		{ JUDGED, 1100, BREAKER_RESUMED, CLOSED },
		{ TRIP, 2000, BREAKER_SUSPENDED, OPEN(2000 + SEC) },
	};

	RUN(20, steps);
}

/* Without a limit of failures, a probe whose command was executed resumes the queue. */
TEST(test_failures_without_limit)
{
	static const struct step steps[] = {
		{ TRIP, 0, BREAKER_SUSPENDED, OPEN(1 * SEC) },
		{ FAIL, 1, NONE, OPEN(1 * SEC) },
		{ BEGIN, 2, NONE, PROBING },
		{ FAIL, 100, BREAKER_RESUMED, CLOSED },
	};

	RUN(0, steps);
}

/*
 * Refused pops suspend the queue, and an accepted one resumes it.  It does not resume a
 * queue whose command is missing.
 */
TEST(test_refused)
{
	static const struct step steps[] = {
		{ REFUSE, 0, BREAKER_SUSPENDED, OPEN(1 * SEC) },
		{ BEGIN, 1, NONE, PROBING },
		{ REFUSE, 100, BREAKER_STILL, OPEN(100 + 2 * SEC) },
		{ BEGIN, 101, NONE, PROBING },
		{ REFUSE, 200, BREAKER_STILL, OPEN(200 + 4 * SEC) },
		{ BEGIN, 201, NONE, PROBING },
		{ REFUSE, 300, BREAKER_STILL, OPEN(300 + 8 * SEC) },
		{ BEGIN, 301, NONE, PROBING },
		{ REFUSE, 400, BREAKER_STILL, OPEN(400 + 10 * SEC) },
		{ BEGIN, 401, NONE, PROBING },
		{ ACCEPT, 500, BREAKER_RESUMED, CLOSED },
		{ TRIP, 600, BREAKER_SUSPENDED, OPEN(600 + SEC) },
		{ BEGIN, 601, NONE, PROBING },
		{ REFUSE, 700, BREAKER_STILL, OPEN(700 + 2 * SEC) },
		{ BEGIN, 701, NONE, PROBING },
		{ ACCEPT, 800, NONE, PROBING },
		{ OK, 900, BREAKER_RESUMED, CLOSED },
		{ ACCEPT, 900, NONE, CLOSED },
	};

	RUN(20, steps);
}

/* Probes ask for the four kinds of message in turn, also across suspensions. */
TEST(test_turns)
{
	static const enum turn turns[] = {
		TURN_OLDEST, TURN_NEWEST, TURN_FEWEST, TURN_LONGEST
	};
	struct breaker b;
	size_t i;

	breaker_init(&b, 1);
	assert_int_equal(breaker_turn(&b), TURN_SHARE);
	for (i = 0; i < 12; i++) {
		(void)breaker_failure(&b, (usec_t)i);
		assert_int_equal(breaker_turn(&b), turns[i % ARRAY_LEN(turns)]);
		if (i % 3 == 0) {
			(void)breaker_success(&b);
			assert_int_equal(breaker_turn(&b), TURN_SHARE);
		}
	}
}

TEST(test_no_limit)
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

TEST(test_limit_of_one)
{
	static const struct step steps[] = {
		{ FAIL, 5, BREAKER_SUSPENDED, OPEN(5 + SEC) },
		{ BEGIN, 5 + SEC, NONE, PROBING },
		{ OK, 6 + SEC, BREAKER_RESUMED, CLOSED },
		{ FAIL, 7 + SEC, BREAKER_SUSPENDED, OPEN(7 + 2 * SEC) },
	};

	RUN(1, steps);
}

TEST(test_reason)
{
	struct breaker b;

	breaker_init(&b, 1);
	(void)breaker_failure(&b, 77);
	assert_int_equal(b.reason, REASON_FAILING);
	assert_int_equal(b.since, 77);
	(void)breaker_turn(&b);
	(void)breaker_cannot_execute(&b, 99);
	assert_int_equal(b.reason, REASON_CANNOT_EXECUTE);
	assert_int_equal(b.since, 77);
	(void)breaker_turn(&b);
	(void)breaker_failure(&b, 100);
	assert_int_equal(b.reason, REASON_FAILING);
}

/* A million probes fail: the delay stays within its bounds. */
TEST(test_long)
{
	struct breaker b;
	usec_t now = 0;
	int i;

	breaker_init(&b, 1);
	(void)breaker_failure(&b, now);
	for (i = 0; i < 1000000; i++) {
		now = b.probe_at;
		(void)breaker_turn(&b);
		assert_int_equal(breaker_failure(&b, now), BREAKER_STILL);
		assert_in_range(b.probe_at - now, SEC, 5 * SEC);
	}
	assert_int_equal(breaker_success(&b), BREAKER_RESUMED);
}
