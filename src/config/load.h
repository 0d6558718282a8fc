/*
 * From configuration text to struct config, whole or not at all; and back to text.
 *
 * All unknown names and wrong values are reported, and of each file the first error of syntax,
 * each as a line "FILE:LINE: what is wrong, the range, what to write instead".  Options
 * from the command line stand as "-o" or "-q" where a file would.  Warnings (a missing
 * command, user, file) do not refuse the configuration unless strict.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "policy/config.h"

/* Lines without newlines; zero it to start. */
struct lines {
	char	**v;		/* owned, as each of them */
	size_t	  n;
};
void	lines_add(struct lines *, char *);	/* takes it */

/* The errors and warnings of a load; zero it to start.  Without errors, it has succeeded. */
struct config_report {
	struct lines	 errors, warnings;
};
void	config_report_done(struct config_report *);

struct config_source {
	const char		 *file;		/* NULL: none; defaults only */
	/* "redis.server=..." (-o), NULL-terminated; or NULL */
	const char *const	 *overrides;
	/* -q: one queue from the command line; NULL: none. */
	const char		 *queue;
	int			  concurrency;	/* -j; 0: default */
	const char		 *user;		/* -u; NULL: none */
	const char *const	 *command;	/* NULL-terminated */
	bool			  strict;	/* -tt: warnings are errors */
	bool			  client;	/* rqctl: no look at commands, users, files */
	int			  rows;		/* a file for load_rows(), unless client; 0: none */
	/* Text of config_print(), read in place of file and queue; NULL: none. */
	const char		 *text;
	size_t			  text_len;
};

/* NULL: there are errors.  Start, reload and -t make the same checks. */
struct config	*config_load(const struct config_source *, struct config_report *);

/* -- print.c: the configuration as text ------------------------------------------- */

struct option;	/* config/options.h */

/* -T: text that reads back to the same configuration. */
void	config_print(const struct config *, FILE *);

/*
 * Fills in the hash of each queue and of the configuration, without what may differ between
 * daemons of one fleet: name, log, http, and of redis all but database.
 */
void	config_print_hash(struct config *);

/* Whether both print the same. */
bool	config_same_queue(const struct queue_config *, const struct queue_config *);
bool	config_same_option(const struct option *, const struct config *, const struct config *);
