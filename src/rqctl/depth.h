/*
 * How much is in a queue, and who paused it: what Redis says, in one round
 * trip for all queues, with work that does not grow with their depth.
 */
#ifndef RQD_RQCTL_DEPTH_H
#define RQD_RQCTL_DEPTH_H

#include <stdint.h>

#include "base/stats.h"
#include "rqctl/ctl.h"

/* Numbers are -1 where the kind has none, or its key is of the wrong type. */
struct depth {
	int64_t	 waiting;
	int64_t	 in_flight;	/* foreign consumers' too */
	int64_t	 retry;
	int64_t	 due;		/* of retry: already due */
	int64_t	 delayed;
	int64_t	 dead;
	int64_t	 own;		/* tags with a QDELIVERY field: in flight or retry */
	bool	 paused;
	char	*pause;		/* what QPAUSED says; "" where not paused; owned */
	double	 pause_left;	/* seconds; -1: no end */
	int64_t	 total[STAT_MAX];	/* QSTATS */
	char	*problem;	/* the first error reply; NULL: none; owned */
};

/* 0, or -1 after an error was said; ret holds n. */
int	depth_read(struct ctl *, const struct target *, size_t n, struct depth *ret) MUSTCHECK;
void	depth_done(struct depth *, size_t n);

#endif
