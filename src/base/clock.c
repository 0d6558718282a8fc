/*
 * The system's clocks, the fake ones, and the calendar's text.
 *
 * Other files read the system's clock only where the kernel or systemd compares the time
 * with its own; so clock_fake() moves everything else.
 */
#include "base/clock.h"

#include <stdbool.h>
#include <stdio.h>
#include <time.h>

static int64_t
read_clock(clockid_t id)
{
	struct timespec ts;

	(void)clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * SEC + ts.tv_nsec / 1000;
}

static bool fake;
static usec_t fake_mono;
static wall_t fake_wall;
static usec_t ahead;

usec_t
clock_mono(void)
{
	return fake ? fake_mono : read_clock(CLOCK_MONOTONIC) + ahead;
}

usec_t
clock_after(usec_t after)
{
	usec_t now = clock_mono();

	return after > USEC_MAX - now ? USEC_MAX : now + after;
}

wall_t
clock_wall(void)
{
	return fake ? fake_wall : read_clock(CLOCK_REALTIME) + ahead;
}

boot_t
clock_boot(void)
{
	return fake ? fake_mono : read_clock(CLOCK_BOOTTIME) + ahead;
}

void
clock_fake(usec_t mono, wall_t wall)
{
	fake = true;
	fake_mono = mono;
	fake_wall = wall;
}

void
clock_fake_advance(usec_t by)
{
	fake_mono += by;
	fake_wall += by;
}

void
clock_real(usec_t by)
{
	fake = false;
	ahead = by;
}

double
clock_seconds(int64_t usec)
{
	return (double)usec / (double)SEC;
}

/* Rounds down, also before 1970, so that the text never runs ahead. */
char *
clock_text(wall_t wall, char *buf)
{
	static char second[CLOCK_TEXT_MAX];	/* as it was written last */
	static time_t last = -1;
	int64_t rest = wall % SEC;
	time_t t = (time_t)(wall / SEC);
	struct tm tm;

	if (rest < 0) {
		rest += SEC;
		t--;
	}
	if (t != last || second[0] == '\0') {
		(void)gmtime_r(&t, &tm);
		(void)strftime(second, CLOCK_TEXT_MAX - sizeof(".123Z"), "%FT%T", &tm);
		last = t;
	}
	snprintf(buf, CLOCK_TEXT_MAX, "%.26s.%03uZ", second, (unsigned)(rest / MSEC) % 1000);
	return buf;
}
