/*
 * The estimate of how long the oldest message of a list has waited, under simulated time:
 * each message is stamped, so that the truth is known.
 */
#include "unit.h"

#include <math.h>

#include "policy/waited.h"

#define MESSAGES	200000

/* The list: message i arrived at stamp[i]; those from first to end - 1 wait. */
static usec_t	stamp[MESSAGES];
static int64_t	first, end;
static usec_t	now;
static struct waited curve;

static int
empty_list(void **state UNUSED)
{
	first = end = 0;
	now = 1000 * SEC;
	curve = (struct waited){ .n = 0 };
	return 0;
}

#define CURVE_TEST(name)	TEST_WITH(name, empty_list, NULL)

static void
push(int64_t n)
{
	while (n-- > 0 && end < MESSAGES)
		stamp[end++] = now;
}

static void
take(int64_t n)
{
	first += n < end - first ? n : end - first;
}

static void
look(void)
{
	waited_saw(&curve, now, first, end - first);
}

static void
assert_latency(double seconds)
{
	double l = waited_estimate(&curve, now);

	assert_true(l >= seconds - 0.001 && l <= seconds + 0.001);
}

static double
truth(void)
{
	return first == end ? 0 : clock_seconds(now - stamp[first]);
}

/* The estimate may be wrong by 10 s or by a factor of 2, whichever is more. */
static void
assert_close(void)
{
	double l = waited_estimate(&curve, now), t = truth();

	if (l < 0 || ((l > 2 * t || l < t / 2) && fabs(l - t) > 10.01))
		fail_msg("%.3f is not about %.3f, %u samples", l, t, curve.n);
}

CURVE_TEST(test_nothing)
{
	assert_latency(-1);
	look();
	assert_latency(0);
	now += HOUR;
	assert_latency(0);
}

CURVE_TEST(test_one_message)
{
	look();
	now += 10 * SEC;
	push(1);
	look();
	now += 90 * SEC;
	look();
	assert_latency(95);	/* it arrived between two samples */
	take(1);
	look();
	assert_latency(0);
}

CURVE_TEST(test_before_the_first_sample)
{
	push(100);
	now += HOUR;
	look();
	now += 12 * MINUTE;
	push(100);
	look();
	assert_latency(-1);
	take(99);
	look();
	assert_latency(-1);
	take(1);
	look();
	assert_true(waited_estimate(&curve, now) > 0);
}

/* Messages arrive steadily, and faster than they are taken: the estimate stays close. */
CURVE_TEST(test_backlog)
{
	int i;

	look();
	for (i = 0; i < 10000; i++) {
		now += 10 * SEC;
		push(10);
		take(5);
		look();
		assert_close();
	}
	assert_true(truth() > 40000);
	assert_true(curve.n < 40);
}

/* A few messages are cancelled: the estimate for the others stays close. */
CURVE_TEST(test_a_few_are_gone)
{
	look();
	now += 2 * SEC;
	push(100);
	look();
	now += 100 * SEC;
	end -= 5;
	look();
	assert_close();
	now += 90 * SEC;
	look();
	now += 9 * SEC;
	push(50);
	look();
	assert_close();
	take(95);
	look();
	assert_close();
}

CURVE_TEST(test_purge)
{
	look();
	now += 2 * SEC;
	push(100);
	look();
	now += 100 * SEC;
	/* The oldest are purged, and nobody counts them as taken: the other times are unknown. */
	waited_saw(&curve, now, 0, 40);
	assert_latency(-1);
	now += 30 * SEC;
	waited_saw(&curve, now, 0, 140);
	assert_latency(-1);
	/* Once the list is empty, the latency is known again. */
	waited_saw(&curve, now, 0, 0);
	assert_latency(0);
	now += 10 * SEC;
	waited_saw(&curve, now, 0, 1);
	assert_latency(5);
}

/*
 * The count of taken messages falls: a replica with older data took over, Redis lost its
 * data, or somebody deleted QSTATS.  The samples before that are forgotten.
 */
CURVE_TEST(test_lost_memory)
{
	look();
	push(100);
	now += 2 * SEC;
	take(50);
	look();
	now += 60 * SEC;
	waited_saw(&curve, now, 49, 51);
	assert_latency(-1);
	now += 60 * SEC;
	waited_saw(&curve, now, 49, 51);
	assert_latency(-1);
}

CURVE_TEST(test_others)
{
	look();
	now += 10 * SEC;
	push(100);
	look();
	curve.n = 0;
	now += 10 * SEC;
	look();
	assert_latency(-1);
	now += 10 * SEC;
	push(10);
	look();
	assert_latency(-1);
	/* It is known again when all that arrived until then is taken. */
	take(100);
	look();
	assert_close();
}

CURVE_TEST(test_hostile_counts)
{
	static const int64_t counts[] = { 0, 1, 5, INT64_MAX, INT64_MIN, -1, INT64_MAX - 1 };
	double l;
	int i;

	for (i = 0; i < 100000; i++) {
		now += (usec_t)unit_below(3 * SEC);
		waited_saw(&curve, now, counts[unit_below(ARRAY_LEN(counts))],
		    counts[unit_below(ARRAY_LEN(counts))]);
		l = waited_estimate(&curve, now);
		assert_true(l == -1 || (l >= 0 && l <= clock_seconds(now)));
	}
}

/*
 * Messages come and go at random: bursts, silence, handlers that hang for hours.  Each
 * tick takes a sample; pops: each pop takes one, too.
 */
static void
live(bool pops, usec_t until)
{
	double in = 0, out = 0;
	usec_t change = now, tick = now;

	look();
	while (now < until && end < MESSAGES) {
		if (now >= change) {
			change = now + (usec_t)unit_below(unit_below(2) ? HOUR : MINUTE);
			in = unit_below(3) == 0 ? 0 : (double)unit_below(1000) / 100;
			out = unit_below(2) == 0 ? 0 : (double)unit_below(2000) / 100;
			push(unit_below(4) == 0 ? (int64_t)unit_below(500) : 0);
		}
		now += SEC / 2;
		push((int64_t)(in / 2 + (double)unit_below(1000) / 1000));
		if (out > 0 && first < end) {
			take((int64_t)(out / 2 + (double)unit_below(1000) / 1000));
			if (pops)
				look();
		}
		if (now >= tick) {
			tick = now + 10 * SEC;
			look();
			assert_close();
		} else if (pops && out > 0) {
			assert_close();
		}
	}
}

CURVE_TEST(test_random_ticks)
{
	int i;

	for (i = 0; i < 20; i++) {
		empty_list(NULL);
		live(false, 48 * HOUR);
	}
}

CURVE_TEST(test_random_pops)
{
	int i;

	for (i = 0; i < 20; i++) {
		empty_list(NULL);
		live(true, 48 * HOUR);
	}
}
