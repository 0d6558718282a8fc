/*
 * Large payloads.  A pop answers with the length of a payload above ACK_INLINE
 * instead of the payload.  Such a delivery is LOADING: its lease is renewed as
 * that of any other, while the bulk connection fetches the payload.  Then it is
 * FOUND, and the next fetch hands it out.  A fetch pops no more than it asks for
 * beside those that are LOADING or FOUND, so no more is popped than can run.
 *
 * A server whose client-output-buffer-limit is below a payload ends the
 * connection instead of sending it.  After several attempts that message is put
 * aside: it is due again later, nothing is counted against it, and the others go
 * on.
 */
#include "queue/ack_private.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/units.h"
#include "policy/backoff.h"

#define REFUSED_MAX	3		/* attempts */
#define ASIDE_MAX	MINUTE		/* then it is due again after 1 s, 2 s, 4 s .. this */
#define ASIDE_NEWS	(10 * MINUTE)	/* without another one: the next is told again */

static void	ack_ask_body(struct ack *, struct delivery *);

uint64_t
ack_inline(const struct ack *a)
{
	uint64_t most = a->cfg->message_max;

	return a->env->bulk != NULL && most > ACK_INLINE ? ACK_INLINE : most;
}

unsigned
ack_unready(const struct ack *a)
{
	return ledger_count(a->ledger, DELIVERY_LOADING) + ledger_count(a->ledger, DELIVERY_FOUND);
}

bool
ack_has_no_room(struct ack *a)
{
	bool no_room = a->asked <= ack_unready(a);

	a->no_room_at = ledger_departures(a->ledger);
	watcher_set_no_room(a->watcher, no_room);
	return no_room;
}

/* -- putting aside ------------------------------------------------------------ */

static void
ack_tell_aside(struct ack *a, const struct delivery *d, usec_t delay)
{
	char size[UNITS_TEXT_MAX], again[UNITS_TEXT_MAX], *text;
	usec_t now = clock_mono();

	if (a->aside_at != 0 && now - a->aside_at > ASIDE_NEWS)
		ack_complain(a, ACK_BODY, NULL);
	a->aside_at = now;
	text = xasprintf("the payload of message %s (%s) cannot be fetched: %s; is the server's "
	    "client-output-buffer-limit for class normal below it? Tried again in %s",
	    d->msg->id, units_size(d->msg->len, size), bulk_cause(a->env->bulk),
	    units_duration(delay, again));
	ack_complain(a, ACK_BODY, text);
	free(text);
}

static void
ack_put_aside(struct ack *a, struct delivery *d)
{
	struct verdict later = {
		.op = VERDICT_RETRY, .reason = REASON_TOO_LARGE,
		.delay = backoff_delay(SEC, ASIDE_MAX, ++a->asides, 1)
	};
	struct result none = { .end = END_NOT_RUN };

	ack_tell_aside(a, d, later.delay);
	ledger_keep(a->ledger, d, &later, &none);
	ack_wake(a);
}

/* -- loading ------------------------------------------------------------------ */

static void
ack_load_again(struct ack *a)
{
	if (!timer_is_set(&a->load))
		timer_set(&a->load, backoff_delay(100 * MSEC, ledger_patience(a->ledger),
		    ++a->load_failures, random_unit()));
}

/* No payload came: the connection ended, was not there, or Redis gave another answer. */
static void
ack_not_loaded(struct ack *a, struct delivery *d, enum conn_answer answer)
{
	if (answer != CONN_NOT_SENT && ack_is_up(a) && ++d->refused == REFUSED_MAX)
		ack_put_aside(a, d);
	else
		ack_load_again(a);
}

static void
ack_loaded(struct ack *a, struct call *call, enum conn_answer answer,
    const struct redisReply *reply)
{
	struct delivery *d = call->batch.v[0];

	d->asked = false;
	if (d->state != DELIVERY_LOADING)
		return;
	if (answer == CONN_REPLY && reply_error(reply) != REPLY_OK)
		(void)ack_failed(a, ACK_BODY, reply);
	if (answer != CONN_REPLY || reply_str(reply, NULL) == NULL) {
		ack_not_loaded(a, d, answer);
		return;
	}
	d->msg->payload = reply_take(reply, &d->msg->len);
	d->msg->free_payload = reply_free_str;
	a->load_failures = a->asides = 0;
	if (a->aside_at == 0)
		ack_complain(a, ACK_BODY, NULL);
	ledger_move(a->ledger, d, DELIVERY_FOUND);
	ack_wake(a);
}

static void
ack_ask_body(struct ack *a, struct delivery *d)
{
	struct call *call = ack_call_new(a, ACK_BODY, ack_loaded);
	struct words w = { 0 };

	d->asked = true;
	batch_add(&call->batch, d);
	ack_keys(a, call, &w);
	words_mem(&w, d->msg->tag, d->taglen);
	words_add(&w, d->msg->token);
	ack_send(a, call, &w);
}

void
ack_load(struct ack *a, struct delivery *d)
{
	ledger_move(a->ledger, d, DELIVERY_LOADING);
	ack_ask_body(a, d);
}

void
ack_load_timer(void *arg)
{
	struct ack *a = arg;
	struct delivery *d;

	for (d = ledger_first(a->ledger, DELIVERY_LOADING); d != NULL; d = ledger_next(d)) {
		if (!d->asked)
			ack_ask_body(a, d);
	}
}
