/*
 * Records about messages and queues; see event_log.h.
 *
 * A record about a delivery has the context queue, id, attempt, pid, and then the end
 * of the handler: status= or signal=, duration=, cpu= and maxrss=, reason=.
 */
#include "engine/event_log.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "handler/environment.h"
#include "handler/start_error.h"
#include "policy/tick.h"

#define CAUSE_LINE_MAX	200	/* bytes of a handler's line that a cause quotes */

static struct log_ctx
ctx_of(const struct message *msg, pid_t pid)
{
	return (struct log_ctx){
		.queue = msg->cfg->name,
		.id = msg->id,
		.attempt = msg->attempts + 1,
		.pid = pid,
		.trace = msg->trace,
	};
}

void
event_log_delivered(const struct message *msg)
{
	struct log_ctx ctx = ctx_of(msg, 0);
	bool shown = msg->config->log.payloads && msg->payload != NULL;

	log_event(LOG_LV_DEBUG, "delivered", &ctx, LF_STR("channel", msg->channel),
	    LF_INT("size", (int64_t)msg->len), shown ?
	    LF_MEM("payload", msg->payload, msg->len) : LF_STR("payload", NULL));
}

/* status=, signal= or step= */
static struct log_field
end_field(const struct result *r, char signal[static UTIL_SIGNAL_MAX])
{
	switch (r->end) {
	case END_EXIT:
		return LF_INT("status", r->status);
	case END_SIGNAL:
		return LF_STR("signal", util_signal(r->signo, signal));
	case END_NOT_STARTED:
		return LF_STR("step", r->step);
	case END_NOT_RUN:
	case END_ANSWER:
	case END_UNFRAMEABLE:
		break;
	}
	return LF_STR("status", NULL);
}

/* duration= or error= */
static struct log_field
duration_field(const struct result *r)
{
	if (r->end == END_NOT_STARTED)
		return LF_STR("error", environment_strerror(r->error));
	return r->end == END_NOT_RUN ? LF_STR("duration", NULL) :
	    LF_USEC("duration", r->duration);
}

static struct log_field
cpu_field(const struct result *r)
{
	return r->usage.maxrss > 0 ? LF_USEC("cpu", r->usage.cpu) : LF_STR("cpu", NULL);
}

static struct log_field
maxrss_field(const struct result *r, char text[static UNITS_TEXT_MAX])
{
	return LF_STR("maxrss", r->usage.maxrss > 0 ?
	    units_about_size((uint64_t)r->usage.maxrss, text) : NULL);
}

/* An acked delivery's messages are in their queues. */
static void
log_pushed(struct stats *s, const struct log_ctx *ctx, const struct pushes *pushes)
{
	const struct pushes_target *t;

	s->n[STAT_PUSHED] += pushes_count(pushes);
	for (size_t i = 0; i < pushes_targets(pushes); i++) {
		t = pushes_target(pushes, i);
		log_event(LOG_LV_DEBUG, "pushed", ctx, LF_STR("to", t->queue->name),
		    LF_INT("count", (int64_t)t->count));
	}
}

struct settle_event {
	const char	*name;
	enum log_level	 level;
	enum stat	 stat;	/* STAT_MAX: none */
};

/* Of verdicts that Redis took unchanged. */
static const struct settle_event verdict_events[] = {
	[VERDICT_ACK] = { "acked", LOG_LV_INFO, STAT_ACKED },
	[VERDICT_DROP] = { "cancelled", LOG_LV_INFO, STAT_CANCELLED },
	[VERDICT_RETRY] = { "retry", LOG_LV_WARN, STAT_RETRIED },
	[VERDICT_DEFER] = { "deferred", LOG_LV_INFO, STAT_DEFERRED },
	[VERDICT_HOLD] = { "held", LOG_LV_INFO, STAT_DEFERRED },
	[VERDICT_HOLD_GROUP] = { "held_group", LOG_LV_INFO, STAT_DEFERRED },
	[VERDICT_DEAD] = { "dead", LOG_LV_ERROR, STAT_DEAD },
	[VERDICT_RETURN] = { "returned", LOG_LV_INFO, STAT_RETURNED },
	[VERDICT_STALE] = { "stale", LOG_LV_WARN, STAT_STALE },
};

static struct settle_event
settle_event(const struct verdict *v, const struct result *r, enum settled how, bool leases)
{
	switch (how) {
	case SETTLED_OK:
		/* A batch has a record of its own. */
		if (v->op == VERDICT_ACK && r->batch > 0)
			return (struct settle_event){ "acked", LOG_LV_DEBUG, STAT_ACKED };
		break;
	case SETTLED_STALE:
		return verdict_events[VERDICT_STALE];
	case SETTLED_DROPPED:
		if (v->failed)
			return (struct settle_event){ "failed", LOG_LV_ERROR, STAT_FAILED };
		return (struct settle_event){ "dropped", LOG_LV_ERROR, STAT_DROPPED };
	case SETTLED_DEFERRED:
		return (struct settle_event){ "warning", LOG_LV_ERROR, STAT_MAX };
	case SETTLED_GAVE_UP:
		return (struct settle_event){ "warning", LOG_LV_WARN,
		    leases ? STAT_MAX : STAT_DROPPED };
	}
	return verdict_events[v->op];
}

void
event_log_settled(struct stats *s, const struct message *msg, const struct verdict *v,
    const struct result *r, enum settled how)
{
	bool leases = kind_has(msg->cfg->kind, TRAIT_LEASES);
	struct settle_event event = settle_event(v, r, how, leases);
	struct log_ctx ctx = ctx_of(msg, r->pid);
	char signal[UTIL_SIGNAL_MAX], maxrss[UNITS_TEXT_MAX];
	const char *warning = NULL, *cause = r->answer;

	if (event.stat != STAT_MAX)
		s->n[event.stat]++;
	if (how == SETTLED_OK) {
		s->n[STAT_FAILED] += v->failed;
		s->n[STAT_CANCELLED] += v->op == VERDICT_DEAD && v->reason == REASON_CANCELLED;
		if (v->op == VERDICT_ACK && r->pushes != NULL)
			log_pushed(s, &ctx, r->pushes);
	}
	if (how == SETTLED_DEFERRED)
		warning = "the dead letter could not be written: the message is due again in 60s";
	else if (how == SETTLED_OK && (v->op == VERDICT_HOLD || v->op == VERDICT_HOLD_GROUP) &&
	    r->delay > v->delay)
		warning = "a handler may hold its queue or group for 1h at most";
	else if (how == SETTLED_GAVE_UP)
		warning = leases ? "the result could not be delivered: "
		    "the message runs again when its lease ends" :
		    "the message could not be returned: it may be lost";
	if (cause == NULL && r->stop == STOP_TIME_LIMIT &&
	    v->reason == REASON_ATTEMPTS)
		cause = "timeout";
	else if (cause == NULL && r->oom && v->reason != REASON_OOM)
		cause = "oom";
	log_event(event.level, event.name, &ctx, msg->crashes > 0 ?
	    LF_INT("crashes", msg->crashes) : LF_STR("crashes", NULL),
	    end_field(r, signal), duration_field(r),
	    cpu_field(r), maxrss_field(r, maxrss),
	    LF_STR("reason", v->reason != REASON_NONE ? reason_name(v->reason) : NULL),
	    LF_STR("by", v->reason == REASON_CANCELLED || r->stop == STOP_CANCEL ?
	    msg->cancelled_by : NULL),
	    verdict_has_delay(v) ? LF_USEC("delay", v->delay) : LF_STR("delay", NULL),
	    LF_STR(result_has_words(r) ? "answer" : "cause", cause),
	    LF_STR("warning", warning),
	    LF_STR("result", how == SETTLED_GAVE_UP ? verdict_events[v->op].name : NULL));
}

void
event_log_leftovers(const struct queue_config *cfg, const struct message *msg,
    const struct result *r)
{
	struct log_ctx ctx = { .queue = cfg->name, .pid = r->pid };

	if (r->leftovers == 0 || r->stop != STOP_NONE || cfg->leftovers == LEFTOVERS_KEEP)
		return;
	if (msg != NULL)
		ctx = ctx_of(msg, r->pid);
	log_event(LOG_LV_INFO, "leftovers", &ctx, LF_INT("count", r->leftovers));
}

void
event_log_batch(const struct queue_config *cfg, const struct result *r, unsigned acked)
{
	struct log_ctx ctx = { .queue = cfg->name, .pid = r->pid };
	char signal[UTIL_SIGNAL_MAX], maxrss[UNITS_TEXT_MAX];

	log_event(LOG_LV_INFO, "acked", &ctx, LF_INT("batch", r->batch),
	    acked != r->batch ? LF_INT("acked", acked) : LF_STR("acked", NULL),
	    end_field(r, signal), duration_field(r), cpu_field(r), maxrss_field(r, maxrss));
}

/*
 * The last line of a handler's text that is not blank.  It is cut, because it may be of
 * any length.
 */
static size_t
last_line(const char *text, size_t len, const char **line)
{
	const char *end = text + len, *p;

	while (end > text && strchr(" \t\r\n", end[-1]) != NULL)
		end--;
	for (p = end; p > text && p[-1] != '\n'; p--)
		continue;
	*line = p;
	return (size_t)(end - p) < CAUSE_LINE_MAX ? (size_t)(end - p) : CAUSE_LINE_MAX;
}

/* What a handler said, that has failed by it. */
static const char *
said_text(enum reason reason)
{
	if (reason == REASON_ANSWER)
		return "it said retry";
	if (reason == REASON_PROTOCOL)
		return "it broke the protocol";
	return "it may not push that";
}

/* The handler's words come last, so that they cannot imitate text of rqd after them. */
char *
event_log_failure(const struct queue_config *cfg, const struct verdict *v, const struct result *r)
{
	const char *line = "", *before = ", stderr: ";
	char how[UTIL_SIGNAL_MAX + 32], signal[UTIL_SIGNAL_MAX];
	bool said = v->suspend == REASON_NONE && (v->reason == REASON_ANSWER ||
	    v->reason == REASON_PROTOCOL || v->reason == REASON_PUSHES);
	size_t len = 0;

	if (r->end == END_NOT_STARTED)
		return start_error_text(cfg, r->step, r->error);
	if (said)
		snprintf(how, sizeof(how), "%s", said_text(v->reason));
	else if (r->stop == STOP_TIME_LIMIT)
		snprintf(how, sizeof(how), "time_limit is over");
	else if (r->oom)
		snprintf(how, sizeof(how), "out of memory");
	else if (r->end == END_EXIT)
		snprintf(how, sizeof(how), "exit status %d", r->status);
	else if (r->end == END_SIGNAL)
		snprintf(how, sizeof(how), "signal %s", util_signal(r->signo, signal));
	else
		return NULL;
	if (said && r->answer != NULL) {
		len = last_line(r->answer, strlen(r->answer), &line);
		before = ": ";
	} else if (r->error_tail != NULL) {
		len = last_line(r->error_tail, r->error_len, &line);
	}
	return xasprintf("%s%s%.*s", how, len > 0 ? before : "", (int)len, line);
}

char *
event_log_cause(const struct queue_config *cfg, const struct verdict *v, const struct result *r)
{
	const char *program = "";
	char *failure = event_log_failure(cfg, v, r), *cause;

	if (failure == NULL || r->end == END_NOT_STARTED)
		return failure;
	if (cfg->command != NULL && cfg->command[0] != NULL)
		program = cfg->command[0];
	cause = xasprintf("command %s: %s", program, failure);
	free(failure);
	return cause;
}
