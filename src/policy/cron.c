/*
 * The search goes from local day to local day.  If the offset from UTC is the same
 * around a day, its times follow by counting.  Otherwise the search looks up each time
 * of the day: zero, one or two seconds have that local time.
 *
 * After the first day with a match the search looks at one more day: when the clock
 * goes back at midnight, days overlap.
 */
#include "policy/cron.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "policy/zone.h"

#define DAY		INT64_C(86400)
#define MINUTES		1440		/* of a day */
#define JUMP_MAX	(3 * 3600)	/* seconds; a larger jump is not daylight saving time */
#define DAYS_MAX	(40 * 366)	/* 29 February on a given weekday may be 40 years away */
#define SHOWN		40		/* bytes of a wrong item in a message */

/* -- parsing ------------------------------------------------------------------ */

struct cron_field {
	const char	*name;
	int		 low, high;
	const char	*names;		/* of three letters each, for low and on; NULL: none */
	const char	*hint;		/* to use them */
};

enum { MINUTE_FIELD, HOUR_FIELD, DAY_FIELD, MONTH_FIELD, WEEKDAY_FIELD, FIELDS };

static const struct cron_field fields[FIELDS] = {
	[MINUTE_FIELD] = { "minute", 0, 59, NULL, "" },
	[HOUR_FIELD] = { "hour", 0, 23, NULL, "" },
	[DAY_FIELD] = { "day of the month", 1, 31, NULL, "" },
	[MONTH_FIELD] = { "month", 1, 12,
	    "janfebmaraprmayjunjulaugsepoctnovdec", ", or jan to dec" },
	[WEEKDAY_FIELD] = { "day of the week", 0, 7, "sunmontuewedthufrisat",
	    ", or sun to sat" },
};

static const struct { const char *name, *text; } nicknames[] = {
	{ "@yearly", "0 0 1 1 *" }, { "@annually", "0 0 1 1 *" }, { "@monthly", "0 0 1 * *" },
	{ "@weekly", "0 0 * * 0" }, { "@daily", "0 0 * * *" }, { "@midnight", "0 0 * * *" },
	{ "@hourly", "0 * * * *" },
};

/* Reads the number or name at *p and moves *p behind it; -1: neither is there. */
static int
take_value(const struct cron_field *f, const char **p)
{
	const char *name;
	int n = 0, i;

	if (**p >= '0' && **p <= '9') {
		for (; **p >= '0' && **p <= '9'; (*p)++)
			n = n < 1000 ? 10 * n + (**p - '0') : n;
		return n;
	}
	for (name = f->names, i = f->low; name != NULL && *name != '\0'; name += 3, i++) {
		if (strncasecmp(*p, name, 3) == 0) {
			*p += 3;
			return i;
		}
	}
	return -1;
}

/* "*", "5", "5-9", with an optional step, and nothing else up to end. */
static int
parse_item(const struct cron_field *f, const char *text, const char *end, uint64_t *set,
    char **cause)
{
	int len = (int)(end - text < SHOWN ? end - text : SHOWN), from = f->low, to = f->high;
	const char *p = text;
	int step = 1;

	if (*p == '*') {
		p++;
	} else {
		from = to = take_value(f, &p);
		if (from != -1 && *p == '-') {
			p++;
			to = take_value(f, &p);
			/* sat-sun */
			if (f == &fields[WEEKDAY_FIELD] && to == 0 && from > 0)
				to = 7;
		} else if (from != -1 && *p == '/') {
			return util_cause(cause, "\"%.*s\" in the field for the %s: a step needs "
			    "a range: write %d-%d%.8s", len, text, f->name, from, f->high, p);
		}
	}
	if (from < f->low || from > f->high || to < f->low || to > f->high)
		goto wrong;
	if (from > to)
		return util_cause(cause, "\"%.*s\" in the field for the %s runs backwards: write "
		    "%d-%d,%d-%d", len, text, f->name, from, f->high, f->low, to);
	if (*p == '/') {
		p++;
		step = *p >= '0' && *p <= '9' ? take_value(f, &p) : 0;
		if (step <= 0)
			return util_cause(cause, "\"%.*s\" in the field for the %s: the step is a "
			    "number from 1", len, text, f->name);
	}
	if (p != end)
		goto wrong;
	for (; from <= to; from += step)
		*set |= UINT64_C(1) << from;
	return 0;
wrong:
	return util_cause(cause, "\"%.*s\" in the field for the %s: write %d to %d%s", len, text,
	    f->name, f->low, f->high, f->hint);
}

/* A list of items; star: it begins with one. */
static int
parse_field(const struct cron_field *f, const char *text, uint64_t *set, bool *star, char **cause)
{
	const char *end;

	*set = 0;
	*star = *text == '*';
	for (;; text = end + 1) {
		end = text + strcspn(text, ",");
		if (parse_item(f, text, end, set, cause) == -1)
			return -1;
		if (*end == '\0')
			return 0;
	}
}

/* Splits text into fields in place; returns how many, FIELDS + 1 for more. */
static int
split(char *text, const char **words)
{
	char *word;
	int n = 0;

	while ((word = strsep(&text, " \t")) != NULL) {
		if (*word == '\0')
			continue;
		if (n == FIELDS)
			return FIELDS + 1;
		words[n++] = word;
	}
	return n;
}

static int
parse_words(const char *const *words, int n, struct cron *ret, char **cause)
{
	static const int lengths[] = { 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	bool possible = false;
	uint64_t set[FIELDS];
	bool star[FIELDS];
	struct cron c;

	if (n != FIELDS)
		return util_cause(cause, "%s: write minute, hour, day of the month, month "
		    "and day of the week, as in \"30 4 * * mon-fri\"%s",
		    n < FIELDS ? "too few fields" :
		    "more than five fields", n < FIELDS ? "" : "; for seconds there is every");
	for (int i = 0; i < FIELDS; i++) {
		if (parse_field(&fields[i], words[i], &set[i], &star[i], cause) == -1)
			return -1;
	}
	c = (struct cron){
		.minutes = set[MINUTE_FIELD], .hours = (uint32_t)set[HOUR_FIELD],
		.days = (uint32_t)set[DAY_FIELD], .months = (uint32_t)set[MONTH_FIELD],
		.weekdays = (uint32_t)((set[WEEKDAY_FIELD] | set[WEEKDAY_FIELD] >> 7) & 0x7f),
		.both_days = star[DAY_FIELD] || star[WEEKDAY_FIELD],
		.wild = star[MINUTE_FIELD] || star[HOUR_FIELD],
	};
	/* Whether any of the months has any of the days. */
	for (int m = 1; m <= 12; m++)
		possible = possible || ((c.months >> m & 1) != 0 &&
		    (c.days & ((UINT64_C(1) << (lengths[m - 1] + 1)) - 1)) != 0);
	if (c.both_days && !possible)
		return util_cause(cause, "no month of these has such a day: it would never run");
	*ret = c;
	return 0;
}

int
cron_parse(const char *text, struct cron *ret, char **cause)
{
	char *copy = xstrdup(text);
	const char *words[FIELDS];
	int n = split(copy, words), rc;
	size_t i = 0;

	if (n == 1 && words[0][0] == '@') {
		while (i < ARRAY_LEN(nicknames) && strcasecmp(words[0], nicknames[i].name) != 0)
			i++;
		if (i == ARRAY_LEN(nicknames)) {
			(void)util_cause(cause, "\"%.40s\" is unknown: write @hourly, @daily, "
			    "@weekly, @monthly or @yearly", words[0]);
			free(copy);
			return -1;
		}
		xreplace(&copy, nicknames[i].text);
		n = split(copy, words);
	}
	rc = parse_words(words, n, ret, cause);
	free(copy);
	return rc;
}

/* -- the search --------------------------------------------------------------- */

struct search {
	const struct cron *cron;
	bool		 forward;
	int64_t		 from;		/* forward: search after it; else up to it */
	int64_t		 best;		/* CRON_NEVER: none yet */
};

static void
consider(struct search *s, int64_t t)
{
	if (s->forward ? t > s->from && (s->best == CRON_NEVER || t < s->best) :
	    t <= s->from && t > s->best)
		s->best = t;
}

/* Finds the second at which the offset changes, by bisection. */
static int64_t
find_change(int64_t before, int64_t after)
{
	int64_t offset = zone_offset(before), middle;

	while (after - before > 1) {
		middle = before + (after - before) / 2;
		if (zone_offset(middle) == offset)
			before = middle;
		else
			after = middle;
	}
	return after;
}

/* Considers a local time (as if it were UTC) near a change of the offset. */
static void
consider_local(struct search *s, int64_t local)
{
	int64_t o1 = zone_offset(local - DAY), o2 = zone_offset(local + DAY);
	bool first = zone_offset(local - o1) == o1, second = zone_offset(local - o2) == o2;
	bool summer = llabs(o2 - o1) <= JUMP_MAX;

	if (first)
		consider(s, local - o1);
	if (second && (!first || s->cron->wild || !summer))
		consider(s, local - o2);
	if (!first && !second && !s->cron->wild && summer)
		consider(s, find_change(local - DAY, local + DAY));
}

/* Considers the day's times, if it is one, in the direction of the search. */
static void
consider_day(struct search *s, int64_t day)
{
	int64_t o1, o2, local, earliest, latest;
	time_t midnight = (time_t)(day * DAY);
	bool by_day, by_weekday;
	int i, minute;
	struct tm tm;

	if (gmtime_r(&midnight, &tm) == NULL)
		return;
	by_day = (s->cron->days >> tm.tm_mday & 1) != 0;
	by_weekday = (s->cron->weekdays >> tm.tm_wday & 1) != 0;
	if ((s->cron->months >> (tm.tm_mon + 1) & 1) == 0 ||
	    (s->cron->both_days ? !by_day || !by_weekday : !by_day && !by_weekday))
		return;
	o1 = zone_offset((day - 1) * DAY);
	o2 = zone_offset((day + 2) * DAY);
	for (i = 0; i < MINUTES; i++) {
		minute = s->forward ? i : MINUTES - 1 - i;
		local = day * DAY + minute * 60;
		earliest = local - (o1 > o2 ? o1 : o2);
		latest = local - (o1 > o2 ? o2 : o1);
		if ((s->cron->hours >> minute / 60 & 1) == 0 ||
		    (s->cron->minutes >> minute % 60 & 1) == 0)
			continue;
		/* It could not be better than the best so far. */
		if (s->forward && (latest <= s->from ||
		    (s->best != CRON_NEVER && earliest >= s->best)))
			continue;
		if (!s->forward && (earliest > s->from || latest <= s->best))
			continue;
		if (o1 == o2)
			consider(s, local - o1);
		else
			consider_local(s, local);
	}
}

static int64_t
search(struct search *s, const char *zone)
{
	int64_t step = s->forward ? 1 : -1, local, day;
	bool found = false;

	s->best = CRON_NEVER;
	zone_enter(zone);
	local = s->from + zone_offset(s->from);
	day = (local >= 0 ? local / DAY : -((DAY - 1 - local) / DAY)) - step;
	for (int i = 0; i < DAYS_MAX && !found; i++, day += step) {
		found = s->best != CRON_NEVER;
		consider_day(s, day);
	}
	zone_leave();
	return s->best;
}

int64_t
cron_next(const struct cron *c, const char *zone, int64_t after)
{
	struct search s = { .cron = c, .forward = true, .from = after };

	return search(&s, zone);
}

int64_t
cron_last(const struct cron *c, const char *zone, int64_t until)
{
	struct search s = { .cron = c, .forward = false, .from = until };

	return search(&s, zone);
}
