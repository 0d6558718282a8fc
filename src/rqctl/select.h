/*
 * Which messages are meant: by id, --match, and for dead letters --reason, --since and
 * --until.
 */
#ifndef RQD_RQCTL_SELECT_H
#define RQD_RQCTL_SELECT_H

#include <stdbool.h>

#include "base/clock.h"
#include "rqctl/ctl.h"

struct select {
	const char *const	*ids;		/* borrowed; of messages, letters, or tags */
	int			 nids;		/* 0: any */
	const char		*reason;	/* "": any */
	const char		*match;		/* "": anything */
	wall_t			 since;		/* 0: from the first */
	wall_t			 until;		/* 0: to the last */
};

/*
 * Reads the arguments after the queue and the options.  With VERB_SELECTS one of them must
 * be given, or --all.  Returns 0, or -1 after an error was reported.
 */
int	select_parse(struct ctl *, struct select *) MUSTCHECK;
/* Whether there is any condition. */
bool	select_is_narrow(const struct select *);

/* Whether this could be a letter's id in QDEAD: digits, a dash, digits. */
bool	select_is_letter(const char *);

#endif
