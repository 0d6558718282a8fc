/*
 * Questions that the proof in soak_check.c asks about the faults of a soak: does one
 * explain this?  Times are now()'s, in seconds.
 */
#pragma once

#include "base/util.h"
#include "soak.h"

/* Call this first: the faults that happened, in order; borrowed. */
void	explain_by(const struct fault *, size_t n);

/*
 * The cause why the run may have no effect, or its message may run again, from its
 * beginning until then; CAUSE_NONE: nothing explains it.  born: when the message's
 * first run began.
 */
enum cause explain(const struct run *, double born, double until);

/*
 * Whether Redis lost confirmed writes between these times: then finished messages may
 * come back.
 */
bool	explain_forgot(double from, double to);

/* The longest time between these in which some daemon could work; bursts: these hinder. */
double	explain_unhindered(double from, double to, bool bursts);

/* Whether Redis refused large replies then; the daemon asks for them again a minute later. */
bool	explain_limited(double from, double to);

/* Prints the faults between these times, as comments in TAP. */
void	explain_tell(double from, double to);

/* Prints what is wrong, the first 30 times. */
void	problem(const char *, ...) PRINTF(1, 2);
unsigned problem_count(void);
