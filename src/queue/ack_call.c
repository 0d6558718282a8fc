/*
 * Script calls of a queue: they are sent here, and every answer comes through
 * here.  What several scripts' replies have in common is read here, too.
 */
#include "queue/ack_private.h"

#include <stdlib.h>

#include "base/clock.h"

#define LONGEST		(24 * HOUR)	/* that a timer is set for */
#define BULK_AGAIN	MINUTE		/* until a large rescue tries the bulk connection again */

static const char *const ack_role_names[ACK_SCRIPTS] = {
	[ACK_POP] = "pop", [ACK_SETTLE] = "settle", [ACK_RENEW] = "renew",
	[ACK_TICK] = "tick", [ACK_ARM] = "arm", [ACK_MINE] = "mine",
	[ACK_RESCUE] = "rescue", [ACK_BODY] = "body",
};

void
ack_wake(void *arg)
{
	struct ack *a = arg;

	loop_defer(a->env->loop, &a->turn, a->on_turn, a);
}

/* -- calls ------------------------------------------------------------------ */

static void
ack_call_free(struct call *call)
{
	TAILQ_REMOVE(&call->ack->calls, call, entry);
	request_cancel(&call->request);
	batch_done(&call->batch);
	free(call);
}

/* The bulk connection cannot be made. */
static void
ack_no_bulk(struct ack *a)
{
	char *text = xasprintf("no connection for messages above 64 KiB: %s",
	    bulk_cause(a->env->bulk));

	a->bulk_after = clock_mono() + BULK_AGAIN;
	ack_complain(a, ACK_BODY, text);
	free(text);
}

static void
ack_answered(enum conn_answer answer, const struct redisReply *reply, void *arg)
{
	struct call *call = arg;
	struct ack *a = call->ack;

	if (call->bulky && answer == CONN_NOT_SENT && ack_is_up(a))
		ack_no_bulk(a);
	call->answered(a, call, answer, reply);
	ack_call_free(call);
}

struct call *
ack_call_new(struct ack *a, enum ack_script script, ack_answer_fn *answered)
{
	struct call *call = xcalloc(1, sizeof(*call));

	call->ack = a;
	call->script = script;
	call->answered = answered;
	request_init(&call->request, ack_answered, call);
	TAILQ_INSERT_TAIL(&a->calls, call, entry);
	return call;
}

void
ack_cancel_calls(struct ack *a)
{
	struct call *call;

	while ((call = TAILQ_FIRST(&a->calls)) != NULL)
		ack_call_free(call);
}

void
ack_keys(const struct ack *a, const struct call *call, struct words *w)
{
	const enum key *key = a->kind->role[call->script].keys;

	for (; *key != KEY_MAX; key++)
		words_key(w, a->keys.name[*key], a->keys.len[*key]);
}

void
ack_words(const struct ack *a, const struct call *call, struct words *w)
{
	const struct ack_role *role = &a->kind->role[call->script];

	if (role->words != NULL)
		role->words(a, w);
}

/*
 * Large replies and requests have a connection of their own.  Where it cannot be made a
 * rescue takes the first one: the message is nowhere but here, and pops wait for it.
 */
static bool
ack_is_bulky(const struct ack *a, const struct call *call, const struct words *w)
{
	return call->script == ACK_BODY || (call->script == ACK_RESCUE &&
	    a->env->bulk != NULL && w->bytes > LOADER_INLINE && clock_mono() >= a->bulk_after);
}

void
ack_send(struct ack *a, struct call *call, struct words *w)
{
	const struct script *s = a->script[call->script];

	call->bulky = ack_is_bulky(a, call, w);
	if (call->script == ACK_ARM)
		watch_request(a->env->watch, &call->request, s, w);
	else if (call->bulky)
		bulk_request(a->env->bulk, &call->request, s, w);
	else
		request_script(&call->request, a->env->conn, s, w);
}

bool
ack_is_up(const struct ack *a)
{
	return conn_is_ready(a->env->conn);
}

/* -- what replies say ------------------------------------------------------- */

/* Once when it begins; what the script found is told by the tick's report. */
void
ack_complain(struct ack *a, enum ack_script script, const char *text)
{
	struct tick_report report = { .warning = NULL };
	char *warning;

	if (text == NULL || a->complained[script]) {
		a->complained[script] = text != NULL;
		return;
	}
	a->complained[script] = true;
	warning = xasprintf("%s: %s", ack_role_names[script], text);
	report.warning = warning;
	a->queue.events->ticked(&report, a->queue.arg);
	free(warning);
}

enum reply_error
ack_failed(struct ack *a, enum ack_script script, const struct redisReply *reply)
{
	enum reply_error e = reply_error(reply);
	char text[REPLY_CAUSE];

	reply_cause(reply, text, sizeof(text));
	if (e == REPLY_ELSEWHERE)
		conn_reset(a->env->conn, text);
	else
		ack_complain(a, script, text);
	return e == REPLY_OK ? REPLY_OTHER : e;
}

double
ack_saw_now(struct ack *a, const struct redisReply *reply)
{
	double now = reply_double(reply, 0);

	conn_saw_time(a->env->conn, now);
	return now;
}

bool
ack_time(const struct redisReply *reply, double *ret)
{
	size_t len;

	if (reply_str(reply, &len) == NULL || len == 0)
		return false;
	*ret = reply_double(reply, 0);
	return true;
}

usec_t
ack_usec(double seconds)
{
	if (!(seconds > 0))
		return 0;
	if (seconds > (double)(LONGEST / SEC))
		return LONGEST;
	return (usec_t)(seconds * (double)SEC);
}

usec_t
ack_until(const struct redisReply *reply, double now)
{
	double at;

	return ack_time(reply, &at) ? ack_usec(at - now) : -1;
}

bool
ack_saw_due(struct ack *a, double now, const struct redisReply *reply, bool ours)
{
	return watcher_saw_retry(a->watcher, ack_until(reply, now), ours);
}
