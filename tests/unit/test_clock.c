/* The system's clocks, the fake clock, and times as text. */
#include "unit.h"

#include <time.h>

#include "base/clock.h"

static int
back_to_system(void **state UNUSED)
{
	clock_real(0);
	return 0;
}

#define FIXTURE_TEST(name)	TEST_WITH(name, NULL, back_to_system)

FIXTURE_TEST(test_system)
{
	usec_t a = clock_mono(), b = clock_mono();
	time_t now = time(NULL);

	assert_true(a > 0 && b >= a);
	assert_true(clock_wall() >= now * SEC);
	assert_true(clock_wall() < (now + 100) * SEC);
}

FIXTURE_TEST(test_fake)
{
	clock_fake(5 * SEC, 1000 * SEC);
	assert_int_equal(clock_mono(), 5 * SEC);
	assert_int_equal(clock_wall(), 1000 * SEC);
	clock_fake_advance(HOUR);
	assert_int_equal(clock_mono(), HOUR + 5 * SEC);
	assert_int_equal(clock_wall(), HOUR + 1000 * SEC);
	assert_int_equal(clock_mono(), HOUR + 5 * SEC);
	clock_real(0);
	assert_true(clock_wall() > 1000000000 * SEC);
}

TEST(test_text)
{
	static const struct {
		wall_t		 wall;
		const char	*text;
	} cases[] = {
		{ 0, "1970-01-01T00:00:00.000Z" },
		{ -1, "1969-12-31T23:59:59.999Z" },
		{ 999, "1970-01-01T00:00:00.000Z" },
		{ 1795232172345678, "2026-11-21T03:36:12.345Z" },
		{ 951782400 * SEC, "2000-02-29T00:00:00.000Z" },
		{ INT64_MAX, "294247-01-10T04:00:54.775Z" },
	};
	char buf[CLOCK_TEXT_MAX];
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++)
		assert_string_equal(clock_text(cases[i].wall, buf), cases[i].text);
	for (i = 0; i < 10000; i++) {
		clock_text((wall_t)unit_random(), buf);
		assert_true(strlen(buf) < sizeof(buf));
	}
}
