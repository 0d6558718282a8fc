/*
 * --until-empty; see until_empty.h.
 */
#include "service/until_empty.h"

#include <stdlib.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/util.h"

#define STOPPED	(5 * SEC)	/* a longer time between two calls */

static bool
consumer_is_suspended(const struct consumer *c)
{
	return consumer_block(c) == BLOCK_SUSPENDED;
}

static bool
consumer_cannot_execute(const struct consumer *c)
{
	return consumer_is_suspended(c) &&
	    consumer_suspension(c)->reason == REASON_CANNOT_EXECUTE;
}

/* Messages begin, run, or will begin without anybody's help. */
static bool
consumer_moves(const struct consumer *c)
{
	if (consumer_is_suspended(c))
		return false;
	return consumer_runs(c) > 0 || consumer_block(c) == BLOCK_LIMITED;
}

static char *
suspension_cause(const struct consumer *c)
{
	const struct suspension *s = consumer_suspension(c);
	const char *why = s->cause;

	if (why[0] == '\0')
		why = reason_name(s->reason);
	return xasprintf("queue \"%s\" is suspended: %s",
	    consumer_config(c)->name, why);
}

/*
 * Why no message of this consumer begins.  *status: EX_UNAVAILABLE, a fault;
 * EX_TEMPFAIL, somebody wants it so.
 */
static char *
blocked_cause(const struct consumer *c, bool quiet, const char *down,
    int *status)
{
	const char *name = consumer_config(c)->name;

	*status = EX_UNAVAILABLE;
	switch (consumer_block(c)) {
	case BLOCK_SUSPENDED:
		return suspension_cause(c);
	case BLOCK_REFUSED:
		return xasprintf("Redis refuses results of queue \"%s\": %s",
		    name, consumer_suspension(c)->refused);
	case BLOCK_PAUSED:
		*status = EX_TEMPFAIL;
		return xasprintf("queue \"%s\" is paused: rqctl resume %s",
		    name, name);
	case BLOCK_REDIS:
	case BLOCK_NONE:
	case BLOCK_FULL:
	case BLOCK_LIMITED:
		break;
	}
	if (down[0] != '\0')
		return xasprintf("Redis is unreachable: %s", down);
	if (!quiet)
		return xasprintf("no message of queue \"%s\" begins", name);
	*status = EX_TEMPFAIL;
	return xstrdup("the daemon is quiet: rqctl quiet --end");
}

/* Keeps the first cause; one of a fault, if there is one. */
static int
until_empty_explain(struct until_empty *u, struct consumer *const *c,
    size_t n, bool quiet, const char *down)
{
	int status = EX_OK, one;
	char *cause;

	for (size_t i = 0; i < n; i++) {
		if (consumer_is_idle(c[i]) || status == EX_UNAVAILABLE)
			continue;
		cause = blocked_cause(c[i], quiet, down, &one);
		if (status == EX_OK || one == EX_UNAVAILABLE) {
			xreplace(&u->cause, cause);
			status = one;
		}
		free(cause);
	}
	return status;
}

int
until_empty_judge(struct until_empty *u, struct consumer *const *c, size_t n,
    bool quiet, const char *down)
{
	usec_t now = clock_mono(), limit = UNTIL_EMPTY_WAIT_EXEC;
	uint64_t delivered = 0;
	bool moves = false;
	unsigned runs = 0;

	for (size_t i = 0; i < n; i++) {
		runs += consumer_runs(c[i]);
		moves = moves || consumer_moves(c[i]);
		if (!consumer_is_suspended(c[i]))
			delivered += consumer_stats(c[i])->n[STAT_DELIVERED];
		if (!consumer_cannot_execute(c[i]) && !consumer_is_idle(c[i]))
			limit = UNTIL_EMPTY_WAIT;
	}
	/* A daemon that was stopped has not tried meanwhile. */
	if (moves || delivered != u->delivered || now - u->asked > STOPPED)
		u->since = now;
	u->asked = now;
	u->delivered = delivered;
	if (runs > 0 || now - u->since < limit)
		return EX_OK;
	return until_empty_explain(u, c, n, quiet, down);
}
