/*
 * Timezones; see zone.h.  A name becomes a path below the zoneinfo folder ($TZDIR, else
 * /usr/share/zoneinfo), so its form is checked before the file is opened.  The file is opened
 * only to see whether it is a zone.
 */
#include "policy/zone.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"

#define FOLDER		"/usr/share/zoneinfo"
#define NAME_MAX_LEN	64
#define MAGIC		"TZif"

static char *old_tz;		/* TZ outside of the scope; NULL: not set */
static bool utc;		/* the scope's zone has no file */

int
zone_check_name(const char *name, char **cause)
{
	const char *p;
	bool ok = isalpha((unsigned char)name[0]) && strlen(name) <= NAME_MAX_LEN;

	for (p = name; ok && *p != '\0'; p++)
		ok = isalnum((unsigned char)*p) || strchr("/_+-", *p) != NULL;
	if (ok)
		return 0;
	return util_cause(cause, "\"%.60s\" is not the name of a timezone: write "
	    "\"Europe/Berlin\" or \"UTC\"", name);
}

static const char *
folder(void)
{
	const char *dir = getenv("TZDIR");

	return dir != NULL && dir[0] == '/' ? dir : FOLDER;
}

int
zone_check(const char *name, char **cause)
{
	char *path, magic[sizeof(MAGIC) - 1];
	bool found;
	int fd, error;

	if (zone_check_name(name, cause) == -1)
		return -1;
	if (strcmp(name, ZONE_UTC) == 0)
		return 0;
	path = xasprintf("%s/%s", folder(), name);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	error = fd == -1 ? errno : 0;
	found = fd != -1 && read(fd, magic, sizeof(magic)) == sizeof(magic) &&
	    memcmp(magic, MAGIC, sizeof(magic)) == 0;
	fd_close(&fd);
	free(path);
	if (found)
		return 0;
	if (access(folder(), F_OK) == -1)
		return util_cause(cause, "there are no timezones on this machine: install the "
		    "package tzdata, or write \"UTC\"");
	if (error == ENOENT)
		return util_cause(cause, "there is no timezone \"%s\" in %s", name,
		    folder());
	return util_cause(cause, "timezone \"%s\": %s/%s: %s", name, folder(), name,
	    error != 0 ? strerror(error) : "this is no file of a timezone");
}

void
zone_enter(const char *name)
{
	const char *tz = getenv("TZ");
	char *value;

	utc = zone_check(name, NULL) == -1 || strcmp(name, ZONE_UTC) == 0;
	if (utc)
		return;
	old_tz = tz != NULL ? xstrdup(tz) : NULL;
	value = xasprintf(":%s", name);
	(void)setenv("TZ", value, 1);
	tzset();
	free(value);
}

void
zone_leave(void)
{
	if (utc)
		return;
	if (old_tz != NULL)
		(void)setenv("TZ", old_tz, 1);
	else
		(void)unsetenv("TZ");
	tzset();
	xreplace(&old_tz, NULL);
}

int64_t
zone_offset(int64_t t)
{
	time_t at = (time_t)t;
	struct tm tm;

	if (utc || localtime_r(&at, &tm) == NULL)
		return 0;
	return tm.tm_gmtoff;
}
