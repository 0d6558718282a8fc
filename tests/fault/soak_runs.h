/*
 * The runs that the handlers of a soak recorded: when each began and ended.
 */
#pragma once

#include "soak.h"

/* Reads them, and the daemons' logs: sorted by message, then by time.  Until runs_done(). */
const struct run *runs_read(size_t *n);
void	runs_done(void);

/* Whether it has ended with a result after which its message must not run again. */
bool	run_is_final(const struct run *);

/* Prints a run, or all of message n, as comments in TAP. */
void	run_tell(const struct run *);
void	runs_tell(long n);
