/*
 * One configuration file as settings: read, cut, put in sections, and decoded.
 *
 *	bytes --config_token.c--> tokens --config_text.c--> items, each with
 *	text that holds nothing but known options --config_value.c: libconfuse-->
 *	settings with values
 *
 * What is wrong is a finding with its true line, and is left out; the rest
 * goes on, so that one run finds everything.
 */
#ifndef RQD_CONFIG_CONFIG_TEXT_H
#define RQD_CONFIG_CONFIG_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "config/findings.h"
#include "config/options.h"

#define CONFIG_FILE_MAX	(16 * 1024 * 1024)

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

enum item_type { ITEM_OPTIONS, ITEM_DEFAULTS, ITEM_QUEUE, ITEM_SCHEDULE, ITEM_INCLUDE };

struct item {
	enum item_type	 type;
	enum section	 section;	/* of its options; not ITEM_INCLUDE */
	struct place	 at;
	char		*title;		/* decoded; a name, ITEM_INCLUDE's pattern; or NULL */
	bool		 open;		/* its end is missing: it may lack options */
	struct setting	*settings;	/* owned */
	size_t		 n;
	struct buf	 text;		/* for libconfuse */
};

struct config_text {
	char		*file;		/* as it is called in findings */
	struct item	*items;		/* owned, in order; [0] is the global options */
	size_t		 n;
};

/*
 * Reads a regular file whole: NULL, reported, where that cannot be, or where
 * root should not trust it.  *st is for telling files apart.
 */
char		*config_text_read(const char *path, const struct place *from, size_t *len,
		    struct stat *st, struct findings *);

/* Never NULL; what could not be understood is missing in it. */
struct config_text *config_text_parse(const char *text, size_t len, const char *file,
		    struct findings *);
void		 config_text_free(struct config_text *);	/* NULL is fine */

/* One setting given in another way than by a file: values are copied. */
void		 setting_init(struct setting *, const struct option *, const struct place *,
		    const char *const *values, size_t n);

/* config_value.c: decodes an item's text into its title and settings' values. */
void		 config_value_fill(struct item *, struct findings *);

#endif
