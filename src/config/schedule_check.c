/*
 * Schedules against their queues and times.
 */
#include "config/draft.h"

#include <stdlib.h>
#include <string.h>

#include "policy/message.h"
#include "policy/zone.h"

/* The members of a zset are ids. */
static void
check_message(struct draft *d, const struct draft_section *s, const struct queue_config *q)
{
	const char *message = s->schedule->message;
	size_t len = strlen(message);

	if (kind_source(q->kind) == SOURCE_IDS && len > 0 && !message_id_ok(message, len))
		finding_error(&d->findings, draft_place(s, "message"),
		    "the messages of queue \"%s\" "
		    "are ids: 1 to %d bytes without control characters", q->name, MESSAGE_ID_MAX);
	else if (len > q->message_max)
		finding_error(&d->findings, draft_place(s, "message"), "the message is longer than "
		    "message_max of queue \"%s\"", q->name);
}

static void
check_queue(struct draft *d, const struct draft_section *s)
{
	const struct place *at = draft_place(s, "queue");
	const char *name = s->schedule->queue;
	const struct queue_config *q = config_queue(d->config, name);

	if (name[0] == '\0') {
		if (!s->open && draft_is_sound(s, "queue"))
			finding_error(&d->findings, at, "schedule \"%s\" has no queue: write "
			    "queue = \"NAME\"", s->name);
	} else if (q == NULL) {
		finding_error(&d->findings, at, "there is no queue \"%s\"", name);
	} else if (!kind_waits(q->kind)) {
		finding_error(&d->findings, at, "queue \"%s\" is of kind %s, which holds no "
		    "messages: nothing can be pushed to it", name, kind_name(q->kind));
	} else {
		check_message(d, s, q);
	}
}

/* Neither every nor cron. */
static void
check_never(struct draft *d, const struct draft_section *s)
{
	if (!draft_is_sound(s, "every") || !draft_is_sound(s, "cron"))
		return;
	if (draft_setting(s, "every") != NULL)
		finding_error(&d->findings, draft_place(s, "every"), "schedule \"%s\": every is 0, "
		    "and there is no cron: write every = 1h or cron = \"0 3 * * *\"", s->name);
	else if (!s->open)
		finding_error(&d->findings, &s->at, "schedule \"%s\" does not say when: write "
		    "every = 1h or cron = \"0 * * * *\"", s->name);
}

static void
check_times(struct draft *d, const struct draft_section *s)
{
	struct schedule_config *c = s->schedule;
	char *cause = NULL;

	if (c->every != 0 && c->cron[0] != '\0')
		finding_error(&d->findings, draft_place(s, "cron"),
		    "schedule \"%s\" has both every "
		    "and cron: write one of them", s->name);
	else if (c->every == 0 && c->cron[0] == '\0')
		check_never(d, s);
	if (c->every % SEC != 0)
		finding_error(&d->findings, draft_place(s, "every"),
		    "every is a whole number of seconds");
	if (c->cron[0] != '\0' && cron_parse(c->cron, &c->times, &cause) == -1)
		fatalx("cron of schedule %s: %s", s->name, cause);
}

/* rqctl may not be on the machine that the daemon runs on. */
static void
check_zone(struct draft *d, const struct draft_section *s)
{
	const struct schedule_config *c = s->schedule;
	char *cause = NULL;

	if (c->cron[0] == '\0' && strcmp(c->timezone, ZONE_UTC) != 0 && draft_is_sound(s, "cron"))
		finding_error(&d->findings, draft_place(s, "timezone"),
		    "timezone has a meaning with "
		    "cron only");
	else if (!d->source->client && zone_check(c->timezone, &cause) == -1)
		finding_error(&d->findings, draft_place(s, "timezone"), "%s", cause);
	free(cause);
}

void
schedule_check(struct draft *d)
{
	size_t i;

	for (i = 0; i < d->schedules.n; i++) {
		check_queue(d, &d->schedules.list[i]);
		check_times(d, &d->schedules.list[i]);
		check_zone(d, &d->schedules.list[i]);
	}
}
