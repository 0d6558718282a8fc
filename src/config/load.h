/*
 * From configuration text to struct config, whole or not at all; and back to text.
 *
 * Every error is reported, not just the first, each as a line
 * "FILE:LINE: what is wrong, the range, what to write instead".  Options from
 * the command line stand as "-o" or "-q" where a file would.  Warnings (a missing
 * command, user, file) do not refuse the configuration unless strict.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "config/report.h"
#include "policy/config.h"

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
	/*
	 * rqctl: does not look at commands, users and files.  Leaves out included files that
	 * have errors, unless they may say where Redis is.
	 */
	bool			  client;
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
/* 16 hex digits of all that -T prints. */
#define CONFIG_HASH_MAX	17
void	config_print_whole_hash(const struct config *, char hash[CONFIG_HASH_MAX]);

/* Whether both print the same. */
bool	config_same_queue(const struct queue_config *, const struct queue_config *);
bool	config_same_option(const struct option *, const struct config *, const struct config *);
