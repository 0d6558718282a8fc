/*
 * rqctl pause: sets QPAUSED.
 *
 * The pop script checks QPAUSED: once it is set, no daemon gets a message.  --wait then counts
 * the messages in flight: tags in QBACKUP that have a field in QDELIVERY.  Those of foreign
 * consumers have none.
 */
#include <stdio.h>
#include <stdlib.h>

#include "queue/pausetext.h"
#include "rqctl/ask.h"
#include "rqctl/out.h"
#include "rqctl/waiting.h"

/* Returns how many deliveries of rqd are in flight; -1 after an error. */
static int64_t
count_in_flight(struct ctl *c, struct target *t, size_t n)
{
	struct waiting m;
	int64_t sum = 0;
	int rc = 0;

	for (size_t i = 0; i < n; i++)
		EACH_KEY(k, &t[i]) {
			struct visit v = {
				.ctl = c, .target = &t[i], .at = { .key = KEY_BACKUP }
			};

			/* A renewed one moves to the end: it may count twice, but is not missed. */
			while (rc == 0 && visit_next(&v, &m))
				sum += m.delivery.ours;
			if (visit_end(&v) == -1)
				rc = -1;
		}
	if (rc == -1)
		return -1;
	return sum;
}

/* Polls until nothing is in flight: first after 50 ms, later once a second. */
static void
wait_idle(struct ctl *c, struct target *t, size_t n, usec_t timeout)
{
	usec_t end = clock_mono() + timeout, step = 50 * MSEC;
	int64_t left;

	while ((left = count_in_flight(c, t, n)) > 0) {
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
		step = int64_min(2 * step, SEC);
	}
	out_progress_clear();
}

/* before: the text of a pause that was replaced, or NULL. */
static void
report(const struct ctl *c, const struct target *t, const char *before)
{
	json_t *o = json_set(json_object(), "queue:s done:s", t->name, "paused");

	if (before != NULL)
		json_set(o, "replaced:s", before);
	ctl_result(c, o, "paused %s%s%s", t->name,
	    text_if(before != NULL, "; it replaces the pause by "),
	    or_empty(before));
}

static void
pause_run(struct ctl *c)
{
	usec_t left = 0, timeout = 10 * MINUTE;
	bool wait = ctl_given(c, OPT_WAIT);
	const char *limit = ctl_value(c, OPT_WAIT);
	char *who, *text, *before = NULL;
	struct redisReply *reply;
	struct target *t;
	size_t n, i;

	/* --wait DURATION, or --wait --timeout DURATION */
	if (ctl_duration(c, OPT_FOR, &left) == -1 ||
	    ctl_duration(c, OPT_TIMEOUT, &timeout) == -1 ||
	    (limit[0] != '\0' && ctl_duration(c, OPT_WAIT, &timeout) == -1))
		return;
	if (ctl_given(c, OPT_TIMEOUT) && !wait)
		ctl_error(c, EX_USAGE, "--timeout needs --wait");
	else if (ctl_given(c, OPT_TIMEOUT) && limit[0] != '\0')
		ctl_error(c, EX_USAGE,
		    "--wait %s and --timeout mean the same: give only one", limit);
	else if (ctl_given(c, OPT_FOR) && left < MSEC)
		ctl_error(c, EX_USAGE, "--for: \"%s\" is too short: write 1ms or more",
		    ctl_value(c, OPT_FOR));
	if (c->status != 0 || (t = targets_find(c, &n)) == NULL)
		return;
	for (i = 0; i < n && wait && c->status == 0; i++)
		if (!kind_has(t[i].kind, TRAIT_LEASES))
			ctl_error(c, EX_USAGE, "--wait does not serve queues of kind %s, as %s is: "
			    "Redis does not know their messages in flight; use rqctl pause, then "
			    "rqctl running %s", kind_name(t[i].kind), t[i].name, t[i].name);

	who = pausetext_who();
	text = pausetext_make(who, clock_wall(), ctl_value(c, OPT_WHY));
	for (i = 0; i < n && c->status == 0; i++) {
		EACH_KEY(k, &t[i]) {
			struct words w = ask_format("SET %s %s GET", t[i].keys.name[KEY_PAUSED],
			    text);

			if (left > 0)
				ask_add(&w, "PX %lld", (long long)(left / MSEC));
			reply = NULL;
			if (c->status == 0)
				reply = ask_words(c, &w);
			if (reply_str(reply, NULL) != NULL)
				xreplace(&before, reply_str(reply, NULL));
			reply_free(reply);
			words_done(&w);
		}
		if (c->status == 0)
			report(c, &t[i], before);
		xreplace(&before, NULL);
	}
	free(text);
	free(who);
	if (wait && c->status == 0) {
		ctl_catch_signals();	/* before the output tells that it waits */
		fflush(stdout);
		wait_idle(c, t, n, timeout);
	}
	targets_free(t, n);
}

const struct verb verb_pause = {
	.name = "pause",
	.args = "QUEUE...",
	.help = "stop the delivery of queues, for all daemons",
	.more = "Messages in flight are finished. Producers can still push. It "
	    "replaces an earlier pause. Exits with 75 if --wait has ended "
	    "before they were finished.",
	.options = OPT(FOR) | OPT(WHY) | OPT(WAIT) | OPT(TIMEOUT),
	.min_args = 1,
	.max_args = -1,
	.flags = VERB_JSON | VERB_QUEUES | VERB_LINES,
	.run = pause_run,
};
