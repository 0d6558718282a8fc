/*
 * Why the last messages of a queue have failed, while they wait for another try: for the
 * heartbeat, because Redis has no field for it.  Of the latest LAST_ERRORS messages only, and
 * gone when the daemon ends.
 */
#pragma once

#include <stddef.h>

#include "policy/message.h"

#define LAST_ERRORS	20	/* messages of one queue */

struct last_error {
	char	*tag;	/* owned; NULL: none yet */
	char	*text;	/* owned; visible UTF-8 */
	unsigned attempts;	/* failures so far, with this one */
};

/* All zero: none. */
struct last_errors {
	struct last_error	 list[LAST_ERRORS];	/* the latest first; each tag once */
};

/*
 * Copies LAST_ERROR_MAX bytes of the text at most; NULL: nothing is known, nor noted.
 * attempts: failures so far, with this one.
 */
#define LAST_ERROR_MAX	300
void	last_errors_add(struct last_errors *, const struct message *, unsigned attempts,
	    const char *text);

/* The n-th latest, from 0; NULL: there are not so many. */
const struct last_error *last_errors_at(const struct last_errors *, size_t n);

void	last_errors_done(struct last_errors *);
