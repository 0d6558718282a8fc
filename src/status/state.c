/*
 * One queue in words and as JSON; see state.h.
 */
#include "status/state.h"

#include <string.h>

#include "base/units.h"
#include "queue/pausetext.h"
#include "status/json_bytes.h"

static const char *const moods[] = {
	[MOOD_OK] = "ok", [MOOD_IDLE] = "idle", [MOOD_WARN] = "warn", [MOOD_BAD] = "bad",
};

/* "paused by ann@web1 (4m left): deploy" */
static void
pause_text(const struct depth *d, struct buf *b)
{
	struct pausetext t = pausetext_split(d->pause);
	char left[UNITS_TEXT_MAX];

	buf_puts(b, "paused");
	if (t.who_len > 0)
		buf_printf(b, " by %.*s", t.who_len, t.who);
	if (d->pause_left >= 0)
		buf_printf(b, " (%s left)", units_age(d->pause_left, left));
	if (t.why[0] != '\0')
		buf_printf(b, ": %s", t.why);
}

enum mood
state_text(const struct facts *f, struct buf *b)
{
	const struct depth *d = f->depth;
	const struct service *s = f->service;
	char age[UNITS_TEXT_MAX];

	if (d->problem != NULL) {
		buf_printf(b, "error: %s", d->problem);
		return MOOD_BAD;
	}
	if (d->paused) {
		pause_text(d, b);
		return MOOD_WARN;
	}
	if (s->daemons == 0) {
		buf_puts(b, "no daemon");
		return d->waiting > 0 || d->due > 0 ? MOOD_BAD : MOOD_IDLE;
	}
	if (strcmp(s->state, "suspended") == 0) {
		buf_printf(b, "suspended: %s", s->reason);
		if (s->since > 0)
			buf_printf(b, " for %s", units_age((double)f->taken / 1e6 - s->since, age));
		return MOOD_BAD;
	}
	if (s->state[0] != '\0' && strcmp(s->state, "running") != 0) {
		buf_puts(b, s->state);
		return MOOD_WARN;
	}
	if (s->leases_differ) {
		buf_puts(b, "daemons disagree about the lease");
		return MOOD_WARN;
	}
	/* Heartbeats are some seconds old: what they say of limits holds while something waits. */
	buf_puts(b, s->limited && (d->waiting > 0 || d->due > 0) ? "limited" : "ok");
	return MOOD_OK;
}

static json_t *
number_or_null(int64_t n)
{
	return n >= 0 ? json_integer(n) : json_null();
}

static json_t *
pause_json(const struct depth *d)
{
	struct pausetext t;
	json_t *o;

	if (!d->paused)
		return json_null();
	t = pausetext_split(d->pause);
	o = json_object();
	json_set_bytes(o, "by", t.who, (size_t)t.who_len);
	json_set_bytes(o, "at", t.when, (size_t)t.when_len);
	json_set_bytes(o, "reason", t.why, strlen(t.why));
	json_object_set_new(o, "left", d->pause_left >= 0 ? json_real(d->pause_left) :
	    json_null());
	return o;
}

static json_t *
totals_json(const struct depth *d)
{
	json_t *o = json_object();
	size_t i;

	for (i = 0; i < STAT_MAX; i++)
		json_object_set_new(o, stats_name((enum stat)i), json_integer(d->total[i]));
	return o;
}

double
state_oldest(const struct facts *f)
{
	return f->depth->in_flight == 0 ? -1 : f->service->oldest;
}

json_t *
state_json(const struct facts *f)
{
	const struct depth *d = f->depth;
	const struct service *s = f->service;
	struct buf state = BUF_INIT;
	enum mood mood = state_text(f, &state);
	json_t *o = json_object();

	json_set_bytes(o, "name", f->name, strlen(f->name));
	json_set_bytes(o, "key", f->keys->name[KEY_QUEUE],
	    f->keys->len[KEY_QUEUE]);
	json_object_set_new(o, "kind", json_string(kind_name(f->kind)));
	json_object_set_new(o, "waiting", number_or_null(d->waiting));
	/* Of kinds without leases only daemons know. */
	json_object_set_new(o, "running", number_or_null(kind_has(f->kind, TRAIT_LEASES) ?
	    d->in_flight : f->service->running));
	json_object_set_new(o, "retry", number_or_null(d->retry));
	json_object_set_new(o, "due", number_or_null(d->due));
	json_object_set_new(o, "delayed", number_or_null(d->delayed));
	json_object_set_new(o, "dead", number_or_null(d->dead));
	json_object_set_new(o, "daemons", json_integer(s->daemons));
	json_object_set_new(o, "concurrency", json_integer(s->concurrency));
	json_object_set_new(o, "oldest", state_oldest(f) >= 0 ? json_real(state_oldest(f)) :
	    json_null());
	json_set_bytes(o, "state", state.data, state.len);
	json_object_set_new(o, "mood", json_string(moods[mood]));
	json_object_set_new(o, "paused", pause_json(d));
	json_object_set_new(o, "totals", totals_json(d));
	if (d->problem != NULL)
		json_set_bytes(o, "error", d->problem, strlen(d->problem));
	else
		json_object_set_new(o, "error", json_null());
	buf_done(&state);
	return o;
}

