/*
 * rqctl pause, resume: QPAUSED.
 *
 * The pop script looks at QPAUSED itself, so once it is set no message is
 * handed out, whatever daemons have noticed.  --wait then looks at what rqd has in
 * hand: tags in QBACKUP that have a QDELIVERY field (foreign consumers' have none).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "queue/pausetext.h"
#include "redis/reply.h"
#include "rqctl/ask.h"
#include "rqctl/delivery.h"
#include "rqctl/groups.h"
#include "rqctl/out.h"

#define LOOK		1000		/* tags that are looked at one by one */

static int
set_pause(struct ctl *c, const struct target *t, const char *text, usec_t left)
{
	struct redisReply *reply;
	char ms[24];

	snprintf(ms, sizeof(ms), "%lld", (long long)(left / MSEC));
	if (left > 0)
		reply = ask(c, "SET", t->keys.name[KEY_PAUSED], text, "PX", ms, NULL);
	else
		reply = ask(c, "SET", t->keys.name[KEY_PAUSED], text, NULL);
	client_reply_free(reply);
	return reply == NULL ? -1 : 0;
}

/* More foreign deliveries than can be looked at: retries are ours, so the rest tells. */
static int64_t
count_by_totals(struct ctl *c, const struct target *t)
{
	struct redisReply *own = ask(c, "HLEN", t->keys.name[KEY_DELIVERY], NULL);
	struct redisReply *retry = ask(c, "ZCARD", t->keys.name[KEY_RETRY], NULL);
	int64_t n = own != NULL && retry != NULL ? reply_int(own, 0) - reply_int(retry, 0) : -1;

	if (n > 0)
		n -= delivery_daemons(c, t->keys.name[KEY_DELIVERY]);
	client_reply_free(own);
	client_reply_free(retry);
	return c->status != 0 ? -1 : n > 0 ? n : 0;
}

/* Which of these tags have a QDELIVERY field. */
static int64_t
count_fields(struct ctl *c, const struct target *t, const struct redisReply *tags)
{
	struct redisReply *values;
	struct words w = { 0 };
	const char *tag;
	int64_t n = 0;
	size_t i, len;

	words_add(&w, "HMGET");
	words_add(&w, t->keys.name[KEY_DELIVERY]);
	for (i = 0; i < reply_len(tags); i++) {
		tag = reply_str(reply_at(tags, i), &len);
		words_mem(&w, tag != NULL ? tag : "", tag != NULL ? len : 0);
	}
	values = ask_words(c, &w);
	for (i = 0; i < reply_len(values); i++)
		n += !reply_is_nil(reply_at(values, i));
	words_done(&w);
	client_reply_free(values);
	return values == NULL ? -1 : n;
}

/* How many of rqd's deliveries are in hand; -1 after an error. */
static int64_t
count_in_hand(struct ctl *c, const struct target *t)
{
	struct redisReply *tags;
	char last[16];
	int64_t n;

	snprintf(last, sizeof(last), "%d", LOOK);
	tags = ask(c, "ZRANGE", t->keys.name[KEY_BACKUP], "0", last, NULL);
	if (tags == NULL)
		return -1;
	if (reply_len(tags) == 0)
		n = 0;
	else if (reply_len(tags) <= LOOK)
		n = count_fields(c, t, tags);
	else
		n = count_by_totals(c, t);
	client_reply_free(tags);
	return n;
}

static int64_t
count_all(struct ctl *c, const struct target *t, size_t n)
{
	int64_t sum = 0, in_hand;
	size_t i;

	for (i = 0; i < n; i++) {
		if ((in_hand = count_in_hand(c, &t[i])) == -1)
			return -1;
		sum += in_hand;
	}
	return sum;
}

/* Only leases tell at once what is in hand. */
static bool
can_wait(struct ctl *c, const struct target *t, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (kind_has(t[i].kind, TRAIT_LEASES))
			continue;
		ctl_error(c, EX_USAGE, "--wait does not work with %s: Redis does not know what runs "
		    "of kind %s; pause without --wait and use \"rqctl running %s\"", t[i].name,
		    kind_name(t[i].kind), t[i].name);
		return false;
	}
	return true;
}

/* Polls, slower and slower up to once a second. */
static void
wait_idle(struct ctl *c, const struct target *t, size_t n, usec_t timeout)
{
	usec_t end = clock_mono() + timeout, step = 50 * MSEC;
	int64_t left;

	ctl_catch_signals();
	while ((left = count_all(c, t, n)) > 0) {
		if (clock_mono() >= end) {
			ctl_error(c, EX_TEMPFAIL, "%lld still running; the pause stays",
			    (long long)left);
			return;
		}
		out_progress("waiting for %lld running", (long long)left);
		if (!ctl_sleep(step)) {
			ctl_error(c, EX_INTERRUPTED, "interrupted; the pause stays");
			return;
		}
		step = 2 * step < SEC ? 2 * step : SEC;
	}
	out_progress_clear();
}

static void
tell(const struct ctl *c, const struct target *t, const char *what)
{
	json_t *o;

	if (!ctl_given(c, OPT_JSON)) {
		printf("%s %s\n", what, t->name);
		return;
	}
	o = json_object();
	out_set_bytes(o, "queue", t->name, strlen(t->name));
	json_object_set_new(o, "done", json_string(what));
	out_json_line(o);
}

/* Sets the pauses; how many, less than n after an error. */
static size_t
pause_all(struct ctl *c, const struct target *t, size_t n, usec_t left)
{
	const char *why = ctl_given(c, OPT_WHY) ? ctl_value(c, OPT_WHY) : "";
	char *who = pausetext_who(), *text = pausetext_make(who, clock_wall(), why);
	size_t i;

	for (i = 0; i < n && set_pause(c, &t[i], text, left) == 0; i++)
		tell(c, &t[i], "paused");
	free(text);
	free(who);
	return i;
}

void
pause_run(struct ctl *c)
{
	usec_t left = 0, timeout = 10 * MINUTE;
	struct target *t;
	size_t n;

	const char *wait = ctl_given(c, OPT_WAIT) ? ctl_value(c, OPT_WAIT) : "";

	if (ctl_duration(c, OPT_FOR, &left) == -1 || ctl_duration(c, OPT_TIMEOUT, &timeout) == -1 ||
	    (wait[0] != '\0' && ctl_duration(c, OPT_WAIT, &timeout) == -1))
		return;
	if (ctl_given(c, OPT_FOR) && left < MSEC)
		ctl_error(c, EX_USAGE, "--for is 1ms or more");
	else if (ctl_given(c, OPT_TIMEOUT) && !ctl_given(c, OPT_WAIT))
		ctl_error(c, EX_USAGE, "--timeout goes with --wait");
	else if (ctl_given(c, OPT_TIMEOUT) && wait[0] != '\0')
		ctl_error(c, EX_USAGE, "--wait %s and --timeout say the same: give one", wait);
	else if ((t = ctl_targets(c, 0, &n)) != NULL) {
		if (ctl_given(c, OPT_WAIT) && !can_wait(c, t, n)) {
			ctl_targets_free(t, n);
			return;
		}
		if (pause_all(c, t, n, left) == n && ctl_given(c, OPT_WAIT)) {
			fflush(stdout);
			wait_idle(c, t, n, timeout);
		}
		ctl_targets_free(t, n);
	}
}

void
pause_resume(struct ctl *c)
{
	struct redisReply *reply;
	struct target *t;
	size_t n, i;

	if ((t = ctl_targets(c, 0, &n)) == NULL)
		return;
	for (i = 0; i < n; i++) {
		if ((reply = ask(c, "DEL", t[i].keys.name[KEY_PAUSED], NULL)) == NULL)
			break;
		if (reply_int(reply, 0) > 0)
			tell(c, &t[i], "resumed");
		else
			ctl_error(c, EX_NOTHING, "%s is not paused", t[i].name);
		client_reply_free(reply);
	}
	ctl_targets_free(t, n);
}
