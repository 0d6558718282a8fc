/*
 * Times as in a crontab: "30 4 * * mon-fri", "@daily".
 *
 * The rules are those of Debian's cron.  Five fields: minute, hour, day of the month,
 * month, day of the week (0 and 7 are Sunday); lists, ranges, steps, names of three
 * letters.  If neither day field begins with *, a day matches when either field
 * matches.
 *
 * Daylight saving time.  A schedule whose minute and hour both do not begin with *
 * names fixed times of the day.  Each runs once a day: at the end of the gap when
 * the clock skips it, and at the first occurrence when it comes twice.  Any other
 * schedule follows the clock.  A jump of more than three hours is not daylight
 * saving time; all schedules follow the clock then.  Two times that fall on one
 * second run once.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/util.h"

/* Bit n is set if n matches. */
struct cron {
	uint64_t	minutes;
	uint32_t	hours;
	uint32_t	days;		/* 1 to 31 */
	uint32_t	months;		/* 1 to 12 */
	uint32_t	weekdays;	/* 0 to 6 */
	bool		both_days;	/* day and weekday must match, not either */
	bool		wild;		/* minute or hour begins with *: follows the clock */
};

#define CRON_NEVER	INT64_MIN

/* Returns 0, or -1 with *cause: what is wrong and where.  30 February is an error. */
int	cron_parse(const char *, struct cron *, char **cause) MUSTCHECK;

/*
 * The first time after `after`, and the last one not after `until`, in seconds
 * since 1970; zone as in zone.h.  CRON_NEVER: none in forty years.
 */
int64_t	cron_next(const struct cron *, const char *zone, int64_t after);
int64_t	cron_last(const struct cron *, const char *zone, int64_t until);
