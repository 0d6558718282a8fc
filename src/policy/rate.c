/*
 * Parses rates; see rate.h.
 */
#include "policy/rate.h"

#include <stdlib.h>
#include <string.h>

#include "base/units.h"

#define RATE_MAX	1000000000

static double
rate_unit(const char *text)
{
	if (text[0] == '\0' || text[1] != '\0')
		return 0;
	switch (text[0]) {
	case 's':
		return 1;
	case 'm':
		return 60;
	case 'h':
		return 3600;
	case 'd':
		return 86400;
	default:
		return 0;
	}
}

int
rate_parse(const char *text, double *gap, char **cause)
{
	const char *slash = strchr(text, '/');
	char *number;
	int64_t count;
	double unit;
	int rc;

	*gap = 0;
	if (text[0] == '\0')
		return 0;
	if (slash == NULL || (unit = rate_unit(slash + 1)) == 0)
		return util_cause(cause, "rate \"%.60s\": write \"100/s\", or a number "
		    "per m, h or d", text);
	number = xstrndup(text, (size_t)(slash - text));
	rc = units_parse_int(number, &count);
	free(number);
	if (rc == -1 || count < 1 || count > RATE_MAX)
		return util_cause(cause, "rate \"%.60s\" is out of range 1/d to %d/s",
		    text, RATE_MAX);
	*gap = unit / (double)count;
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
