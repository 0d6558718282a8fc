/*
 * What is wrong with a queue, or with Redis, and what to do: the only place that judges.
 * `rqctl status` and /status show the first finding's word, `rqctl check` the sentences, and the
 * page all of it, so they cannot differ.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "queue/depth.h"
#include "queue/keys.h"
#include "status/fleet.h"

/* All facts about one queue at one moment; borrowed. */
struct facts {
	const char		*name;
	const struct keys	*keys;
	enum kind		 kind;
	bool			 elsewhere;	/* declared for others: concurrency = 0 */
	bool			 full;		/* Redis is, and so refuses heartbeats */
	const char		*refuses;	/* its error, if Redis refuses all writes */
	int64_t			 delayed_due;	/* of QDELAYED, if that was asked; else 0 */
	const struct depth	*depth;
	const struct service	*service;
	wall_t			 taken;
};

/* The worst comes first. */
enum level {
	LEVEL_ERROR, LEVEL_WARNING, LEVEL_UNKNOWN,	/* rqctl check has these */
	LEVEL_NOTE,		/* unusual, and meant to be so */
	LEVEL_OK
};

const char	*level_name(enum level);	/* "error" */
const char	*level_mood(enum level);	/* in JSON: "ok" "idle" "warn" "bad" */

/* How urgent a queue is; those of one rank are shown by the number that waits. */
enum rank {
	RANK_IDLE, RANK_OK,
	RANK_MINOR,	/* all is well but for dead letters, or messages that fail now, and so on */
	RANK_WARNING, RANK_ERROR
};

struct judge_finding {
	enum level	 level;
	enum rank	 rank;
	char		*word;		/* a few, for a table: "suspended: failing for 5m" */
	char		*sentence;	/* for a line after "orders: "; NULL: nothing is wrong */
	char		*hint;		/* what to do, with the option and its place, or NULL */
	char		*commands;	/* lines to copy, or NULL */
};

/* How commands are written, and what the reader knows and may see; borrowed. */
struct judge_context {
	const char	*rqctl;		/* "rqctl -c FILE": with the options that it needs */
	const char	*queue;		/* as rqctl needs it */
	const struct config *config;	/* of the daemon; NULL: not known, as the next */
	const struct queue_config *cfg;	/* the queue there; NULL: it has none */
	bool		 details;	/* ids, arguments of commands, texts of handlers */
	bool		 dead_is_fine;	/* the reader has a limit of his own for dead letters */
};

typedef void judge_fn(const struct judge_finding *, void *);

/*
 * Emits at least one finding, the worst first.  Each is borrowed for the call.  The text is not
 * escaped.
 */
void	judge(const struct facts *, const struct judge_context *, judge_fn *, void *);

/* The first of them: appends its word, unless b is NULL. */
struct verdict_of_queue {
	enum level	 level;
	enum rank	 rank;		/* failed_rate > 0 makes it RANK_MINOR at least */
};
struct verdict_of_queue	judge_first(const struct facts *, const struct judge_context *,
		    double failed_rate, struct buf *b);

/* How bad a daemon's state of a queue is, but for what else is known of the queue. */
enum level	judge_state(enum queue_state);

/* Whether there is no message that a daemon could try, now or later. */
bool	facts_are_empty(const struct depth *);

/*
 * Whether all handlers are busy, and a message has waited FACTS_LATE or longer: the
 * queue is too slow for its producers.
 */
#define FACTS_LATE	60.0	/* seconds */
bool	facts_are_late(const struct facts *);
/* How many messages run, -1: not known; for kinds without leases only daemons know it. */
int64_t	facts_running(const struct facts *);
/* How long the oldest message has waited, as all daemons and Redis know it; -1: not known. */
double	facts_latency(const struct facts *);
/*
 * The same for a caller that knows how long messages in a list have waited, and in a suspended
 * queue those that it has tried; -1: not known.
 */
double	facts_latency_with(enum kind, const struct depth *, double list, double tried);

/* -- Redis ------------------------------------------------------------------------ */

/* What is known of a server; "" or 0: it is not.  Borrowed. */
struct server_facts {
	uint64_t	 used, max;		/* bytes; max 0: no limit */
	const char	*policy;		/* maxmemory-policy */
	const char	*role, *version;
	const char	*refuses;		/* its error, if it refuses all writes */
	bool		 no_aof;		/* no append-only file, and no replica */
};
void	judge_server(const struct server_facts *, judge_fn *, void *);

/*
 * A clock that is that many seconds ahead of Redis'.  whose: an instance, whose heartbeat says
 * it, or "this host", of whose clock rqctl asks only if no heartbeat tells of a wrong one.
 * Returns whether it is wrong.
 */
bool	judge_clock(const char *whose, double ahead, judge_fn *, void *);

/* What /readyz looks at; borrowed. */
struct ready_facts {
	const char	*state;		/* as in struct view */
	bool		 up, in_part;	/* all nodes of Redis that are needed; at least one */
	const char	*down;		/* why not all are; "": not known */
	const char	*refuses;	/* NULL: Redis takes writes */
};
/* Appends "ready", or why the daemon is not. */
bool	judge_ready(const struct ready_facts *, struct buf *);

/* Whether this error of Redis means that it refuses all writes: MISCONF READONLY ... OOM. */
bool	judge_is_refusal(const char *error);
/* Whether a handler has paused the queue (hold), and no person. */
bool	judge_is_held(const struct depth *);
