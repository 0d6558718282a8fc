/*
 * Timezones by name, "Europe/Berlin", from the system's zoneinfo.
 *
 * The C library has only one zone at a time, that of TZ.  zone_enter() changes TZ
 * and zone_leave() restores it; scopes do not nest.  No other code may use TZ or
 * local time in between, and no other file changes TZ.
 *
 * The parser checks a zone's form (zone_check_name()), the daemon whether it exists here
 * (zone_check()).  UTC needs neither file nor TZ.
 */
#pragma once

#include <stdint.h>

#include "base/util.h"

#define ZONE_UTC	"UTC"		/* works without zoneinfo, too */

/* Whether the text has the form of a zone's name, known here or not. */
int	zone_check_name(const char *, char **cause) MUSTCHECK;

/* Whether this machine has the zone. */
int	zone_check(const char *, char **cause) MUSTCHECK;

/* An unknown zone counts as UTC. */
void	zone_enter(const char *);
void	zone_leave(void);

/* Within a scope: seconds east of UTC at this second since 1970. */
int64_t	zone_offset(int64_t);
