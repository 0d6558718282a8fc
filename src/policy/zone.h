/*
 * Timezones by name, "Europe/Berlin", from the system's zoneinfo.
 *
 * The C library knows only one zone at a time, that of TZ.  So a computation
 * stands between zone_enter() and zone_leave(), which change TZ and give it
 * back; nothing else may look at TZ or local time in between, and scopes do not
 * nest.  This is the only file that does so.
 */
#ifndef RQD_POLICY_ZONE_H
#define RQD_POLICY_ZONE_H

#include <stdint.h>

#include "base/util.h"

#define ZONE_UTC	"UTC"		/* always there, also without zoneinfo */

/* Whether it could be the name of a zone, wherever it is to be used. */
int	zone_check_name(const char *, char **cause) MUSTCHECK;

/* Whether this machine has it. */
int	zone_check(const char *, char **cause) MUSTCHECK;

/* One that is not there counts as UTC. */
void	zone_enter(const char *);
void	zone_leave(void);

/* Within a scope: seconds east of UTC at this second since 1970. */
int64_t	zone_offset(int64_t);

#endif
