/*
 * The suspension of one queue, as a part of its consumer.  A queue is suspended when its
 * command cannot be executed, when it fails suspend_after times in a row, or when Redis
 * refuses the pops.  It is then probed with one message at a time; the first success resumes
 * it.
 *
 *	NOT_SUSPENDED --failure--> SUSPENDED --suspension_turn()--> PROBING
 *	      ^                        ^-------------failure-----------'|
 *	      '-------------------------success-------------------------'
 *
 * The first probe comes after 1 s, the next ones 2 s, 4 s and so on after the last has
 * failed, up to 5 s.
 *
 * A message is to blame, and not the command, if another message has succeeded since it
 * first failed, in a run that began after that failure.  Its failures count as attempts even
 * in a probe, and suspend nothing.  This daemon remembers what it has seen itself: after a
 * restart, or of a failure in another daemon, it blames no message until it has seen both.
 *
 * It also keeps the reason why Redis refuses results of the queue, which suspends
 * nothing.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/stats.h"
#include "loop/timer.h"
#include "policy/message.h"
#include "policy/outcome.h"
#include "policy/turn.h"

#define SUSPENSION_CAUSE_MAX	500	/* bytes */

enum suspension_state { NOT_SUSPENDED, SUSPENDED, PROBING };

/* A message that has failed and waits for its retry. */
struct failure {
	TAILQ_ENTRY(failure)	 entry;
	char		*tag;		/* owned */
	struct consumer_source *source;
	usec_t		 first;		/* mono; its first failure */
	uint64_t	 row;		/* on the list `row` if that is the present one's number */
	unsigned	 times;		/* failures in that row */
	unsigned	 pulls;		/* how often it was made due for a probe since it failed */
};
TAILQ_HEAD(failures, failure);

struct suspension {
	/* read only: */
	enum suspension_state	 state;
	enum reason	 reason;	/* valid unless NOT_SUSPENDED, as the next three */
	bool		 pops_refused;	/* it is because Redis refuses the pops */
	usec_t		 since;		/* mono */
	/*
	 * The cause of the suspension, or of the last probe's failure; visible UTF-8;
	 * "": none.
	 */
	char		 cause[SUSPENSION_CAUSE_MAX + 1];
	char		*refused;	/* why Redis refuses results; owned; NULL: it does not */
	usec_t		 refused_since;	/* mono */
	/* set by the owner; the functions may be called from inside of a call: */
	const struct queue_config *cfg;
	struct stats	*stats;
	void		(*changed)(void *);	/* another answer of suspension_allows(), perhaps */
	/* The queue was suspended or resumed, or `refused` has changed. */
	void		(*blocked)(void *);
	void		(*due)(const struct failure *);	/* make it due */
	void		*arg;
	size_t		 nrow;		/* messages in `row` */
	/* private: */
	int		 failures;	/* in a row, while NOT_SUSPENDED */
	unsigned	 probes;	/* failed in a row for this reason */
	unsigned	 turns;		/* probes begun since it was suspended */
	bool		 untold;	/* the cause is not the one in the last record */
	usec_t		 told_at;	/* mono; that record */
	usec_t		 probe_at;	/* mono; SUSPENDED: the next probe may begin */
	struct timer	 probe;		/* set while SUSPENDED */
	struct timer	 reminder;	/* hourly until it resumes */
	/* Messages that wait for a retry, by source and tag (tsearch(3)). */
	void		*failures_by_tag;
	size_t		 nremembered;
	/*
	 * Of these, the ones that have failed since the failure that began the row, without
	 * blame; and all others.  The last failures come last.
	 */
	struct failures	 row, past;
	uint64_t	 nth;		/* number of the row */
	usec_t		 waiting;	/* mono; since then some message has waited; 0: unknown */
	usec_t		 worked;	/* mono: the latest delivery that has succeeded */
};

void	suspension_init(struct suspension *, struct loop *);
void	suspension_done(struct suspension *);

/* Whether a message may begin now; *single: only one, as a probe. */
bool	suspension_allows(const struct suspension *, bool *single);
/* Begins a probe if one is due, and returns the turn for the fetch. */
enum turn suspension_turn(struct suspension *);
/*
 * It is on because the command may be broken, and not because Redis refuses the pops: then a
 * failure counts as no attempt of its message.
 */
bool	suspension_doubts(const struct suspension *);

/*
 * Suspended: how many seconds a message has waited at least, of those that were tried; of several
 * keys also after they were empty; -1: not known.  Each probe makes its message due anew, so Redis
 * does not know.
 */
double	suspension_waits(const struct suspension *);

/* Whether a failure of this message is its own; see above. */
bool	suspension_blames(const struct suspension *, const struct message *);
/*
 * A message has its verdict.  Returns how many times it has failed in the row; 0: not now;
 * SUSPENSION_BLAMED: it fails, and is to blame.
 */
#define SUSPENSION_BLAMED	UINT_MAX
unsigned suspension_note(struct suspension *, const struct message *, const struct verdict *);
/* A run has ended; times: the least that suspension_note() has returned of its failures. */
void	suspension_judge(struct suspension *, const struct verdict *, const struct result *,
	    unsigned times);
/*
 * A message was given back before it ran, or a fetch brought none (empty): the next probe may
 * follow.
 */
void	suspension_idle(struct suspension *, bool empty);
/* Redis refused a fetch, with this error.  _accepted: it answered one. */
void	suspension_refused(struct suspension *, const char *error);
void	suspension_accepted(struct suspension *);
/*
 * Redis refuses results, for this reason; "": it accepts them again.  The first reason
 * stays.
 */
void	suspension_results(struct suspension *, const char *why);
