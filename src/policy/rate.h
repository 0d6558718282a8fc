/*
 * A rate as written in the configuration: "100/s", or a number per m, h or d.
 */
#pragma once

#include "base/util.h"

/*
 * Seconds that a message may come before its time.  rqd spaces messages evenly;
 * after a pause it may deliver this many seconds' worth of messages at once, and
 * always one.
 */
#define RATE_SLACK	0.1

/* Sets *gap to the seconds between two messages; 0 for "", no rate.  -1 with *cause. */
int	rate_parse(const char *, double *gap, char **cause) MUSTCHECK;
double	rate_gap(const char *);		/* of a text that rate_parse() has accepted */
