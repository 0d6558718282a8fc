/* The deliveries of a queue, each on the list of its state: see leased.h. */
#include "queue/leased.h"

#include <stdlib.h>

bool
delivery_hands_over(const struct delivery *d)
{
	return d->result.pushes != NULL && d->verdict.op == VERDICT_ACK;
}

bool
delivery_any(const struct leased *a)
{
	for (size_t i = 0; i < DELIVERY_LISTS; i++) {
		if (a->count[i] > 0)
			return true;
	}
	return false;
}

static void
delivery_count_bytes(struct leased *a, struct delivery *d, size_t bytes)
{
	d->bytes += bytes;
	a->bytes += bytes;
}

struct delivery *
delivery_add(struct leased *a, struct message *m, size_t taglen, boot_t ours_at)
{
	struct delivery *d = NEW(struct delivery, .msg = m, .taglen = taglen);

	m->ours_at = ours_at;
	m->queue_data = d;
	/* Of a batch's run.  A message larger than a run runs alone, as one full run. */
	if (config_has_batches(m->cfg) && !m->too_large)
		delivery_count_bytes(a, d, m->len < CONFIG_RUN_BYTES ? m->len : CONFIG_RUN_BYTES);
	a->count[DELIVERY_FETCHED]++;
	TAILQ_INSERT_TAIL(&a->list[DELIVERY_FETCHED], d, entry);
	leased_expect_renewal(a);
	return d;
}

void
delivery_move(struct leased *a, struct delivery *d, enum delivery_state state)
{
	TAILQ_REMOVE(&a->list[d->state], d, entry);
	a->count[d->state]--;
	/* Waiting messages took all the room of a fetch. */
	if (d->state == DELIVERY_FETCHED)
		a->no_room = false;
	if (d->state == DELIVERY_RUNNING)
		d->from_engine = true;
	if (state == DELIVERY_REFUSED && !d->keeps_slot) {
		d->keeps_slot = true;
		a->refused++;
	}
	if (state != DELIVERY_RUNNING && state != DELIVERY_SENT)
		leased_wake(a);
	d->state = state;
	if (state != DELIVERY_GONE) {
		a->count[state]++;
		TAILQ_INSERT_TAIL(&a->list[state], d, entry);
		return;
	}

	a->refused -= d->keeps_slot;
	a->bytes -= d->bytes;
	message_free(d->msg);
	d->msg = NULL;
	free(d->saved);
	result_done(&d->result);
	if (d->calls == 0)
		free(d);
}

void
delivery_done(struct leased *a, struct delivery *d, const struct verdict *verdict,
    struct result *result)
{
	d->verdict = *verdict;
	/* An ACL may deny QPAUSED, which must delay no other result. */
	d->alone = verdict->op == VERDICT_HOLD;
	result_move(&d->result, result);
	delivery_count_bytes(a, d, pushes_memory(d->result.pushes));
	delivery_move(a, d, DELIVERY_DONE);
}

void
delivery_done_unrun(struct leased *a, struct delivery *d, enum verdict_op op)
{
	struct verdict verdict = {
		.op = op, .reason = op == VERDICT_RETURN ? REASON_DRAIN : REASON_NONE
	};
	struct result none = { .end = END_NOT_RUN };

	delivery_done(a, d, &verdict, &none);
}

void
delivery_give_back(struct leased *a)
{
	struct delivery *d;

	while ((d = TAILQ_FIRST(&a->list[DELIVERY_FETCHED])) != NULL)
		delivery_done_unrun(a, d, VERDICT_RETURN);
}
