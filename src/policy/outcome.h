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

/* Why rqd signalled a delivery.  Stored before the signal is sent. */
enum stop {
	STOP_NONE,
	STOP_TIME_LIMIT,
	STOP_DRAIN,		/* shutdown: give the message back */
	STOP_LOST,		/* another delivery has begun: write nothing */
	STOP_PEER		/* persistent: its process ended over another message */
};

enum end {
	END_EXIT,		/* status */
	END_SIGNAL,		/* signo */
	END_NOT_STARTED,	/* error: errno of what failed */
	END_NOT_RUN,		/* never tried: refused before, see reason */
	END_ANSWER_OK,		/* persistent handlers' answers */
	END_ANSWER_RETRY,	/* delay */
	END_ANSWER_DEAD,
	END_UNFRAMEABLE,	/* persistent, framing "line": newline or NUL inside */
	END_PROTOCOL		/* persistent: it broke the protocol; reason says how */
};

struct result {
	enum end	 end;
	enum stop	 stop;		/* STOP_NONE: rqd did not signal it */
	int		 status;	/* END_EXIT: 0..255 */
	int		 signo;		/* END_SIGNAL */
	int		 error;		/* END_NOT_STARTED */
	const char	*step;		/* END_NOT_STARTED: "exec", "user" ...; static */
	usec_t		 delay;		/* END_ANSWER_RETRY: -1 for the backoff */
	/* END_ANSWER_*: the handler's words; END_PROTOCOL: what was wrong; owned; or NULL. */
	char		*reason;
	char		*error_tail;	/* the end of stderr, or NULL; owned */
	size_t		 error_len;
	pid_t		 pid;		/* 0: never started */
	usec_t		 duration;	/* from start to exit; 0: never started */
	bool		 output_cut;	/* passed output_limit */
	bool		 leftovers;	/* left processes running */
};
void	result_done(struct result *);	/* frees what it owns */
/* Moves what from owns to the first one, which must own nothing. */
void	result_move(struct result *, struct result *from);

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
	REASON_ANSWER,		/* a persistent handler said so */
	REASON_PROTOCOL		/* a persistent handler broke the protocol */
};
const char *reason_name(enum reason);

enum verdict_op {
	VERDICT_ACK,
	VERDICT_RETRY,		/* due after delay; a failed attempt where failed says so */
	VERDICT_DEAD,		/* attempts counts this one where it failed */
	VERDICT_RETURN,		/* as it was; due at once; nothing counted */
	VERDICT_STALE		/* settled elsewhere: write nothing */
};

struct verdict {
	enum verdict_op	 op;
	enum reason	 reason;
	usec_t		 delay;		/* VERDICT_RETRY */
	bool		 failed;	/* counts as an attempt: attempts + 1 */
	enum reason	 suspend;	/* REASON_NONE, or why the queue must be suspended */
};

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
 * run at all (too large, crashed too often, attempts used up).
 */
bool		outcome_refuse(const struct message *, struct verdict *);

/* Whether failing to start with this errno says nothing about the message. */
bool		outcome_is_environment(int error);

#endif
