/*
 * The depth of a queue; see depth.h.  The steps are the rows of a table: command, key,
 * and the member for the number.  The last four are not numbers: see depth_answer().
 */
#include "queue/depth.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "policy/waited.h"
#include "redis/reply.h"
#include "redis/script.h"

enum step {
	STEP_WAITING, STEP_IN_FLIGHT, STEP_RETRY, STEP_DELAYED, STEP_DEAD, STEP_OWN, STEP_DUE,
	STEP_HELD, STEP_OVERDUE, STEP_PAUSE, STEP_PAUSE_LEFT, STEP_TOTALS, STEP_MAX
};
_Static_assert((int)STEP_MAX == (int)DEPTH_STEPS, "DEPTH_STEPS must be the number of steps");

static const struct {
	const char	*command;	/* NULL: the kind says which */
	enum key	 key;
	size_t		 at;		/* of an int64_t in struct depth */
} steps[] = {
	[STEP_WAITING] = { NULL, KEY_QUEUE, offsetof(struct depth, waiting) },
	[STEP_IN_FLIGHT] = { "ZCARD", KEY_BACKUP, offsetof(struct depth, in_flight) },
	[STEP_RETRY] = { "ZCARD", KEY_RETRY, offsetof(struct depth, retry) },
	[STEP_DELAYED] = { "ZCARD", KEY_DELAYED, offsetof(struct depth, delayed) },
	[STEP_DEAD] = { "XLEN", KEY_DEAD, offsetof(struct depth, dead) },
	[STEP_OWN] = { "HLEN", KEY_DELIVERY, offsetof(struct depth, own) },
	[STEP_DUE] = { "ZCOUNT", KEY_RETRY, offsetof(struct depth, due) },
	[STEP_HELD] = { "ZCARD", KEY_HELD, offsetof(struct depth, held) },
	[STEP_OVERDUE] = { "EVAL", KEY_QUEUE, 0 },
	[STEP_PAUSE] = { "GET", KEY_PAUSED, 0 },
	[STEP_PAUSE_LEFT] = { "PTTL", KEY_PAUSED, 0 },
	[STEP_TOTALS] = { "HMGET", KEY_STATS, 0 },
};

void
depth_init(struct depth *d)
{
	*d = (struct depth){
		.waiting = -1, .in_flight = -1, .held = -1, .retry = -1, .due = -1, .delayed = -1,
		.dead = -1, .own = -1, .overdue = -1, .pause = xstrdup(""), .pause_left = -1,
	};
}

void
depth_done(struct depth *d)
{
	free(d->pause);
	free(d->problem);
	d->pause = d->problem = NULL;
}

int64_t
depth_backlog(const struct depth *d)
{
	if (d->waiting < 0)
		return -1;
	return d->waiting + (d->due > 0 ? d->due : 0) + (d->held > 0 ? d->held : 0);
}

int64_t
depth_messages(const struct depth *d)
{
	const int64_t counts[] = { d->waiting, d->in_flight, d->held, d->retry, d->delayed,
		d->dead };
	int64_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(counts); i++)
		n += counts[i] > 0 ? counts[i] : 0;
	return n;
}

/* The command that counts the messages in Q; NULL: they do not wait there, or depth.lua does it. */
static const char *const waiting_commands[] = {
	[SOURCE_LIST] = "LLEN", [SOURCE_IDS] = "ZCOUNT", [SOURCE_STREAM] = NULL,
	[SOURCE_CHANNEL] = NULL, [SOURCE_PATTERN] = NULL
};

int
depth_command(const struct keys *keys, enum kind kind, int step, const char *now,
    const char **argv)
{
	static const char *const scripts[] = {
		[SOURCE_LIST] = "depth", [SOURCE_IDS] = "unique_depth",
		[SOURCE_STREAM] = "stream_depth"
	};
	enum source source = kind_source(kind);
	int argc = 2, i;

	/* Kinds without leases keep nothing of a message that was taken. */
	if (step > STEP_WAITING && step <= STEP_OVERDUE && !kind_has(kind, TRAIT_LEASES))
		return 0;
	if (step == STEP_HELD && !kind_has(kind, TRAIT_GROUPS))
		return 0;
	argv[0] = step == STEP_WAITING ? waiting_commands[source] : steps[step].command;
	argv[1] = keys->name[steps[step].key];
	if (argv[0] == NULL)
		return 0;
	if (source == SOURCE_IDS && step == STEP_DELAYED) {
		/* One zset holds the due messages and the later ones. */
		argv[0] = "ZCOUNT";
		argv[1] = keys->name[KEY_QUEUE];
		argv[argc++] = now;
		argv[argc++] = "+inf";
	} else if (step == STEP_DUE || (source == SOURCE_IDS && step == STEP_WAITING)) {
		argv[argc++] = "-inf";
		argv[argc++] = now;
	} else if (step == STEP_OVERDUE) {
		argv[1] = script_find(scripts[source])->text;
		argv[argc++] = "4";
		argv[argc++] = keys->name[KEY_RETRY];
		argv[argc++] = keys->name[KEY_DELAYED];
		argv[argc++] = keys->name[KEY_QUEUE];
		argv[argc++] = keys->name[KEY_HELD];
		argv[argc++] = keys_group(keys);
	} else if (step == STEP_TOTALS) {
		for (i = 0; i < STAT_MAX; i++)
			argv[argc++] = stats_name((enum stat)i);
		argv[argc++] = "taken";
	}
	return argc;
}

void
depth_answer(struct depth *d, int step, const struct redisReply *reply)
{
	const char *text = reply_str(reply, NULL);
	double seconds;
	int64_t number;

	if (step == STEP_OVERDUE) {
		seconds = reply_double(reply_at(reply, 0), -1);
		d->overdue = reply_int(reply_at(reply, 1), 0) == 0 && seconds >= 0 ? seconds : -1;
		if (d->waiting == -1)
			d->waiting = reply_int(reply_at(reply, 2), -1);
		/*
		 * If Redis refuses the script (an ACL may), that is no error, unless only the
		 * script counts the messages.
		 */
		if (d->waiting != -1)
			return;
	}
	if (reply_error(reply) != REPLY_OK && d->problem == NULL)
		d->problem = xstrdup(reply_text(reply));
	if (step == STEP_PAUSE) {
		d->paused = text != NULL;
		xreplace(&d->pause, text != NULL ? text : "");
	} else if (step == STEP_PAUSE_LEFT) {
		number = reply_int(reply, -1);
		d->pause_left = number >= 0 ? (double)number / 1e3 : -1;
	} else if (step == STEP_TOTALS) {
		for (int i = 0; i < STAT_MAX; i++)
			d->total[i] = reply_int(reply_at(reply, (size_t)i), 0);
		d->taken = reply_int(reply_at(reply, STAT_MAX), 0);
	} else if (step != STEP_OVERDUE) {
		number = reply_int(reply, -1);
		memcpy((char *)d + steps[step].at, &number, sizeof(number));
	}
}

static void
add_number(int64_t *sum, int64_t n)
{
	if (n >= 0)
		*sum = *sum >= 0 ? *sum + n : n;
}

void
depth_add(struct depth *sum, const struct depth *d)
{
	bool any = sum->paused || sum->partly;

	add_number(&sum->waiting, d->waiting);
	add_number(&sum->in_flight, d->in_flight);
	add_number(&sum->held, d->held);
	add_number(&sum->retry, d->retry);
	add_number(&sum->due, d->due);
	add_number(&sum->delayed, d->delayed);
	add_number(&sum->dead, d->dead);
	add_number(&sum->own, d->own);
	sum->overdue = waited_longer(sum->overdue, d->overdue);

	sum->partly = sum->partly || d->partly || sum->paused != d->paused;
	sum->paused = sum->paused && d->paused;
	if (!any && d->paused) {
		xreplace(&sum->pause, d->pause);
		sum->pause_left = d->pause_left;
	}

	for (int i = 0; i < STAT_MAX; i++)
		sum->total[i] += d->total[i];
	sum->taken += d->taken;
	if (sum->problem == NULL && d->problem != NULL)
		sum->problem = xstrdup(d->problem);
}
