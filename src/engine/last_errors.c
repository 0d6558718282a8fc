/* The last errors of a queue; see last_errors.h. */
#include "engine/last_errors.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "base/util.h"

void
last_errors_add(struct last_errors *l, const struct message *msg, unsigned attempts,
    const char *text)
{
	char visible[LAST_ERROR_MAX + 1];
	struct last_error e;
	size_t i = 0;

	if (text == NULL)
		return;
	/* Takes the message's own place, or that of the oldest error. */
	while (i < LAST_ERRORS - 1 && l->list[i].tag != NULL &&
	    strcmp(l->list[i].tag, msg->tag) != 0)
		i++;
	e = l->list[i];
	memmove(&l->list[1], &l->list[0], i * sizeof(l->list[0]));
	utf8_copy_visible(visible, LAST_ERROR_MAX, text, strlen(text));
	xreplace(&e.tag, msg->tag);
	xreplace(&e.text, visible);
	e.attempts = attempts;
	l->list[0] = e;
}

const struct last_error *
last_errors_at(const struct last_errors *l, size_t n)
{
	if (n >= LAST_ERRORS || l->list[n].tag == NULL)
		return NULL;
	return &l->list[n];
}

void
last_errors_done(struct last_errors *l)
{
	for (size_t i = 0; i < LAST_ERRORS; i++) {
		free(l->list[i].tag);
		free(l->list[i].text);
	}
}
