/*
 * The suspension of a queue; see suspension.h.
 *
 * Deliveries that began before a queue was SUSPENDED may end then.  Their failures change
 * nothing, so that they do not delay the probe.  A success proves that the command works: the
 * queue resumes.
 */
#include "engine/suspension.h"

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

static void
forget(struct suspension *s, size_t i)
{
	free(s->failed[i].tag);
	s->nfailed--;
	memmove(&s->failed[i], &s->failed[i + 1], (s->nfailed - i) * sizeof(*s->failed));
}

/*
 * A probe is due.  If nothing else is there to try, it takes the message that has waited for
 * the longest time since it failed.
 */
static void
probe_due(void *arg)
{
	struct suspension *s = arg;

	s->changed(s->arg);
	if (s->nfailed == 0)
		return;
	s->due(&s->failed[0]);
	forget(s, 0);
	timer_set(&s->probe, AGAIN);
}

/* When it begins, and then hourly, with the time since then. */
static void
tell(struct suspension *s, const char *cause)
{
	usec_t since = clock_mono() - s->since;

	queue_event(s->cfg, LOG_LV_ERROR, "suspended", LF_STR("reason", reason_name(s->reason)),
	    LF_STR("error", cause),
	    since < SEC ? LF_STR("since", NULL) : LF_USEC("since", since));
	timer_set(&s->reminder, HOUR);
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
	bool probing = s->state == PROBING;

	s->probes = probing && s->reason == reason ? s->probes + 1 : 0;
	s->reason = reason;
	utf8_copy_visible(s->cause, SUSPENSION_CAUSE_MAX, cause != NULL ? cause : "",
	    cause != NULL ? strlen(cause) : 0);
	wait_for_probe(s);
	if (probing)
		return;
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

	s->failures = 0;
	s->probes = 0;
	s->pops_refused = false;
	suspension_set_state(s, NOT_SUSPENDED, 0);
	if (was_on) {
		queue_event(s->cfg, LOG_LV_INFO, "resumed",
		    LF_USEC("after", clock_mono() - s->since));
		s->blocked(s->arg);
		timer_stop(&s->reminder);
		for (size_t i = 0; i < s->nfailed; i++)
			s->due(&s->failed[i]);
	}
	while (s->nfailed > 0)
		forget(s, s->nfailed - 1);
}

void
suspension_init(struct suspension *s, struct loop *loop)
{
	timer_init(&s->probe, loop, probe_due, s);
	timer_init(&s->reminder, loop, remind, s);
}

void
suspension_done(struct suspension *s)
{
	timer_stop(&s->probe);
	timer_stop(&s->reminder);
	while (s->nfailed > 0)
		forget(s, s->nfailed - 1);
	free(s->failed);
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

bool
suspension_doubts(const struct suspension *s)
{
	return s->state != NOT_SUSPENDED && !s->pops_refused;
}

unsigned
suspension_note(struct suspension *s, const struct message *msg, const struct verdict *v)
{
	unsigned times = v->failed || v->op == VERDICT_RETRY;

	if (!kind_has(s->cfg->kind, TRAIT_LEASES))
		return times;
	for (size_t i = 0; i < s->nfailed; i++) {
		if (s->failed[i].source == msg->source && strcmp(s->failed[i].tag, msg->tag) == 0) {
			times += times > 0 ? s->failed[i].times : 0;
			forget(s, i);
			break;
		}
	}
	if (v->op != VERDICT_RETRY)
		return times;
	if (s->nfailed == FAILED_MAX)
		forget(s, 0);
	*APPEND(s->failed, s->nfailed) = (struct retry){ xstrdup(msg->tag), msg->source, times };
	return times;
}

/* Whether this failure suspends the queue, or shows that it must stay so. */
static bool
fails(struct suspension *s, const struct verdict *v, unsigned times)
{
	int limit = s->cfg->suspend_after, most = limit - 1 < TIMES_MAX ? limit - 1 : TIMES_MAX;

	if (v->suspend != REASON_NONE || s->state != NOT_SUSPENDED)
		return s->state != SUSPENDED;
	/* One message alone does not suspend the queue, but with suspend_after = 1. */
	if (times > 1 && (int)times > most)
		return false;
	s->failures++;
	return limit != 0 && s->failures >= limit;
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
			suspension_idle(s);
	} else if (!failed) {
		/* Without a result: the message was returned, or settled elsewhere. */
		if (s->state == PROBING)
			wait_for_probe(s);
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
suspension_idle(struct suspension *s)
{
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
