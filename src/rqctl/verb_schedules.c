/*
 * rqctl schedules: lists the last and the next run of each schedule, and missed runs.
 *
 * The configuration has the schedules.  QSCHEDULE in Redis has the last tick of each, and
 * whether it ran at this tick.  rqctl computes the rest from Redis' time.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "policy/shard_keys.h"
#include "policy/tick.h"
#include "policy/zone.h"
#include "rqctl/ask.h"
#include "rqctl/listing.h"

#define DAY_SECONDS	86400

/* -- ticks ------------------------------------------------------------------------ */

struct ticks {
	int64_t	 last;		/* the last run; TICK_NEVER: it has not run */
	bool	 seen;		/* a daemon has seen the schedule */
	int64_t	 next;
	int64_t	 missed;	/* the latest tick, if no daemon ran it; else TICK_NEVER */
	char	*error;		/* why some of that is not known, or NULL; the caller frees it */
};

/* 0, or -1 after an error was reported. */
static int
read_ticks(struct ctl *c, const struct schedule_config *s, double now, struct ticks *t)
{
	/* A daemon may be about to run a tick of less than TICK_GRACE_MIN ago. */
	int64_t due = tick_last(s, (int64_t)now - TICK_GRACE_MIN), known = -1;
	struct redisReply *reply = NULL;
	struct target target;

	*t = (struct ticks){ .last = TICK_NEVER, .missed = TICK_NEVER,
		.next = tick_next(s, (int64_t)now) };
	if (target_find(c, s->queue, VERB_ANY, &target) == 0) {
		/* Of a queue with shards one key has the schedules. */
		for (size_t i = 0; i < target.nkeys; i++)
			if (strcmp(config_key_at(target.cfg, i),
			    shard_keys_schedule(target.cfg)) == 0)
				target_select(&target, i);
		reply = ask_any(c, "HMGET %s %s \1%s", target.keys.name[KEY_SCHEDULE], s->name,
		    s->name);
	}
	target_done(&target);
	if (reply == NULL)
		return -1;

	/* The last run, or when a daemon first saw the schedule: it has a second field then. */
	if (reply_error(reply) != REPLY_OK)
		t->error = xstrdup(reply_text(reply));
	else
		known = reply_int(reply_at(reply, 0), -1);
	t->seen = known >= 0;
	if (known < 0)
		known = TICK_NEVER;
	if (t->seen && reply_str(reply_at(reply, 1), NULL) == NULL)
		t->last = known;
	reply_free(reply);
	if (t->error == NULL && zone_check(s->timezone, &t->error) == -1)
		known = t->last = TICK_NEVER;
	if (known != TICK_NEVER && due > known)
		t->missed = due;
	return 0;
}

void
schedules_missed(struct ctl *c,
    void (*report)(const struct schedule_config *, const char *, void *), void *arg)
{
	struct schedule_config *const *s = c->config->schedules;
	double now = -1;
	char text[TICK_TEXT_MAX];
	struct ticks t;

	if (*s != NULL)
		now = ask_time(c);

	for (; now >= 0 && *s != NULL && read_ticks(c, *s, now, &t) == 0; s++) {
		if (t.error == NULL && t.missed != TICK_NEVER)
			report(*s, tick_text(t.missed, text), arg);
		free(t.error);
	}
}

/* -- schedules -------------------------------------------------------------------- */

static json_t *
tick_json(int64_t tick)
{
	if (tick == TICK_NEVER)
		return NULL;
	return json_integer(tick);
}

/*
 * "2026-11-30T02:00:00Z", and of a schedule with a zone also the time there: "(03:00+01:00)".
 * "-": never.
 */
#define TICK_LOCAL_MAX	(TICK_TEXT_MAX + 32)
static const char *
tick_local(const struct schedule_config *s, int64_t tick, char *buf)
{
	long long east, there;
	char text[TICK_TEXT_MAX], sign = '+';

	if (tick == TICK_NEVER)
		return "-";
	strcpy(buf, tick_text(tick, text));
	if (s->every != 0 || strcmp(s->timezone, ZONE_UTC) == 0 ||
	    zone_check(s->timezone, NULL) == -1)
		return buf;
	zone_enter(s->timezone);
	east = zone_offset(tick);
	zone_leave();
	there = ((tick + east) % DAY_SECONDS + DAY_SECONDS) % DAY_SECONDS;
	if (east < 0) {
		sign = '-';
		east = -east;
	}
	snprintf(buf, TICK_LOCAL_MAX, "%s (%02lld:%02lld%c%02lld:%02lld)", text, there / 3600,
	    there / 60 % 60, sign, east / 3600, east / 60 % 60);
	return buf;
}

static json_t *
state_of_ticks(const struct ticks *t)
{
	char missed[TICK_TEXT_MAX];

	if (t->error != NULL)
		return json_string(t->error);
	if (t->missed != TICK_NEVER)
		return json_sprintf("missed %s", tick_text(t->missed, missed));
	if (!t->seen)
		return json_string("not seen by any daemon yet");
	if (t->last == TICK_NEVER)
		return json_string("has not run yet");
	return json_string("ok");
}

static void
schedule_row(struct listing *l, const struct schedule_config *s, const struct ticks *ticks,
    double now)
{
	bool bad = ticks->error != NULL || ticks->missed != TICK_NEVER;
	char text[UNITS_TEXT_MAX], last[TICK_LOCAL_MAX], next[TICK_LOCAL_MAX];
	const char *cron = NULL, *zone = NULL;
	json_t *every = NULL, *when;
	double in = NAN;

	if (s->every == 0) {
		cron = s->cron;
		zone = s->timezone;
		when = json_sprintf("%s %s", cron, zone);
	} else {
		every = json_integer(s->every / SEC);
		when = json_sprintf("every %s", units_duration(s->every, text));
	}
	if (ticks->next != TICK_NEVER)
		in = (double)ticks->next - now;
	listing_row(l, json_set(json_object(), "name:s queue:s key:s every:j cron:s timezone:s "
	    "catch_up:t last:j next:j missed:j error:s .when:j .last:s .next:s .in:f .state:j",
	    s->name, s->queue, config_queue(l->ctl->config, s->queue)->key,
	    every, cron, zone, s->catch_up, tick_json(ticks->last),
	    tick_json(ticks->next), tick_json(ticks->missed), ticks->error,
	    when, tick_local(s, ticks->last, last),
	    tick_local(s, ticks->next, next), in, state_of_ticks(ticks)));
	if (bad)
		table_colour(&l->table, 6, COLOUR_RED);
}

const struct schedule_config *
schedules_find(struct ctl *c, const char *name)
{
	struct schedule_config *const *s = c->config->schedules;

	while (*s != NULL && strcmp((*s)->name, name) != 0)
		s++;
	if (*s == NULL)
		ctl_error(c, EX_USAGE, "there is no schedule \"%s\" in %s: rqctl "
		    "schedules lists them", name, c->config->file);
	return *s;
}

int
schedules_check(struct ctl *c)
{
	if (!ctl_has_file(c))
		return ctl_error(c, EX_USAGE,
		    "there is no configuration file with schedules: use -c FILE");
	for (int i = 0; i < c->args.nwords; i++)
		if (schedules_find(c, c->args.words[i]) == NULL)
			return -1;
	return 0;
}

static void
schedules_run(struct ctl *c)
{
	struct schedule_config *const *s = c->config->schedules;
	struct listing l;
	struct ticks ticks;
	double now;
	int i;

	if (listing_init(&l, c, "SCHEDULE=name|QUEUE=queue|WHEN=.when|LAST=.last|NEXT=.next|"
	    ">IN=.in|STATE=.state") == 0 &&
	    schedules_check(c) == 0 && (now = ask_time(c)) >= 0)
		for (; *s != NULL; s++) {
			for (i = 0; i < c->args.nwords; i++)
				if (strcmp(c->args.words[i], (*s)->name) == 0)
					break;
			if (c->args.nwords > 0 && i == c->args.nwords)
				continue;
			if (read_ticks(c, *s, now, &ticks) == -1)
				break;
			schedule_row(&l, *s, &ticks, now);
			free(ticks.error);
		}
	listing_end(&l, l.rows, "schedules", "there are no schedules in %s", c->config->file);
}

const struct verb verb_schedules = {
	.name = "schedules",
	.args = "[SCHEDULE...]",
	.help = "list schedules with their last and next runs",
	.max_args = -1,
	.flags = VERB_JSON,
	.run = schedules_run,
};
