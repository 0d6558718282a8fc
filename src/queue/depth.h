/*
 * The depth of a queue: how many messages it has in each state, and who paused it.
 * This file makes the commands and reads the replies.  The number of commands is fixed,
 * and each takes O(1) or O(log n), so a long queue hardly costs more.
 *
 * The caller sends them: rqctl waits for the replies (rqctl/snapshot.c), the daemon
 * does not (status/survey.c).  For each step:
 *
 *	argc = depth_command(&keys, kind, step, now, argv);
 *	if (argc > 0)	send it; with its reply: depth_answer(d, step, reply)
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/stats.h"
#include "policy/config.h"
#include "queue/keys.h"

struct redisReply;

/* A number is -1 if the kind does not have it, or its key is of the wrong type. */
struct depth {
	int64_t	 waiting;
	int64_t	 in_flight;	/* foreign consumers' too */
	int64_t	 held;		/* wait for others of their group */
	int64_t	 retry;
	int64_t	 due;		/* of retry: already due */
	int64_t	 delayed;
	int64_t	 dead;
	int64_t	 own;		/* fields of QDELIVERY: tags in flight, retry or held */
	double	 overdue;	/* longest wait in seconds, but in a list; -1: not known */
	bool	 paused;
	char	*pause;		/* the value of QPAUSED; "": not paused; owned */
	double	 pause_left;	/* seconds; -1: no end */
	int64_t	 total[STAT_MAX];	/* QSTATS */
	int64_t	 taken;		/* QSTATS; 0 if it is not there */
	double	 now;		/* Redis seconds of the question; the caller sets it */
	char	*problem;	/* the first error reply; NULL: none; owned */
	bool	 partly;	/* of a sum: some keys are paused, and some are not */
};

enum { DEPTH_STEPS = 12, DEPTH_WORDS = 3 + STAT_MAX };

void	depth_init(struct depth *);	/* nothing known yet */
void	depth_done(struct depth *);	/* a zeroed one is fine, too */

/* How many could run now, or wait for others of their group; -1: not known. */
int64_t	depth_backlog(const struct depth *);

/* How many messages there are, in all states. */
int64_t	depth_messages(const struct depth *);

/*
 * The command of a step: its words, borrowed, into argv, which has room for
 * DEPTH_WORDS; returns how many, 0 where this kind has no such step.  now is
 * Redis' time in seconds, as text.
 */
int	depth_command(const struct keys *, enum kind, int step, const char *now,
	    const char **argv);

/*
 * Adds the depth of another key of the same queue.  The sum is paused if all keys are;
 * it has the pause of the first one that is paused.
 */
void	depth_add(struct depth *, const struct depth *);

/* Takes the reply to it; an error becomes the queue's problem. */
void	depth_answer(struct depth *, int step, const struct redisReply *);
