/*
 * A configuration in the making: the settings of its files and of the command line, and
 * the structs made of them.
 *
 *	files.c, command_line.c		collect settings
 *	draft.c				keeps them, and turns them into structs
 *	consistency.c, machine.c	check what no option can say alone
 *	load.c				takes these steps in order
 */
#pragma once

#include "config/findings.h"
#include "config/load.h"
#include "config/options.h"
#include "config/parser.h"
#include "policy/config.h"

/* A queue or a schedule in the making. */
struct draft_section {
	enum section	 section;	/* SECTION_QUEUE or SECTION_SCHEDULE */
	struct queue_config *queue;	/* owned by the configuration; NULL: a schedule */
	struct schedule_config *schedule;
	const char	*name;		/* the struct's */
	struct place	 at;
	bool		 named;		/* its title could be read */
	bool		 open;		/* not closed: it may lack options */
	/* NULL: not given; after draft_build() also those of defaults { }.  Borrowed. */
	struct setting	*given[OPTIONS_MAX];
};

struct draft_sections {
	struct draft_section *list;	/* owned, in order */
	size_t		 n;
};

struct draft {
	const struct config_source *source;
	const struct lines *skip;	/* included files that are not read */
	struct config	*config;
	struct findings	 findings;
	struct parsed	*texts;		/* owned: settings point into them */
	size_t		 ntexts;
	struct setting	**extra;	/* owned: settings of the command line */
	size_t		 nextra;
	struct setting	*given[OPTIONS_MAX];	/* outside of queues and schedules */
	struct setting	*defaults[OPTIONS_MAX];
	struct draft_sections queues, schedules;
};

void	draft_done(struct draft *);	/* but for the configuration; fills the report */

/* Appends a queue or a schedule; name NULL: it could not be read. */
struct draft_section *draft_add(struct draft *, enum section, const char *name,
	    const struct place *);

/* Takes the settings of an item, which must stay.  Reports an option that was given before. */
void	draft_take(struct draft *, struct item *);

/* A new setting without values that the draft owns, as if it stood in a file. */
struct setting *draft_setting_new(struct draft *, const struct option *, const struct place *);

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

/* command_line.c: takes -o, -q's queue, and, without a file, $RQD_SERVER. */
void	command_line_take(struct draft *);

/*
 * servers.c.  servers_choose(), before draft_build(), chooses the options that name
 * Redis.  servers_finish(), afterwards, is for Sentinels or a cluster: adds ports, and
 * makes the short form the only server, for people and handlers.
 */
void	servers_choose(struct draft *);
void	servers_finish(struct redis_options *);

/* files.c: takes the source's text, or its file and what that includes. */
void	files_take(struct draft *);
/* Whether the file holds this word, or cannot be read. */
bool	files_mention(const char *path, const char *word);

/* consistency.c: names, keys and options against each other. */
void	consistency_check(struct draft *);

/* hash_tags.c: what a Redis Cluster needs, if there is one. */
void	hash_tags_check(struct draft *);

/* machine.c: what this machine lacks, and who runs what. */
void	machine_check(struct draft *);
