/*
 * The findings of one load of the configuration, as lines for people to read.
 */
#pragma once

#include <stddef.h>

/* Lines without newlines; zero it to start. */
struct lines {
	char	**v;		/* owned, as each of them */
	size_t	  n;
};
void	lines_add(struct lines *, char *);	/* takes it */
void	lines_move(struct lines *to, struct lines *from);	/* behind those that are there */
void	lines_done(struct lines *);

/* The errors and warnings of a load; zero it to start.  Without errors, it has succeeded. */
struct config_report {
	struct lines	 errors, warnings;
	struct lines	 left_out;	/* client: errors of files that were left out */
	struct lines	 files;		/* whose errors they are, each once */
};
void	config_report_done(struct config_report *);
