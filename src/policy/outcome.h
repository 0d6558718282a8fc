/*
 * Decides the result of a message from the end of its handler: the table of
 * rqd-handler(7), as pure functions.
 */
#pragma once

#include <stdbool.h>

#include "base/clock.h"
#include "policy/config.h"
#include "policy/message.h"
#include "policy/pushes.h"
#include "policy/statement.h"

enum end {
	END_EXIT,		/* status */
	END_SIGNAL,		/* signo */
	END_NOT_STARTED,	/* error: the errno */
	END_NOT_RUN,		/* refused before a start, see reason */
	END_ANSWER,		/* persistent: it answered, or broke the protocol; see said */
	END_UNFRAMEABLE		/* persistent, framing "line": newline or NUL inside */
};

/* What a run has used; all 0: not known. */
struct usage {
	int64_t		 cpu;		/* microseconds, user and system */
	int64_t		 maxrss;	/* bytes: the largest peak of any of its processes */
};

#define RESULT_QUOTE_MAX	200

/* The verdict that a handler has stated about its message: see policy/statement.h. */
enum said {
	SAID_NOTHING,		/* the end decides */
	SAID_OK,
	SAID_RETRY,		/* delay */
	SAID_DEFER,		/* delay, at least STATEMENT_DEFER_MIN */
	SAID_HOLD,		/* the same, and the queue is paused for it */
	SAID_HOLD_GROUP,	/* the same, and its group waits for it */
	SAID_DEAD,
	SAID_WRONG,		/* it broke the protocol; answer says how */
	SAID_PUSHES		/* it may not push that; answer says why */
};

const char	*said_name(enum said);		/* "retry"; NULL: no word of handlers */

struct result {
	enum end	 end;
	enum stop	 stop;		/* STOP_NONE: rqd did not signal it */
	int		 status;	/* END_EXIT: 0..255 */
	int		 signo;		/* END_SIGNAL */
	int		 error;		/* END_NOT_STARTED */
	const char	*step;		/* END_NOT_STARTED: "exec", "user" ...; static */
	/*
	 * Set only with END_ANSWER, and with END_EXIT of a handler that rqd has not
	 * signalled.
	 */
	enum said	 said;
	usec_t		 delay;		/* SAID_RETRY: -1 for the backoff; SAID_DEFER, _HOLD ... */
	char		*answer;	/* the text that came with `said`; owned; or NULL */
	char		*error_tail;	/* the end of stderr, or NULL; owned */
	size_t		 error_len;
	/* Messages to push if the verdict is an ack; owned; NULL: none. */
	struct pushes	*pushes;
	pid_t		 pid;		/* 0: never started */
	usec_t		 duration;	/* from start to exit; 0: never started */
	/* mode exec, and no message of a batch with others; else all 0 */
	struct usage	 usage;
	unsigned	 batch;		/* messages of the run; 0: the queue has no batches */
	bool		 output_cut;	/* passed output_limit */
	unsigned	 leftovers;	/* left at least so many processes running */
	bool		 oom;		/* the kernel killed some, for want of memory */
};
void	result_done(struct result *);	/* frees what it owns */
/*
 * A handler has stated retry, defer, hold or dead; or ok, which withdraws an earlier one.
 * Has no effect after result_say_wrong().
 */
void	result_say(struct result *, const struct statement *);
/*
 * A handler has written a wrong line: SAID_WRONG, and the first such line counts.  The
 * answer is "what: line", with RESULT_QUOTE_MAX bytes of the line at most, up to a NUL.
 */
void	result_say_wrong(struct result *, const char *what, const char *line, size_t);
/* Whether answer has the handler's own words, not the reason why its line is wrong. */
bool	result_has_words(const struct result *);
/* Moves all that `from` owns to the first result, which must own nothing. */
void	result_move(struct result *, struct result *from);
/*
 * Call it when the end and the statement are set: frees pushes that do not count, and
 * makes a fault SAID_PUSHES.
 */
void	result_check_pushes(struct result *);

/*
 * The reason why a message was retried, became a dead letter or was given back; logs
 * and QDEAD have reason_name().
 */
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
	REASON_ANSWER,		/* the handler's statement */
	REASON_PROTOCOL,	/* the handler broke the protocol */
	REASON_PUSHES,		/* the handler pushed a message that it may not push */
	REASON_CANCELLED,	/* rqctl cancel */
	REASON_OOM,		/* failed, and memory was short */
	REASON_MAX
};
const char *reason_name(enum reason);

#define OUTCOME_HOLD_MAX	HOUR	/* of the delays of holds */

enum verdict_op {
	VERDICT_ACK,
	VERDICT_RETRY,		/* due after delay; an attempt if `failed` */
	VERDICT_DEFER,		/* due after the handler's delay; nothing counted */
	VERDICT_HOLD,		/* the same, and the queue is paused for delay */
	VERDICT_HOLD_GROUP,	/* the same, but its group waits, even if it has several places */
	VERDICT_DEAD,		/* counts an attempt if `failed` */
	VERDICT_DROP,		/* cancelled: removed as by an ack */
	VERDICT_RETURN,		/* as it was; due at once; nothing counted */
	VERDICT_STALE		/* settled elsewhere: write nothing */
};

struct verdict {
	enum verdict_op	 op;
	enum reason	 reason;
	usec_t		 delay;		/* valid if verdict_has_delay() */
	bool		 failed;	/* counts as an attempt: attempts + 1 */
	enum reason	 suspend;	/* REASON_NONE, or why the queue must be suspended */
};

/* Whether the message is due again after v->delay. */
static inline bool
verdict_has_delay(const struct verdict *v)
{
	return v->op >= VERDICT_RETRY && v->op <= VERDICT_HOLD_GROUP;
}

/* Whether the verdict is about the message only: it tells nothing against the command. */
bool		verdict_is_of_message(const struct verdict *);

/*
 * Decides a finished delivery.  unit is a random number in [0, 1) for the
 * backoff's jitter.
 *
 * doubted: the command may be broken, not the message.  It was a probe, or the queue was
 * suspended while it ran, and nothing shows that the message is to blame (suspension.h).
 * Then no failure counts as an attempt.
 */
struct verdict	outcome_decide(const struct message *, const struct result *, bool doubted,
		    double unit);

/*
 * Call it before a run.  Returns true, and the verdict, if the message must not be run
 * at all (cancelled, too large, crashed too often, attempts used up).
 */
bool		outcome_refuse(const struct message *, struct verdict *);
