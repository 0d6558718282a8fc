/*
 * The host's name goes into the value as one word of harmless characters.
 */
#include "rqctl/holder.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/util.h"
#include "queue/lock.h"

#define SHOWN	60

char *
holder_self(void)
{
	char *text = xasprintf("%s %ld", util_hostname(), (long)getpid());
	char *end = strrchr(text, ' '), *p;

	for (p = text; p < end; p++) {
		if (!isalnum((unsigned char)*p) && strchr("._-", *p) == NULL)
			*p = '_';
	}
	return text;
}

char *
holder_text(const char *value, size_t len)
{
	char *copy = xstrndup(value, len), *text;
	char since[CLOCK_TEXT_MAX];
	struct lock_holder h;

	lock_holder(copy, &h);
	if (h.host[0] != '\0')
		text = xasprintf("%s, process %ld, since %s", h.host, h.pid,
		    clock_text((wall_t)(h.since * (double)SEC), since));
	else
		text = xasprintf("another program: \"%.*s\"", SHOWN, copy);
	free(copy);
	return text;
}
