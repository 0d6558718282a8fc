/*
 * rqctl pause, resume: sets and deletes QPAUSED.
 *
 * The pop script checks QPAUSED: once it is set, no daemon gets a message.  --wait then counts
 * the messages in flight: tags in QBACKUP that have a field in QDELIVERY.  Those of foreign
 * consumers have none.
 */
#include <stdio.h>
#include <stdlib.h>

#include "queue/pausetext.h"
#include "rqctl/ask.h"
#include "rqctl/delivery.h"
#include "rqctl/out.h"

#define LOOK		1000		/* tags whose fields are counted one by one */

/* Sets QPAUSED of all keys of the queue.  Returns 0, or -1 after an error was reported. */
static int
set_pauses(struct ctl *c, struct target *t, const char *text, usec_t left)
{
	EACH_KEY(i, t) {
		struct words w = ask_format("SET %s %s", t->keys.name[KEY_PAUSED], text);

		if (left > 0)
			ask_add(&w, "PX %lld", (long long)(left / MSEC));
		if (c->status == 0)
			blocking_reply_free(ask_words(c, &w));
		words_done(&w);
	}
	return c->status == 0 ? 0 : -1;
}

/* For more than LOOK tags: counts all fields, without those of retries and of daemons. */
static int64_t
count_by_totals(struct ctl *c, const struct target *t)
{
	const char *delivery = t->keys.name[KEY_DELIVERY];
	int64_t n = ask_number(ask(c, "HLEN %s", delivery));

	n -= ask_number(ask(c, "ZCARD %s", t->keys.name[KEY_RETRY]));
	if (c->status == 0 && n > 0)
		n -= delivery_daemons(c, delivery);
	return c->status != 0 ? -1 : n > 0 ? n : 0;
}

/* Returns how many deliveries of rqd are in flight; -1 after an error. */
static int64_t
count_in_flight(struct ctl *c, const struct target *t)
{
	struct redisReply *tags, *values = NULL;
	size_t ntags, i;
	int64_t n = 0;

	tags = ask(c, "ZRANGE %s 0 %lld", t->keys.name[KEY_BACKUP], (long long)LOOK);
	ntags = reply_len(tags);
	if (ntags > LOOK)
		n = count_by_totals(c, t);
	else if (ntags > 0) {
		values = delivery_fields(c, t, tags, 1);
		for (i = 0; i < reply_len(values); i++)
			n += !reply_is_nil(reply_at(values, i));
	}
	blocking_reply_free(values);
	blocking_reply_free(tags);
	return c->status == 0 ? n : -1;
}

static int64_t
count_all(struct ctl *c, struct target *t, size_t n)
{
	int64_t sum = 0, some = 0;

	for (size_t i = 0; i < n; i++)
		EACH_KEY(k, &t[i]) {
			some = some != -1 ? count_in_flight(c, &t[i]) : -1;
			sum += some;
		}
	return some == -1 ? -1 : sum;
}

/* For kinds without leases Redis has no list of messages in flight. */
static bool
can_wait(struct ctl *c, const struct target *t, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (kind_has(t[i].kind, TRAIT_LEASES))
			continue;
		ctl_error(c, EX_USAGE,
		    "--wait does not serve queues of kind %s, as %s is: Redis does "
		    "not know their messages in flight; use rqctl pause, then rqctl running %s",
		    kind_name(t[i].kind), t[i].name, t[i].name);
		return false;
	}
	return true;
}

/* Polls until nothing is in flight: first after 50 ms, later once a second. */
static void
wait_idle(struct ctl *c, struct target *t, size_t n, usec_t timeout)
{
	usec_t end = clock_mono() + timeout, step = 50 * MSEC;
	int64_t left;

	while ((left = count_all(c, t, n)) > 0) {
		if (clock_mono() >= end) {
			ctl_error(c, EX_TEMPFAIL, "%lld still in flight; the pause stays",
			    (long long)left);
			return;
		}
		out_progress("waiting for %lld in flight", (long long)left);
		if (!ctl_sleep(step)) {
			ctl_error(c, EX_INTERRUPTED, "interrupted; the pause stays");
			return;
		}
		step = 2 * step < SEC ? 2 * step : SEC;
	}
	out_progress_clear();
}

static void
report(const struct ctl *c, const struct target *t, const char *what)
{
	ctl_result(c, json_set(json_object(), "queue:s done:s", t->name, what), "%s %s", what,
	    t->name);
}

/* Returns how many queues were paused: fewer than n after an error. */
static size_t
pause_all(struct ctl *c, struct target *t, size_t n, usec_t left)
{
	char *who = pausetext_who();
	char *text = pausetext_make(who, clock_wall(), ctl_value(c, OPT_WHY));
	size_t i;

	for (i = 0; i < n && set_pauses(c, &t[i], text, left) == 0; i++)
		report(c, &t[i], "paused");
	free(text);
	free(who);
	return i;
}

/* Reads --wait DURATION, or --wait --timeout DURATION.  Returns 0, or -1 after an error. */
static int
read_wait(struct ctl *c, usec_t *timeout)
{
	const char *wait = ctl_value(c, OPT_WAIT);

	if (ctl_duration(c, OPT_TIMEOUT, timeout) == -1 ||
	    (wait[0] != '\0' && ctl_duration(c, OPT_WAIT, timeout) == -1))
		return -1;
	if (ctl_given(c, OPT_TIMEOUT) && !ctl_given(c, OPT_WAIT))
		return ctl_error(c, EX_USAGE, "--timeout needs --wait");
	if (ctl_given(c, OPT_TIMEOUT) && wait[0] != '\0')
		return ctl_error(c, EX_USAGE,
		    "--wait %s and --timeout mean the same: give only one", wait);
	return 0;
}

void
pause_run(struct ctl *c)
{
	usec_t left = 0, timeout = 10 * MINUTE;
	bool wait = ctl_given(c, OPT_WAIT);
	struct target *t;
	size_t n;

	if (ctl_duration(c, OPT_FOR, &left) == -1 || read_wait(c, &timeout) == -1)
		return;
	if (ctl_given(c, OPT_FOR) && left < MSEC)
		ctl_error(c, EX_USAGE, "--for: \"%s\" is too short: write 1ms or more",
		    ctl_value(c, OPT_FOR));
	else if ((t = targets_find(c, &n)) != NULL) {
		if ((!wait || can_wait(c, t, n)) && pause_all(c, t, n, left) == n && wait) {
			ctl_catch_signals();	/* before the output tells that it waits */
			fflush(stdout);
			wait_idle(c, t, n, timeout);
		}
		targets_free(t, n);
	}
}

void
pause_resume(struct ctl *c)
{
	struct target *t;
	size_t n, i;
	int64_t gone = 0;

	if ((t = targets_find(c, &n)) == NULL)
		return;
	for (i = 0; i < n && gone != -1; i++) {
		gone = target_count(c, &t[i], "DEL", KEY_PAUSED);
		if (gone > 0)
			report(c, &t[i], "resumed");
		else if (gone == 0)
			ctl_error(c, EX_NOTHING, "%s is not paused", t[i].name);
	}
	targets_free(t, n);
}
