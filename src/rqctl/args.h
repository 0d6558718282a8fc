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
 * All but the arrays is borrowed from argv.  Returns 0, or -1 with *cause, one line that the
 * caller frees.  Call args_done() in both cases.
 */
int	args_parse(struct args *, int argc, char *const *argv, char **cause) MUSTCHECK;
void	args_done(struct args *);

#endif
