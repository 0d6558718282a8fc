/*
 * The selection of messages by ids and filters, and verbs that change many: the question,
 * --rate, the progress on a terminal, and the line with the result.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "rqctl/ctl.h"

/*
 * A selection of messages: by id, --match, and for dead letters --reason, --since and
 * --until.
 */
struct select {
	const char *const	*ids;		/* borrowed; of messages, letters, or tags */
	int			 nids;		/* 0: any */
	const char		*reason;	/* "": any */
	const char		*match;		/* "": anything */
	wall_t			 since;		/* 0: from the first */
	wall_t			 until;		/* 0: to the last */
};

/*
 * Reads the arguments after the queue and the options.  With VERB_SELECTS one of them must
 * be given, or --all.  Returns 0, or -1 after an error was reported.
 */
int	select_parse(struct ctl *, struct select *) MUSTCHECK;
/* Whether there is any condition. */
bool	select_is_narrow(const struct select *);

/* Whether this could be a letter's id in QDEAD: digits, a dash, digits. */
bool	select_is_letter(const char *);

/* -- changes ----------------------------------------------------------------------- */

struct change {
	struct ctl	*ctl;
	const void	*arg;		/* as given to change_run(); for walk and none */
	struct select	 select;
	bool		 dry;		/* only count: --dry-run, or before the question */
	int64_t		 most;		/* changes at most: as many as the user agreed to; 0: all */
	int64_t		 matched;	/* messages that the walk has found */
	int64_t		 done;		/* messages that were changed; --rate counts these */
	const char	*word;		/* "retried" */
	double		 rate;		/* per second; 0: no limit */
	usec_t		 began;
	bool		 silent;	/* shows no progress */
};

/* One verb.  walk goes over the messages and counts matched and done. */
struct change_ops {
	const char	*verb;		/* for the question: "retry" */
	const char	*what;		/* "dead letter" */
	const char	*word;		/* "retried" */
	const char	*thing;		/* for the result; NULL: what */
	const char	*member;	/* the number's name in JSON; NULL: word */
	bool		 complete;	/* JSON has "complete" */
	void		(*walk)(struct change *);
	void		(*none)(struct change *);	/* reports no match; or NULL */
};

/* Asks if the verb's row says so, walks, and prints the result. */
void	change_run(struct ctl *, const struct change_ops *, const void *arg);

/*
 * For verbs that only read: parses the selection and --rate, and catches signals.
 * Returns 0, or -1 after an error was reported.
 */
int	change_begin(struct ctl *, struct change *, const char *word) MUSTCHECK;

/* How many of the next n messages may be changed in one step: at least 1. */
int	change_step(const struct change *, int n);

/* Counts the next n matches; returns how many of them `most` allows. */
int	change_match(struct change *, int n);

/*
 * Adds n changes, and shows that the walk has looked at `looked` of `total` messages.  Sleeps
 * as --rate demands.  False: a signal has come, so the walk must stop.
 */
bool	change_add(struct change *, int64_t n, int64_t looked, int64_t total);

/* Reports that no message was found, unless an error was reported. */
void	change_none(struct change *, const char *what);

/* Whether the walk goes on: not interrupted, and fewer matches than `most`. */
bool	change_goes_on(const struct change *);
