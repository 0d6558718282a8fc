/*
 * One configuration file as settings.
 *
 *	bytes --lexer.c--> tokens --parser.c--> items, which hold settings;
 *	libconfuse decodes each value on the way (token_decode())
 *
 * The parser knows the names of sections and options, but not the meaning of values.  It
 * reports each error with its line and goes on, so one run finds all errors up to a string or
 * comment that is not closed.  It leaves out unknown options and sections.  What it could read
 * only in part stays, marked by setting.bad, item.open, or a title that is NULL.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "config/findings.h"
#include "config/options.h"

/* An option as it was given. */
struct setting {
	const struct option *option;
	struct place	 at;
	bool		 list;		/* written in braces */
	bool		 bad;		/* reported: counts as given, its value does not */
	char		**values;	/* decoded; owned */
	int		 *lines;	/* of each value; owned */
	size_t		 n;
};

/* A new setting, on the command line for example.  It has no value yet. */
struct setting	*setting_new(const struct option *, const struct place *);
void		 setting_add(struct setting *, const char *value, int line);
void		 setting_free(struct setting *);	/* NULL is fine */

enum item_type { ITEM_OPTIONS, ITEM_DEFAULTS, ITEM_QUEUE, ITEM_SCHEDULE, ITEM_INCLUDE };

/* A section, an include, or all options outside of sections. */
struct item {
	enum item_type	 type;
	enum section	 section;	/* of its options; not ITEM_INCLUDE */
	struct place	 at;
	char		*title;		/* decoded; a name, ITEM_INCLUDE's pattern; or NULL */
	bool		 open;		/* its end is missing: it may lack options */
	struct setting	**settings;	/* owned */
	size_t		 n;
};

/* A file's items in order; [0] is the global options. */
struct parsed {
	struct item	*items;		/* owned */
	size_t		 n;
};

/* text holds no NUL; file is from findings_file().  Incomprehensible items are missing. */
void	parser_read(struct parsed *, const char *text, size_t len, const char *file,
	    struct findings *);
void	parser_done(struct parsed *);
