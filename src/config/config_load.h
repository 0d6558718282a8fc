/*
 * A configuration in the making: shared by config_file.c, which builds it,
 * config_include.c, which reads the files, and config_check.c.
 */
#ifndef RQD_CONFIG_CONFIG_LOAD_H
#define RQD_CONFIG_CONFIG_LOAD_H

#include <sys/types.h>

#include "config/config_file.h"
#include "config/config_text.h"
#include "config/findings.h"
#include "config/options.h"
#include "policy/config.h"

#define INCLUDE_DEPTH	16

/* A queue in the making. */
struct draft {
	struct queue_config *queue;		/* owned by the configuration */
	struct place	 at;
	bool		 named;			/* its title could be read */
	bool		 open;			/* not closed: it may lack options */
	struct setting	*own[OPTIONS_MAX];	/* NULL: not given; borrowed from texts */
	struct setting	*given[OPTIONS_MAX];	/* own, or of defaults { } */
};

/* A schedule in the making. */
struct schedule_draft {
	struct schedule_config *schedule;	/* owned by the configuration */
	struct place	 at;
	bool		 named;
	bool		 open;
	struct setting	*given[OPTIONS_MAX];
};

struct loader {
	const struct config_source *source;
	char *const	*skip;			/* included files that are not read; n of them */
	size_t		 nskip;
	struct config	*config;
	struct findings	 findings;
	struct config_text **texts;		/* owned: all settings point into them */
	size_t		 ntexts;
	struct setting	*given[OPTIONS_MAX];	/* outside of queues */
	struct setting	*defaults[OPTIONS_MAX];
	struct draft	*drafts;		/* owned */
	size_t		 ndrafts;
	struct schedule_draft *schedules;	/* owned */
	size_t		 nschedules;
	struct { dev_t dev; ino_t ino; } open[INCLUDE_DEPTH];	/* files being read */
	unsigned	 depth;
};

/* config_include.c: reads the file and what it includes; from: the include, or NULL. */
void	config_include_file(struct loader *, const char *path, const struct place *from);

/* config_file.c: takes over what an item says; it must stay. */
void	config_collect(struct loader *, struct item *);

/* config_file.c: stores the setting, or reports it and marks it as bad. */
void	config_apply(struct loader *, struct setting *, void *base);

/* config_schedule.c: schedules, from items to what they must be. */
void	config_schedule_collect(struct loader *, struct item *);
void	config_schedule_build(struct loader *);
void	config_schedule_check(struct loader *);

/* config_file.c: takes each setting into its slot; one that is taken is reported. */
void	config_take_settings(struct loader *, struct item *, struct setting **slots);

/* config_check.c: what is wrong with options together, and with this machine. */
void	config_check(struct loader *);

/* config_print.c: 16 hex digits into c->hash, of all but the daemon's name. */
void	config_print_hash(struct config *);

/* config_print.c: whether both print the same. */
bool	config_same_queue(const struct queue_config *, const struct queue_config *);
bool	config_same_option(const struct option *, const struct config *, const struct config *);

#endif
