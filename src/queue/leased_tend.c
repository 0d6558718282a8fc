/*
 * What a queue does by the clock: renewals and ticks.
 *
 * A renewal is due every third of the lease, but at least every 10 s.  So a foreign
 * consumer with a timeout of 30 s does not take a message that rqd works on.  A renewal
 * names all deliveries, in calls of 250.  While the reply to a pop is late, it renews the
 * messages of that pop by the name of the call.  After "held", "gone" and "taken" the engine
 * ends the handler: the message is settled elsewhere, another delivery has begun, or Redis
 * has forgotten it.
 *
 * A tick requeues expired leases, promotes due delayed messages, deletes orphaned fields of
 * QDELIVERY, and adds counters to QSTATS.  One is sent every 10 s (the pulse of
 * service/daemon.c), when a delayed message falls due, when a lease ends, when leases may be
 * judged again after an outage, after a reconnect, after the backoff that follows an error,
 * and before the queue closes, if counters wait.  It looks at a bounded number of entries.
 * If some are left, the next tick is sent at once, and continues where the last one stopped.
 * Such a sequence is a round.  Otherwise ticks are at least 100 ms apart.
 */
#include "queue/leased.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/backoff.h"

#define RENEW_MOST	250		/* deliveries in one call */
#define HINT_EVERY	(100 * MSEC)	/* at most one renewal by hints in this time */
#define HINT_AGAIN	(400 * MSEC)	/* the second one: a reply that was on its way is here */
#define TICK_SOONEST	(100 * MSEC)	/* after the last tick */
#define TICK_ENTRIES	250		/* that a tick looks at */
#define TICK_BYTES	(1024 * 1024)	/* of payload that a tick moves */

/* -- renewals --------------------------------------------------------------- */

/* The answers of renew.lua, one for each delivery. */
enum renewed {
	RENEWED_YES = 1, RENEWED_BACK = 2, RENEWED_HELD = 0, RENEWED_GONE = -1,
	RENEWED_DROP = 3, RENEWED_DEAD = 4, RENEWED_RETRY = 5,	/* ours, and cancelled */
	RENEWED_TAKEN = -2
};

usec_t
leased_renew_interval(const struct leased *a)
{
	return a->cfg->lease / 3 < 10 * SEC ? a->cfg->lease / 3 : 10 * SEC;
}

/* A queue resumes within one lease after Redis accepts commands. */
usec_t
leased_patience(const struct leased *a)
{
	usec_t interval = leased_renew_interval(a);

	return interval > SEC ? interval : SEC;
}

void
leased_expect_renewal(struct leased *a)
{
	if (!timer_is_set(&a->renew))
		timer_set(&a->renew, leased_renew_interval(a));
}

static void
leased_renew_within(struct leased *a, usec_t within)
{
	if (timer_left(&a->renew) > within)
		timer_set(&a->renew, within);
}

void
leased_renew_hint(struct queue *q)
{
	struct leased *a = (struct leased *)q;
	usec_t since = clock_mono() - a->renewed_at;

	if (!timer_is_set(&a->renew))
		return;
	a->renew_again = true;
	leased_renew_within(a, since < HINT_EVERY ? HINT_EVERY - since : 0);
}

/* The delivery is no longer ours.  One that the engine does not have ends silently. */
static void
leased_lose(struct leased *a, struct delivery *d)
{
	if (d->state == DELIVERY_FETCHED) {
		delivery_done_unrun(a, d, VERDICT_STALE);
	} else if (!d->lost) {
		d->lost = true;
		a->queue.events->lost(d->msg, a->queue.arg);
	}
}

/* Takes one answer of renew.lua: a number, or "NUMBER WHO" if WHO cancelled it. */
static void
leased_renewed_one(struct leased *a, struct delivery *d, const struct redisReply *r, boot_t sent_at)
{
	bool held = d->state == DELIVERY_REFUSED && delivery_hands_over(d), first;
	const char *text = reply_str(r, NULL);
	int64_t answer = reply_int(r, RENEWED_YES);

	if (d->state == DELIVERY_GONE)
		return;
	if (text != NULL && text[0] >= '3' && text[0] <= '5' && text[1] == ' ') {
		answer = text[0] - '0';
		xreplace(&d->msg->cancelled_by, text + 2);
	}
	if (d->state > DELIVERY_RUNNING && !(held && answer >= RENEWED_DROP))
		return;
	switch ((enum renewed)answer) {
	case RENEWED_YES:
	case RENEWED_BACK:
		d->msg->ours_at = sent_at;
		d->unproven = false;
		break;
	case RENEWED_DROP:
	case RENEWED_DEAD:
	case RENEWED_RETRY:
		/*
		 * It stays in flight, and is renewed, until its handler has ended.  But a
		 * hand-over that Redis refuses has none, and would wait for ever: settle it now.
		 */
		first = d->state == DELIVERY_RUNNING && d->msg->cancel == CANCEL_NONE;
		d->msg->ours_at = sent_at;
		d->unproven = false;
		if (answer == RENEWED_DROP)
			d->msg->cancel = CANCEL_DROP;
		else if (answer == RENEWED_DEAD)
			d->msg->cancel = CANCEL_DEAD;
		else
			d->msg->cancel = CANCEL_RETRY;
		if (held)
			leased_cancel_hand_over(a, d);
		else if (first)
			a->queue.events->cancelled(d->msg, a->queue.arg);
		break;
	case RENEWED_TAKEN:
		d->taken = true;
		leased_lose(a, d);
		break;
	case RENEWED_HELD:
	case RENEWED_GONE:
		leased_lose(a, d);
		break;
	}
}

/* Returned by renew.lua; then an answer for each delivery. */
enum { RENEW_NOW, RENEW_FIELDS };

static void
leased_renewed(struct leased *a, struct call *call, enum conn_answer answer,
    const struct redisReply *reply)
{
	if (answer != CONN_REPLY)
		return;
	if (reply_len(reply) != call->n + RENEW_FIELDS) {
		(void)leased_failed(a, LEASED_RENEW, reply);
		leased_renew_within(a, SEC);
		return;
	}
	leased_complain(a, LEASED_RENEW, NULL);
	leased_saw_now(a, reply_at(reply, RENEW_NOW));
	for (size_t i = 0; i < call->n; i++)
		leased_renewed_one(a, call->v[i], reply_at(reply, RENEW_FIELDS + i),
		    call->request.sent_at);
	leased_wake(a);
}

static struct call *
leased_renew_begin(struct leased *a)
{
	struct call *call = leased_call_new(a, LEASED_RENEW, leased_renewed);

	words_fmt(&call->words, "%d", a->cfg->fleet_concurrency);
	return call;
}

/* Renews the deliveries of one list.  A call has deliveries of one state. */
static void
leased_renew_list(struct leased *a, const struct deliveries *list)
{
	struct call *call = NULL;
	struct delivery *d;

	TAILQ_FOREACH(d, list, entry) {
		if (d->lost)
			continue;
		if (call == NULL) {
			call = leased_renew_begin(a);
			words_add(&call->words, "");
			words_add(&call->words, "");
		}
		words_mem(&call->words, d->msg->tag, d->taglen);
		words_add(&call->words, d->msg->token);
		leased_call_add(call, d);
		if (call->n < RENEW_MOST)
			continue;
		leased_send(call);
		call = NULL;
	}
	if (call != NULL)
		leased_send(call);
}

void
leased_renew_all(struct leased *a)
{
	double part = 0.8 + 0.2 * random_unit();
	struct call *call;

	if (!delivery_any(a) && a->pop == NULL) {
		timer_stop(&a->renew);
		return;
	}
	a->renewed_at = clock_mono();
	timer_set(&a->renew, (usec_t)((double)leased_renew_interval(a) * part));
	if (a->renew_again)
		leased_renew_within(a, HINT_AGAIN);
	a->renew_again = false;
	if (!leased_is_up(a))
		return;
	if (leased_pop_is_late(a)) {
		call = leased_renew_begin(a);
		leased_add_late_pop(a, &call->words);
		leased_send(call);
	}
	for (size_t i = 0; i < DELIVERY_LISTS; i++) {
		if (i != DELIVERY_SENT)
			leased_renew_list(a, &a->list[i]);
	}
}

/* Renews, but first returns FETCHED messages that the engine no longer wants. */
static void
leased_renew_due(void *arg)
{
	struct leased *a = arg;

	if (!a->wanted && a->asked == 0)
		delivery_give_back(a);
	leased_renew_all(a);
}

/* -- ticks ------------------------------------------------------------------ */

/* Returned by tick.lua and by the ticks of other kinds. */
enum {
	TICK_NOW, TICK_MORE, TICK_REQUEUED, TICK_PROMOTED, TICK_DROPPED, TICK_WAITING,
	TICK_EXPIRES, TICK_DUE, TICK_DELAYED, TICK_RANK, TICK_CURSOR, TICK_WARNING,
	TICK_SCAN, TICK_TAKEN, TICK_OTHERS, TICK_IDS, TICK_FIELDS
};
static const char leased_tick_form[] = {
	[TICK_NOW] = FIELD_NUMBER, [TICK_MORE] = FIELD_INT, [TICK_REQUEUED] = FIELD_INT,
	[TICK_PROMOTED] = FIELD_INT, [TICK_DROPPED] = FIELD_INT, [TICK_WAITING] = FIELD_INT,
	[TICK_EXPIRES] = FIELD_TIME, [TICK_DUE] = FIELD_TIME, [TICK_DELAYED] = FIELD_TIME,
	[TICK_RANK] = FIELD_INT, [TICK_CURSOR] = FIELD_STR, [TICK_WARNING] = FIELD_STR,
	[TICK_SCAN] = FIELD_STR, [TICK_TAKEN] = FIELD_INT, [TICK_OTHERS] = FIELD_INT,
	[TICK_IDS] = FIELD_STR, [TICK_FIELDS] = 0
};

/*
 * The time, mono, from which on a tick judges others' leases; USEC_MAX: never.  It does so only
 * after an unbroken window of timely replies.  After an outage all leases look expired, and
 * their owners must have had time to renew them.
 */
static usec_t
leased_judge_at(const struct leased *a)
{
	usec_t answers = conn_timely_since(a->env->conn);
	usec_t since = answers != 0 && answers < a->env->since ? a->env->since : answers;

	if (a->closing || since == 0 || conn_redis_time(a->env->conn) <= 0)
		return USEC_MAX;
	return since + 2 * leased_renew_interval(a);
}

/* A tick is due at this time, unless one is due before. */
static void
leased_tick_at(struct leased *a, usec_t at)
{
	if (a->closing)
		return;
	if (at < a->ticked_at + TICK_SOONEST)
		at = a->ticked_at + TICK_SOONEST;
	if (at < a->tick_not_before)
		at = a->tick_not_before;
	if (!timer_is_set(&a->tick) || a->tick.at > at)
		timer_set_at(&a->tick, at);
}

/*
 * Plans the tick for the end of a lease.  Other daemons plan one, too: the random delay
 * spreads them, so that the first tick serves all.  If there is no lease (-1), one may begin
 * now, whose owner dies: it must be noticed within the lease and 5 s.
 */
static void
leased_plan_tick(struct leased *a, usec_t expires_in)
{
	usec_t lease = a->cfg->lease, slack = lease / 10 < SEC ? lease / 10 : SEC;
	usec_t now = clock_mono(), judge_at = leased_judge_at(a);

	timer_stop(&a->tick);
	if (judge_at > now && judge_at < USEC_MAX)
		leased_tick_at(a, judge_at + MSEC);
	leased_tick_at(a, now + (expires_in >= 0 ? expires_in : lease + 3 * SEC) + slack +
	    (usec_t)(random_unit() * (double)slack));
}

/* Takes the answer to a tick: returns true if the round goes on. */
static bool
leased_ticked_ok(struct leased *a, const struct redisReply *reply)
{
	double now = leased_saw_now(a, reply_at(reply, TICK_NOW));
	const char *warning = reply_str_at(reply, TICK_WARNING);
	const char *cursor = reply_str_at(reply, TICK_CURSOR);
	usec_t delayed_in = leased_until(reply_at(reply, TICK_DELAYED), now);
	unsigned requeued = (unsigned)reply_int_at(reply, TICK_REQUEUED);
	unsigned promoted = (unsigned)reply_int_at(reply, TICK_PROMOTED);

	leased_complain(a, LEASED_TICK, warning[0] != '\0' ? warning : NULL);
	leased_saw_list(a, reply_at(reply, TICK_TAKEN), reply_at(reply, TICK_WAITING));
	if (reply_int_at(reply, TICK_OTHERS) != 0)
		a->queue.waited.n = 0;		/* not all messages that are taken are counted */
	if (leased_saw_retry(a, leased_until(reply_at(reply, TICK_DUE), now), false) ||
	    requeued + promoted > 0 || reply_int_at(reply, TICK_WAITING) > 0)
		leased_saw_work(a);

	a->tick_failures = 0;
	a->round.requeued += requeued;
	if (a->round_ids == NULL && reply_str_at(reply, TICK_IDS)[0] != '\0')
		a->round_ids = xstrdup(reply_str_at(reply, TICK_IDS));
	a->round.promoted += promoted;
	a->round.dropped += (unsigned)reply_int_at(reply, TICK_DROPPED);
	a->tick_rank = reply_int_at(reply, TICK_RANK);
	if (strcmp(cursor, "-") != 0)
		snprintf(a->tick_cursor, sizeof(a->tick_cursor), "%s", cursor);
	snprintf(a->tick_scan, sizeof(a->tick_scan), "%s", reply_str_at(reply, TICK_SCAN));
	if (reply_int_at(reply, TICK_MORE) != 0 && !a->closing)
		return true;
	a->tick_rank = 0;
	leased_plan_tick(a, leased_until(reply_at(reply, TICK_EXPIRES), now));
	if (!a->closing && delayed_in >= 0)
		leased_saw_delayed(a, delayed_in);
	return false;
}

static void
leased_ticked(struct leased *a, struct call *call UNUSED, enum conn_answer answer,
    const struct redisReply *reply)
{
	bool ok = answer == CONN_REPLY && reply_has(reply, leased_tick_form);
	struct tick_report report;

	leased_wake(a);
	a->ticking = false;
	/*
	 * After a lost reply the counters count as added: adding them twice would be worse
	 * than not at all.
	 */
	for (int i = 0; i < STAT_MAX && !ok && answer != CONN_LOST; i++)
		a->stats->sent[i] -= a->counted[i];
	if (answer == CONN_REPLY && !ok) {
		/* Redis may have refused the position where the tick should go on: begins anew. */
		(void)leased_failed(a, LEASED_TICK, reply);
		a->tick_rank = 0;
		strcpy(a->tick_cursor, "0");
		a->tick_scan[0] = '\0';
		a->tick_not_before = clock_mono() + backoff_delay(SEC, leased_patience(a),
		    ++a->tick_failures, random_unit());
		leased_tick_at(a, a->tick_not_before);
	}
	if (ok && leased_ticked_ok(a, reply)) {
		leased_tick(a, true);
		return;
	}
	report = a->round;
	report.ids = a->round_ids;
	a->round = (struct tick_report){ 0 };
	if (report.requeued + report.promoted + report.dropped > 0)
		a->queue.events->ticked(&report, a->queue.arg);
	xreplace(&a->round_ids, NULL);
}

void
leased_tick(struct leased *a, bool at_once)
{
	usec_t now = clock_mono();
	struct call *call;
	struct words *w;

	if (!leased_is_up(a) || a->ticking)
		return;
	if (now < a->tick_not_before || (!at_once && now < a->ticked_at + TICK_SOONEST)) {
		leased_tick_at(a, now);
		return;
	}
	a->ticking = true;
	a->ticked_at = now;
	timer_stop(&a->tick);
	call = leased_call_new(a, LEASED_TICK, leased_ticked);
	w = &call->words;
	words_fmt(w, "%.6f", (double)a->cfg->lease / (double)SEC);
	words_fmt(w, "%.6f", (double)a->cfg->foreign_timeout / (double)SEC);
	words_add(w, now >= leased_judge_at(a) ? "1" : "0");
	words_fmt(w, "%.6f", conn_redis_time(a->env->conn));
	words_fmt(w, "%d", TICK_ENTRIES);
	words_fmt(w, "%d", TICK_BYTES);
	words_fmt(w, "%" PRId64, a->tick_rank);
	/* Only the first tick of a round sweeps QDELIVERY, and none at the end. */
	words_add(w, at_once ? "-" : a->tick_cursor);
	words_fmt(w, "%.3f", (double)a->cfg->dead_max_age / (double)SEC);
	leased_words(call);
	queue_add_counters(a->stats, w);
	/* They count as sent at once, since a tick of another shard may follow. */
	for (int i = 0; i < STAT_MAX; i++) {
		a->counted[i] = a->stats->n[i] - a->stats->sent[i];
		a->stats->sent[i] = a->stats->n[i];
	}
	leased_send(call);
}

void
leased_tick_due(void *arg)
{
	leased_tick(arg, false);
}

/* -- life ------------------------------------------------------------------- */

void
leased_tend_init(struct leased *a)
{
	timer_init(&a->renew, a->env->loop, leased_renew_due, a);
	timer_init(&a->tick, a->env->loop, leased_tick_due, a);
	strcpy(a->tick_cursor, "0");
}

/* Connected: a tick is due now. */
void
leased_tend_up(struct leased *a)
{
	a->tick_failures = 0;
	a->tick_not_before = 0;
	leased_tick_at(a, clock_mono());
}
