/*
 * Schedules: turns the settings of schedule "name" { } into structs, and checks that
 * they fit each other and the queues.
 */
#include "config/config_load.h"

#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "base/utf8.h"
#include "policy/message.h"
#include "policy/zone.h"

#define TIME_LEN	21	/* "@2026-11-21T08:00:00Z" behind the name makes an id */
#define NAME_LEN_MAX	(MESSAGE_ID_MAX - TIME_LEN)

static struct setting *
given(const struct schedule_draft *d, const char *option)
{
	return d->given[option_index(option_find(SECTION_SCHEDULE, option))];
}

/* The option's place, or the section's where the option is not given. */
static const struct place *
place(const struct schedule_draft *d, const char *option)
{
	const struct setting *s = given(d, option);

	return s != NULL ? &s->at : &d->at;
}

void
config_schedule_collect(struct loader *l, struct item *item)
{
	struct schedule_config *s = xcalloc(1, sizeof(*s));
	struct schedule_draft *d;
	struct config *c = l->config;

	s->name = xstrdup(item->title != NULL ? item->title : "");
	s->file = xstrdup(item->at.file);
	s->line = item->at.line;
	c->schedules = xreallocarray(c->schedules, c->nschedules + 2, sizeof(*c->schedules));
	c->schedules[c->nschedules++] = s;
	c->schedules[c->nschedules] = NULL;
	l->schedules = xreallocarray(l->schedules, l->nschedules + 1, sizeof(*l->schedules));
	d = &l->schedules[l->nschedules++];
	*d = (struct schedule_draft){ .schedule = s, .at = item->at,
	    .named = item->title != NULL, .open = item->open };
	config_take_settings(l, item, d->given);
}

static void
build(struct loader *l, struct schedule_draft *d)
{
	const struct option *o;

	for (o = option_next(NULL); o != NULL; o = option_next(o)) {
		if (o->section != SECTION_SCHEDULE)
			continue;
		option_set_default(o, d->schedule);
		if (d->given[option_index(o)] != NULL)
			config_apply(l, d->given[option_index(o)], d->schedule);
	}
}

void
config_schedule_build(struct loader *l)
{
	size_t i;

	for (i = 0; i < l->nschedules; i++)
		build(l, &l->schedules[i]);
}

/* -- checks -------------------------------------------------------------------- */

static void
check_name(struct loader *l, const struct schedule_draft *d)
{
	const char *name = d->schedule->name;
	char first[PLACE_TEXT_MAX];
	const struct schedule_draft *e;

	if (!d->named)
		return;
	if (!message_id_ok(name, strlen(name)) || strlen(name) > NAME_LEN_MAX ||
	    !utf8_is_valid(name, strlen(name)))
		finding_error(&l->findings, &d->at, "schedule \"%.40s\": a name has 1 to %d bytes of "
		    "UTF-8 and no control characters", name, NAME_LEN_MAX);
	for (e = l->schedules; e < d; e++) {
		if (!e->named || strcmp(e->schedule->name, name) != 0)
			continue;
		finding_error(&l->findings, &d->at, "schedule \"%s\" is defined twice (first at %s)",
		    name, place_text(&e->at, first));
		findings_share(&l->findings, &e->at);
		break;
	}
}

/* The members of a zset are ids. */
static void
check_message(struct loader *l, const struct schedule_draft *d, const struct queue_config *q)
{
	const char *message = d->schedule->message;
	size_t len = strlen(message);

	if (kind_source(q->kind) == SOURCE_IDS && len > 0 && !message_id_ok(message, len))
		finding_error(&l->findings, place(d, "message"), "the messages of queue \"%s\" are "
		    "ids: 1 to %d bytes without control characters", q->name, MESSAGE_ID_MAX);
	else if (len > q->message_max)
		finding_error(&l->findings, place(d, "message"), "the message is longer than "
		    "message_max of queue \"%s\"", q->name);
}

static void
check_queue(struct loader *l, const struct schedule_draft *d)
{
	const struct schedule_config *s = d->schedule;
	const struct queue_config *q = config_queue(l->config, s->queue);

	if (s->queue[0] == '\0') {
		if (!d->open && (given(d, "queue") == NULL || !given(d, "queue")->bad))
			finding_error(&l->findings, place(d, "queue"), "schedule \"%s\" has no queue: "
			    "write queue = \"NAME\"", s->name);
	} else if (q == NULL) {
		finding_error(&l->findings, place(d, "queue"), "there is no queue \"%s\"", s->queue);
	} else if (!kind_waits(q->kind)) {
		finding_error(&l->findings, place(d, "queue"), "queue \"%s\" is of kind %s, which "
		    "holds no messages: nothing can be pushed to it", s->queue,
		    kind_name(q->kind));
	} else {
		check_message(l, d, q);
	}
}

static bool
is_bad(const struct schedule_draft *d, const char *option)
{
	return given(d, option) != NULL && given(d, option)->bad;
}

static void
check_times(struct loader *l, const struct schedule_draft *d)
{
	struct schedule_config *s = d->schedule;
	char *cause = NULL;

	if (s->every != 0 && s->cron[0] != '\0')
		finding_error(&l->findings, place(d, "cron"), "schedule \"%s\" has both every and "
		    "cron: write one of them", s->name);
	else if (s->every == 0 && s->cron[0] == '\0' && given(d, "every") != NULL &&
	    !is_bad(d, "every") && !is_bad(d, "cron"))
		finding_error(&l->findings, place(d, "every"), "schedule \"%s\": every is 0, and "
		    "there is no cron: write every = 1h or cron = \"0 3 * * *\"", s->name);
	else if (s->every == 0 && s->cron[0] == '\0' && !d->open && !is_bad(d, "every") &&
	    !is_bad(d, "cron"))
		finding_error(&l->findings, &d->at, "schedule \"%s\" does not say when: write "
		    "every = 1h or cron = \"0 * * * *\"", s->name);
	if (s->every % SEC != 0)
		finding_error(&l->findings, place(d, "every"), "every is a whole number of seconds");
	if (s->cron[0] != '\0' && cron_parse(s->cron, &s->times, &cause) == -1)
		fatalx("cron of schedule %s: %s", s->name, cause);
}

/* A warning only: this may not be the machine that the daemon runs on. */
static void
check_zone(struct loader *l, const struct schedule_draft *d)
{
	const struct schedule_config *s = d->schedule;
	char *cause = NULL;

	if (s->cron[0] == '\0' && strcmp(s->timezone, ZONE_UTC) != 0 && !is_bad(d, "cron"))
		finding_error(&l->findings, place(d, "timezone"), "timezone has a meaning with cron "
		    "only");
	else if (!l->source->client && zone_check(s->timezone, &cause) == -1)
		finding_error(&l->findings, place(d, "timezone"), "%s", cause);
	free(cause);
}

void
config_schedule_check(struct loader *l)
{
	size_t i;

	for (i = 0; i < l->nschedules; i++) {
		check_name(l, &l->schedules[i]);
		check_queue(l, &l->schedules[i]);
		check_times(l, &l->schedules[i]);
		check_zone(l, &l->schedules[i]);
	}
}
