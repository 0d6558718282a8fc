/*
 * Durations, sizes, integers, times and rates as people write them; durations and sizes
 * also back.
 *
 * Durations and sizes are exact: text that is no whole number of microseconds, or
 * that does not fit, is refused rather than rounded ("0.0001ms" must not become 0,
 * which often means "off").  There, and in integers, are no blanks, no hexadecimal and no
 * locale; only an integer may have a sign, "-".  Size suffixes are powers of 1024, in either
 * case.  A rate is a number as strtod(3) reads it.
 *
 * A date that could mean two things (no offset, day 31 of a month that has 30) is refused:
 * nobody would notice a message that is delayed to the wrong day.
 */
#include "base/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FRACTION_DIGITS	8	/* keeps DAY * fraction within 64 bits */
#define DAY		(24 * HOUR)

/* 9999-12-31T23:59:59Z, the last second that RFC 3339 can say. */
#define LAST_SECOND	UINT64_C(253402300799)

struct unit {
	const char	*name;
	uint64_t	 value;
};

/* Largest first: put_whole() takes the first that divides. */
static const struct unit durations[] = {
	{ "d", DAY }, { "h", HOUR }, { "m", MINUTE }, { "s", SEC },
	{ "ms", MSEC },
};

static const struct unit sizes[] = {
	{ "T", 1ULL << 40 }, { "G", 1ULL << 30 }, { "M", 1ULL << 20 },
	{ "K", 1ULL << 10 },
};

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Reads digits at *s, at least one, and moves *s behind them. */
static int
take_number(const char **s, uint64_t *ret)
{
	const char *p = *s;
	uint64_t n = 0;

	if (!is_digit(*p))
		return -1;
	for (; is_digit(*p); p++) {
		if (__builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(*p - '0'), &n))
			return -1;
	}
	*s = p;
	*ret = n;
	return 0;
}

/* Reads ".25" at *s, if there is one, as 25 of 100. */
static int
take_fraction(const char **s, uint64_t *num, uint64_t *den)
{
	const char *digits;

	*num = 0;
	*den = 1;
	if (**s != '.')
		return 0;
	digits = ++*s;
	if (take_number(s, num) == -1 || *s - digits > FRACTION_DIGITS)
		return -1;
	for (; digits < *s; digits++)
		*den *= 10;
	return 0;
}

static const struct unit *
find_unit(const struct unit *units, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(units[i].name, name) == 0)
			return &units[i];
	}
	return NULL;
}

int
units_parse_duration(const char *s, usec_t *ret)
{
	const struct unit *u;
	uint64_t whole, num, den, n;

	if (strcmp(s, "0") == 0) {
		*ret = 0;
		return 0;
	}
	if (take_number(&s, &whole) == -1 || take_fraction(&s, &num, &den) == -1)
		return -1;
	u = find_unit(durations, ARRAY_LEN(durations), s);
	if (u == NULL || num * u->value % den != 0)
		return -1;
	if (__builtin_mul_overflow(whole, u->value, &n) ||
	    __builtin_add_overflow(n, num * u->value / den, &n) ||
	    n > INT64_MAX)
		return -1;
	*ret = (usec_t)n;
	return 0;
}

int
units_parse_size(const char *s, uint64_t *ret)
{
	const struct unit *u;
	uint64_t n;
	char suffix[2];

	if (take_number(&s, &n) == -1)
		return -1;
	if (*s != '\0') {
		if (s[1] != '\0')
			return -1;
		suffix[0] = *s >= 'a' && *s <= 'z' ? (char)(*s - 'a' + 'A') : *s;
		suffix[1] = '\0';
		u = find_unit(sizes, ARRAY_LEN(sizes), suffix);
		if (u == NULL || __builtin_mul_overflow(n, u->value, &n))
			return -1;
	}
	*ret = n;
	return 0;
}

int
units_parse_int(const char *s, int64_t *ret)
{
	bool minus = *s == '-';
	uint64_t n;

	if (minus)
		s++;
	if (take_number(&s, &n) == -1 || *s != '\0')
		return -1;
	if (n > (uint64_t)INT64_MAX + (minus ? 1 : 0))
		return -1;
	*ret = minus ? (int64_t)(0 - n) : (int64_t)n;
	return 0;
}

/* n / scale, exactly, without zeros at the end; scale is a power of 10. */
static char *
put_decimal(char *buf, uint64_t n, uint64_t scale, const char *unit)
{
	uint64_t rest = n % scale;
	int len = snprintf(buf, UNITS_TEXT_MAX, "%" PRIu64, n / scale);
	char *p = buf + len;

	if (rest != 0)
		*p++ = '.';
	for (; rest != 0; rest %= scale) {
		scale /= 10;
		*p++ = (char)('0' + rest / scale);
	}
	strcpy(p, unit);
	return buf;
}

/* Writes n in the largest unit of which it is a whole number; false: none is. */
static bool
put_whole(char *buf, uint64_t n, const struct unit *units, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (n != 0 && n % units[i].value == 0) {
			(void)snprintf(buf, UNITS_TEXT_MAX, "%" PRIu64 "%s",
			    n / units[i].value, units[i].name);
			return true;
		}
	}
	return false;
}

/* Negative durations do not occur in a configuration; they print as 0. */
char *
units_duration(usec_t usec, char *buf)
{
	uint64_t n = usec < 0 ? 0 : (uint64_t)usec;

	if (n == 0)
		return strcpy(buf, "0");
	if (n % SEC == 0 && put_whole(buf, n, durations, ARRAY_LEN(durations)))
		return buf;
	return n >= SEC ? put_decimal(buf, n, SEC, "s") :
	    put_decimal(buf, n, MSEC, "ms");
}

char *
units_size(uint64_t n, char *buf)
{
	if (!put_whole(buf, n, sizes, ARRAY_LEN(sizes)))
		(void)snprintf(buf, UNITS_TEXT_MAX, "%" PRIu64, n);
	return buf;
}

char *
units_about_size(uint64_t n, char *buf)
{
	const uint64_t mib = 1024 * 1024;

	return units_size(n > 10 * mib ? (n + mib - 1) / mib * mib : n, buf);
}

/* Cut to three digits, never rounded up: 59.99 s is not "60s". */
static char *
about_decimal(char *buf, uint64_t n, uint64_t scale, const char *unit)
{
	uint64_t keep = 1;

	while (n / keep >= 1000)
		keep *= 10;
	return put_decimal(buf, n / keep * keep, scale, unit);
}

char *
units_about(usec_t usec, char *buf)
{
	uint64_t n = usec < 0 ? 0 : (uint64_t)usec, rest;
	int len;

	/* "2h5m": two units, the second only if it is not 0. */
	for (const struct unit *u = durations; u < durations + 3; u++) {
		if (n < u->value)
			continue;
		rest = n % u->value / u[1].value;
		len = snprintf(buf, UNITS_TEXT_MAX, "%" PRIu64 "%s", n / u->value, u->name);
		if (rest != 0)
			(void)snprintf(buf + len, UNITS_TEXT_MAX - (size_t)len,
			    "%" PRIu64 "%s", rest, u[1].name);
		return buf;
	}
	if (n >= SEC)
		return about_decimal(buf, n, SEC, "s");
	if (n >= MSEC)
		return about_decimal(buf, n, MSEC, "ms");
	return put_decimal(buf, n, 1, n == 0 ? "s" : "us");
}

char *
units_age(double seconds, char *buf)
{
	if (!(seconds >= 0))
		return strcpy(buf, "-");
	if (seconds > 1e9)
		return strcpy(buf, "ages");
	return units_about((usec_t)(seconds * 1e6), buf);
}

/* -- times and rates ------------------------------------------------------------ */

/* Moves *text past the pattern, in which d stands for a digit.  False: it begins otherwise. */
static bool
begins(const char **text, const char *pattern)
{
	const char *p = *text;

	for (; *pattern != '\0'; pattern++, p++)
		if (*pattern == 'd' ? !is_digit(*p) : *p != *pattern)
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
	if (!is_digit(*++*p))
		return -1;
	for (; is_digit(**p); (*p)++, unit /= 10)
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

static int
rfc3339(const char *text, wall_t *ret)
{
	struct tm tm = { 0 }, day;
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
	if (fraction(&p, &usec) == -1 || offset(&p, &off) == -1 || *p != '\0')
		return -1;
	/* timegm(3) would carry over a day or a time that is none. */
	day = (struct tm){ .tm_year = tm.tm_year, .tm_mon = tm.tm_mon, .tm_mday = tm.tm_mday };
	if (tm.tm_hour >= 24 || tm.tm_min >= 60 || tm.tm_sec > 60 ||
	    timegm(&day) == (time_t)-1 || day.tm_mon != tm.tm_mon || day.tm_mday != tm.tm_mday)
		return -1;
	*ret = ((wall_t)timegm(&tm) - off) * SEC + usec;
	return 0;
}

int
units_parse_time(const char *text, wall_t *ret, char **cause)
{
	const char *p = text + 1;
	wall_t usec = 0;
	uint64_t sec;

	if (text[0] != '@' && rfc3339(text, ret) == 0)
		return 0;
	/* "@1795248000.5" */
	if (text[0] == '@' && take_number(&p, &sec) == 0 && sec <= LAST_SECOND &&
	    fraction(&p, &usec) == 0 && *p == '\0') {
		*ret = (wall_t)sec * SEC + usec;
		return 0;
	}
	return util_cause(cause, "\"%.60s\" is not a time: write 2026-11-21T08:00:00Z "
	    "or @1795248000", text);
}

int
units_parse_past(const char *text, wall_t now, wall_t *ret, char **cause)
{
	usec_t ago;

	if (units_parse_duration(text, &ago) == 0) {
		*ret = ago < now ? now - ago : 0;
		return 0;
	}
	if (units_parse_time(text, ret, NULL) == 0)
		return 0;
	return util_cause(cause, "\"%.60s\" is not a time: write 2h (ago), "
	    "2026-11-21T08:00:00Z or @1795248000", text);
}

/* The seconds of a rate's unit; 0: the text is none. */
static double
rate_unit(const char *text)
{
	if (strcmp(text, "") == 0 || strcmp(text, "/s") == 0)
		return 1;
	if (strcmp(text, "/m") == 0)
		return 60;
	if (strcmp(text, "/h") == 0)
		return 3600;
	return 0;
}

int
units_parse_rate(const char *text, double *ret, char **cause)
{
	double n = 0, per = 0;
	char *end;

	if (is_digit(*text) || *text == '.') {
		n = strtod(text, &end);
		per = rate_unit(end);
	}
	if (per <= 0 || !(n > 0) || n > 1e9)
		return util_cause(cause, "\"%.60s\" is not a rate: write 100/s, 30/m or 500/h",
		    text);
	*ret = n / per;
	return 0;
}
