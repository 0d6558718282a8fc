/*
 * Ticks: expired leases, due delayed messages, sweeping, and the counters of
 * QSTATS.  The janitor calls every 10 s; an own timer calls when something is
 * known to fall due.  A tick that left work behind is followed by the next.
 *
 * Leases are judged only after an unbroken window of timely replies: after an
 * outage all look expired, and their owners must have had time to renew.
 */
#include "queue/ack_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "policy/backoff.h"
#include "queue/count.h"

#define SOONEST		(100 * MSEC)	/* after the last tick */

void
ack_tick_timer(void *arg)
{
	ack_tick(arg);
}

/* At `at`, or where a tick is due before, then. */
void
ack_tick_at(struct ack *a, usec_t at)
{
	if (a->closing)
		return;
	if (at < a->ticked_at + SOONEST)
		at = a->ticked_at + SOONEST;
	if (at < a->tick_after)
		at = a->tick_after;
	if (!timer_is_set(&a->tick) || a->tick.at > at)
		timer_set_at(&a->tick, at);
}

/* From when on others' leases may be judged; mono. */
static usec_t
ack_may_requeue_at(const struct ack *a)
{
	usec_t since = conn_timely_since(a->env->conn);

	if (a->closing || since == 0 || conn_redis_time(a->env->conn) <= 0)
		return USEC_MAX;
	return since + 2 * ledger_renew_interval(a->ledger);
}

static void
ack_tick_next(struct ack *a, double now, const struct redisReply *expires,
    const struct redisReply *delayed)
{
	usec_t slack = a->cfg->lease / 10 < SEC ? a->cfg->lease / 10 : SEC;
	usec_t mono = clock_mono();
	usec_t judge = ack_may_requeue_at(a);
	double at;

	timer_stop(&a->tick);
	if (judge > mono && judge < USEC_MAX)
		ack_tick_at(a, judge + MSEC);
	if (!a->closing && ack_time(delayed, &at))
		watcher_saw_delayed(a->watcher, ack_usec(at - now));
	/* Others will do it, too: not all at once, and not for each. */
	if (ack_time(expires, &at))
		ack_tick_at(a, mono + ack_usec(at - now) + slack +
		    (usec_t)(random_unit() * (double)slack));
}

static void
ack_tick_failed(struct ack *a, const struct redisReply *reply)
{
	/* Perhaps Redis does not take where it should go on. */
	a->tick_rank = 0;
	snprintf(a->sweep, sizeof(a->sweep), "0");
	a->scan[0] = '\0';
	if (ack_failed(a, ACK_TICK, reply) == REPLY_ELSEWHERE)
		return;
	a->tick_after = clock_mono() +
	    backoff_delay(SEC, ledger_patience(a->ledger), ++a->tick_failures, random_unit());
	ack_tick_at(a, a->tick_after);
}

static void
ack_tick_report(struct ack *a)
{
	struct tick_report report = a->found;

	memset(&a->found, 0, sizeof(a->found));
	if (report.requeued > 0 || report.promoted > 0 || report.dropped > 0)
		a->queue.events->ticked(&report, a->queue.arg);
}

static void
ack_ticked_ok(struct ack *a, const struct redisReply *reply)
{
	double now = ack_saw_now(a, reply_at(reply, 0));
	const char *cursor = reply_str(reply_at(reply, 10), NULL);
	const char *warning = reply_str(reply_at(reply, 11), NULL);
	const char *scan = reply_str(reply_at(reply, 12), NULL);
	unsigned moved;

	a->tick_failures = 0;
	moved = (unsigned)(reply_int(reply_at(reply, 2), 0) + reply_int(reply_at(reply, 3), 0));
	a->found.requeued += (unsigned)reply_int(reply_at(reply, 2), 0);
	a->found.promoted += (unsigned)reply_int(reply_at(reply, 3), 0);
	a->found.dropped += (unsigned)reply_int(reply_at(reply, 4), 0);
	a->tick_rank = reply_int(reply_at(reply, 9), 0);
	if (cursor != NULL && strcmp(cursor, "-") != 0)
		snprintf(a->sweep, sizeof(a->sweep), "%s", cursor);
	if (scan != NULL)
		snprintf(a->scan, sizeof(a->scan), "%s", scan);
	ack_complain(a, ACK_TICK, warning != NULL && warning[0] != '\0' ? warning : NULL);
	if (ack_saw_due(a, now, reply_at(reply, 7), false) || moved > 0 ||
	    reply_int(reply_at(reply, 5), 0) > 0)
		watcher_saw_work(a->watcher);
	if (reply_int(reply_at(reply, 1), 0) != 0 && !a->closing) {
		a->ticked_at = 0;
		ack_tick(a);
		return;
	}
	a->tick_rank = 0;
	ack_tick_next(a, now, reply_at(reply, 6), reply_at(reply, 8));
	ack_tick_report(a);
}

/* now more requeued promoted dropped waiting expires due delayed rank cursor warning scan */
static void
ack_ticked(struct ack *a, struct call *call, enum conn_answer answer,
    const struct redisReply *reply)
{
	bool ok = answer == CONN_REPLY && reply_len(reply) >= 12;

	a->ticking = false;
	/* Counted twice would be worse than not at all. */
	if (ok || answer == CONN_LOST)
		memcpy(a->stats->sent, call->counted, sizeof(call->counted));
	if (ok)
		ack_ticked_ok(a, reply);
	else if (answer == CONN_REPLY)
		ack_tick_failed(a, reply);
	if (!a->ticking && !ok)
		ack_tick_report(a);
	ack_wake(a);
}

void
ack_tick(struct ack *a)
{
	usec_t now = clock_mono();
	bool follows = a->tick_rank > 0 || a->found.requeued + a->found.promoted > 0;
	struct call *call;
	struct args w = { 0 };

	if (a->ticking || !ack_is_up(a))
		return;
	if (now < a->tick_after || now < a->ticked_at + SOONEST) {
		ack_tick_at(a, now);
		return;
	}
	a->ticking = true;
	a->ticked_at = now;
	timer_stop(&a->tick);
	call = ack_call_new(a, ACK_TICK, ack_ticked);
	ack_keys(a, call, &w);
	args_fmt(&w, "%.6f", (double)a->cfg->lease / (double)SEC);
	args_fmt(&w, "%.6f", (double)a->cfg->foreign_timeout / (double)SEC);
	args_str(&w, now >= ack_may_requeue_at(a) ? "1" : "0");
	args_fmt(&w, "%.6f", conn_redis_time(a->env->conn));
	args_fmt(&w, "%d", ACK_TICK_MAX);
	args_fmt(&w, "%d", ACK_BYTES);
	args_fmt(&w, "%" PRId64, a->tick_rank);
	args_str(&w, follows || a->closing ? "-" : a->sweep);
	ack_words(a, call, &w);
	memcpy(call->counted, a->stats->n, sizeof(call->counted));
	count_words(a->stats, &w);
	ack_send(a, call, &w);
}
