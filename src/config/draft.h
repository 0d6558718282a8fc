/*
 * A configuration in the making: the settings of its files and of the command line, the
 * structs made of them, and what was found wrong.
 *
 *	parse.c, files.c, command_line.c	collect settings
 *	draft.c					keeps them, and turns them into structs
 *	consistency.c, machine.c		check what no option can say alone
 *	findings.c				keeps errors and warnings
 *	load.c					takes these steps in order
 */
#pragma once

#include "config/load.h"
#include "config/options.h"
#include "policy/config.h"

/* -- findings.c: errors and warnings, in the order of files and lines ------------------------ */

/* A place in a file; line 0 for settings from the command line ("-o", "-q"). */
struct place {
	const char	*file;		/* from findings_file(); never NULL */
	int		 line;
};

/* Holds "FILE:LINE", or "FILE" if there is no line. */
#define PLACE_TEXT_MAX	300
char	*place_text(const struct place *, char *buf);

#define FINDINGS_MAX	1000

struct findings {
	char		**files;	/* owned, in the order in which they were named */
	size_t		  nfiles;
	struct finding	 *found;
	size_t		  nfound;
	size_t		  nerrors;
	size_t		  dropped;	/* findings beyond FINDINGS_MAX, not kept */
	bool		  strict;	/* warnings are errors */
};

/* The same pointer for the same name, valid until findings_done(). */
const char *findings_file(struct findings *, const char *name);

/* finding_error(f, place, fmt, ...) and finding_warn() add one.  They return false. */
#define finding_error(f, at, ...)	finding_add((f), (at), false, xasprintf(__VA_ARGS__))
#define finding_warn(f, at, ...)	finding_add((f), (at), true, xasprintf(__VA_ARGS__))
/* Frees the text. */
bool	finding_add(struct findings *, const struct place *, bool warning, char *);

/* Moves all findings to the report, sorted, without repetitions; frees the rest. */
void	findings_done(struct findings *, struct config_report *);

/* -- parse.c: one file as settings --------------------------------------------------------- */

/* An option as it was given. */
struct setting {
	const struct option *option;
	struct place	 at;
	bool		 list;		/* written in braces */
	bool		 bad;		/* reported: counts as given, its value does not */
	char		**values;	/* decoded, NULL-terminated; owned */
	int		 *lines;	/* of each value; owned */
	size_t		 n;
};

/* A section, an include, or all options outside of sections. */
struct item {
	enum section	 section;	/* SECTION_MAX: an include */
	struct place	 at;
	char		*title;		/* decoded; a name, or an include's pattern; or NULL */
	struct setting	**settings;	/* owned */
	size_t		 n;
};

/* A file's items in order; [0] is the global options. */
struct parsed {
	struct item	*items;		/* owned */
	size_t		 n;
};

/*
 * Overwrites parts of the text, which ends with a NUL and has no other; file is from
 * findings_file().  -1: parts are missing, because of an error of syntax that was reported.
 */
int	parse_text(struct parsed *, char *text, const char *file, struct findings *);

/* -- draft.c ---------------------------------------------------------------------------- */

/* A queue or a schedule in the making. */
struct draft_section {
	enum section	 section;	/* SECTION_QUEUE or SECTION_SCHEDULE */
	struct queue_config *queue;	/* owned by the configuration; NULL: a schedule */
	struct schedule_config *schedule;
	const char	*name;		/* the struct's */
	struct place	 at;
	/* NULL: not given; after draft_build() also those of defaults { }.  Borrowed. */
	struct setting	*given[OPTIONS_MAX];
};

struct draft_sections {
	struct draft_section *list;	/* owned, in order */
	size_t		 n;
};

struct draft {
	const struct config_source *source;
	struct config	*config;
	struct findings	 findings;
	bool		 incomplete;	/* parts of a file could not be read */
	struct parsed	*texts;		/* owned: settings point into them */
	size_t		 ntexts;
	struct setting	**extra;	/* owned: settings of the command line */
	size_t		 nextra;
	struct setting	*given[OPTIONS_MAX];	/* outside of queues and schedules */
	struct setting	*defaults[OPTIONS_MAX];
	struct draft_sections queues, schedules;
};

void	draft_done(struct draft *);	/* but for the configuration and the findings */

/* The name of its file; "-q": there is none. */
static inline const char *
draft_source_name(const struct config_source *source)
{
	if (source->file == NULL)
		return "-q";
	return source->file;
}

/* A setting without values; the second one is the draft's, as if it stood in a file. */
struct setting *setting_new(const struct option *, const struct place *);
struct setting *draft_setting_new(struct draft *, const struct option *, const struct place *);
void	setting_add(struct setting *, const char *value, int line);

/* Appends a queue or a schedule. */
struct draft_section *draft_add(struct draft *, enum section, const char *name,
	    const struct place *);

/* Takes the settings of an item, which must stay.  Reports an option that was given before. */
void	draft_take(struct draft *, struct item *);

/* Puts every value, or its default, into the structs; reports wrong values. */
void	draft_build(struct draft *);

/* The setting; NULL: not given.  The option must exist. */
struct setting *draft_setting(const struct draft_section *, const char *option);

/* Whether its value counts: given without fault, or not given at all. */
bool	draft_is_sound(const struct draft_section *, const char *option);

/* The place where the option was given; if it was not, the section's place. */
const struct place *draft_place(const struct draft_section *, const char *option);

/* Report an error or a warning there. */
#define draft_error(d, s, option, ...) \
	finding_error(&(d)->findings, draft_place((s), (option)), __VA_ARGS__)
#define draft_warn(d, s, option, ...) \
	finding_warn(&(d)->findings, draft_place((s), (option)), __VA_ARGS__)

/* The place where an option outside of queues was given. */
const struct place *draft_global_place(const struct draft *, enum section, const char *option);

/* -- the other steps -------------------------------------------------------------------- */

/* files.c: takes the source's text, or its file and what that includes. */
void	files_take(struct draft *);

/* command_line.c: takes -o, -q's queue, and, without a file, $RQD_SERVER. */
void	command_line_take(struct draft *);

/*
 * servers.c.  servers_choose(), before draft_build(), chooses the options that name
 * Redis.  servers_finish(), afterwards, is for Sentinels or a cluster: adds ports, and
 * makes the short form the only server, for people and handlers.
 */
void	servers_choose(struct draft *);
void	servers_finish(struct redis_options *);

/* consistency.c: names, keys and options against each other. */
void	consistency_check(struct draft *);

/* machine.c: what this machine lacks, and who runs what. */
void	machine_check(struct draft *);
