/* Points in time and rates as an operator writes them. */
#ifndef RQD_RQCTL_WHEN_H
#define RQD_RQCTL_WHEN_H

#include "base/clock.h"
#include "base/util.h"

/*
 * RFC 3339 ("2026-11-21T08:00:00Z", "2026-11-21 09:00:00.5+01:00") or
 * "@1795248000[.5]".  Returns 0, or -1 with *cause.
 */
int	when_parse(const char *, wall_t *ret, char **cause) MUSTCHECK;

/* The same, or a duration: so long before now. */
int	when_parse_past(const char *, wall_t now, wall_t *ret, char **cause) MUSTCHECK;

/* "100/s", "30/m", "500/h": per second, > 0.  A bare number is per second. */
int	when_parse_rate(const char *, double *ret, char **cause) MUSTCHECK;

#endif
