/*
 * What is wrong with a configuration, collected while it is read.
 *
 * Every file gets a number when it is first named, so that the findings can
 * be put in the order in which a reader meets them, however late a check
 * found them.
 */
#ifndef RQD_SERVICE_FINDINGS_H
#define RQD_SERVICE_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/util.h"
#include "service/config_file.h"

/* Where something stands; line 0 for what is not in a file ("-o", "-q"). */
struct place {
	const char	*file;		/* from findings_file(); never NULL */
	int		 line;
};

/* Holds "FILE:LINE", or "FILE" where there is no line. */
#define PLACE_TEXT_MAX	300
char	*place_text(const struct place *, char *buf);

struct finding {
	size_t	 file;			/* its number */
	int	 line;
	size_t	 order;			/* of finding: the last resort */
	bool	 warning;
	char	*text;			/* owned, with its place */
};

#define FINDINGS_MAX	1000

struct findings {
	char		**files;	/* owned; the index is the number */
	size_t		  nfiles;
	struct finding	 *found;
	size_t		  nfound;
	size_t		  nerrors;
	size_t		  dropped;	/* beyond FINDINGS_MAX: a file full of rubbish */
	struct config_report *report;	/* filled by findings_done() */
	bool		  strict;	/* warnings are errors */
};

/* The same pointer for the same name, valid until findings_done(). */
const char *findings_file(struct findings *, const char *name);

void	finding_error(struct findings *, const struct place *, const char *, ...) PRINTF(3, 4);
void	finding_warn(struct findings *, const struct place *, const char *, ...) PRINTF(3, 4);

/* Takes back all but the first n. */
void	findings_forget(struct findings *, size_t n);

/* Moves all into the report, sorted, each once; frees the rest. */
void	findings_done(struct findings *);

#endif
