/*
 * Records about messages and queues; see event_log.h.
 *
 * A record about a delivery has the context queue, id, attempt, pid, and then the end
 * of the handler: status= or signal=, duration=, reason=.
 */
#include "engine/event_log.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "handler/start_error.h"
#include "policy/tick.h"

#define FIELDS_MAX	12
#define CAUSE_LINE_MAX	200	/* bytes of a handler's line that a cause quotes */

/* A record about a queue. */
#define queue_event(cfg, level, event, ...)	\
	log_event((level), (event), (&(struct log_ctx){ .queue = (cfg)->name }), __VA_ARGS__)

/* Fields gathered one by one; the last is LF_END. */
struct fields {
	struct log_field	f[FIELDS_MAX];
	size_t			n;
	char			signal[UTIL_SIGNAL_MAX];	/* one of them may point here */
};

static void
fields_add(struct fields *fs, struct log_field f)
{
	if (fs->n < FIELDS_MAX - 1)
		fs->f[fs->n++] = f;
}

static struct log_ctx
ctx_of(const struct message *msg, pid_t pid)
{
	return (struct log_ctx){
		.queue = msg->cfg->name,
		.id = msg->id,
		.attempt = msg->attempts + 1,
		.pid = pid,
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

/* status= or signal=, duration=, error= */
static void
fields_add_result(struct fields *fs, const struct result *r)
{
	switch (r->end) {
	case END_EXIT:
		fields_add(fs, LF_INT("status", r->status));
		break;
	case END_SIGNAL:
		fields_add(fs, LF_STR("signal", util_signal(r->signo, fs->signal)));
		break;
	case END_NOT_STARTED:
		fields_add(fs, LF_STR("step", r->step));
		fields_add(fs, LF_STR("error", strerror(r->error)));
		return;
	case END_NOT_RUN:
		return;
	case END_ANSWER:
	case END_UNFRAMEABLE:
		break;
	}
	fields_add(fs, LF_USEC("duration", r->duration));
}

struct outcome_event {
	const char	*name;
	enum log_level	 level;
};

/* Events of verdicts that Redis took unchanged. */
static const struct outcome_event verdict_events[] = {
	[VERDICT_ACK] = { "acked", LOG_LV_INFO },
	[VERDICT_DROP] = { "cancelled", LOG_LV_INFO },
	[VERDICT_RETRY] = { "retry", LOG_LV_WARN },
	[VERDICT_DEFER] = { "deferred", LOG_LV_INFO },
	[VERDICT_DEAD] = { "dead", LOG_LV_ERROR },
	[VERDICT_RETURN] = { "returned", LOG_LV_INFO },
	[VERDICT_STALE] = { "stale", LOG_LV_WARN },
};

static struct outcome_event
settled_event(const struct verdict *v, const struct result *r, enum settled how)
{
	switch (how) {
	case SETTLED_OK:
		/* A batch has a record of its own. */
		if (v->op == VERDICT_ACK && r->batch > 0)
			return (struct outcome_event){ "acked", LOG_LV_DEBUG };
		break;
	case SETTLED_STALE:
		return (struct outcome_event){ "stale", LOG_LV_WARN };
	case SETTLED_RESCUED:
		return (struct outcome_event){ "rescued", LOG_LV_WARN };
	case SETTLED_DROPPED:
		return (struct outcome_event){ v->failed ? "failed" : "dropped", LOG_LV_ERROR };
	case SETTLED_DEFERRED:
		return (struct outcome_event){ "warning", LOG_LV_ERROR };
	case SETTLED_GAVE_UP:
		return (struct outcome_event){ "warning", LOG_LV_WARN };
	}
	return verdict_events[v->op];
}

void
event_log_settled(const struct message *msg, const struct verdict *v,
    const struct result *r, enum settled how)
{
	struct outcome_event event = settled_event(v, r, how);
	struct log_ctx ctx = ctx_of(msg, r->pid);
	struct fields fs = { .n = 0 };

	if (!log_is_on(event.level))
		return;
	fields_add_result(&fs, r);
	if (v->reason != REASON_NONE)
		fields_add(&fs, LF_STR("reason", reason_name(v->reason)));
	if (v->reason == REASON_CANCELLED)
		fields_add(&fs, LF_STR("by", msg->cancelled_by));
	if (v->op == VERDICT_RETRY || v->op == VERDICT_DEFER)
		fields_add(&fs, LF_USEC("delay", v->delay));
	fields_add(&fs, LF_STR(result_has_words(r) ? "answer" : "cause", r->answer));
	if (how == SETTLED_DEFERRED)
		fields_add(&fs, LF_STR("warning", "the dead letter could not be written: "
		    "the message is due again in 60s"));
	if (how == SETTLED_GAVE_UP) {
		fields_add(&fs, LF_STR("warning", kind_has(msg->cfg->kind, TRAIT_LEASES) ?
		    "the result could not be delivered: "
		    "the message runs again when its lease ends" :
		    "the message could not be returned: it may be lost"));
		fields_add(&fs, LF_STR("result", verdict_events[v->op].name));
	}
	fs.f[fs.n] = LF_END;
	log_write(event.level, event.name, &ctx, fs.f);
}

void
event_log_pushed(const struct message *msg, const struct result *r)
{
	struct log_ctx ctx = ctx_of(msg, r->pid);
	const struct pushes_target *t;

	for (size_t i = 0; i < pushes_targets(r->pushes); i++) {
		t = pushes_target(r->pushes, i);
		log_event(LOG_LV_DEBUG, "pushed", &ctx, LF_STR("to", t->queue->name),
		    LF_INT("count", (int64_t)t->count));
	}
}

void
event_log_batch(const struct queue_config *cfg, const struct result *r, unsigned acked)
{
	struct log_ctx ctx = { .queue = cfg->name, .pid = r->pid };
	struct fields fs = { .n = 0 };

	fields_add(&fs, LF_INT("batch", r->batch));
	if (acked != r->batch)
		fields_add(&fs, LF_INT("acked", acked));
	fields_add_result(&fs, r);
	fs.f[fs.n] = LF_END;
	if (log_is_on(LOG_LV_INFO))
		log_write(LOG_LV_INFO, "acked", &ctx, fs.f);
}

void
event_log_lingers(const struct queue_config *cfg, pid_t pid, unsigned batch)
{
	struct log_ctx ctx = { .queue = cfg->name, .pid = pid };

	log_event(LOG_LV_WARN, "warning", &ctx, LF_INT("batch", batch), LF_STR("warning",
	    "all messages of the batch are settled, and its process runs on: it keeps its slot "
	    "until it exits"));
}

void
event_log_wrong(const struct queue_config *cfg, const struct result *r)
{
	struct log_ctx ctx = { .queue = cfg->name, .pid = r->pid };

	log_event(LOG_LV_WARN, "warning", &ctx, LF_INT("batch", r->batch),
	    LF_STR("cause", r->answer), LF_STR("warning", "the batch breaks the protocol: its "
	    "messages without a verdict of their own have failed"));
}

void
event_log_ticked(const struct queue_config *cfg, const struct tick_report *t)
{
	if (t->requeued > 0)
		queue_event(cfg, LOG_LV_WARN, "requeued", LF_INT("count", t->requeued));
	if (t->promoted > 0)
		queue_event(cfg, LOG_LV_DEBUG, "promoted", LF_INT("count", t->promoted));
	if (t->dropped > 0)
		queue_event(cfg, LOG_LV_WARN, "dropped", LF_INT("count", t->dropped));
	if (t->warning != NULL)
		queue_event(cfg, LOG_LV_WARN, "warning", LF_STR("warning", t->warning));
}

void
event_log_paused(const struct queue_config *cfg, bool paused, const char *why)
{
	queue_event(cfg, LOG_LV_INFO, paused ? "paused" : "unpaused",
	    LF_STR("why", paused ? why : NULL));
}

void
event_log_limited(const struct queue_config *cfg, const char *reason)
{
	queue_event(cfg, LOG_LV_DEBUG, "limited", LF_STR("reason", reason));
}

void
event_log_listening(const struct queue_config *cfg, bool on, const char *why)
{
	if (on)
		queue_event(cfg, LOG_LV_INFO, "subscribed");
	else
		queue_event(cfg, LOG_LV_ERROR, "unsubscribed", LF_STR("error", why));
}

void
event_log_suspended(const struct queue_config *cfg, const struct breaker *b,
    const char *cause)
{
	usec_t since = clock_mono() - b->since;

	/* The hourly reminder also has the time of the suspension. */
	queue_event(cfg, LOG_LV_ERROR, "suspended",
	    LF_STR("reason", reason_name(b->reason)), LF_STR("error", cause),
	    since < SEC ? LF_STR("since", NULL) : LF_USEC("since", since));
}

void
event_log_resumed(const struct queue_config *cfg, const struct breaker *b)
{
	queue_event(cfg, LOG_LV_INFO, "resumed", LF_USEC("after", clock_mono() - b->since));
}

void
event_log_scheduled(const struct queue_config *cfg, const struct schedule_config *s,
    int64_t tick, double now)
{
	usec_t late = (usec_t)((now - (double)tick) * (double)SEC);
	char text[TICK_TEXT_MAX];

	queue_event(cfg, LOG_LV_INFO, "scheduled", LF_STR("schedule", s->name),
	    LF_STR("tick", tick_text(tick, text)), LF_USEC("late", late > 0 ? late : 0));
}

void
event_log_schedule_missed(const struct queue_config *cfg, const struct schedule_config *s,
    int64_t tick)
{
	char text[TICK_TEXT_MAX];

	queue_event(cfg, LOG_LV_WARN, "warning", LF_STR("schedule", s->name),
	    LF_STR("tick", tick_text(tick, text)),
	    LF_STR("warning", "missed: no daemon ran the schedule in time"));
}

void
event_log_schedule_failed(const struct queue_config *cfg, const struct schedule_config *s,
    const char *cause)
{
	queue_event(cfg, LOG_LV_ERROR, "warning", LF_STR("schedule", s->name),
	    LF_STR("error", cause), LF_STR("warning", "the schedule cannot push"));
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

/* The handler's words come last, so that they cannot imitate text of rqd after them. */
char *
event_log_cause(const struct queue_config *cfg, const struct result *r)
{
	const char *program = cfg->command != NULL && cfg->command[0] != NULL ? cfg->command[0] :
	    "", *line = "";
	char how[UTIL_SIGNAL_MAX + 32], signal[UTIL_SIGNAL_MAX];
	size_t len = 0;

	if (r->end == END_NOT_STARTED)
		return start_error_text(cfg, r->step, r->error);
	if (r->stop == STOP_TIME_LIMIT)
		snprintf(how, sizeof(how), "time_limit is over");
	else if (r->end == END_EXIT)
		snprintf(how, sizeof(how), "exit status %d", r->status);
	else if (r->end == END_SIGNAL)
		snprintf(how, sizeof(how), "signal %s", util_signal(r->signo, signal));
	else
		return NULL;
	if (r->error_tail != NULL)
		len = last_line(r->error_tail, r->error_len, &line);
	return xasprintf("command %s: %s%s%.*s", program, how, len > 0 ? ", stderr: " : "",
	    (int)len, line);
}
