/*
 * Times as in a crontab: "30 4 * * mon-fri", "@daily".
 *
 * As Debian's cron has it.  Five fields: minute, hour, day of the month, month,
 * day of the week (0 and 7 are Sunday); lists, ranges, steps, names of three
 * letters.  If neither day field begins with *, a day matches when either
 * does.
 *
 * Summer time: a schedule whose minute and hour both do not begin with * names
 * times of the day: each runs once a day, at the end of the gap where the clock
 * jumps over it, and the first time where it comes twice.  Any other one runs
 * by the clock as it is.  A jump of more than three hours is none of summer
 * time's, and is taken as it is.  What falls onto one second runs once.
 */
#ifndef RQD_POLICY_CRON_H
#define RQD_POLICY_CRON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/util.h"

/* Bit n is set where n matches. */
struct cron {
	uint64_t	minutes;
	uint32_t	hours;
	uint32_t	days;		/* 1 to 31 */
	uint32_t	months;		/* 1 to 12 */
	uint32_t	weekdays;	/* 0 to 6 */
	bool		both_days;	/* day and weekday must match, not either */
	bool		wild;		/* runs by the clock as it is */
};

#define CRON_NEVER	INT64_MIN

/* Returns 0, or -1 with *cause: what is wrong and where.  Dates that never come are wrong. */
int	cron_parse(const char *, struct cron *, char **cause) MUSTCHECK;

/*
 * The first time after `after`, and the last one not after `until`, in seconds
 * since 1970; zone as in zone.h.  CRON_NEVER: none in forty years.
 */
int64_t	cron_next(const struct cron *, const char *zone, int64_t after);
int64_t	cron_last(const struct cron *, const char *zone, int64_t until);

#endif
