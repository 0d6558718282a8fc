/*
 * Long work: progress on a terminal, and no faster than --rate.
 */
#ifndef RQD_RQCTL_PROGRESS_H
#define RQD_RQCTL_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "rqctl/ctl.h"

struct progress {
	const char	*verb;		/* "retried" */
	double		 rate;		/* per second; 0: as fast as it goes */
	int64_t		 done;		/* what the rate counts */
	usec_t		 began;
	bool		 silent;	/* only the rate is kept */
};

/* Reads --rate; 0, or -1 after an error was said. */
int	progress_init(struct ctl *, struct progress *, const char *verb) MUSTCHECK;

/* How many may be done in the next step: at most `most`, at least 1. */
int	progress_step(const struct progress *, int most);

/*
 * n more are done, and the walk has looked at `looked` of `total`.  Sleeps as
 * --rate demands; false when interrupted: stop.
 */
bool	progress_add(struct progress *, int64_t n, int64_t looked, int64_t total);

#endif
