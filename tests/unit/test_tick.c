/* Times of schedules: intervals, the grace after a missed time, and the messages. */
#include "unit.h"

#include "policy/tick.h"
#include "policy/zone.h"

static struct schedule_config
every(usec_t period)
{
	return (struct schedule_config){ .name = (char *)(uintptr_t)"s",
		.message = (char *)(uintptr_t)"", .every = period,
		.timezone = (char *)(uintptr_t)ZONE_UTC };
}

TEST(test_every)
{
	struct schedule_config s;
	int64_t at, n;
	int i;

	for (i = 0; i < 10000; i++) {
		n = 1 + (int64_t)(unit_random() % 100000);
		at = (int64_t)(unit_random() % 4000000000) - 1000;
		s = every(n * SEC);
		assert_true(tick_last(&s, at) <= at && tick_last(&s, at) > at - n);
		assert_true(tick_next(&s, at) > at && tick_next(&s, at) <= at + n);
		assert_true(tick_last(&s, at) % n == 0);
		assert_true(tick_next(&s, at) == tick_last(&s, at) + n);
		assert_true(tick_period(&s, at) == n);
	}
}

TEST(test_grace)
{
	struct schedule_config s = every(SEC);

	assert_int_equal(tick_grace(&s, 100, false), 10);
	s = every(30 * SEC);
	assert_int_equal(tick_grace(&s, 90, false), 30);
	s = every(HOUR);
	assert_int_equal(tick_grace(&s, 3600, false), 60);
	assert_int_equal(tick_grace(&s, 3600, true), 2);
	s.catch_up = true;
	assert_int_equal(tick_grace(&s, 3600, true), -1);
	assert_int_equal(tick_grace(&s, 3600, false), -1);
	s = every(0);
	assert_int_equal(cron_parse("0 0 29 2 *", &s.times, NULL), 0);
	assert_int_equal(tick_period(&s, INT64_C(1709164800)), 1461 * 86400);
	assert_int_equal(tick_grace(&s, INT64_C(1709164800), false), 60);
}

static void
says(const struct schedule_config *s, bool of_ids, const char *want)
{
	char *got = tick_message(s, INT64_C(1795248000), of_ids);

	assert_string_equal(got, want);
	free(got);
}

TEST(test_message)
{
	struct schedule_config s = every(SEC);

	says(&s, false, "{\"id\":\"s@2026-11-21T08:00:00Z\"}");
	says(&s, true, "s");
	s.name = (char *)(uintptr_t)"a\"\\b";
	says(&s, false, "{\"id\":\"a\\\"\\\\b@2026-11-21T08:00:00Z\"}");
	s.message = (char *)(uintptr_t)"mine";
	says(&s, false, "mine");
	says(&s, true, "mine");
}
