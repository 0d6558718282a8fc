/* One queue as JSON; see queue_state.h. */
#include "status/queue_state.h"

#include <stdlib.h>
#include <string.h>

#include "queue/pausetext.h"
#include "status/json_bytes.h"

json_t *
state_json(const struct facts *f, const struct judge_context *c)
{
	const struct depth *d = f->depth;
	const struct service *s = f->service;
	struct buf state = BUF_INIT;
	enum level level = judge_first(f, c, 0, &state).level;
	/* By heartbeats, which may be older than what Redis says. */
	double latency = facts_latency(f), oldest = s->oldest;
	const char *cause = NULL;
	int64_t maxrss = -1;
	char *differs = fleet_difference(s);
	json_t *o, *totals = json_object(), *pause = NULL;
	struct pausetext t;

	if (d->in_flight == 0)
		oldest = -1;
	if (s->cause[0] != '\0' && c->details)
		cause = s->cause;
	if (s->maxrss > 0)
		maxrss = s->maxrss;
	if (d->paused || d->partly) {
		t = pausetext_split(d->pause);
		/* A handler wrote it. */
		if (!c->details && judge_is_held(d))
			t.why = "";
		pause = json_set(json_object(),
		    "by:b at:b reason:s left:p", t.who, (size_t)t.who_len,
		    t.when, (size_t)t.when_len, t.why, d->pause_left);
	}
	if (d->partly)
		json_set(pause, "partly:t", true);
	for (size_t i = 0; i < STAT_MAX; i++)
		json_set(totals, "*:i", stats_name((enum stat)i), d->total[i]);
	o = json_set(json_object(), "name:s key:b kind:s waiting:n running:n "
	    "retry:n due:n delayed:n dead:n held:n daemons:i concurrency:i "
	    "oldest:p state:b mood:s paused:j totals:j error:s cause:s "
	    "differs:s latency:p cpu:f maxrss:n", f->name,
	    f->keys->name[KEY_QUEUE], f->keys->len[KEY_QUEUE], kind_name(f->kind), d->waiting,
	    facts_running(f), d->retry, d->due, d->delayed, d->dead, d->held,
	    (int64_t)s->daemons, s->concurrency, oldest, state.data, state.len,
	    level_mood(level), pause, totals, d->problem, cause, differs,
	    latency, s->cpu, maxrss);
	buf_done(&state);
	free(differs);
	return o;
}
