/*
 * rqctl refuses a date that could mean two things (no offset, day 31 of a month that has
 * 30): nobody would notice a message that is delayed to the wrong day.
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

/* Whether text begins as the pattern does, in which d stands for a digit; it moves on then. */
static bool
begins(const char **text, const char *pattern)
{
	const char *p = *text;

	for (; *pattern != '\0'; pattern++, p++)
		if (*pattern == 'd' ? !isdigit((unsigned char)*p) : *p != *pattern)
			return false;
	*text = p;
	return true;
}

/* ".345" as microseconds; ignores digits beyond the sixth. */
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
	const char *from = *p;
	int h, m;

	*ret = 0;
	if (begins(p, "Z") || begins(p, "z"))
		return 0;
	if ((!begins(p, "+dd:dd") && !begins(p, "-dd:dd")) ||
	    sscanf(from + 1, "%2d:%2d", &h, &m) != 2 || h > 23 || m > 59)
		return -1;
	*ret = (*from == '-' ? -1 : 1) * (h * 3600 + m * 60);
	return 0;
}

/* Whether there are such a day and such a time.  timegm(3) would carry them over. */
static bool
exists(const struct tm *tm)
{
	struct tm copy = { .tm_year = tm->tm_year, .tm_mon = tm->tm_mon, .tm_mday = tm->tm_mday };

	return tm->tm_hour < 24 && tm->tm_min < 60 && tm->tm_sec <= 60 &&
	    timegm(&copy) != (time_t)-1 && copy.tm_mon == tm->tm_mon &&
	    copy.tm_mday == tm->tm_mday;
}

static int
rfc3339(const char *text, wall_t *ret)
{
	struct tm tm = { 0 };
	const char *p = text;
	wall_t usec = 0;
	int off;

	if (!begins(&p, "dddd-dd-dd") || strchr("Tt ", *p) == NULL || *p++ == '\0' ||
	    !begins(&p, "dd:dd:dd"))
		return -1;
	sscanf(text, "%4d-%2d-%2d%*c%2d:%2d:%2d", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
	    &tm.tm_hour, &tm.tm_min, &tm.tm_sec);
	tm.tm_year -= 1900;
	tm.tm_mon--;
	if (fraction(&p, &usec) == -1 || offset(&p, &off) == -1 || *p != '\0' || !exists(&tm))
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
