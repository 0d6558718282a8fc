/*
 * Dates are read strictly: a date that could mean two things (no offset, day
 * 31 of a month that has 30) is refused, because what is delayed to the wrong
 * day is not noticed until then.
 */
#include "rqctl/when.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/units.h"

/* 9999-12-31T23:59:59Z, the last second that RFC 3339 can say. */
#define LAST_SECOND	INT64_C(253402300799)

/* Exactly n digits. */
static int
digits(const char **p, int n, int *ret)
{
	int v = 0;

	for (; n > 0; n--, (*p)++) {
		if (!isdigit((unsigned char)**p))
			return -1;
		v = 10 * v + (**p - '0');
	}
	*ret = v;
	return 0;
}

static int
literal(const char **p, char c)
{
	return *(*p)++ == c ? 0 : -1;
}

/* ".345" as microseconds; digits beyond the sixth say nothing. */
static int
fraction(const char **p, wall_t *ret)
{
	wall_t unit = 100000, v = 0;

	if (**p != '.')
		return 0;
	if (!isdigit((unsigned char)*++*p))
		return -1;
	for (; isdigit((unsigned char)**p); (*p)++, unit /= 10)
		v += unit * (**p - '0');
	*ret = v;
	return 0;
}

/* "Z" or "+01:00", in seconds. */
static int
offset(const char **p, int *ret)
{
	char sign = *(*p)++;
	int h, m;

	*ret = 0;
	if (sign == 'Z' || sign == 'z')
		return 0;
	if ((sign != '+' && sign != '-') || digits(p, 2, &h) == -1 || literal(p, ':') == -1 ||
	    digits(p, 2, &m) == -1 || h > 23 || m > 59)
		return -1;
	*ret = (sign == '-' ? -1 : 1) * (h * 3600 + m * 60);
	return 0;
}

static int
date(const char **p, struct tm *tm)
{
	if (digits(p, 4, &tm->tm_year) == -1 || literal(p, '-') == -1 ||
	    digits(p, 2, &tm->tm_mon) == -1 || literal(p, '-') == -1 ||
	    digits(p, 2, &tm->tm_mday) == -1)
		return -1;
	tm->tm_year -= 1900;
	tm->tm_mon--;
	return 0;
}

static int
time_of_day(const char **p, struct tm *tm)
{
	if (digits(p, 2, &tm->tm_hour) == -1 || literal(p, ':') == -1 ||
	    digits(p, 2, &tm->tm_min) == -1 || literal(p, ':') == -1 ||
	    digits(p, 2, &tm->tm_sec) == -1)
		return -1;
	return tm->tm_hour < 24 && tm->tm_min < 60 && tm->tm_sec <= 60 ? 0 : -1;
}

/* Is it a day that the month has?  timegm(3) would carry it over. */
static bool
day_exists(const struct tm *tm)
{
	struct tm copy = { .tm_year = tm->tm_year, .tm_mon = tm->tm_mon, .tm_mday = tm->tm_mday };

	return timegm(&copy) != (time_t)-1 && copy.tm_mon == tm->tm_mon &&
	    copy.tm_mday == tm->tm_mday;
}

static int
rfc3339(const char *text, wall_t *ret)
{
	struct tm tm = { 0 };
	const char *p = text;
	wall_t usec = 0;
	int off;

	if (date(&p, &tm) == -1 || (*p != 'T' && *p != 't' && *p != ' '))
		return -1;
	p++;
	if (time_of_day(&p, &tm) == -1 || fraction(&p, &usec) == -1 ||
	    offset(&p, &off) == -1 || *p != '\0' || !day_exists(&tm))
		return -1;
	*ret = ((wall_t)timegm(&tm) - off) * SEC + usec;
	return 0;
}

/* "@1795248000.5" */
static int
epoch(const char *text, wall_t *ret)
{
	int64_t sec = 0;
	wall_t usec = 0;

	if (!isdigit((unsigned char)*text))
		return -1;
	for (; isdigit((unsigned char)*text); text++)
		if ((sec = 10 * sec + (*text - '0')) > LAST_SECOND)
			return -1;
	if (fraction(&text, &usec) == -1 || *text != '\0')
		return -1;
	*ret = sec * SEC + usec;
	return 0;
}

int
when_parse(const char *text, wall_t *ret, char **cause)
{
	if ((text[0] == '@' ? epoch(text + 1, ret) : rfc3339(text, ret)) == 0)
		return 0;
	return util_cause(cause, "\"%.60s\" is not a time: write 2026-11-21T08:00:00Z "
	    "or @1795248000", text);
}

int
when_parse_past(const char *text, wall_t now, wall_t *ret, char **cause)
{
	usec_t ago;

	if (units_parse_duration(text, &ago) == 0) {
		*ret = ago < now ? now - ago : 0;
		return 0;
	}
	if (when_parse(text, ret, NULL) == 0)
		return 0;
	return util_cause(cause, "\"%.60s\" is not a time: write 2h (ago), "
	    "2026-11-21T08:00:00Z or @1795248000", text);
}

int
when_parse_rate(const char *text, double *ret, char **cause)
{
	double n, per;
	char *end;

	n = isdigit((unsigned char)*text) || *text == '.' ? strtod(text, &end) : (end = NULL, 0);
	per = end == NULL ? 0 : strcmp(end, "") == 0 || strcmp(end, "/s") == 0 ? 1 :
	    strcmp(end, "/m") == 0 ? 60 : strcmp(end, "/h") == 0 ? 3600 : 0;
	if (per <= 0 || !(n > 0) || n > 1e9)
		return util_cause(cause, "\"%.60s\" is not a rate: write 100/s, 30/m or 500/h",
		    text);
	*ret = n / per;
	return 0;
}
