/* One queue in words and as JSON; see queue_state.h. */
#include "status/queue_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "policy/waited.h"
#include "queue/pausetext.h"
#include "status/json_bytes.h"

#define BEAT_OLD	60.0	/* seconds; no living daemon's heartbeat is older */

static const char *const moods[] = {
	[MOOD_OK] = "ok", [MOOD_IDLE] = "idle", [MOOD_WARN] = "warn", [MOOD_BAD] = "bad",
};

/* Appends the words of a state.  Its value is the mood. */
#define say(b, mood, ...)	(buf_printf((b), __VA_ARGS__), (mood))

/* "paused by ann@web1 (4m left): deploy", "held 48s by web1: 429 from carrier" */
static enum mood
pause_text(const struct depth *d, struct buf *b)
{
	struct pausetext t = pausetext_split(d->pause);
	char left[UNITS_TEXT_MAX];
	bool held = strncmp(t.who, PAUSETEXT_HANDLER, strlen(PAUSETEXT_HANDLER)) == 0;

	buf_printf(b, "%s%s", d->partly ? "partly " : "", held ? "held" : "paused");
	if (held) {
		if (d->pause_left >= 0)
			buf_printf(b, " %s", units_age(d->pause_left, left));
		t.who += strlen(PAUSETEXT_HANDLER);
		t.who_len -= (int)strlen(PAUSETEXT_HANDLER);
	}
	if (t.who_len > 0)
		buf_printf(b, " by %.*s", t.who_len, t.who);
	if (d->pause_left >= 0 && !held)
		buf_printf(b, " (%s left)", units_age(d->pause_left, left));
	if (t.why[0] != '\0')
		buf_printf(b, ": %s", t.why);
	return MOOD_WARN;
}

/* "suspended: signal for 5m" */
static enum mood
reason_text(const struct facts *f, const char *what, struct buf *b)
{
	const struct service *s = f->service;
	char age[UNITS_TEXT_MAX];

	buf_printf(b, "%s: %s", what, s->reason);
	if (s->since > 0)
		buf_printf(b, " for %s", units_age((double)f->taken / 1e6 - s->since, age));
	return MOOD_BAD;
}

bool
state_is_empty(const struct depth *d)
{
	return d->waiting == 0 && d->held <= 0 && d->retry <= 0 && d->in_flight <= 0;
}

enum mood
state_text(const struct facts *f, struct buf *b)
{
	const struct depth *d = f->depth;
	const struct service *s = f->service;

	if (d->problem != NULL)
		return say(b, MOOD_BAD, "error: %s", d->problem);
	if (d->paused || d->partly)
		return pause_text(d, b);
	if (s->daemons == 0 && f->elsewhere)
		return d->due > 0 ? say(b, MOOD_WARN, "others consume it, but not its retries") :
		    say(b, MOOD_IDLE, "others consume it");
	if (s->daemons == 0)
		return say(b, f->full || d->waiting > 0 || d->due > 0 ? MOOD_BAD : MOOD_IDLE,
		    f->full ? "no daemon is seen: Redis is full" : "no daemon");
	if (strcmp(s->state, "suspended") == 0 && state_is_empty(d))
		return say(b, MOOD_IDLE, "idle, suspended: %s", s->reason);
	if (strcmp(s->state, "suspended") == 0)
		return reason_text(f, "suspended", b);
	if (strcmp(s->state, "refused") == 0)
		return reason_text(f, "Redis refuses results", b);
	if (s->state[0] != '\0' && strcmp(s->state, "running") != 0)
		return say(b, MOOD_WARN, "%s", s->state);
	if (s->leases_differ)
		return say(b, MOOD_WARN, "daemons disagree about the lease");
	if (s->shards_differ)
		return say(b, MOOD_WARN, "daemons disagree about the shards");
	if (s->groups_differ)
		return say(b, MOOD_WARN, "daemons disagree about the groups");
	if (state_is_slow(f))
		return say(b, MOOD_WARN, "slow runs: %lld", (long long)s->slow);
	if (state_is_late(f))
		return say(b, MOOD_WARN, "late: all handlers are busy");
	/* Heartbeats are some seconds old, so a limit counts only while messages wait. */
	return say(b, MOOD_OK, s->limited && (d->waiting > 0 || d->due > 0) ? "limited" : "ok");
}

/* How many messages run, -1: not known; for kinds without leases only daemons know it. */
static int64_t
state_running(const struct facts *f)
{
	return kind_has(f->kind, TRAIT_LEASES) ? f->depth->in_flight : f->service->running;
}

double
state_latency_with(enum kind kind, const struct depth *d, double list)
{
	if (!kind_waits(kind) || d->waiting < 0)
		return -1;
	if (kind_source(kind) != SOURCE_LIST)
		return d->overdue;
	if (d->waiting == 0)
		list = 0;
	return kind_has(kind, TRAIT_LEASES) ? waited_longer(list, d->overdue) : list;
}

/* The latency.  If no message was taken since the heartbeat, the time since then is added. */
double
state_latency(const struct facts *f)
{
	const struct service *s = f->service;
	double list = s->latency, since = f->depth->now - s->latency_at;

	if (list > 0 && s->latency_taken == f->depth->taken && since > 0)
		list += since < BEAT_OLD ? since : BEAT_OLD;
	return state_latency_with(f->kind, f->depth, list);
}

static bool
is_busy(const struct facts *f)
{
	int64_t most = f->service->concurrency;

	return f->depth->waiting > 0 && most > 0 && state_running(f) >= most;
}

bool
state_is_late(const struct facts *f)
{
	return is_busy(f) && state_latency(f) >= STATE_LATE;
}

bool
state_is_slow(const struct facts *f)
{
	const struct service *s = f->service;

	return kind_has(f->kind, TRAIT_LEASES) && is_busy(f) && s->slow > 0 &&
	    (2 * s->slow >= s->concurrency || state_is_late(f));
}

int
state_trouble(const struct facts *f, enum mood mood, double failed_rate)
{
	static const int rank[] = {
		[MOOD_IDLE] = 0, [MOOD_OK] = 1, [MOOD_WARN] = 3, [MOOD_BAD] = STATE_TROUBLE_MAX
	};

	if (rank[mood] <= 1 && (f->depth->dead > 0 || failed_rate > 0))
		return STATE_TROUBLE;
	return rank[mood];
}

json_t *
state_json(const struct facts *f)
{
	const struct depth *d = f->depth;
	const struct service *s = f->service;
	struct buf state = BUF_INIT;
	enum mood mood = state_text(f, &state);
	/* By heartbeats, which may be older than what Redis says. */
	double latency = state_latency(f), oldest = d->in_flight == 0 ? -1 : s->oldest;
	char *differs = fleet_difference(s);
	json_t *o, *totals = json_object(), *pause = NULL;
	struct pausetext t;

	if (d->paused || d->partly) {
		t = pausetext_split(d->pause);
		pause = json_set(json_object(), "by:b at:b reason:s left:f", t.who,
		    (size_t)t.who_len, t.when, (size_t)t.when_len, t.why,
		    d->pause_left >= 0 ? d->pause_left : NAN);
	}
	if (d->partly)
		json_set(pause, "partly:t", true);
	for (size_t i = 0; i < STAT_MAX; i++)
		json_set(totals, "*:i", stats_name((enum stat)i), d->total[i]);
	o = json_set(json_object(), "name:s key:b kind:s waiting:n running:n retry:n due:n "
	    "delayed:n dead:n held:n daemons:i concurrency:i oldest:f state:b mood:s paused:j "
	    "totals:j error:s cause:s differs:s latency:f cpu:f maxrss:n", f->name,
	    f->keys->name[KEY_QUEUE], f->keys->len[KEY_QUEUE], kind_name(f->kind), d->waiting,
	    state_running(f), d->retry, d->due, d->delayed, d->dead, d->held,
	    (int64_t)s->daemons, s->concurrency, oldest >= 0 ? oldest : NAN, state.data,
	    state.len, moods[mood], pause, totals, d->problem,
	    s->cause[0] != '\0' ? s->cause : NULL, differs,
	    latency >= 0 ? latency : NAN, s->cpu, s->maxrss > 0 ? s->maxrss : -1);
	buf_done(&state);
	free(differs);
	return o;
}
