/*
 * The words of a command: borrowed ones, and formatted ones that it owns.
 */
#ifndef RQD_QUEUE_SCRIPT_ARGS_H
#define RQD_QUEUE_SCRIPT_ARGS_H

#include <stddef.h>

#include "base/util.h"

/* Zero it to start. */
struct args {
	const char	**v;		/* handed to conn_script() */
	size_t		 *len;
	char		**own;		/* of v: what must be freed, else NULL */
	int		  n;
	int		  cap;
	size_t		  bytes;	/* of all words */
};

void	args_mem(struct args *, const char *, size_t);	/* borrowed */
void	args_str(struct args *, const char *);		/* borrowed */
void	args_fmt(struct args *, const char *, ...) PRINTF(2, 3);
void	args_own(struct args *, char *, size_t);		/* taken */
void	args_done(struct args *);

#endif
