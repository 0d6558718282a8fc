/*
 * Errors and warnings about a configuration, collected while it is read.
 *
 * Every file gets a number when it is first named.  Findings are reported in the
 * order of files and lines, however late a check found them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/util.h"
#include "config/report.h"

/* A place in a file; line 0 for settings from the command line ("-o", "-q"). */
struct place {
	const char	*file;		/* from findings_file(); never NULL */
	int		 line;
};

/* Holds "FILE:LINE", or "FILE" if there is no line. */
#define PLACE_TEXT_MAX	300
char	*place_text(const struct place *, char *buf);

struct finding {
	size_t	 file;			/* its number */
	int	 line;
	size_t	 order;			/* number of the finding; breaks ties */
	bool	 warning;
	size_t	 fault;			/* number of the file that has to be mended */
	char	*text;			/* owned, with its place */
};

#define FINDINGS_MAX	1000

struct findings {
	char		**files;	/* owned; the index is the number */
	size_t		  nfiles;
	struct finding	 *found;
	size_t		  nfound;
	size_t		  nerrors;
	size_t		  dropped;	/* findings beyond FINDINGS_MAX, not kept */
	struct config_report *report;	/* filled by findings_done() */
	bool		  strict;	/* warnings are errors */
};

/* The same pointer for the same name, valid until findings_done(). */
const char *findings_file(struct findings *, const char *name);

/* finding_error(f, place, fmt, ...) and finding_warn() add one.  They return false. */
#define finding_error(f, at, ...)	finding_add((f), (at), false, xasprintf(__VA_ARGS__))
#define finding_warn(f, at, ...)	finding_add((f), (at), true, xasprintf(__VA_ARGS__))
/* Frees the text. */
bool	finding_add(struct findings *, const struct place *, bool warning, char *);

/* The last error is reported at the include, but is the included file's fault. */
void	findings_blame(struct findings *, const char *file);

/* The last error concerns this place, too: its file's fault, if the other is the main file. */
void	findings_share(struct findings *, const struct place *);

/* Withdraws all findings but the first n. */
void	findings_forget(struct findings *, size_t n);

/* Moves all findings to the report, sorted, without repetitions; frees the rest. */
void	findings_done(struct findings *);
