/* The ticker: when ticks are due, the words of the script, and the effect of each answer. */
#include "unit.h"

#include "queue/ticker.h"

static struct loop	*loop;
static struct ticker	*t;
static struct stats	 stats;
static unsigned		 dues;

static const struct ticker_terms terms = {
	.lease = 30 * SEC, .foreign_timeout = MINUTE, .judge_at = USEC_MAX,
};

static void
due(void *arg)
{
	(void)arg;
	dues++;
}

static int
setup(void **state)
{
	(void)state;
	dues = 0;
	stats = (struct stats){ 0 };
	clock_fake(1000 * SEC, 0);
	loop = loop_new_simulated();
	t = ticker_new(loop, &stats, due, NULL);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	ticker_free(t);
	loop_free(loop);
	return 0;
}

#define FIXTURE_TEST(name)	TEST_WITH(name, setup, teardown)

#define NOTHING	.cursor = "-", .expires_in = -1
#define ANSWER(...)	ticker_answered(t, &(struct ticker_answer){ __VA_ARGS__ }, &terms)

/* The words from `lease` to `cursor` of the next tick must be these. */
static void
expect_words(const struct ticker_terms *with, const char *expected)
{
	struct words w = { 0 };
	char text[200] = "";
	int i;

	ticker_add_words(t, with, &w);
	for (i = 0; i < w.n; i++) {
		strcat(text, i > 0 ? " " : "");
		strcat(text, w.v[i]);
	}
	assert_string_equal(text, expected);
	words_done(&w);
}

/* Only one tick is sent at a time; the next begins at least 100 ms later. */
FIXTURE_TEST(test_spacing)
{
	assert_true(ticker_begin(t, false));
	assert_true(ticker_is_sent(t));
	assert_false(ticker_begin(t, true));
	assert_false(ANSWER(NOTHING));
	assert_false(ticker_is_sent(t));
	assert_false(ticker_begin(t, false));
	loop_run_for(loop, 100 * MSEC - 1);
	assert_int_equal(dues, 0);
	loop_run_for(loop, 1);
	assert_int_equal(dues, 1);
	assert_true(ticker_begin(t, false));
	ticker_ended(t, false);
	assert_true(ticker_begin(t, true));
}

FIXTURE_TEST(test_words)
{
	struct ticker_terms judged = terms;

	judged.judge_at = clock_mono();
	judged.redis_now = 17.25;
	expect_words(&terms, "30.000000 60.000000 0 0.000000 250 1048576 0 0");
	expect_words(&judged, "30.000000 60.000000 1 17.250000 250 1048576 0 0");
	judged.judge_at++;
	expect_words(&judged, "30.000000 60.000000 0 17.250000 250 1048576 0 0");
}

/* A round is several ticks: each goes on in QBACKUP where the one before ended. */
FIXTURE_TEST(test_round)
{
	struct tick_report report;

	assert_true(ticker_begin(t, false));
	assert_true(ANSWER(.more = true, .rank = 7, .cursor = "123", .expires_in = -1,
	    .scan = "5-1"));
	expect_words(&terms, "30.000000 60.000000 0 0.000000 250 1048576 7 -");
	assert_string_equal(ticker_scan(t), "5-1");
	assert_true(ticker_begin(t, true));
	assert_true(ANSWER(.more = true, .requeued = 2, .dropped = 1, NOTHING));
	expect_words(&terms, "30.000000 60.000000 0 0.000000 250 1048576 0 -");
	assert_true(ticker_begin(t, true));
	assert_false(ANSWER(.rank = 9, .requeued = 1, .promoted = 4, NOTHING));
	assert_true(ticker_report(t, &report));
	assert_int_equal(report.requeued, 3);
	assert_int_equal(report.promoted, 4);
	assert_int_equal(report.dropped, 1);
	assert_false(ticker_report(t, &report));
	expect_words(&terms, "30.000000 60.000000 0 0.000000 250 1048576 0 123");
	assert_string_equal(ticker_scan(t), "5-1");
}

/* The next tick comes when a lease ends, or when leases may be judged. */
FIXTURE_TEST(test_plan)
{
	struct ticker_terms judged = terms;
	struct ticker_answer a = { NOTHING };

	assert_true(ticker_begin(t, false));
	assert_false(ANSWER(.cursor = "-", .expires_in = 10 * SEC));
	loop_run_for(loop, 11 * SEC - 1);
	assert_int_equal(dues, 0);
	loop_run_for(loop, SEC);
	assert_int_equal(dues, 1);
	assert_true(ticker_begin(t, false));
	judged.judge_at = clock_mono() + 3 * SEC;
	a.expires_in = 10 * SEC;
	assert_false(ticker_answered(t, &a, &judged));
	loop_run_for(loop, 3 * SEC);
	assert_int_equal(dues, 1);
	loop_run_for(loop, MSEC);
	assert_int_equal(dues, 2);
	/* The slack is a tenth of a short lease. */
	assert_true(ticker_begin(t, false));
	judged.lease = SEC;
	a.expires_in = SEC;
	assert_false(ticker_answered(t, &a, &judged));
	loop_run_for(loop, SEC + 100 * MSEC - 1);
	assert_int_equal(dues, 2);
	loop_run_for(loop, 100 * MSEC);
	assert_int_equal(dues, 3);
	/* Nothing expires: no tick is due. */
	assert_true(ticker_begin(t, false));
	assert_false(ANSWER(NOTHING));
	loop_run_for(loop, HOUR);
	assert_int_equal(dues, 3);
}

/* After an error the round begins anew, and the ticker backs off until it reconnects. */
FIXTURE_TEST(test_refused)
{
	assert_true(ticker_begin(t, false));
	assert_true(ANSWER(.more = true, .rank = 7, .cursor = "123", .expires_in = -1,
	    .scan = "5-1"));
	assert_true(ticker_begin(t, true));
	ticker_refused(t, 10 * SEC);
	expect_words(&terms, "30.000000 60.000000 0 0.000000 250 1048576 0 0");
	assert_string_equal(ticker_scan(t), "");
	assert_false(ticker_begin(t, true));
	loop_run_for(loop, 500 * MSEC - 1);
	assert_int_equal(dues, 0);
	loop_run_for(loop, 501 * MSEC);
	assert_int_equal(dues, 1);
	assert_true(ticker_begin(t, true));
	ticker_refused(t, 10 * SEC);
	loop_run_for(loop, SEC - 1);
	assert_int_equal(dues, 1);
	ticker_up(t);
	loop_run_for(loop, 0);
	assert_true(ticker_begin(t, false));
}

/* Counters that were sent count as added even if the reply is lost, so none is added twice. */
FIXTURE_TEST(test_counters)
{
	struct words w = { 0 };

	assert_false(ticker_has_counters(t));
	stats.n[0] = 3;
	assert_true(ticker_has_counters(t));
	assert_true(ticker_begin(t, true));
	ticker_add_counters(t, &w);
	assert_int_equal(w.n, 2);
	assert_string_equal(w.v[0], stats_name((enum stat)0));
	assert_string_equal(w.v[1], "3");
	words_done(&w);
	ticker_ended(t, false);
	assert_int_equal(stats.sent[0], 0);
	assert_true(ticker_begin(t, true));
	ticker_add_counters(t, &w);
	words_done(&w);
	stats.n[0] = 5;
	ticker_ended(t, true);
	assert_int_equal(stats.sent[0], 3);
	assert_true(ticker_begin(t, true));
	ticker_add_counters(t, &w);
	assert_string_equal(w.v[1], "2");
	words_done(&w);
	ticker_refused(t, SEC);
	assert_int_equal(stats.sent[0], 3);
	assert_false(ticker_has_counters(t));	/* Redis refuses ticks */
	ticker_up(t);
	assert_true(ticker_begin(t, true));
	ticker_add_counters(t, &w);
	words_done(&w);
	assert_false(ANSWER(NOTHING));
	assert_int_equal(stats.sent[0], 5);
	assert_false(ticker_has_counters(t));
}

/* A closing ticker calls due() no more. */
FIXTURE_TEST(test_ends)
{
	ticker_up(t);
	loop_run_for(loop, 0);
	assert_int_equal(dues, 1);
	ticker_up(t);
	ticker_close(t);
	ticker_up(t);
	loop_run_for(loop, HOUR);
	assert_int_equal(dues, 1);
	/* The last tick writes the counters; it neither sweeps nor goes on. */
	assert_true(ticker_begin(t, true));
	expect_words(&terms, "30.000000 60.000000 0 0.000000 250 1048576 0 -");
	assert_false(ANSWER(.more = true, .rank = 3, .cursor = "-", .expires_in = SEC));
	loop_run_for(loop, HOUR);
	assert_int_equal(dues, 1);
}
