/* A ring of the last errors of a queue; see last_errors.h. */
#include "engine/last_errors.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "base/util.h"

void
last_errors_add(struct last_errors *l, const struct message *msg, unsigned attempts,
    const char *text)
{
	struct last_error *e = &l->list[l->next];
	char visible[LAST_ERROR_MAX + 1];

	if (text == NULL)
		return;
	utf8_copy_visible(visible, LAST_ERROR_MAX, text, strlen(text));
	xreplace(&e->tag, msg->tag);
	xreplace(&e->text, visible);
	e->attempts = attempts;
	l->next = (l->next + 1) % LAST_ERRORS;
}

const struct last_error *
last_errors_at(const struct last_errors *l, size_t n)
{
	const struct last_error *e = &l->list[(l->next + 2 * LAST_ERRORS - 1 - n) % LAST_ERRORS];

	return n < LAST_ERRORS && e->tag != NULL ? e : NULL;
}

void
last_errors_done(struct last_errors *l)
{
	for (size_t i = 0; i < LAST_ERRORS; i++) {
		free(l->list[i].tag);
		free(l->list[i].text);
	}
}
