/*
 * Fuzzes times of a crontab.  An accepted one has a next run and a last one, and these
 * agree with each other in every zone.
 */
#include "fuzz.h"

#include <string.h>

#include "policy/cron.h"
#include "policy/zone.h"

FUZZ_MAIN("cron")

static const char *const zones[] = {
	"UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/New_York"
};

static void
check(int ok)
{
	if (!ok)
		abort();
}

/* Returns a second from 1980 to 2080 that depends on the input. */
static int64_t
some_second(const uint8_t *data, size_t size)
{
	uint64_t h = 0xcbf29ce484222325;
	size_t i;

	for (i = 0; i < size; i++)
		h = (h ^ data[i]) * 0x100000001b3;
	return 315532800 + (int64_t)(h % 3155760000);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = xstrndup((const char *)data, size), *cause = NULL;
	int64_t at = some_second(data, size), next, last;
	const char *zone = zones[(uint64_t)at / 7 % ARRAY_LEN(zones)];
	struct cron c;

	if (cron_parse(text, &c, &cause) == -1) {
		check(cause != NULL && cause[0] != '\0');
	} else {
		next = cron_next(&c, zone, at);
		last = cron_last(&c, zone, at);
		check(next > at && last <= at && last != CRON_NEVER);
		check(cron_next(&c, zone, last) == next);
		check(cron_last(&c, zone, next) == next);
		check(cron_last(&c, zone, next - 1) == last);
	}
	(void)!zone_check(text, NULL);
	free(cause);
	free(text);
	return 0;
}
