/*
 * A rate as the configuration has it: "100/s", or a number per m, h or d.
 */
#ifndef RQD_POLICY_RATE_H
#define RQD_POLICY_RATE_H

#include "base/util.h"

/*
 * How many seconds a message may come before its time.  A rate is kept evenly;
 * what was left unused in this time may come at once: a tenth of a second's
 * worth of messages, and always one.
 */
#define RATE_SLACK	0.1

/* Seconds between two messages; 0 for "", which is no rate. */
int	rate_parse(const char *, double *gap, char **cause) MUSTCHECK;
double	rate_gap(const char *);		/* of a text that was checked */

#endif
