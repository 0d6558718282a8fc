/*
 * The two clocks behind one pointer, the fake one, and the calendar's text.
 *
 * Everything that asks for the time asks here, so clock_set_source() moves
 * the whole program; the fake source is two variables.
 */
#include "base/clock.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static int64_t
read_clock(clockid_t id)
{
	struct timespec ts;

	(void)clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * SEC + ts.tv_nsec / 1000;
}

static usec_t
system_mono(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

static wall_t
system_wall(void)
{
	return read_clock(CLOCK_REALTIME);
}

static usec_t fake_mono_now;
static wall_t fake_wall_now;

static usec_t
fake_mono(void)
{
	return fake_mono_now;
}

static wall_t
fake_wall(void)
{
	return fake_wall_now;
}

static const struct clock_source system_source = { system_mono, system_wall };
static const struct clock_source fake_source = { fake_mono, fake_wall };
static const struct clock_source *source = &system_source;

usec_t
clock_mono(void)
{
	return source->mono();
}

wall_t
clock_wall(void)
{
	return source->wall();
}

boot_t
clock_boot(void)
{
	return source == &system_source ? read_clock(CLOCK_BOOTTIME) : source->mono();
}

void
clock_set_source(const struct clock_source *s)
{
	source = s == NULL ? &system_source : s;
}

void
clock_fake(usec_t mono, wall_t wall)
{
	fake_mono_now = mono;
	fake_wall_now = wall;
	source = &fake_source;
}

void
clock_fake_advance(usec_t by)
{
	fake_mono_now += by;
	fake_wall_now += by;
}

/* Rounds down, also before 1970, so that the text never runs ahead. */
char *
clock_text(wall_t wall, char *buf)
{
	static char second[CLOCK_TEXT_MAX];	/* as it was written last */
	static time_t last = -1;
	int64_t rest = wall % SEC;
	time_t t = (time_t)(wall / SEC);
	unsigned msec;
	struct tm tm;
	size_t len;

	if (rest < 0) {
		rest += SEC;
		t--;
	}
	if (t != last || second[0] == '\0') {
		(void)gmtime_r(&t, &tm);
		(void)strftime(second, CLOCK_TEXT_MAX - sizeof(".123Z"), "%FT%T", &tm);
		last = t;
	}
	msec = (unsigned)(rest / MSEC) % 1000;
	len = strlen(second);
	memcpy(buf, second, len);
	buf[len] = '.';
	buf[len + 1] = (char)('0' + msec / 100);
	buf[len + 2] = (char)('0' + msec / 10 % 10);
	buf[len + 3] = (char)('0' + msec % 10);
	buf[len + 4] = 'Z';
	buf[len + 5] = '\0';
	return buf;
}
