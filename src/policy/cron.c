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
};

enum { MINUTE_FIELD, HOUR_FIELD, DAY_FIELD, MONTH_FIELD, WEEKDAY_FIELD, FIELDS };

static const struct cron_field fields[FIELDS] = {
	[MINUTE_FIELD] = { "minute", 0, 59, NULL },
	[HOUR_FIELD] = { "hour", 0, 23, NULL },
	[DAY_FIELD] = { "day of the month", 1, 31, NULL },
	[MONTH_FIELD] = { "month", 1, 12, "janfebmaraprmayjunjulaugsepoctnovdec" },
	[WEEKDAY_FIELD] = { "day of the week", 0, 7, "sunmontuewedthufrisat" },
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

static int
wrong_value(const struct cron_field *f, const char *item, int len, char **cause)
{
	return util_cause(cause, "\"%.*s\" in the field for the %s: write %d to %d%s", len, item,
	    f->name, f->low, f->high, f->names == NULL ? "" : f == &fields[MONTH_FIELD] ?
	    ", or jan to dec" : ", or sun to sat");
}

/* The text between two commas, and the parser's position in it. */
struct cron_item {
	const struct cron_field *field;
	const char	*text, *p;
	int		 len;		/* bytes to show in an error */
	int		 from, to;
};

static int
backwards(const struct cron_item *it, char **cause)
{
	const struct cron_field *f = it->field;

	return util_cause(cause, "\"%.*s\" in the field for the %s runs backwards: write "
	    "%d-%d,%d-%d", it->len, it->text, f->name, it->from, f->high, f->low, it->to);
}

/* "*", "5", "5-9" */
static int
parse_range(struct cron_item *it, char **cause)
{
	const struct cron_field *f = it->field;

	it->from = f->low;
	it->to = f->high;
	if (*it->p == '*') {
		it->p++;
		return 0;
	}
	it->from = it->to = take_value(f, &it->p);
	if (it->from != -1 && *it->p == '-') {
		it->p++;
		it->to = take_value(f, &it->p);
		/* sat-sun */
		if (f == &fields[WEEKDAY_FIELD] && it->to == 0 && it->from > 0)
			it->to = 7;
	} else if (it->from != -1 && *it->p == '/') {
		return util_cause(cause, "\"%.*s\" in the field for the %s: a step needs a range: "
		    "write %d-%d%.8s", it->len, it->text, f->name, it->from, f->high, it->p);
	}
	if (it->from < f->low || it->from > f->high || it->to < f->low || it->to > f->high)
		return wrong_value(f, it->text, it->len, cause);
	return it->from > it->to ? backwards(it, cause) : 0;
}

/* "/2", if there is one. */
static int
parse_step(struct cron_item *it, int *step, char **cause)
{
	*step = 1;
	if (*it->p != '/')
		return 0;
	it->p++;
	*step = *it->p >= '0' && *it->p <= '9' ? take_value(it->field, &it->p) : 0;
	if (*step > 0)
		return 0;
	return util_cause(cause, "\"%.*s\" in the field for the %s: the step is a number from 1",
	    it->len, it->text, it->field->name);
}

/* A range with an optional step, and nothing else up to end. */
static int
parse_item(const struct cron_field *f, const char *text, const char *end, uint64_t *set,
    char **cause)
{
	struct cron_item it = { .field = f, .text = text, .p = text,
		.len = (int)(end - text < SHOWN ? end - text : SHOWN) };
	int step, i;

	if (parse_range(&it, cause) == -1 || parse_step(&it, &step, cause) == -1)
		return -1;
	if (it.p != end)
		return wrong_value(f, text, it.len, cause);
	for (i = it.from; i <= it.to; i += step)
		*set |= UINT64_C(1) << i;
	return 0;
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

/* Whether any of the months has any of the days. */
static bool
is_possible(const struct cron *c)
{
	static const int lengths[] = { 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };

	for (int m = 1; m <= 12; m++) {
		if ((c->months >> m & 1) != 0 &&
		    (c->days & ((UINT64_C(1) << (lengths[m - 1] + 1)) - 1)) != 0)
			return true;
	}
	return false;
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
	if (c.both_days && !is_possible(&c))
		return util_cause(cause, "no month of these has such a day: it would never run");
	*ret = c;
	return 0;
}

static int
parse_nickname(const char *word, char **text, char **cause)
{
	for (size_t i = 0; i < ARRAY_LEN(nicknames); i++) {
		if (strcasecmp(word, nicknames[i].name) != 0)
			continue;
		xreplace(text, nicknames[i].text);
		return 0;
	}
	return util_cause(cause, "\"%.40s\" is unknown: write @hourly, @daily, @weekly, @monthly "
	    "or @yearly", word);
}

int
cron_parse(const char *text, struct cron *ret, char **cause)
{
	char *copy = xstrdup(text);
	const char *words[FIELDS];
	int n = split(copy, words), rc = 0;

	if (n == 1 && words[0][0] == '@') {
		char *word = xstrdup(words[0]);

		rc = parse_nickname(word, &copy, cause);
		n = rc == 0 ? split(copy, words) : 0;
		free(word);
	}
	if (rc == 0)
		rc = parse_words(words, n, ret, cause);
	free(copy);
	return rc;
}

/* -- the calendar ------------------------------------------------------------- */

/* A civil date of a day since 1970 (Howard Hinnant's algorithm). */
static void
civil(int64_t day, int *month, int *mday)
{
	int64_t z = day + 719468, era = (z >= 0 ? z : z - 146096) / 146097;
	int64_t doe = z - era * 146097;
	int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
	int64_t mp = (5 * doy + 2) / 153;

	*mday = (int)(doy - (153 * mp + 2) / 5 + 1);
	*month = (int)(mp < 10 ? mp + 3 : mp - 9);
}

static bool
day_matches(const struct cron *c, int64_t day)
{
	int month, mday, weekday = (int)(((day + 4) % 7 + 7) % 7);
	bool by_day, by_weekday;

	civil(day, &month, &mday);
	by_day = (c->days >> mday & 1) != 0;
	by_weekday = (c->weekdays >> weekday & 1) != 0;
	return (c->months >> month & 1) != 0 &&
	    (c->both_days ? by_day && by_weekday : by_day || by_weekday);
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

/* Whether a time between these two could be better than the best so far. */
static bool
is_of_use(const struct search *s, int64_t earliest, int64_t latest)
{
	if (s->forward)
		return latest > s->from && (s->best == CRON_NEVER || earliest < s->best);
	return earliest <= s->from && latest > s->best;
}

/* Considers the day's times, in the direction of the search. */
static void
consider_day(struct search *s, int64_t day)
{
	int64_t o1 = zone_offset((day - 1) * DAY), o2 = zone_offset((day + 2) * DAY), local;
	int i, minute;

	for (i = 0; i < MINUTES; i++) {
		minute = s->forward ? i : MINUTES - 1 - i;
		local = day * DAY + minute * 60;
		if ((s->cron->hours >> minute / 60 & 1) == 0 ||
		    (s->cron->minutes >> minute % 60 & 1) == 0 ||
		    !is_of_use(s, local - (o1 > o2 ? o1 : o2), local - (o1 > o2 ? o2 : o1)))
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
		if (day_matches(s->cron, day))
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
