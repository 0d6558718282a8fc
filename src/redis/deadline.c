/*
 * The deadlines of a connection, and its period of timely replies.
 *
 * A command is overdue if neither its bytes nor those of its reply have moved for
 * options.timeout.  Their size does not matter.  While commands are outstanding a timer
 * looks every quarter of the timeout.  A whole reply is progress; otherwise
 * PROGRESS_BYTES_MIN bytes must have moved since the last progress, so that a server
 * that sends a byte now and then cannot hold a connection for ever.  Of the bytes sent,
 * only those up to the end of the oldest command count: later ones do not prove that
 * the server reads.
 *
 * In the period of timely replies (conn_timely_since()) the owners of leases were able
 * to renew them.  It ends with
 *	- a reply that stood still for longer than conn_timely_limit(),
 *	- silence: no whole reply for longer than silence_max, on this connection
 *	  and the ones before it,
 *	- a round of attempts that all failed, conn_reset(), or another server than
 *	  before.
 * The end of a connection alone does not end it: a server closes idle clients, and
 * operators kill connections, while the server works for all others.
 */

#include "base/units.h"
#include "redis/conn_private.h"

#define TIMELY_MAX	(2 * SEC)
#define PROBED_EVERY	(10 * SEC)	/* by the owner, see conn_set_silence_max() */

/*
 * More time after a deadline, a tenth of the timeout and at least this: the daemon may
 * have been stopped while the reply arrived.
 */
#define GRACE_MIN	(200 * MSEC)

usec_t
conn_grace(const struct conn *c)
{
	return c->opt->timeout / 10 > GRACE_MIN ? c->opt->timeout / 10 : GRACE_MIN;
}

char *
conn_timeout_text(const struct conn *c, const char *what)
{
	char buf[UNITS_TEXT_MAX];

	return xasprintf("%s within %s", what, units_duration(c->opt->timeout, buf));
}

/* -- the oldest command ------------------------------------------------------- */

static usec_t
later_of(usec_t a, usec_t b)
{
	return a > b ? a : b;
}

/* The next look: at `at`, or in a quarter of the timeout, whichever is first. */
static void
conn_look_next(struct conn *c, usec_t at)
{
	usec_t soon = clock_mono() + c->opt->timeout / 4;

	timer_set_at(&c->timer, at < soon ? at : soon);
}

/* A command was sent, and there was none before it. */
void
conn_look_begin(struct conn *c)
{
	c->grace = false;
	c->seen_replies = c->replies;
	c->seen_moved = c->rules.read + c->rules.written;
	timer_set(&c->timer, c->opt->timeout / 4);
}

/* Whether enough bytes have moved since the last progress. */
static bool
conn_look_progress(struct conn *c, const struct pending *oldest)
{
	uint64_t sent = hiredis_loop_sent(c->ac), moved;

	moved = c->rules.read + (sent < oldest->end ? sent : oldest->end);
	if (c->replies == c->seen_replies && moved < c->seen_moved + PROGRESS_BYTES_MIN)
		return false;
	c->still_since = c->replies == c->seen_replies ? clock_mono() : c->heard_at;
	c->seen_replies = c->replies;
	c->seen_moved = moved;
	return true;
}

bool
conn_look(struct conn *c)
{
	const struct pending *oldest = pending_oldest(&c->pending);
	usec_t deadline;

	if (oldest == NULL)
		return true;
	if (conn_look_progress(c, oldest))
		c->grace = false;
	deadline = later_of(oldest->since, c->still_since) + c->opt->timeout;
	if (clock_mono() < deadline) {
		c->grace = false;
		conn_look_next(c, deadline);
		return true;
	}
	if (c->grace)
		return false;
	c->grace = true;
	timer_set(&c->timer, conn_grace(c));
	return true;
}

/* -- the period of timely replies --------------------------------------------- */

usec_t
conn_timely_limit(const struct conn *c)
{
	return c->opt->timeout / 2 < TIMELY_MAX ? c->opt->timeout / 2 : TIMELY_MAX;
}

void
conn_untimely(struct conn *c)
{
	c->timely_since = c->state == CONN_READY ? clock_mono() : 0;
}

/* Whether the oldest reply stands still. */
static bool
conn_is_slow(const struct conn *c, usec_t now)
{
	const struct pending *oldest = pending_oldest(&c->pending);

	return oldest != NULL &&
	    now - later_of(oldest->since, c->bytes_at) > conn_timely_limit(c);
}

static bool
conn_is_silent(const struct conn *c, usec_t now)
{
	return c->silence_max > 0 && now - c->heard_at > c->silence_max;
}

bool
conn_is_timely(const struct conn *c)
{
	usec_t now = clock_mono();

	return !conn_is_slow(c, now) && !conn_is_silent(c, now);
}

void
conn_received_bytes(void *arg)
{
	struct conn *c = arg;
	usec_t now = clock_mono();

	if (conn_is_slow(c, now))
		conn_untimely(c);
	c->bytes_at = now;
}

void
conn_received_reply(struct conn *c)
{
	usec_t now = clock_mono();

	c->replies++;
	if (conn_is_silent(c, now))
		conn_untimely(c);
	c->heard_at = now;
}

usec_t
conn_timely_since(const struct conn *c)
{
	if (c->state != CONN_READY)
		return 0;
	return conn_is_timely(c) ? c->timely_since : clock_mono();
}

/* -- an idle connection ------------------------------------------------------- */

/* READY: sends a PING at two thirds of silence_max, if the owner's PINGs are too rare. */
void
conn_ping_idle(void *arg)
{
	struct conn *c = arg;
	usec_t every = c->silence_max / 3 * 2, now = clock_mono();

	if (c->silence_max == 0 || every >= PROBED_EVERY || c->state != CONN_READY)
		return;
	if (now >= c->heard_at + every)
		conn_probe(c);
	timer_set_at(&c->idle, now >= c->heard_at + every ? now + every : c->heard_at + every);
}

void
conn_set_silence_max(struct conn *c, usec_t silence)
{
	c->silence_max = silence;
	timer_stop(&c->idle);
	conn_ping_idle(c);
}
