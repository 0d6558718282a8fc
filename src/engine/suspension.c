/*
 * The suspension of a queue; see suspension.h.
 *
 * Deliveries that began before a queue was SUSPENDED may end then.  Their failures change
 * nothing, so that they do not delay the probe.  A success proves that the command works: the
 * queue resumes.
 */
#include "engine/suspension.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/backoff.h"
#include "base/utf8.h"
#include "engine/event_log.h"

#define PROBE_FIRST	(1 * SEC)
#define PROBE_MOST	(5 * SEC)	/* the longest wait */
#define FAILED_MAX	10000	/* messages that are remembered: the last */
#define TIMES_MAX	3	/* failures of one message that count in a row */
#define AGAIN		SEC	/* a probe is due, and nothing is there to try */
#define PULLS_MAX	10	/* of one message, see probe_due() */
#define TELL_EVERY	MINUTE	/* causes that change are logged no more often */

/* The only place that changes the state. */
static void
suspension_set_state(struct suspension *s, enum suspension_state state, usec_t probe_at)
{
	s->state = state;
	s->probe_at = probe_at;
	if (state == SUSPENDED)
		timer_set_at(&s->probe, probe_at);
	else
		timer_stop(&s->probe);
	s->changed(s->arg);
}

/* The next probe comes after 1 s, 2 s, 4 s, and then always 5 s; no jitter (unit 1). */
static void
wait_for_probe(struct suspension *s)
{
	suspension_set_state(s, SUSPENDED,
	    clock_mono() + backoff_delay(PROBE_FIRST, PROBE_MOST, s->probes + 1, 1));
}

/* -- messages that have failed --------------------------------------------------- */

static int
failure_compare(const void *one, const void *other)
{
	const struct failure *a = one, *b = other;

	if (a->source != b->source)
		return (uintptr_t)a->source < (uintptr_t)b->source ? -1 : 1;
	return strcmp(a->tag, b->tag);
}

/* NULL: the message has not failed, as far as this daemon knows. */
static struct failure *
failure_find(const struct suspension *s, const struct message *msg)
{
	const struct failure key = { .tag = msg->tag, .source = msg->source };
	struct failure **found = tfind(&key, &s->failures_by_tag, failure_compare);

	return found != NULL ? *found : NULL;
}

static bool
failure_is_in_row(const struct suspension *s, const struct failure *f)
{
	return f->row == s->nth;
}

static void
failure_leave_list(struct suspension *s, struct failure *f)
{
	if (failure_is_in_row(s, f)) {
		TAILQ_REMOVE(&s->row, f, entry);
		s->nrow--;
	} else {
		TAILQ_REMOVE(&s->past, f, entry);
	}
}

/* Puts it last. */
static void
failure_join_row(struct suspension *s, struct failure *f)
{
	f->row = s->nth;
	TAILQ_INSERT_TAIL(&s->row, f, entry);
	s->nrow++;
}

static void
failure_join_past(struct suspension *s, struct failure *f)
{
	f->row = 0;
	TAILQ_INSERT_TAIL(&s->past, f, entry);
}

static void
failure_forget(struct suspension *s, struct failure *f)
{
	failure_leave_list(s, f);
	(void)tdelete(f, &s->failures_by_tag, failure_compare);
	s->nremembered--;
	free(f->tag);
	free(f);
}

/* Remembers another one, which is on no list yet; if there are too many, instead of the oldest. */
static struct failure *
failure_add(struct suspension *s, const struct message *msg)
{
	struct failure *f, *oldest = TAILQ_FIRST(&s->past);

	if (s->nremembered == FAILED_MAX)
		failure_forget(s, oldest != NULL ? oldest : TAILQ_FIRST(&s->row));
	f = NEW(struct failure, .tag = xstrdup(msg->tag), .source = msg->source,
	    .first = clock_mono());
	if (tsearch(f, &s->failures_by_tag, failure_compare) == NULL)
		fatal_os("out of memory");
	s->nremembered++;
	return f;
}

static bool
failure_is_blamed(const struct suspension *s, const struct failure *f)
{
	return f != NULL && s->worked >= f->first;
}

/* -- suspended, and resumed -------------------------------------------------------- */

/*
 * A probe is due.  If nothing else is there to try, it takes the message that has waited for
 * the longest time since it failed.  One that was taken so PULLS_MAX times, and never came
 * back, is not there any more.
 */
static void
probe_due(void *arg)
{
	struct suspension *s = arg;
	struct failure *f;

	s->changed(s->arg);
	while ((f = TAILQ_FIRST(&s->row)) != NULL && f->pulls == PULLS_MAX)
		failure_forget(s, f);
	if (f == NULL)
		return;
	s->due(f);
	f->pulls++;
	failure_leave_list(s, f);
	failure_join_row(s, f);
	timer_set(&s->probe, AGAIN);
}

/* When it begins, when its cause changes, and hourly; with the time since it began. */
static void
tell(struct suspension *s, const char *cause)
{
	usec_t since = clock_mono() - s->since;

	queue_event(s->cfg, LOG_LV_ERROR, "suspended", LF_STR("reason", reason_name(s->reason)),
	    LF_STR("error", cause),
	    since < SEC ? LF_STR("since", NULL) : LF_USEC("since", since));
	timer_set(&s->reminder, HOUR);
	s->untold = false;
	s->told_at = clock_mono();
}

static void
remind(void *arg)
{
	struct suspension *s = arg;

	tell(s, s->cause[0] != '\0' ? s->cause : NULL);
}

/* Unless it is SUSPENDED already. */
static void
suspend(struct suspension *s, enum reason reason, const char *cause)
{
	bool probing = s->state == PROBING, other = s->reason != reason;
	char before[SUSPENSION_CAUSE_MAX + 1];

	s->probes = probing && !other ? s->probes + 1 : 0;
	s->reason = reason;
	memcpy(before, s->cause, sizeof(before));
	utf8_copy_visible(s->cause, SUSPENSION_CAUSE_MAX, cause != NULL ? cause : "",
	    cause != NULL ? strlen(cause) : 0);
	if (!probing)
		s->turns = 0;
	wait_for_probe(s);
	if (s->pops_refused)	/* nothing was tried */
		s->waiting = 0;
	else if (!probing || s->waiting == 0)
		s->waiting = clock_mono();
	if (probing) {
		/* A handler's last line may have a time in it, and be another one each time. */
		s->untold = s->untold || other || strcmp(s->cause, before) != 0;
		if (s->untold && (other || clock_mono() - s->told_at >= TELL_EVERY))
			tell(s, cause);
		return;
	}
	s->since = clock_mono();
	s->stats->n[STAT_SUSPENDED]++;
	tell(s, cause);
	s->blocked(s->arg);
}

/* The row is over.  If the queue was suspended, its failures are due at once. */
static void
succeed(struct suspension *s)
{
	bool was_on = s->state != NOT_SUSPENDED;
	struct failure *f;

	s->failures = 0;
	s->probes = 0;
	s->pops_refused = false;
	suspension_set_state(s, NOT_SUSPENDED, 0);
	if (was_on) {
		queue_event(s->cfg, LOG_LV_INFO, "resumed",
		    LF_USEC("after", clock_mono() - s->since));
		s->blocked(s->arg);
		timer_stop(&s->reminder);
		TAILQ_FOREACH(f, &s->row, entry)
			s->due(f);
	}
	TAILQ_CONCAT(&s->past, &s->row, entry);
	s->nrow = 0;
	s->nth++;
}

void
suspension_init(struct suspension *s, struct loop *loop)
{
	TAILQ_INIT(&s->row);
	TAILQ_INIT(&s->past);
	s->nth = 1;
	timer_init(&s->probe, loop, probe_due, s);
	timer_init(&s->reminder, loop, remind, s);
}

void
suspension_done(struct suspension *s)
{
	struct failure *f;

	timer_stop(&s->probe);
	timer_stop(&s->reminder);
	while ((f = TAILQ_FIRST(&s->row)) != NULL || (f = TAILQ_FIRST(&s->past)) != NULL)
		failure_forget(s, f);
	free(s->refused);
}

bool
suspension_allows(const struct suspension *s, bool *single)
{
	*single = s->state != NOT_SUSPENDED;
	return s->state == NOT_SUSPENDED ||
	    (s->state == SUSPENDED && clock_mono() >= s->probe_at);
}

enum turn
suspension_turn(struct suspension *s)
{
	static const enum turn turns[] = {
		TURN_OLDEST, TURN_NEWEST, TURN_FEWEST, TURN_LONGEST
	};

	if (s->state != SUSPENDED)
		return TURN_SHARE;
	suspension_set_state(s, PROBING, 0);
	return turns[s->turns++ % ARRAY_LEN(turns)];
}

double
suspension_waits(const struct suspension *s)
{
	if (s->state == NOT_SUSPENDED || s->waiting == 0)
		return -1;
	return clock_seconds(clock_mono() - s->waiting);
}

bool
suspension_doubts(const struct suspension *s)
{
	return s->state != NOT_SUSPENDED && !s->pops_refused;
}

bool
suspension_blames(const struct suspension *s, const struct message *msg)
{
	return failure_is_blamed(s, failure_find(s, msg));
}

/* Whether messages that fail are remembered: only if that may matter. */
static bool
suspension_remembers(const struct suspension *s, const struct verdict *v)
{
	return s->cfg->suspend_after > 0 || s->state != NOT_SUSPENDED ||
	    v->suspend != REASON_NONE;
}

unsigned
suspension_note(struct suspension *s, const struct message *msg, const struct verdict *v)
{
	unsigned times = v->failed || v->op == VERDICT_RETRY;
	struct failure *f;
	bool blamed;

	if (!kind_has(s->cfg->kind, TRAIT_LEASES))
		return times;
	if (v->op == VERDICT_ACK && msg->delivered > s->worked)
		s->worked = msg->delivered;
	f = failure_find(s, msg);
	blamed = failure_is_blamed(s, f);
	if (f != NULL && times > 0 && failure_is_in_row(s, f))
		times += f->times;
	switch (v->op) {
	case VERDICT_RETRY:
		if (f == NULL && !suspension_remembers(s, v))
			break;
		if (f == NULL)
			f = failure_add(s, msg);
		else
			failure_leave_list(s, f);
		f->pulls = 0;
		f->times = times;
		if (blamed)
			failure_join_past(s, f);
		else
			failure_join_row(s, f);
		break;
	case VERDICT_DEFER:
	case VERDICT_HOLD:
	case VERDICT_HOLD_GROUP:
	case VERDICT_RETURN:
		/* A success must not make it due. */
		if (f != NULL) {
			failure_leave_list(s, f);
			failure_join_past(s, f);
		}
		break;
	case VERDICT_ACK:
	case VERDICT_DEAD:
	case VERDICT_DROP:
	case VERDICT_STALE:
		if (f != NULL)
			failure_forget(s, f);
		break;
	}
	return times > 0 && blamed ? SUSPENSION_BLAMED : times;
}

/* Whether this failure suspends the queue, or shows that it must stay so. */
static bool
fails(struct suspension *s, const struct verdict *v, unsigned times)
{
	int limit = s->cfg->suspend_after, most = limit - 1 < TIMES_MAX ? limit - 1 : TIMES_MAX;

	if (v->suspend != REASON_NONE || s->state != NOT_SUSPENDED)
		return s->state != SUSPENDED;
	/* One message alone does not suspend the queue, but with suspend_after = 1. */
	if (limit == 0 || (times > 1 && (int)times > most))
		return false;
	s->failures++;
	return s->failures >= limit;
}

void
suspension_judge(struct suspension *s, const struct verdict *v, const struct result *r,
    unsigned times)
{
	bool failed = v->suspend != REASON_NONE || v->failed || v->op == VERDICT_RETRY;
	char *cause;

	if (v->suspend == REASON_NONE && (v->op == VERDICT_ACK || verdict_is_of_message(v))) {
		/*
		 * The handler gave a verdict on its message (dead_status, "dead", "defer").  So it
		 * can be executed, but others need not succeed: a queue that is suspended for
		 * failures stays so.
		 */
		if (v->op == VERDICT_ACK ||
		    (s->state == PROBING && s->reason == REASON_CANNOT_EXECUTE))
			succeed(s);
		else
			suspension_idle(s, false);
	} else if (!failed) {
		/* Without a result: the message was returned, or settled elsewhere. */
		if (s->state == PROBING)
			wait_for_probe(s);
	} else if (times == SUSPENSION_BLAMED && v->suspend == REASON_NONE) {
		if (s->state == PROBING && s->reason == REASON_CANNOT_EXECUTE)
			succeed(s);
		else if (s->state == PROBING)	/* others must not wait long for it */
			suspension_set_state(s, SUSPENDED, clock_after(PROBE_FIRST));
	} else if (fails(s, v, times)) {
		/* It can be executed again, and failures alone do not suspend this queue. */
		if (v->suspend == REASON_NONE && s->cfg->suspend_after == 0) {
			succeed(s);
			return;
		}
		cause = event_log_cause(s->cfg, v, r);
		suspend(s, v->suspend != REASON_NONE ? REASON_CANNOT_EXECUTE : REASON_FAILING,
		    cause);
		free(cause);
	}
}

void
suspension_idle(struct suspension *s, bool empty)
{
	if (empty && s->state == PROBING)
		s->waiting = 0;
	if (s->state == PROBING)
		suspension_set_state(s, SUSPENDED, clock_mono());
}

void
suspension_refused(struct suspension *s, const char *error)
{
	if (s->state == NOT_SUSPENDED)
		s->pops_refused = true;
	if (s->state != SUSPENDED)
		suspend(s, s->pops_refused ? REASON_FAILING : s->reason, error);
}

void
suspension_accepted(struct suspension *s)
{
	if (s->pops_refused)
		succeed(s);
}

void
suspension_results(struct suspension *s, const char *why)
{
	if ((why[0] != '\0') == (s->refused != NULL))
		return;
	xreplace(&s->refused, why[0] != '\0' ? why : NULL);
	s->refused_since = clock_mono();
	s->blocked(s->arg);
}
