/*
 * Durations, sizes, integers, times and rates as people write them: "250ms" "30s" "5m" "2h"
 * "1d", "64K" "16M" "1G".  A duration needs its unit, except 0: people disagree on what
 * a bare number means.  A size may be a plain number of bytes.  Fractions are
 * allowed in durations: "1.5s".
 */
#pragma once

#include <stdint.h>

#include "base/clock.h"
#include "base/util.h"

/*
 * Return 0, or -1 when the text is not one (bad number, unknown or missing
 * unit, negative except integers, trailing bytes, out of range of the type); *ret is then
 * untouched.  No errno: the caller names the option and its range.
 */
int	units_parse_duration(const char *, usec_t *ret) MUSTCHECK;
int	units_parse_size(const char *, uint64_t *ret) MUSTCHECK;
int	units_parse_int(const char *, int64_t *ret) MUSTCHECK;	/* decimal only */

/*
 * Text that parses back to the same value, into buf, which holds UNITS_TEXT_MAX
 * bytes; returns buf.  In the largest unit of which it is a whole number ("90s"), or as a
 * fraction of seconds or milliseconds ("1.5s").
 */
#define UNITS_TEXT_MAX	32
char	*units_duration(usec_t, char *buf);
char	*units_size(uint64_t, char *buf);

/* For people: rounded up to whole MiB if it has more than 10. */
char	*units_about_size(uint64_t, char *buf);
/* For people: three digits and a unit, or two units: "1.25s" "350ms" "2h5m".  Never rounded up. */
char	*units_about(usec_t, char *buf);
/* The same for a number of seconds; "-" if it is negative, "ages" beyond 30 years. */
char	*units_age(double seconds, char *buf);

/*
 * RFC 3339 ("2026-11-21T08:00:00Z", "2026-11-21 09:00:00.5+01:00") or
 * "@1795248000[.5]".  Returns 0, or -1 with *cause.
 */
int	units_parse_time(const char *, wall_t *ret, char **cause) MUSTCHECK;

/* The same, or a duration, which means that long before now. */
int	units_parse_past(const char *, wall_t now, wall_t *ret, char **cause) MUSTCHECK;

/* "100/s", "30/m", "500/h": per second, > 0.  A bare number is per second. */
int	units_parse_rate(const char *, double *ret, char **cause) MUSTCHECK;
