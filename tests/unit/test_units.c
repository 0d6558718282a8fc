/* Durations, sizes and integers as text. */
#include "unit.h"

#include "base/units.h"

TEST(test_durations)
{
	static const struct {
		const char	*text;
		usec_t		 usec;
		const char	*printed;	/* NULL: as `text` */
	} cases[] = {
		{ "0", 0, NULL }, { "0s", 0, "0" }, { "250ms", 250 * MSEC, NULL },
		{ "30s", 30 * SEC, NULL }, { "5m", 5 * MINUTE, NULL },
		{ "2h", 2 * HOUR, NULL }, { "1d", 24 * HOUR, NULL },
		{ "90s", 90 * SEC, NULL }, { "60s", MINUTE, "1m" },
		{ "24h", 24 * HOUR, "1d" }, { "1.5s", 1500 * MSEC, NULL },
		{ "1500ms", 1500 * MSEC, "1.5s" }, { "0.5h", 30 * MINUTE, "30m" },
		{ "0.25ms", 250, NULL }, { "0.001ms", 1, NULL },
		{ "1.1d", 95040 * SEC, "1584m" }, { "007s", 7 * SEC, "7s" },
		{ "1.000001s", 1000001, NULL },
		{ "0.33333h", 1199988 * MSEC, "1199.988s" },
		{ "9223372036854.775807s", USEC_MAX, NULL },
	};
	char buf[UNITS_TEXT_MAX];
	usec_t usec;
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(units_parse_duration(cases[i].text, &usec), 0);
		assert_int_equal(usec, cases[i].usec);
		assert_string_equal(units_duration(usec, buf),
		    cases[i].printed != NULL ? cases[i].printed : cases[i].text);
	}
}

TEST(test_bad_durations)
{
	static const char *bad[] = {
		"", " ", "1", "00", "10", "s", "ms", "-1s", "+1s", " 1s", "1s ",
		"1 s", "1S", "1sec", "1w", "1us", "0x10s", "1e3s", ".5s", "1.s",
		"1.5", "1..5s", "1,5s", "2h5m", "0.0001ms", "0.0000001s",
		"0.000000001d", "9223372036854.775808s", "9223372036855s",
		"106751992d", "99999999999999999999d", "18446744073709551616ms",
		"18446744073709551615d", "nan", "inf", "1s\n",
	};
	usec_t usec = 42;
	size_t i;

	for (i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(units_parse_duration(bad[i], &usec), -1);
		assert_int_equal(usec, 42);
	}
}

TEST(test_sizes)
{
	static const struct {
		const char	*text;
		uint64_t	 size;
		const char	*printed;
	} cases[] = {
		{ "0", 0, NULL }, { "1", 1, NULL }, { "1023", 1023, NULL },
		{ "1024", 1024, "1K" }, { "64K", 65536, NULL },
		{ "64k", 65536, "64K" }, { "16M", 16 << 20, NULL },
		{ "1G", 1 << 30, NULL }, { "2048M", 2ULL << 30, "2G" },
		{ "16777215T", 16777215ULL << 40, NULL },
		{ "18446744073709551615", UINT64_MAX, NULL },
	};
	static const char *bad[] = {
		"", "K", "-1", "+1", "1.5M", "1KB", "1KiB", "1B", "1P", " 1",
		"1 ", "0x10", "18446744073709551616", "16777216T",
		"18014398509481984K",
	};
	char buf[UNITS_TEXT_MAX];
	uint64_t size = 42;
	size_t i;

	for (i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(units_parse_size(bad[i], &size), -1);
		assert_int_equal(size, 42);
	}
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(units_parse_size(cases[i].text, &size), 0);
		assert_int_equal(size, cases[i].size);
		assert_string_equal(units_size(size, buf),
		    cases[i].printed != NULL ? cases[i].printed : cases[i].text);
	}
}

TEST(test_integers)
{
	static const char *bad[] = {
		"", "-", "+1", "--1", "1.0", " 1", "1 ", "0x1", "1e1", "a",
		"9223372036854775808", "-9223372036854775809",
		"99999999999999999999",
	};
	int64_t n = 42;
	size_t i;

	for (i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(units_parse_int(bad[i], &n), -1);
		assert_int_equal(n, 42);
	}
	assert_int_equal(units_parse_int("-0", &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(units_parse_int("010", &n), 0);
	assert_int_equal(n, 10);
	assert_int_equal(units_parse_int("9223372036854775807", &n), 0);
	assert_true(n == INT64_MAX);
	assert_int_equal(units_parse_int("-9223372036854775808", &n), 0);
	assert_true(n == INT64_MIN);
}

/* Every printed value parses back, and prints the same again. */
TEST(test_round_trip)
{
	char buf[UNITS_TEXT_MAX];
	uint64_t size;
	usec_t a, b;
	int64_t n, m;
	int i;

	for (i = 0; i < 200000; i++) {
		a = (usec_t)(unit_number() >> 1);
		if (unit_below(2) == 0)
			a -= a % (usec_t[]){ MSEC, SEC, MINUTE, HOUR }[unit_below(4)];
		units_duration(a, buf);
		assert_true(strlen(buf) < sizeof(buf));
		assert_int_equal(units_parse_duration(buf, &b), 0);
		assert_true(a == b);

		size = unit_number() << unit_below(30);
		assert_int_equal(units_parse_size(units_size(size, buf), &size), 0);
		n = (int64_t)unit_random();
		snprintf(buf, sizeof(buf), "%lld", (long long)n);
		assert_int_equal(units_parse_int(buf, &m), 0);
		assert_true(n == m);
	}
}

/* Random text: a duration that parses is printed as one that parses to the same. */
TEST(test_garbage)
{
	static const char set[] = "0123456789.smhdKMGT-+ e\n";
	char text[24], buf[UNITS_TEXT_MAX];
	usec_t a, b;
	int i;
	size_t j;

	for (i = 0; i < 500000; i++) {
		for (j = 0; j < unit_below(sizeof(text)); j++)
			text[j] = set[unit_below(sizeof(set))];
		text[j] = '\0';
		if (units_parse_duration(text, &a) == -1)
			continue;
		assert_true(a >= 0);
		assert_int_equal(units_parse_duration(units_duration(a, buf), &b), 0);
		assert_true(a == b);
	}
}

TEST(test_about)
{
	static const struct {
		usec_t		 usec;
		const char	*text;
	} cases[] = {
		{ 0, "0s" }, { -5, "0s" }, { 7, "7us" }, { 999, "999us" },
		{ 1250, "1.25ms" }, { 35249, "35.2ms" }, { 350 * MSEC, "350ms" },
		{ 999999, "999ms" }, { SEC, "1s" }, { 1250 * MSEC, "1.25s" },
		{ 59999999, "59.9s" }, { MINUTE, "1m" }, { 330 * SEC, "5m30s" },
		{ 125 * MINUTE, "2h5m" }, { 24 * HOUR, "1d" },
		{ 76 * HOUR + 59 * MINUTE, "3d4h" }, { USEC_MAX, "106751991d4h" },
	};
	char buf[UNITS_TEXT_MAX];
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++)
		assert_string_equal(units_about(cases[i].usec, buf), cases[i].text);
	assert_string_equal(units_about_size(0, buf), "0");
	assert_string_equal(units_about_size(2000 * 1024, buf), "2000K");
	assert_string_equal(units_about_size(10 << 20, buf), "10M");
	assert_string_equal(units_about_size((10 << 20) + 1, buf), "11M");
	assert_string_equal(units_about_size((uint64_t)3 << 30, buf), "3G");
	for (i = 0; i < 10000; i++) {
		units_about((usec_t)unit_number(), buf);
		assert_true(strlen(buf) < sizeof(buf));
	}
}
