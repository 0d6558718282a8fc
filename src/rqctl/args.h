/*
 * The command line: options anywhere before "--", then a verb's words.
 */
#ifndef RQD_RQCTL_ARGS_H
#define RQD_RQCTL_ARGS_H

#include <stdbool.h>

#include "base/util.h"
#include "rqctl/verbs.h"

struct args {
	const struct verb	*verb;		/* NULL: --help or --version alone */
	const char		*value[OPT_MAX];/* NULL: not given; "" where it takes no value */
	const char		**set;		/* -o, in order, NULL-terminated; owned array */
	const char		**words;	/* after the verb, NULL-terminated; owned array */
	int			 nwords;
};

/*
 * Everything but the arrays stays argv's.  Returns 0, or -1 with *cause: what
 * is wrong in one line; args_done() is due in both cases.
 */
int	args_parse(struct args *, int argc, char *const *argv, char **cause) MUSTCHECK;
void	args_done(struct args *);

#endif
