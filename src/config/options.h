/*
 * The options of rqd.conf(5): one table.  The parser, rqd -T and the reload use it, and
 * tests compare the shipped file and the manual with it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/util.h"
#include "policy/config.h"

/* Where options stand.  SECTION_DEFAULTS has no rows: it takes options of SECTION_QUEUE. */
enum section {
	SECTION_GLOBAL, SECTION_REDIS, SECTION_LOG, SECTION_HTTP, SECTION_QUEUE,
	SECTION_SCHEDULE, SECTION_DEFAULTS,
	SECTION_MAX
};

enum option_type {
	OPTION_STRING,		/* char * */
	OPTION_STRINGS,		/* char **, NULL-terminated */
	OPTION_INT,		/* int */
	OPTION_INT64,		/* int64_t */
	OPTION_BOOL,		/* bool */
	OPTION_DURATION,	/* usec_t */
	OPTION_SIZE,		/* uint64_t, bytes */
	OPTION_CHOICE,		/* an enum: the index in choices */
	OPTION_STATUSES,	/* bool[256] */
	OPTION_OCTAL,		/* int; "" is -1 */
	OPTION_NICE,		/* int; "inherit" is CONFIG_NICE_INHERIT */
	/* uint64_t; "inherit" is CONFIG_LIMIT_INHERIT: */
	OPTION_LIMIT,		/* a number */
	OPTION_LIMIT_SIZE,	/* bytes */
	OPTION_LIMIT_TIME	/* a duration, kept in seconds */
};

enum option_flag {
	OPTION_RESTART = 1,	/* a change needs a restart */
	OPTION_BRACES = 2,	/* must be written as a list */
	OPTION_OWN = 4,		/* makes no sense in defaults { } */
	OPTION_ALONE = 8,	/* a list that is printed without braces if it has one element */
	OPTION_SINGLE = 16	/* not where batch is above 1 */
};

/*
 * Checks value i of n; 0, or -1 with *cause: what is wrong, and what to write instead.  The
 * caller puts the place in front.
 */
typedef int option_check_fn(const char *value, size_t i, size_t n, char **cause);

struct option {
	enum section	 section;
	const char	*name;
	enum option_type type;
	size_t		 offset;	/* in the struct of the section, see option_set() */
	const char	*def;		/* the default; for a list its only element, "" for none */
	/* numbers, durations (usec), sizes; seconds for a time limit */
	int64_t		 min, max;
	bool		 zero;		/* 0 is allowed below min: its meaning is in help */
	const char *const *choices;	/* OPTION_CHOICE: NULL-terminated */
	option_check_fn	*check;		/* more than the type can say; NULL: nothing */
	/* lists: the error for an empty one; NULL: it may be empty */
	const char	*missing;
	unsigned	 flags;
	unsigned	 modes;		/* bits 1 << enum mode; 0: all */
	bool		 batches;	/* also where batch is above 1 */
	enum trait	 trait;		/* only kinds with this one; 0: all */
	const char	*help;		/* what it is, in a few words */
};

#define OPTIONS_MAX	112		/* more than there are rows */

extern const struct option option_table[];	/* ends with a NULL name */
#define EACH_OPTION(o) for (const struct option *o = option_table; o->name != NULL; o++)
size_t		 option_index(const struct option *);	/* < OPTIONS_MAX */
bool		 option_belongs(const struct option *, enum section);
const struct option *option_find(enum section, const char *name);	/* NULL: none */
/* Of a name in the source, which exists. */
const struct option *option_named(enum section, const char *name);
bool		 option_is_list(const struct option *);
bool		 option_applies(const struct option *, const struct queue_config *);

const char	*section_name(enum section);		/* "" for SECTION_GLOBAL */
bool		 section_has_title(enum section);	/* there may be many of them */
enum section	 section_find(const char *name);	/* SECTION_MAX: there is none */

/*
 * The error for a name that option_find() does not know in this section, or section_find()
 * at all: a sentence that the caller frees.
 */
char		*option_unknown(enum section, const char *name);
char		*section_unknown(const char *name);

/*
 * Converts, checks, and stores in base: the struct config, or for
 * SECTION_QUEUE the struct queue_config, for SECTION_SCHEDULE the struct
 * schedule_config.  Returns 0, or -1 with *cause and the index of the wrong
 * value; base is then untouched.
 */
int		 option_set(const struct option *, void *base, char *const *values,
		    size_t n, size_t *bad, char **cause) MUSTCHECK;
void		 option_set_default(const struct option *, void *base);

/* The value as it is written in a file: quoted, in braces, with its unit. */
void		 option_print(const struct option *, const void *base, struct buf *);
void		 option_print_string(const char *, struct buf *);
