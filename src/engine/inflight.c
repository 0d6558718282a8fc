/*
 * Runs and their messages; see inflight.h.
 */
#include "engine/inflight.h"

#include <stdlib.h>

#include "base/util.h"

struct held *
held_new(struct message *msg)
{
	struct held *h = NEW(struct held, .msg = msg);

	msg->engine_data = h;
	return h;
}

void
held_free(struct held *h)
{
	if (h->flight == NULL || h != &h->flight->only)
		free(h);
}

/* -- beginning -------------------------------------------------------------- */

static struct inflight *
inflight_new(unsigned size)
{
	struct inflight *f = xcalloc(1, sizeof(*f));

	TAILQ_INIT(&f->messages);
	f->size = f->live = size;
	f->verdict.op = VERDICT_RETURN;
	return f;
}

static void
inflight_add(struct inflight *f, struct held *h)
{
	h->flight = f;
	TAILQ_INSERT_TAIL(&f->messages, h, entry);
}

struct inflight *
inflight_start(struct handler *handler, struct message *msg)
{
	struct inflight *f = inflight_new(1);

	f->only.msg = msg;
	msg->engine_data = &f->only;
	inflight_add(f, &f->only);
	f->run = handler_start(handler, msg);
	f->run->owner = f;
	return f;
}

struct inflight *
inflight_start_batch(struct handler *handler, struct held_list *list, unsigned n)
{
	struct message **msgs = xcalloc(n, sizeof(struct message *));
	struct inflight *f = inflight_new(n);
	struct held *h;
	unsigned i = 0;

	f->batch = true;
	while ((h = TAILQ_TAKE(list, entry)) != NULL) {
		inflight_add(f, h);
		msgs[i++] = h->msg;
	}
	f->run = handler_start_batch(handler, msgs, n);
	f->run->owner = f;
	free(msgs);
	return f;
}

void
inflight_free(struct inflight *f)
{
	struct held *h;

	while ((h = TAILQ_TAKE(&f->messages, entry)) != NULL)
		held_free(h);
	free(f);
}

/* -- its messages ----------------------------------------------------------- */

void
inflight_stop_message(struct held *h, enum stop reason)
{
	struct inflight *f = h->flight;

	if (h->done || h->stop != STOP_NONE)
		return;
	h->stop = reason;
	if (--f->live == 0)
		handler_stop(f->run, reason);
}

void
inflight_done(struct held *h)
{
	struct inflight *f = h->flight;
	const struct held *rest;

	TAILQ_REMOVE(&f->messages, h, entry);
	h->done = true;
	if (h->stop == STOP_NONE)
		f->live--;
	f->unconfirmed++;
	if (!f->batch)
		return;
	if ((rest = TAILQ_FIRST(&f->messages)) == NULL)
		f->done_at = clock_mono();
	else if (f->live == 0 && f->run != NULL)	/* drops the results of the rest */
		handler_stop(f->run, rest->stop);
}

bool
inflight_lingers(struct inflight *f, usec_t after)
{
	if (f->reported || f->done_at == 0 || clock_mono() - f->done_at < after)
		return false;
	f->reported = true;
	return true;
}

/*
 * How much a verdict tells about the command.  One that cannot be executed tells most.
 * An ack proves that the command works, whatever the results of the other messages are.
 */
static int
weight(const struct verdict *v)
{
	if (v->suspend != REASON_NONE)
		return 4;
	if (v->op == VERDICT_ACK)
		return 3;
	if (verdict_is_of_message(v))
		return 1;
	return v->failed || v->op == VERDICT_RETRY ? 2 : 0;
}

void
inflight_judge(struct inflight *f, const struct verdict *v)
{
	if (weight(v) > weight(&f->verdict))
		f->verdict = *v;
}

bool
inflight_is_complete(const struct inflight *f)
{
	return f->run == NULL && f->unconfirmed == 0;
}
