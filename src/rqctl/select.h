/*
 * Which dead letters are meant: by id, --reason, --since, --until, --match.
 */
#ifndef RQD_RQCTL_SELECT_H
#define RQD_RQCTL_SELECT_H

#include <stdbool.h>

#include "base/clock.h"
#include "rqctl/ctl.h"

struct select {
	const char *const	*ids;		/* borrowed; of messages or letters */
	int			 nids;		/* 0: any */
	const char		*reason;	/* "": any */
	const char		*match;		/* "": anything */
	wall_t			 since;		/* 0: from the first */
	wall_t			 until;		/* 0: to the last */
};

/*
 * From the arguments after the queue.  must: something has to be said (--all
 * where all are meant).  0, or -1 after an error was said.
 */
int	select_parse(struct ctl *, struct select *, bool must) MUSTCHECK;

/* Whether this could be a letter's id in QDEAD: digits, a dash, digits. */
bool	select_is_letter(const char *);

#endif
