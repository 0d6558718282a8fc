/*
 * The command line: the table of verbs, the table of their options, and the parser.  Help,
 * completion and the test of the man page use the two tables.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/util.h"

struct action;
struct ctl;
typedef void verb_fn(struct ctl *);

/*
 * Options may share a name (pause --reason, dead --reason; purge --dead, cancel --dead): a verb
 * takes only one of them.
 */
enum opt {
	OPT_CONFIG, OPT_SERVER, OPT_SET, OPT_HELP, OPT_VERSION,
	OPT_JSON, OPT_DRY_RUN, OPT_YES,
	OPT_LINES, OPT_DELAY, OPT_AT,
	OPT_WATCH, OPT_INTERVAL,
	OPT_COUNT, OPT_SUMMARY, OPT_RAW, OPT_NAMES, OPT_KEYS,
	OPT_REASON, OPT_SINCE, OPT_UNTIL, OPT_MATCH, OPT_ALL, OPT_RATE,
	OPT_FOR, OPT_WHY, OPT_BURY_WHY, OPT_WAIT, OPT_TIMEOUT,
	OPT_ATTEMPT, OPT_ID, OPT_SAVED,
	OPT_WAITING, OPT_HELD, OPT_RETRY, OPT_DELAYED, OPT_DEAD,
	OPT_LOCK_WAIT, OPT_TTL, OPT_FORCE,
	OPT_END,
	OPT_LETTER, OPT_RERUN, OPT_SCAN, OPT_GROUP,
	OPT_WARN_LATENCY, OPT_WARN_WAITING, OPT_WARN_DEAD,
	OPT_COMPLETION,
	OPT_MAX
};
_Static_assert(OPT_MAX <= 64, "verb.options is a set of 64 bits");

#define OPT(o)	(UINT64_C(1) << OPT_##o)

struct opt_def {
	const char	*name;		/* long, without dashes */
	char		 letter;	/* 0: none */
	const char	*arg;		/* name of its value, see opt_is_optional(); NULL: none */
	const char	*help;
};

extern const struct opt_def opt_table[OPT_MAX];

enum {
	VERB_JSON = 1,		/* takes --json */
	VERB_LINES = 2,		/* --json prints one object per line */
	VERB_LOCAL = 4,		/* reads no configuration */
	VERB_QUEUES = 8,	/* the arguments are queues */
	VERB_ASKS = 16,		/* takes -n and -y; asks on a terminal, else needs -y */
	VERB_ASKS_ALL = 32,	/* the same, but asks only with --all */
	VERB_SELECTS = 64,	/* needs ids, filters or --all */
	/* The first argument is a queue, which must be of one of these kinds: ctl.target. */
	VERB_ANY = 128,
	VERB_KEEPING = 256,	/* kinds whose messages stay in Redis until they are done */
	VERB_LISTS = 512,	/* kinds whose messages wait in Redis */
	VERB_PUSHES = 1024,	/* these, and channels */
	/* It must know at which end the queue is popped, or who hears of dead letters. */
	VERB_ORDER = 2048,
	VERB_BURIES = 4096
};
#define VERB_TARGET	(VERB_ANY | VERB_KEEPING | VERB_LISTS | VERB_PUSHES)

/* Sets of options that several verbs take. */
#define OPTS_LIST	(OPT(COUNT) | OPT(ALL))
#define OPTS_LETTERS	(OPT(REASON) | OPT(SINCE) | OPT(UNTIL) | OPT(MATCH))

struct verb {
	const char	*name;		/* one word, or a group and a word: "dead list" */
	const char	*args;		/* "QUEUE [MESSAGE]" */
	const char	*help;		/* one line */
	const char	*more;		/* further lines of its help; NULL: none */
	uint64_t	 options;	/* beyond those of its flags and of every verb */
	int		 min_args;
	int		 max_args;	/* -1: any number */
	unsigned	 flags;
	verb_fn		*run;
	const struct action *action;	/* of messages_list(), messages_change() */
	long		 rows;		/* of a list: how many a table shows; 0: all */
};

/* Each in its file, verb_NAME.c. */
extern const struct verb verb_status, verb_queues, verb_daemons, verb_running,
    verb_show, verb_peek, verb_push, verb_try, verb_dead_list, verb_dead_show,
    verb_dead_retry, verb_dead_drop, verb_dead_export, verb_retry_list, verb_retry_now,
    verb_delayed_list, verb_delayed_cancel, verb_delayed_now, verb_bury, verb_cancel,
    verb_purge, verb_pause, verb_resume, verb_quiet, verb_forget, verb_schedules_run,
    verb_schedules, verb_lock, verb_unlock, verb_check, verb_ping, verb_acl, verb_help;

/* All of them, and NULL. */
extern const struct verb *const verb_table[];
#define EACH_VERB(v) \
	for (const struct verb *const *v##_at = verb_table, *v; (v = *v##_at) != NULL; v##_at++)

/* Whether it begins the names of verbs: "dead" of "dead list". */
bool		 verb_is_group(const char *word);
const struct verb *verb_find(const char *first, const char *second, int *words);
/*
 * -1 with a cause that names the verb which was probably meant, or the verbs of the group that
 * the word is.
 */
int		 verb_unknown(const char *word, char **cause);
uint64_t	 verb_options(const struct verb *);	/* a set; NULL: those of every verb */
/* Whether its value, a duration, may be left out. */
bool	 opt_is_optional(const struct opt_def *);

/* The command line, taken apart: options anywhere before "--", then a verb's words. */
struct args {
	const struct verb	*verb;		/* NULL: --help or --version alone */
	const char		*group;		/* "dead --help": of these verbs; else NULL */
	const char		*value[OPT_MAX];/* NULL: not given; "" where it takes no value */
	const char		**set;		/* -o, in order, NULL-terminated; owned array */
	const char		**words;	/* after the verb, NULL-terminated; owned array */
	int			 nwords;
	bool			 open;		/* the last option lacks its value */
};

/*
 * All but the arrays is borrowed from argv.  Returns 0, or -1 with *cause, one line that the
 * caller frees.  Call args_done() in both cases.
 */
int	args_parse(struct args *, int argc, char *const *argv, char **cause) MUSTCHECK;
void	args_done(struct args *);

void	help_print(const struct verb *);	/* NULL: all verbs */
void	help_print_group(const char *group);
/* push: text to ctl.target; NULL: standard input. */
void	push_text(struct ctl *, const char *text);
/* The scripts of help --completion. */
extern const char completion_bash[], completion_zsh[];
/* Calls report() for each schedule that no daemon has run in time, with the tick. */
struct schedule_config;
/* The schedule called name; NULL after an error was reported. */
const struct schedule_config *schedules_find(struct ctl *, const char *name);
/* 0 if there is a file, and it has the schedules that are the arguments. */
int	schedules_check(struct ctl *) MUSTCHECK;
void	schedules_missed(struct ctl *, void (*report)(const struct schedule_config *, const char *,
	    void *), void *arg);
/* The exit status of check, 0 to 3, for one of check_run() or of <sysexits.h>. */
int	check_status(int);
