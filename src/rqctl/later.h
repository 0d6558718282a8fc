/*
 * Messages that wait for a time, in QRETRY and QDELAYED, and which of them are
 * meant.
 */
#ifndef RQD_RQCTL_LATER_H
#define RQD_RQCTL_LATER_H

#include <stdbool.h>
#include <stdint.h>

#include "rqctl/ask.h"
#include "rqctl/peek.h"

struct later {
	struct ctl		*ctl;
	const struct target	*target;
	enum key		 key;		/* KEY_RETRY, KEY_DELAYED; KEY_QUEUE of kind "unique" */
	const char *const	*ids;		/* or tags; borrowed */
	int			 nids;		/* 0: any */
	const char		*match;		/* "": anything */
	bool			 undelivered;	/* KEY_RETRY: only what no handler has seen yet */
	double			 now;		/* Redis seconds, of the last page */
	int64_t			 matched;
	int64_t			 most;		/* the walk ends after so many; 0: at the end */
};

/*
 * From the arguments after the queue; must: something has to be said, --all where all
 * are meant.  KEY_DELAYED: of kind "unique" the ids that are not due yet.  0, or -1 after
 * an error was said.
 */
int	later_init(struct ctl *, struct later *, const struct target *, enum key, bool must) MUSTCHECK;

/*
 * Calls fn for each chosen message.  At the end of a page, step gets the members of
 * the chosen ones (borrowed), and returns how many of these are not where they were
 * any more, or -1 to stop; NULL: nothing is done.  Returns 0, or -1.
 */
struct later_walk {
	bool	 (*fn)(struct later *, const struct peeked *, void *);	/* NULL, or false: stop */
	int64_t	 (*step)(struct later *, const struct words *, void *);	/* or NULL */
	void	 *arg;
	long	  cut;		/* bytes of messages that are read; -1: all */
};
int	later_each(struct later *, const struct later_walk *) MUSTCHECK;

/* How much of a tag is the id. */
size_t	later_id(enum kind, const struct peeked *, char *buf);	/* MESSAGE_ID_MAX + 1 bytes; 0: none */

#endif
