/*
 * Script calls of a queue: this file sends them, and takes every answer.  It also reads
 * the parts that the replies of several scripts share.
 */
#include "queue/leased_private.h"

#include <stdlib.h>

#include "base/clock.h"

#define LONGEST		(24 * HOUR)	/* the longest time of a timer */
#define BULK_AGAIN	MINUTE		/* then a large rescue tries the bulk connection again */

static const char *const leased_role_names[LEASED_SCRIPTS] = {
	[LEASED_POP] = "pop", [LEASED_SETTLE] = "settle", [LEASED_RENEW] = "renew",
	[LEASED_TICK] = "tick", [LEASED_ARM] = "arm", [LEASED_MINE] = "mine",
	[LEASED_RESCUE] = "rescue", [LEASED_BODY] = "body",
	[LEASED_HAND_OVER] = "hand_over", [LEASED_HAND_OVER_LOST] = "hand_over_lost",
};

void
leased_wake(void *arg)
{
	struct leased *a = arg;

	loop_defer(a->env->loop, &a->turn, a->on_turn, a);
}

/* -- calls ------------------------------------------------------------------ */

static void
leased_call_free(struct call *call)
{
	TAILQ_REMOVE(&call->ack->calls, call, entry);
	request_cancel(&call->request);
	batch_done(&call->batch);
	free(call);
}

/* The bulk connection cannot be made. */
static void
leased_no_bulk(struct leased *a)
{
	char *text = xasprintf("no connection for messages above 64 KiB: %s",
	    bulk_cause(a->env->bulk));

	a->bulk_after = clock_mono() + BULK_AGAIN;
	leased_complain(a, LEASED_BODY, text);
	free(text);
}

static void
leased_answered(enum conn_answer answer, const struct redisReply *reply, void *arg)
{
	struct call *call = arg;
	struct leased *a = call->ack;

	if (call->bulky && answer == CONN_NOT_SENT && leased_is_up(a))
		leased_no_bulk(a);
	call->answered(a, call, answer, reply);	/* events never free the queue: they defer */
	leased_call_free(call);
}

struct call *
leased_call_new(struct leased *a, enum leased_script script, leased_answer_fn *answered)
{
	struct call *call = NEW(struct call, .ack = a, .script = script, .answered = answered);

	request_init(&call->request, leased_answered, call);
	for (const enum key *key = a->kind->role[script].keys; *key != KEY_MAX; key++)
		keys_add(&a->keys, &call->words, *key);
	TAILQ_INSERT_TAIL(&a->calls, call, entry);
	return call;
}

void
leased_cancel_calls(struct leased *a)
{
	struct call *call;

	while ((call = TAILQ_FIRST(&a->calls)) != NULL)
		leased_call_free(call);
}

void
leased_words(struct call *call)
{
	const struct leased *a = call->ack;
	const struct leased_role *role = &a->kind->role[call->script];
	const struct leased_facts facts = {
		.cfg = a->cfg, .host = a->env->host, .scan = ticker_scan(a->ticker)
	};

	if (role->words != NULL)
		role->words(&facts, &call->words);
}

/*
 * Large replies and requests have a connection of their own.  If it cannot be made, a
 * rescue takes the main one: Redis does not have the message, and pops wait for the
 * rescue.
 */
static bool
leased_is_bulky(const struct leased *a, const struct call *call)
{
	bool rescue = call->script == LEASED_RESCUE || call->script == LEASED_HAND_OVER_LOST;

	return call->script == LEASED_BODY || (rescue && a->env->bulk != NULL &&
	    call->words.bytes > LOADER_INLINE && clock_mono() >= a->bulk_after);
}

void
leased_send(struct call *call)
{
	const struct leased *a = call->ack;
	const struct script *s = a->script[call->script];

	call->bulky = leased_is_bulky(a, call);
	if (call->script == LEASED_ARM)
		watch_request(a->env->watch, &call->request, s, &call->words);
	else if (call->bulky)
		bulk_request(a->env->bulk, &call->request, s, &call->words);
	else
		request_script(&call->request, a->env->conn, s, &call->words);
}

bool
leased_is_up(const struct leased *a)
{
	return conn_is_ready(a->env->conn);
}

/* -- what replies say ------------------------------------------------------- */

/* Whether an error of the script keeps a result from Redis. */
static bool
leased_settles(enum leased_script script)
{
	return script == LEASED_SETTLE || script == LEASED_RESCUE || script == LEASED_HAND_OVER ||
	    script == LEASED_HAND_OVER_LOST;
}

void
leased_complain(struct leased *a, enum leased_script script, const char *text)
{
	if (text != NULL && leased_settles(script))
		xreplace(&a->cause, text);
	if (text == NULL || a->complained[script]) {
		a->complained[script] = text != NULL;
		return;
	}
	a->complained[script] = true;
	queue_warn(&a->queue, "%s: %s", leased_role_names[script], text);
}

enum reply_error
leased_failed(struct leased *a, enum leased_script script, const struct redisReply *reply)
{
	enum reply_error e = reply_error(reply);
	char text[REPLY_CAUSE];

	reply_cause(reply, text, sizeof(text));
	if (e == REPLY_ELSEWHERE)
		conn_reset(a->env->conn, text);
	else
		leased_complain(a, script, text);
	return e == REPLY_OK ? REPLY_OTHER : e;
}

double
leased_saw_now(struct leased *a, const struct redisReply *reply)
{
	double now = reply_double(reply, 0);

	conn_saw_time(a->env->conn, now);
	return now;
}

void
leased_saw_list(struct leased *a, const struct redisReply *taken, const struct redisReply *waiting)
{
	int64_t n = reply_int(taken, -1);

	if (a->arrivals != NULL && n >= 0)
		arrivals_saw(a->arrivals, clock_mono(), n, reply_int(waiting, -1));
}

usec_t
leased_usec(double seconds)
{
	if (!(seconds > 0))
		return 0;
	if (seconds > (double)(LONGEST / SEC))
		return LONGEST;
	return (usec_t)(seconds * (double)SEC);
}

usec_t
leased_until(const struct redisReply *reply, double now)
{
	size_t len;

	if (reply_str(reply, &len) == NULL || len == 0)
		return -1;
	return leased_usec(reply_double(reply, 0) - now);
}
