/*
 * The suspension of a queue; see suspension.h.  After every call of the breaker,
 * after() logs the change and sets the timer of the next probe.
 */
#include "engine/suspension.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "engine/event_log.h"

static void
remind(void *arg)
{
	struct suspension *s = arg;

	event_log_suspended(s->cfg, &s->breaker, s->cause[0] != '\0' ? s->cause : NULL);
	timer_set(&s->reminder, HOUR);
}

static void
set_cause(struct suspension *s, const char *cause)
{
	utf8_copy_visible(s->cause, SUSPENSION_CAUSE_MAX, cause != NULL ? cause : "",
	    cause != NULL ? strlen(cause) : 0);
}

static void
after(struct suspension *s, enum breaker_event event, const char *cause)
{
	switch (event) {
	case BREAKER_SUSPENDED:
		set_cause(s, cause);
		s->stats->n[STAT_SUSPENDED]++;
		event_log_suspended(s->cfg, &s->breaker, cause);
		s->blocked(s->arg);
		timer_set(&s->reminder, HOUR);
		break;
	case BREAKER_RESUMED:
		event_log_resumed(s->cfg, &s->breaker);
		s->blocked(s->arg);
		timer_stop(&s->reminder);
		break;
	case BREAKER_STILL:
		set_cause(s, cause);
		break;
	case BREAKER_NOTHING:
		break;
	}
	if (s->breaker.state == BREAKER_OPEN)
		timer_set_at(&s->probe, s->breaker.probe_at);
	else
		timer_stop(&s->probe);
	s->changed(s->arg);
}

void
suspension_init(struct suspension *s, struct loop *loop, const struct queue_config *cfg,
    struct stats *stats, void (*changed)(void *), void (*blocked)(void *), void *arg)
{
	*s = (struct suspension){ .cfg = cfg, .stats = stats, .changed = changed,
	    .blocked = blocked, .arg = arg };
	breaker_init(&s->breaker, cfg->suspend_after);
	timer_init(&s->probe, loop, changed, arg);
	timer_init(&s->reminder, loop, remind, s);
}

void
suspension_done(struct suspension *s)
{
	timer_stop(&s->probe);
	timer_stop(&s->reminder);
	free(s->refused);
}

void
suspension_reconfigure(struct suspension *s, const struct queue_config *cfg)
{
	s->cfg = cfg;
	s->breaker.limit = cfg->suspend_after;
}

bool
suspension_is_on(const struct suspension *s)
{
	return s->breaker.state != BREAKER_CLOSED;
}

void
suspension_probe_now(struct suspension *s)
{
	breaker_hurry(&s->breaker, clock_mono());
	after(s, BREAKER_NOTHING, NULL);
}

/* Makes the text of the cause only if it is kept: most failures suspend nothing. */
static void
failed(struct suspension *s, enum breaker_event event, const struct result *r)
{
	char *cause = NULL;

	if (event == BREAKER_SUSPENDED || event == BREAKER_STILL)
		cause = event_log_cause(s->cfg, r);
	after(s, event, cause);
	free(cause);
}

void
suspension_judge(struct suspension *s, const struct verdict *v, const struct result *r)
{
	usec_t now = clock_mono();

	if (v->suspend != REASON_NONE) {
		failed(s, breaker_cannot_execute(&s->breaker, now), r);
	} else if (v->op == VERDICT_ACK) {
		after(s, breaker_success(&s->breaker), NULL);
	} else if (verdict_is_of_message(v)) {
		after(s, breaker_judged(&s->breaker, now), NULL);
	} else if (v->failed || v->op == VERDICT_RETRY) {
		failed(s, breaker_failure(&s->breaker, now), r);
	} else {
		breaker_unproved(&s->breaker, now);
		after(s, BREAKER_NOTHING, NULL);
	}
}

void
suspension_idle(struct suspension *s)
{
	breaker_idle(&s->breaker, clock_mono());
	after(s, BREAKER_NOTHING, NULL);
}

/*
 * The longest pause between probes of a queue that Redis refuses.  A probe costs no
 * more than a renewal, and comes as often, so the queue resumes within a lease.
 */
static usec_t
longest_pause(const struct suspension *s)
{
	usec_t third = s->cfg->lease / 3;

	return third < SEC ? SEC : third < 10 * SEC ? third : 10 * SEC;
}

void
suspension_refused(struct suspension *s, const char *error)
{
	after(s, breaker_refused(&s->breaker, longest_pause(s), clock_mono()), error);
}

void
suspension_accepted(struct suspension *s)
{
	after(s, breaker_accepted(&s->breaker), NULL);
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
