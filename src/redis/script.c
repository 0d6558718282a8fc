/* Scripts by name; see script.h. */
#include "redis/script.h"

#include <string.h>

const struct script *
script_find(const char *name)
{
	for (const struct script *s = script_table; s->name != NULL; s++) {
		if (strcmp(s->name, name) == 0)
			return s;
	}
	return NULL;
}
