/*
 * The one table of verbs, and the one table of their options.  Help, parsing,
 * completion and the test of the man page are made from these two.
 */
#ifndef RQD_RQCTL_VERBS_H
#define RQD_RQCTL_VERBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ctl;

/*
 * Two options may share a name (pause --reason, dead --reason; pause --wait,
 * lock --wait D): a verb has one of them.
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
	const char	*arg;		/* what its value is called; NULL: it takes none; see opt_is_optional() */
	const char	*help;
};

extern const struct opt_def opt_table[OPT_MAX];

enum {
	VERB_JSON = 1,		/* takes --json */
	VERB_DESTRUCTIVE = 2,	/* takes -n and -y; asks on a terminal, else needs -y */
	VERB_LOCAL = 4,		/* reads no configuration */
	VERB_QUEUES = 8		/* the first argument is a queue: for completion */
};

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
};

/* Terminated by a NULL name. */
extern const struct verb verb_table[];

const struct verb *verb_find(const char *first, const char *second, int *words);
const char	*verb_nearest(const char *);		/* did you mean; NULL: nothing near */
uint64_t	 verb_options(const struct verb *);	/* all it takes; NULL: those of every verb */
/* Of that name: the verb's own, or else the first. */
const struct opt_def *opt_find(const struct verb *, const char *name, size_t len);
const struct opt_def *opt_find_letter(char);
/* Whether its value, a duration, may be left out. */
bool	 opt_is_optional(const struct opt_def *);

#endif
