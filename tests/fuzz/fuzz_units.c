/*
 * Fuzzes durations, sizes, numbers, times and rates.  An accepted duration, size or time
 * is printed, and must read back as the same.
 */
#include "fuzz.h"

#include <string.h>

#include "base/units.h"

FUZZ_MAIN("units")

static void
check(int ok)
{
	if (!ok)
		abort();
}

static void
durations(const char *text)
{
	char buf[UNITS_TEXT_MAX], about[UNITS_TEXT_MAX];
	usec_t a, b;

	if (units_parse_duration(text, &a) == -1)
		return;
	check(a >= 0);
	check(units_parse_duration(units_duration(a, buf), &b) == 0 && a == b);
	check(strlen(units_about(a, about)) > 0);
}

static void
sizes(const char *text)
{
	char buf[UNITS_TEXT_MAX];
	uint64_t a, b;
	int64_t n;

	if (units_parse_size(text, &a) == 0)
		check(units_parse_size(units_size(a, buf), &b) == 0 && a == b);
	(void)!units_parse_int(text, &n);
}

static void
times(const char *text)
{
	char buf[CLOCK_TEXT_MAX], *cause = NULL;
	wall_t a, b;
	double rate;

	if (units_parse_time(text, &a, &cause) == -1) {
		check(cause != NULL);
	} else if (a >= 0) {
		check(units_parse_time(clock_text(a, buf), &b, NULL) == 0);
		check(a - b >= 0 && a - b < MSEC);
	}
	free(cause);
	(void)!units_parse_past(text, 0, &a, NULL);
	if (units_parse_rate(text, &rate, NULL) == 0)
		check(rate > 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = xstrndup((const char *)data, size);

	durations(text);
	sizes(text);
	times(text);
	free(text);
	return 0;
}
