/*
 * The table of verbs and the table of their options.  Parsing, help, completion and the
 * test of the man page use these two.
 */
#ifndef RQD_RQCTL_VERBS_H
#define RQD_RQCTL_VERBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ctl;

/*
 * Two options may share a name (pause --reason, dead --reason; pause --wait, lock --wait):
 * a verb takes only one of them.
 */
enum opt {
	OPT_CONFIG, OPT_SERVER, OPT_SET, OPT_HELP, OPT_VERSION,
	OPT_JSON, OPT_DRY_RUN, OPT_YES,
	OPT_LINES, OPT_DELAY, OPT_AT,
	OPT_WATCH, OPT_INTERVAL,
	OPT_COUNT, OPT_RAW, OPT_NAMES,
	OPT_REASON, OPT_SINCE, OPT_UNTIL, OPT_MATCH, OPT_ALL, OPT_RATE,
	OPT_FOR, OPT_WHY, OPT_WAIT, OPT_TIMEOUT,
	OPT_ATTEMPT, OPT_ID,
	OPT_WAITING, OPT_RETRY, OPT_DELAYED, OPT_DEAD,
	OPT_LOCK_WAIT, OPT_TTL, OPT_FORCE,
	OPT_END,
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
	VERB_PUSHES = 1024	/* these, and channels */
};
#define VERB_TARGET	(VERB_ANY | VERB_KEEPING | VERB_LISTS | VERB_PUSHES)

struct verb {
	const char	*name;		/* one word, or a group and a word: "dead list" */
	const char	*args;		/* "QUEUE [MESSAGE]" */
	const char	*help;		/* one line */
	const char	*more;		/* what one must know to use it; NULL: nothing */
	uint64_t	 options;	/* beyond those of its flags and of every verb */
	int		 min_args;
	int		 max_args;	/* -1: any number */
	unsigned	 flags;
	void		(*run)(struct ctl *);
	long		 rows;		/* of a list: how many a table shows; 0: all */
};

/* Terminated by a NULL name. */
extern const struct verb verb_table[];

const struct verb *verb_find(const char *first, const char *second, int *words);
const char	*verb_nearest(const char *);	/* a verb that was probably meant, or NULL */
uint64_t	 verb_options(const struct verb *);	/* a set; NULL: those of every verb */
/* The verb's own option of that name, or else the first one of that name. */
const struct opt_def *opt_find(const struct verb *, const char *name, size_t len);
const struct opt_def *opt_find_letter(char);
/* Whether its value, a duration, may be left out. */
bool	 opt_is_optional(const struct opt_def *);

/* The functions of the verbs. */
void	status_run(struct ctl *);
void	queues_run(struct ctl *);
void	daemons_run(struct ctl *);
void	running_run(struct ctl *);
void	show_run(struct ctl *);
void	peek_run(struct ctl *);
void	push_run(struct ctl *);
void	try_run(struct ctl *);
void	dead_list(struct ctl *);
void	dead_show(struct ctl *);
void	dead_retry(struct ctl *);
void	dead_drop(struct ctl *);
void	dead_export(struct ctl *);
void	dead_import(struct ctl *);
void	dead_move(struct ctl *);
void	retry_list(struct ctl *);
void	retry_now(struct ctl *);
void	delayed_list(struct ctl *);
void	delayed_cancel(struct ctl *);
void	delayed_now(struct ctl *);
void	bury_run(struct ctl *);
void	purge_run(struct ctl *);
void	pause_run(struct ctl *);
void	pause_resume(struct ctl *);
void	schedules_run(struct ctl *);
void	schedules_push(struct ctl *);
void	forget_run(struct ctl *);
void	quiet_run(struct ctl *);
void	probe_run(struct ctl *);
void	lock_run(struct ctl *);
void	locks_run(struct ctl *);
void	unlock_run(struct ctl *);
void	check_run(struct ctl *);
void	ping_run(struct ctl *);
void	help_run(struct ctl *);
void	help_print(const struct verb *);	/* NULL: all verbs */


/* push: text to ctl.target; NULL: standard input. */
void	push_text(struct ctl *, const char *text);
/* The templates of help --completion. */
extern const char completion_bash[], completion_zsh[];
/* The exit status of check, 0 to 3, for one of check_run() or of <sysexits.h>. */
int	check_status(int);

#endif
