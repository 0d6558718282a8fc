/*
 * The rules of outcomes.
 *
 * If rqd has stopped the handler, the reason of the stop decides: a handler may trap
 * SIGTERM and exit with 0, so its status proves nothing.  Otherwise its statement
 * decides, and without a statement its end.  Only verdict_failed() counts an attempt
 * and compares with max_attempts.
 */
#include "policy/outcome.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/backoff.h"
#include "base/util.h"

/* SAID_NOTHING: the word does not decide about the message. */
static const enum said said_by[] = {
	[STATEMENT_OK] = SAID_OK, [STATEMENT_RETRY] = SAID_RETRY, [STATEMENT_DEFER] = SAID_DEFER,
	[STATEMENT_DEAD] = SAID_DEAD, [STATEMENT_PROGRESS] = SAID_NOTHING,
	[STATEMENT_PUSH] = SAID_NOTHING, [STATEMENT_SAVE] = SAID_NOTHING,
	[STATEMENT_HOLD] = SAID_HOLD,
};

const char *
said_name(enum said said)
{
	static const char *const names[] = {
		[SAID_OK] = "ok", [SAID_RETRY] = "retry", [SAID_DEFER] = "defer",
		[SAID_DEAD] = "dead", [SAID_HOLD] = "hold", [SAID_HOLD_GROUP] = "hold group",
		[SAID_PUSHES] = NULL,
	};

	return names[said];
}

void
result_done(struct result *r)
{
	free(r->answer);
	free(r->error_tail);
	pushes_free(r->pushes);
	r->pushes = NULL;
	r->answer = NULL;
	r->error_tail = NULL;
	r->error_len = 0;
}

void
result_move(struct result *r, struct result *from)
{
	*r = *from;
	from->answer = from->error_tail = NULL;
	from->error_len = 0;
	from->pushes = NULL;
}

static bool
is_wrong(const struct result *r)
{
	return r->said == SAID_WRONG || r->said == SAID_PUSHES;
}

static void
set_said(struct result *r, enum said said, usec_t delay, char *answer)
{
	free(r->answer);
	r->said = said;
	r->delay = delay;
	r->answer = answer;
}

void
result_say(struct result *r, const struct statement *s)
{
	enum said said = s->group ? SAID_HOLD_GROUP : said_by[s->word];

	if (is_wrong(r) || said == SAID_NOTHING)
		return;
	set_said(r, said == SAID_OK ? SAID_NOTHING : said, s->delay,
	    s->text != NULL ? xstrndup(s->text, s->len) : NULL);
}

void
result_say_wrong(struct result *r, const char *what, const char *line, size_t n)
{
	if (r->said == SAID_WRONG)
		return;
	set_said(r, SAID_WRONG, -1, xasprintf("%s: %.*s", what,
	    (int)(n < RESULT_QUOTE_MAX ? n : RESULT_QUOTE_MAX), line));
}

void
result_check_pushes(struct result *r)
{
	const char *fault = pushes_fault(r->pushes);
	bool counts = r->stop == STOP_NONE && (r->end == END_EXIT || r->end == END_ANSWER);

	if (counts && fault != NULL && r->said != SAID_WRONG)
		set_said(r, SAID_PUSHES, -1, xstrdup(fault));
	if (counts && fault == NULL)
		return;
	pushes_free(r->pushes);
	r->pushes = NULL;
}

bool
result_has_words(const struct result *r)
{
	return r->answer != NULL && !is_wrong(r);
}

const char *
reason_name(enum reason reason)
{
	static const char *const names[] = {
		[REASON_NONE] = "",
		[REASON_EXIT] = "exit",
		[REASON_SIGNAL] = "signal",
		[REASON_TIMEOUT] = "timeout",
		[REASON_CRASHED] = "crashed",
		[REASON_STATUS] = "status",
		[REASON_ATTEMPTS] = "attempts",
		[REASON_TOO_LARGE] = "too_large",
		[REASON_UNFRAMEABLE] = "unframeable",
		[REASON_BURIED] = "buried",
		[REASON_FAILING] = "failing",
		[REASON_CANNOT_EXECUTE] = "cannot_execute",
		[REASON_DRAIN] = "drain",
		[REASON_ANSWER] = "answer",
		[REASON_PROTOCOL] = "protocol",
		[REASON_PUSHES] = "pushes",
		[REASON_CANCELLED] = "cancelled",
		[REASON_OOM] = "oom",
	};

	return names[reason];
}

/* A finished delivery, with all that decides about it. */
struct judged {
	const struct message	*msg;
	bool			 doubted;
	double			 unit;
	unsigned		 batch;	/* with several messages dead_status does not apply */
};

/* One more attempt has failed: retry, or dead.  Kinds without leases never retry. */
static struct verdict
verdict_failed(const struct judged *j, enum reason reason, usec_t delay)
{
	const struct queue_config *cfg = j->msg->cfg;
	unsigned attempt = j->msg->attempts + 1;
	struct verdict v = { .op = VERDICT_RETRY, .reason = reason, .failed = true };

	if (!kind_has(cfg->kind, TRAIT_LEASES)) {
		v.op = VERDICT_DEAD;
		return v;
	}
	v.failed = !j->doubted;
	if (v.failed && attempt >= (unsigned)cfg->max_attempts) {
		v.op = VERDICT_DEAD;
		v.reason = REASON_ATTEMPTS;
		return v;
	}
	v.delay = delay >= 0 ? delay :
	    backoff_delay(cfg->backoff, cfg->backoff_max, attempt, j->unit);
	return v;
}

/*
 * The status of a persistent process does not tell about one message, so the message
 * has failed.
 */
static struct verdict
verdict_exit(const struct judged *j, int status, bool oom)
{
	const struct queue_config *cfg = j->msg->cfg;
	bool says = cfg->mode != MODE_PERSISTENT;

	if (says && status == 0)
		return (struct verdict){ .op = VERDICT_ACK };
	if (says && j->batch < 2 && cfg->dead_status[status & 0xff])
		return (struct verdict){
			.op = VERDICT_DEAD, .reason = REASON_STATUS, .failed = true
		};
	return verdict_failed(j, oom ? REASON_OOM : REASON_EXIT, -1);
}

static struct verdict
verdict_cancelled(const struct judged *j)
{
	if (j->msg->cancel == CANCEL_RETRY)
		return verdict_failed(j, REASON_CANCELLED, -1);
	return (struct verdict){
		.op = j->msg->cancel == CANCEL_DEAD ? VERDICT_DEAD : VERDICT_DROP,
		.reason = REASON_CANCELLED
	};
}

/* After rqd has signalled a handler, its exit does not count. */
static struct verdict
verdict_stopped(const struct judged *j, enum stop stop)
{
	switch (stop) {
	case STOP_TIME_LIMIT:
		return verdict_failed(j, REASON_TIMEOUT, -1);
	case STOP_LOST:
		return (struct verdict){ .op = VERDICT_STALE };
	case STOP_DRAIN:
		return (struct verdict){ .op = VERDICT_RETURN, .reason = REASON_DRAIN };
	case STOP_CANCEL:
		return verdict_cancelled(j);
	case STOP_PEER:
	case STOP_NONE:
		break;
	}
	return (struct verdict){ .op = VERDICT_RETURN };
}

/*
 * Whether the message alone is the reason that nothing was started, so that others may start:
 * it is larger than a file of ours may be, or its variables are too large, which are the id,
 * saved text and channel, and those of env_message.  All other causes are the queue's or the
 * machine's.  (The loader has tested that the environment without the message's has room.)
 */
static bool
is_too_large(const struct message *msg, const struct result *r)
{
	bool ours = r->step != NULL && strcmp(r->step, "spawner") == 0;
	bool execs = r->step != NULL && strcmp(r->step, "exec") == 0;

	if (r->error == EFBIG)
		return r->step != NULL && strcmp(r->step, "memfd") == 0;
	return r->error == E2BIG && (ours ||
	    (execs && (msg->members.len > 0 || msg->channel != NULL)));
}

static struct verdict
verdict_end(const struct judged *j, const struct result *r)
{
	switch (r->end) {
	case END_EXIT:
		return verdict_exit(j, r->status, r->oom);
	case END_SIGNAL:
		return verdict_failed(j, r->oom ? REASON_OOM : REASON_SIGNAL, -1);
	case END_NOT_STARTED:
		if (is_too_large(j->msg, r))
			return verdict_failed(j, REASON_CANNOT_EXECUTE, -1);
		return (struct verdict){
			.op = VERDICT_RETURN, .reason = REASON_CANNOT_EXECUTE,
			.suspend = REASON_CANNOT_EXECUTE
		};
	case END_UNFRAMEABLE:
		return (struct verdict){ .op = VERDICT_DEAD, .reason = REASON_UNFRAMEABLE };
	case END_NOT_RUN:
	case END_ANSWER:
		break;
	}
	return (struct verdict){ .op = VERDICT_RETURN };
}

/* The handler asks for a wait. */
static struct verdict
verdict_wait(const struct judged *j, enum verdict_op op, usec_t delay)
{
	if (!kind_has(j->msg->cfg->kind, TRAIT_LEASES))
		return verdict_failed(j, REASON_PROTOCOL, -1);
	if (op != VERDICT_DEFER)
		delay = int64_min(delay, OUTCOME_HOLD_MAX);
	return (struct verdict){
		.op = op, .reason = REASON_ANSWER, .delay = delay
	};
}

static struct verdict
verdict_said(const struct judged *j, const struct result *r)
{
	switch (r->said) {
	case SAID_NOTHING:
		break;
	case SAID_OK:
		return (struct verdict){ .op = VERDICT_ACK };
	case SAID_RETRY:
		return verdict_failed(j, REASON_ANSWER, r->delay);
	case SAID_DEFER:
		return verdict_wait(j, VERDICT_DEFER, r->delay);
	case SAID_HOLD:
		return verdict_wait(j, VERDICT_HOLD, r->delay);
	case SAID_HOLD_GROUP:
		return verdict_wait(j, VERDICT_HOLD_GROUP, r->delay);
	case SAID_DEAD:
		return (struct verdict){
			.op = VERDICT_DEAD, .reason = REASON_ANSWER, .failed = true
		};
	case SAID_WRONG:
		return verdict_failed(j, REASON_PROTOCOL, -1);
	case SAID_PUSHES:
		return verdict_failed(j, REASON_PUSHES, -1);
	}
	return verdict_end(j, r);
}

bool
verdict_is_of_message(const struct verdict *v)
{
	return v->reason == REASON_STATUS ||
	    (v->reason == REASON_ANSWER && v->op != VERDICT_RETRY) ||
	    (v->reason == REASON_CANCELLED && v->op == VERDICT_RETRY);
}

struct verdict
outcome_decide(const struct message *msg, const struct result *r, bool doubted, double unit)
{
	const struct judged j = { .msg = msg, .doubted = doubted, .unit = unit,
	    .batch = r->batch };
	struct verdict v;

	if (r->stop != STOP_NONE)
		return verdict_stopped(&j, r->stop);
	v = verdict_said(&j, r);
	/* A shell's 126 and 127 suspend the queue, whatever the handler has said. */
	if (r->end == END_EXIT && (r->status == 126 || r->status == 127) &&
	    v.reason != REASON_STATUS)
		v.suspend = REASON_CANNOT_EXECUTE;
	return v;
}

bool
outcome_refuse(const struct message *msg, struct verdict *v)
{
	enum reason reason = REASON_NONE;

	if (msg->cancel != CANCEL_NONE) {
		*v = verdict_cancelled(&(struct judged){ .msg = msg });
		return true;
	}
	if (msg->too_large)
		reason = REASON_TOO_LARGE;
	else if (config_has_batches(msg->cfg) && msg->cfg->framing != FRAMING_LENGTH &&
	    !message_is_line(msg))
		reason = REASON_UNFRAMEABLE;
	else if (msg->crashes > (unsigned)msg->cfg->max_crashes)
		reason = REASON_CRASHED;
	else if (msg->attempts >= (unsigned)msg->cfg->max_attempts)
		reason = REASON_ATTEMPTS;
	if (reason == REASON_NONE)
		return false;
	*v = (struct verdict){ .op = VERDICT_DEAD, .reason = reason };
	return true;
}
