/*
 * Parses rates; see rate.h.
 */
#include "policy/rate.h"

#include <stdlib.h>
#include <string.h>

#include "base/units.h"

#define RATE_MAX	1000000000

int
rate_parse(const char *text, double *gap, char **cause)
{
	static const char names[] = "smhd";
	static const double units[] = { 1, 60, 3600, 86400 };
	const char *slash = strchr(text, '/'), *unit = NULL;
	char *number;
	int64_t count;
	int rc;

	*gap = 0;
	if (text[0] == '\0')
		return 0;
	if (slash != NULL && slash[1] != '\0' && slash[2] == '\0')
		unit = strchr(names, slash[1]);
	if (unit == NULL)
		return util_cause(cause, "rate \"%.60s\": write \"100/s\", or a number "
		    "per m, h or d", text);
	number = xstrndup(text, (size_t)(slash - text));
	rc = units_parse_int(number, &count);
	free(number);
	if (rc == -1 || count < 1 || count > RATE_MAX)
		return util_cause(cause, "rate \"%.60s\" is out of range 1/d to %d/s",
		    text, RATE_MAX);
	*gap = units[unit - names] / (double)count;
	return 0;
}

double
rate_gap(const char *text)
{
	double gap;

	if (rate_parse(text, &gap, NULL) == -1)
		fatalx("rate \"%s\" was not checked", text);
	return gap;
}
