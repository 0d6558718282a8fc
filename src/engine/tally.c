/*
 * Maps events to counters; see tally.h.
 */
#include "engine/tally.h"

#include "policy/pushes.h"

bool
tally_was_pushed(const struct verdict *v, const struct result *r, enum settled how)
{
	return r->pushes != NULL && v->op == VERDICT_ACK &&
	    (how == SETTLED_OK || how == SETTLED_RESCUED);
}

void
tally_settled(struct stats *s, const struct message *msg, const struct verdict *v,
    const struct result *r, enum settled how)
{
	static const enum stat of_verdict[] = {
		[VERDICT_ACK] = STAT_ACKED,
		[VERDICT_DROP] = STAT_CANCELLED,
		[VERDICT_RETRY] = STAT_RETRIED,
		[VERDICT_DEFER] = STAT_DEFERRED,
		[VERDICT_DEAD] = STAT_DEAD,
		[VERDICT_RETURN] = STAT_RETURNED,
		[VERDICT_STALE] = STAT_STALE,
	};

	if (tally_was_pushed(v, r, how))
		s->n[STAT_PUSHED] += pushes_count(r->pushes);
	switch (how) {
	case SETTLED_OK:
		s->n[of_verdict[v->op]]++;
		if (v->failed)
			s->n[STAT_FAILED]++;
		if (v->op == VERDICT_DEAD && v->reason == REASON_CANCELLED)
			s->n[STAT_CANCELLED]++;
		break;
	case SETTLED_STALE:
		s->n[STAT_STALE]++;
		break;
	case SETTLED_RESCUED:
		s->n[STAT_RESCUED]++;
		break;
	case SETTLED_DROPPED:
		s->n[v->failed ? STAT_FAILED : STAT_DROPPED]++;
		break;
	case SETTLED_GAVE_UP:
		s->n[STAT_DROPPED] += !kind_has(msg->cfg->kind, TRAIT_LEASES);
		break;
	case SETTLED_DEFERRED:
		break;
	}
}

void
tally_run(struct stats *s, const struct result *r)
{
	if (r->duration > 0)
		stats_observe(&s->duration, r->duration);
	if (r->output_cut)
		s->n[STAT_OUTPUT_CUT]++;
	if (r->leftovers)
		s->n[STAT_LEFTOVERS]++;
	if (r->stop == STOP_TIME_LIMIT)
		s->n[STAT_TIMEOUTS]++;
}

void
tally_ticked(struct stats *s, const struct tick_report *t)
{
	s->n[STAT_REQUEUED] += t->requeued;
	s->n[STAT_PROMOTED] += t->promoted;
	s->n[STAT_DROPPED] += t->dropped;
}
