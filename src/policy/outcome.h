/*
 * From how a handler ended to what becomes of its message: the table of
 * rqd-handler(7), as pure functions.
 */
#ifndef RQD_POLICY_OUTCOME_H
#define RQD_POLICY_OUTCOME_H

#include <stdbool.h>

#include "base/clock.h"
#include "policy/config.h"
#include "policy/message.h"
#include "policy/pushes.h"
#include "policy/statement.h"

/* Why rqd signalled a delivery.  Stored before the signal is sent. */
enum stop {
	STOP_NONE,
	STOP_TIME_LIMIT,
	STOP_DRAIN,		/* shutdown: give the message back */
	STOP_LOST,		/* another delivery has begun: write nothing */
	STOP_CANCEL,		/* rqctl cancel: message.cancel says what follows */
	STOP_PEER		/* persistent: its process ended over another message */
};

enum end {
	END_EXIT,		/* status */
	END_SIGNAL,		/* signo */
	END_NOT_STARTED,	/* error: errno of what failed */
	END_NOT_RUN,		/* never tried: refused before, see reason */
	END_ANSWER,		/* persistent: it answered, or broke the protocol; see said */
	END_UNFRAMEABLE		/* persistent, framing "line": newline or NUL inside */
};

#define RESULT_QUOTE_MAX	200

/* The verdict that a handler has stated about its message: see policy/statement.h. */
enum said {
	SAID_NOTHING,		/* the end decides */
	SAID_OK,
	SAID_RETRY,		/* delay */
	SAID_DEFER,		/* delay, at least STATEMENT_DEFER_MIN */
	SAID_DEAD,
	SAID_WRONG,		/* it broke the protocol; answer says how */
	SAID_PUSHES		/* it may not push that; answer says why */
};

const char	*said_name(enum said);		/* "retry"; NULL: not a word of the handler's */

struct result {
	enum end	 end;
	enum stop	 stop;		/* STOP_NONE: rqd did not signal it */
	int		 status;	/* END_EXIT: 0..255 */
	int		 signo;		/* END_SIGNAL */
	int		 error;		/* END_NOT_STARTED */
	const char	*step;		/* END_NOT_STARTED: "exec", "user" ...; static */
	/* Only with END_ANSWER, and with END_EXIT of a handler that rqd has not signalled. */
	enum said	 said;
	usec_t		 delay;		/* SAID_RETRY: -1 for the backoff; SAID_DEFER */
	char		*answer;	/* the words that came with said; owned; or NULL */
	char		*error_tail;	/* the end of stderr, or NULL; owned */
	size_t		 error_len;
	/* Messages to push if the verdict is an ack; owned; NULL: none. */
	struct pushes	*pushes;
	pid_t		 pid;		/* 0: never started */
	usec_t		 duration;	/* from start to exit; 0: never started */
	unsigned	 batch;		/* messages of the run; 0: the queue has no batches */
	bool		 output_cut;	/* passed output_limit */
	bool		 leftovers;	/* left processes running */
};
void	result_done(struct result *);	/* frees what it owns */
/*
 * A handler has said retry, defer or dead, or ok, which withdraws what it has said before.
 * Nothing changes after result_say_wrong().
 */
void	result_say(struct result *, const struct statement *);
/*
 * It has said something wrong: SAID_WRONG, or SAID_PUSHES, which SAID_WRONG replaces.  The
 * answer is "what: line", of which RESULT_QUOTE_MAX bytes at most, up to a NUL.
 */
void	result_say_wrong(struct result *, const char *what, const char *line, size_t);
/* Whether answer has words of the handler's verdict, not why it is wrong. */
bool	result_has_words(const struct result *);
/* Moves what from owns to the first one, which must own nothing. */
void	result_move(struct result *, struct result *from);
/* Its end and what it said are set: frees pushes that do not count; a fault is SAID_PUSHES. */
void	result_check_pushes(struct result *);

/* Why a message was retried, buried or given back; logs and QDEAD hold reason_name(). */
enum reason {
	REASON_NONE,
	REASON_EXIT,		/* a failing exit status */
	REASON_SIGNAL,
	REASON_TIMEOUT,
	REASON_CRASHED,		/* lease expired more than max_crashes times */
	REASON_STATUS,		/* dead_status */
	REASON_ATTEMPTS,	/* max_attempts reached */
	REASON_TOO_LARGE,	/* message_max */
	REASON_UNFRAMEABLE,
	REASON_BURIED,		/* rqctl bury */
	REASON_FAILING,		/* suspended: suspend_after failures in a row */
	REASON_CANNOT_EXECUTE,	/* suspended: 126, 127, or the command cannot be started */
	REASON_DRAIN,		/* returned at shutdown */
	REASON_ANSWER,		/* the handler said so */
	REASON_PROTOCOL,	/* what it said was wrong */
	REASON_PUSHES,		/* it pushed what it may not push */
	REASON_CANCELLED	/* rqctl cancel */
};
const char *reason_name(enum reason);

enum verdict_op {
	VERDICT_ACK,
	VERDICT_RETRY,		/* due after delay; a failed attempt where failed says so */
	VERDICT_DEFER,		/* due after delay, as the handler wished; nothing counted */
	VERDICT_DEAD,		/* attempts counts this one where it failed */
	VERDICT_DROP,		/* cancelled: removed as by an ack */
	VERDICT_RETURN,		/* as it was; due at once; nothing counted */
	VERDICT_STALE		/* settled elsewhere: write nothing */
};

struct verdict {
	enum verdict_op	 op;
	enum reason	 reason;
	usec_t		 delay;		/* VERDICT_RETRY, VERDICT_DEFER */
	bool		 failed;	/* counts as an attempt: attempts + 1 */
	enum reason	 suspend;	/* REASON_NONE, or why the queue must be suspended */
};

/* The handler's verdict is about the message: nothing is wrong with the command. */
bool		verdict_is_of_message(const struct verdict *);

/*
 * Decides a finished delivery.  unit is a random number in [0, 1) for the
 * backoff's jitter.
 *
 * suspended: it was a probe, or the queue was suspended while it ran.  Then it
 * may be the command that is broken, not the message: no failure makes a dead letter
 * for max_attempts, and a status of 126 or 127 counts no attempt.
 */
struct verdict	outcome_decide(const struct message *, const struct result *, bool suspended,
		    double unit);

/*
 * Before anything is run: true, and the verdict, where the message must not be
 * run at all (cancelled, too large, crashed too often, attempts used up).
 */
bool		outcome_refuse(const struct message *, struct verdict *);

/* Whether failing to start with this errno says nothing about the message. */
bool		outcome_is_environment(int error);

#endif
