/*
 * rqctl schedules: lists the last and the next run of each schedule, and missed runs.
 *
 * The configuration has the schedules.  QSCHEDULE in Redis has the last tick of each, and
 * whether it ran at this tick.  rqctl computes the rest from Redis' time.
 */
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "policy/shard_keys.h"
#include "policy/tick.h"
#include "policy/zone.h"
#include "rqctl/ask.h"
#include "rqctl/listing.h"

/* -- ticks ------------------------------------------------------------------------ */

struct ticks {
	int64_t	 last;		/* the last run; TICK_NEVER: it has not run */
	bool	 seen;		/* a daemon has seen the schedule */
	int64_t	 next;
	int64_t	 missed;	/* the latest tick, if no daemon ran it; else TICK_NEVER */
	char	*error;		/* why some of that is not known, or NULL; the caller frees it */
};

/* known: the tick in QSCHEDULE: the last run, or when a daemon first saw the schedule. */
static void
compute(struct ticks *t, const struct schedule_config *s, int64_t known, double now)
{
	/* A daemon may be about to run a tick of less than TICK_GRACE_MIN ago. */
	int64_t due = tick_last(s, (int64_t)now - TICK_GRACE_MIN);

	t->next = tick_next(s, (int64_t)now);
	t->missed = known != TICK_NEVER && due > known ? due : TICK_NEVER;
}

/* Reads the reply to HMGET QSCHEDULE name \1name; returns the tick. */
static int64_t
take_reply(struct ticks *t, const struct redisReply *reply)
{
	double known = reply_double(reply_at(reply, 0), -1);

	if (reply_error(reply) != REPLY_OK)
		t->error = xstrdup(reply_text(reply));
	if (t->error != NULL || known < 0)
		return TICK_NEVER;
	t->seen = true;
	if (reply_str(reply_at(reply, 1), NULL) == NULL)
		t->last = (int64_t)known;
	return (int64_t)known;
}

/* Selects the key that has the schedules: of a queue with shards one of these. */
static void
select_schedules(struct target *t)
{
	const char *key = shard_keys_schedule(t->cfg);

	for (size_t i = 0; i < t->nkeys; i++)
		if (strcmp(config_key_at(t->cfg, i), key) == 0)
			target_select(t, i);
}

/* 0, or -1 after an error was reported. */
static int
read_ticks(struct ctl *c, const struct schedule_config *s, double now, struct ticks *t)
{
	struct redisReply *reply = NULL;
	struct target target;
	int64_t known;

	*t = (struct ticks){ .last = TICK_NEVER };
	if (target_find(c, s->queue, VERB_ANY, &target) == 0) {
		select_schedules(&target);
		reply = ask_any(c, "HMGET %s %s \1%s", target.keys.name[KEY_SCHEDULE], s->name,
		    s->name);
	}
	target_done(&target);
	if (reply == NULL)
		return -1;
	known = take_reply(t, reply);
	blocking_reply_free(reply);
	if (t->error == NULL && zone_check(s->timezone, &t->error) == -1)
		known = t->last = TICK_NEVER;
	compute(t, s, known, now);
	return 0;
}

void
schedules_missed(struct ctl *c,
    void (*report)(const struct schedule_config *, const char *, void *), void *arg)
{
	struct schedule_config *const *s = c->config->schedules;
	double now = *s != NULL ? ask_time(c) : -1;
	char text[TICK_TEXT_MAX];
	struct ticks t;

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
	return tick != TICK_NEVER ? json_integer(tick) : NULL;
}

static void
schedule_json(json_t *o, const struct ctl *c, const struct schedule_config *s,
    const struct ticks *t)
{
	bool cron = s->every == 0;

	json_set(o, "name:s queue:s key:s every:j cron:s timezone:s catch_up:t", s->name, s->queue,
	    config_queue(c->config, s->queue)->key, cron ? NULL : json_integer(s->every / SEC),
	    cron ? s->cron : NULL, cron ? s->timezone : NULL, s->catch_up);
	json_set(o, "last:j next:j missed:j error:s", tick_json(t->last), tick_json(t->next),
	    tick_json(t->missed), t->error);
}

static void
add_tick(struct table *t, int64_t tick)
{
	char text[TICK_TEXT_MAX];

	table_add(t, "%s", tick != TICK_NEVER ? tick_text(tick, text) : "-");
}

static void
add_state(struct table *t, const struct ticks *ticks)
{
	char text[TICK_TEXT_MAX];

	if (ticks->error != NULL)
		table_add(t, "%s", ticks->error);
	else if (ticks->missed != TICK_NEVER)
		table_add(t, "missed %s", tick_text(ticks->missed, text));
	else
		table_add(t, "%s", !ticks->seen ? "not seen by any daemon yet" :
		    ticks->last == TICK_NEVER ? "has not run yet" : "ok");
	if (ticks->error != NULL || ticks->missed != TICK_NEVER)
		table_colour(t, COLOUR_RED);
}

static void
schedule_row(struct listing *l, const struct schedule_config *s, const struct ticks *ticks,
    double now)
{
	json_t *o = listing_row(l);
	struct table *t = &l->table;
	char text[UNITS_TEXT_MAX];

	if (o != NULL) {
		schedule_json(o, l->ctl, s, ticks);
		return;
	}
	table_add(t, "%s", s->name);
	table_add(t, "%s", s->queue);
	if (s->every != 0)
		table_add(t, "every %s", units_duration(s->every, text));
	else
		table_add(t, "%s %s", s->cron, s->timezone);
	add_tick(t, ticks->last);
	add_tick(t, ticks->next);
	table_add(t, "%s",
	    units_age(ticks->next != TICK_NEVER ? (double)ticks->next - now : -1, text));
	add_state(t, ticks);
}

/* The schedule called name; NULL after an error was reported. */
static const struct schedule_config *
find(struct ctl *c, const char *name)
{
	struct schedule_config *const *s = c->config->schedules;

	while (*s != NULL && strcmp((*s)->name, name) != 0)
		s++;
	if (*s == NULL)
		ctl_error(c, EX_USAGE, "there is no schedule \"%s\" in %s: rqctl "
		    "schedules lists them", name, c->config->file);
	return *s;
}

/* Whether there is a file, and it has the schedules that are the arguments. */
static int
check_arguments(struct ctl *c)
{
	if (!ctl_has_file(c))
		return ctl_error(c, EX_USAGE,
		    "there is no configuration file with schedules: use -c FILE");
	for (int i = 0; i < c->args.nwords; i++)
		if (find(c, c->args.words[i]) == NULL)
			return -1;
	return 0;
}

static bool
is_meant(const struct ctl *c, const struct schedule_config *s)
{
	for (int i = 0; i < c->args.nwords; i++)
		if (strcmp(c->args.words[i], s->name) == 0)
			return true;
	return c->args.nwords == 0;
}

void
schedules_run(struct ctl *c)
{
	struct schedule_config *const *s = c->config->schedules;
	struct listing l;
	struct ticks ticks;
	double now;

	if (listing_init(&l, c, "SCHEDULE|QUEUE|WHEN|LAST|NEXT|>IN|STATE") == 0 &&
	    check_arguments(c) == 0 && (now = ask_time(c)) >= 0)
		for (; *s != NULL; s++) {
			if (!is_meant(c, *s))
				continue;
			if (read_ticks(c, *s, now, &ticks) == -1)
				break;
			schedule_row(&l, *s, &ticks, now);
			free(ticks.error);
		}
	listing_end(&l, l.rows, "schedules", "there are no schedules in %s", c->config->file);
}

/* Pushes the message that a run now would push, without a change of QSCHEDULE. */
void
schedules_push(struct ctl *c)
{
	const struct schedule_config *s;
	char *message;

	if (check_arguments(c) == -1)
		return;
	s = find(c, c->args.words[0]);
	if (target_find(c, s->queue, VERB_PUSHES, &c->target) == -1)
		return;
	message = tick_message(s, (int64_t)(clock_wall() / SEC), c->target.source == SOURCE_IDS);
	push_text(c, message);
	free(message);
}
