/* Backoff: delays that double, their bounds, and no overflow. */
#include "unit.h"

#include "base/backoff.h"

TEST(test_doubles)
{
	static const struct { unsigned n; usec_t whole; } cases[] = {
		{ 1, 5 * SEC }, { 2, 10 * SEC }, { 3, 20 * SEC }, { 9, 1280 * SEC },
		{ 10, 2560 * SEC }, { 11, HOUR }, { 12, HOUR }, { 25, HOUR },
		{ 64, HOUR }, { 65, HOUR }, { 1000000000, HOUR },
		{ UINT32_MAX, HOUR },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(backoff_delay(5 * SEC, HOUR, cases[i].n, 1),
		    cases[i].whole);
		assert_int_equal(backoff_delay(5 * SEC, HOUR, cases[i].n, 0),
		    cases[i].whole / 2);
	}
}

TEST(test_edges)
{
	assert_int_equal(backoff_delay(0, HOUR, 25, 0.5), 0);
	assert_int_equal(backoff_delay(0, HOUR, UINT32_MAX, 0.5), 0);
	assert_int_equal(backoff_delay(5 * SEC, 0, 3, 0.5), 0);
	assert_int_equal(backoff_delay(HOUR, SEC, 1, 1), SEC);
	assert_int_equal(backoff_delay(SEC, SEC, 7, 1), SEC);
	assert_int_equal(backoff_delay(1, 3, 3, 1), 3);
	assert_true(backoff_delay(USEC_MAX, USEC_MAX, 2, 0) >= USEC_MAX / 2);
	assert_true(backoff_delay(USEC_MAX, USEC_MAX, UINT32_MAX, 1) > USEC_MAX / 2);
	assert_true(backoff_delay(USEC_MAX / 2 + 1, USEC_MAX, 2, 1) > USEC_MAX / 2);
}

/* A delay is at least half of the whole delay, and at most the whole delay and max. */
TEST(test_bounds)
{
	int i;

	for (i = 0; i < 200000; i++) {
		usec_t base = (usec_t)(unit_number() >> 1);
		usec_t max = (usec_t)(unit_number() >> 1);
		unsigned n = (unsigned)(unit_number() >> 32) + 1;
		double unit = (double)(unit_random() >> 11) * 0x1p-53;
		usec_t d = backoff_delay(base, max, n, unit);
		usec_t first = base < max ? base : max;

		assert_true(d >= first / 2);
		assert_true(d <= max);
		assert_true(d <= backoff_delay(base, max, n, 1));
		assert_true(d >= backoff_delay(base, max, n, 0));
		if (n < UINT32_MAX)
			assert_true(backoff_delay(base, max, n, 1) <=
			    backoff_delay(base, max, n + 1, 1));
	}
}
