/*
 * The state of a queue as operators see it, in words and as JSON.  `rqctl status` and
 * /status both use this, so they cannot differ.
 */
#pragma once

#include <jansson.h>

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
	const struct depth	*depth;
	const struct service	*service;
	wall_t			 taken;
};

enum mood { MOOD_OK, MOOD_IDLE, MOOD_WARN, MOOD_BAD };

/* How long the oldest message has waited, as all daemons and Redis know it; -1: not known. */
double	state_latency(const struct facts *);
/* The same for a caller that knows how long messages in a list have waited. */
double	state_latency_with(enum kind, const struct depth *, double list);

/* Appends a few words, unescaped: why the queue does not run, or its problem, or "ok". */
enum mood	 state_text(const struct facts *, struct buf *);

/* Whether there is no message that a daemon could try, now or later. */
bool		 state_is_empty(const struct depth *);

/*
 * Whether all handlers are busy, and a message has waited STATE_LATE or longer: the
 * queue is too slow for its producers.
 */
#define STATE_LATE	60.0	/* seconds */
bool		 state_is_late(const struct facts *);
/*
 * Whether all handlers are busy because runs take far longer than usual: perhaps they hang.  More
 * handlers would hang, too.
 */
bool		 state_is_slow(const struct facts *);

/*
 * How urgent a queue of this mood is, from 0 (idle) to STATE_TROUBLE_MAX (bad).
 * STATE_TROUBLE: all is well but that it has dead letters, or that messages fail now.  Those of
 * one rank are shown by the number that waits.
 */
#define STATE_TROUBLE		2
#define STATE_TROUBLE_MAX	4
int		 state_trouble(const struct facts *, enum mood, double failed_rate);

/* A new object. */
json_t		*state_json(const struct facts *);
