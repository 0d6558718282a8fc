/*
 * rqctl schedules: when they ran last, when they run next, and what was missed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "policy/tick.h"
#include "rqctl/ask.h"
#include "rqctl/groups.h"
#include "rqctl/out.h"
#include "rqctl/table.h"
#include "rqctl/ticks.h"

struct row {
	const struct schedule_config *cfg;
	const char	*key;		/* of the queue */
	double		 now;
	struct ticks	 ticks;
};

/* "every 5m", "30 4 * * mon-fri Europe/Berlin" */
static char *
spec(const struct schedule_config *s)
{
	char text[UNITS_TEXT_MAX];

	if (s->every != 0)
		return xasprintf("every %s", units_duration(s->every, text));
	return xasprintf("%s %s", s->cron, s->timezone);
}

/* -- output --------------------------------------------------------------------- */

static json_t *
json_tick(int64_t tick)
{
	return tick != TICK_NEVER ? json_integer(tick) : json_null();
}

static json_t *
row_json(const struct row *r)
{
	const struct schedule_config *s = r->cfg;
	json_t *o = json_object();

	out_set_bytes(o, "name", s->name, strlen(s->name));
	out_set_bytes(o, "queue", s->queue, strlen(s->queue));
	out_set_bytes(o, "key", r->key, strlen(r->key));
	json_object_set_new(o, "every", s->every != 0 ? json_integer(s->every / SEC) : json_null());
	json_object_set_new(o, "cron", s->every == 0 ? json_string(s->cron) : json_null());
	json_object_set_new(o, "timezone", s->every == 0 ? json_string(s->timezone) : json_null());
	json_object_set_new(o, "catch_up", json_boolean(s->catch_up));
	json_object_set_new(o, "last", json_tick(r->ticks.last));
	json_object_set_new(o, "next", json_tick(r->ticks.next));
	json_object_set_new(o, "missed", json_tick(r->ticks.missed));
	json_object_set_new(o, "error", r->ticks.error != NULL ? json_string(r->ticks.error) : json_null());
	return o;
}

static void
add_tick(struct table *t, int64_t tick)
{
	char text[TICK_TEXT_MAX];

	table_add(t, "%s", tick != TICK_NEVER ? tick_text(tick, text) : "-");
}

static void
add_state(struct table *t, const struct row *r)
{
	char text[TICK_TEXT_MAX];

	if (r->ticks.error != NULL) {
		table_bytes(t, r->ticks.error, strlen(r->ticks.error));
		table_colour(t, COLOUR_RED);
	} else if (r->ticks.missed != TICK_NEVER) {
		table_add(t, "missed %s", tick_text(r->ticks.missed, text));
		table_colour(t, COLOUR_RED);
	} else {
		table_add(t, "%s", !r->ticks.seen ? "not seen by any daemon yet" :
		    r->ticks.last == TICK_NEVER ? "has not run yet" : "ok");
	}
}

static void
row_table(struct table *t, const struct row *r)
{
	char *text = spec(r->cfg), in[32];

	table_add(t, "%s", r->cfg->name);
	table_add(t, "%s", r->cfg->queue);
	table_add(t, "%s", text);
	add_tick(t, r->ticks.last);
	add_tick(t, r->ticks.next);
	table_add(t, "%s", out_age(r->ticks.next != TICK_NEVER ? (double)r->ticks.next - r->now : -1, in));
	add_state(t, r);
	free(text);
}

/* -- the verb ------------------------------------------------------------------- */

static bool
is_meant(const struct ctl *c, const struct schedule_config *s)
{
	int i;

	for (i = 0; i < c->args.nwords; i++) {
		if (strcmp(c->args.words[i], s->name) == 0)
			return true;
	}
	return c->args.nwords == 0;
}

static int
check_names(struct ctl *c)
{
	struct schedule_config *const *s;
	int i;

	for (i = 0; i < c->args.nwords; i++) {
		for (s = c->config->schedules; *s != NULL; s++) {
			if (strcmp((*s)->name, c->args.words[i]) == 0)
				break;
		}
		if (*s == NULL)
			return ctl_error(c, EX_USAGE, "there is no schedule \"%s\" in %s",
			    c->args.words[i], c->config->file);
	}
	return 0;
}

static int
show(struct ctl *c, const struct schedule_config *s, double now, struct table *t, json_t *array)
{
	struct row r = { .cfg = s, .now = now, .key = config_queue(c->config, s->queue)->key };

	if (ticks_ask(c, s, now, &r.ticks) == -1)
		return -1;
	json_array_append_new(array, row_json(&r));
	row_table(t, &r);
	ticks_done(&r.ticks);
	return 0;
}

static int
show_all(struct ctl *c, struct table *t, json_t *array)
{
	struct schedule_config *const *s;
	double now = ask_time(c);

	if (now < 0)
		return -1;
	for (s = c->config->schedules; *s != NULL; s++) {
		if (is_meant(c, *s) && show(c, *s, now, t, array) == -1)
			return -1;
	}
	return 0;
}

void
schedules_run(struct ctl *c)
{
	json_t *array = json_array();
	struct table t;

	table_init(&t, "<SCHEDULE", "<QUEUE", "<WHEN", "<LAST", "<NEXT", ">IN", "<STATE", NULL);
	if (!ctl_has_file(c))
		ctl_error(c, EX_USAGE, "schedules stand in a configuration file: say -c FILE");
	else if (check_names(c) == 0 && show_all(c, &t, array) == 0) {
		if (ctl_given(c, OPT_JSON))
			out_json(json_incref(array));
		else if (table_rows(&t) > 0)
			table_show(&t);
		else
			ctl_note(c, "there are no schedules in %s", c->config->file);
	}
	json_decref(array);
	table_done(&t);
}

/* -- schedules run ---------------------------------------------------------------- */

/* Pushes what a tick at this moment would push; what QSCHEDULE says stays as it is. */
void
schedules_push(struct ctl *c)
{
	struct schedule_config *const *s = c->config->schedules;
	const struct queue_config *q;
	char *message;

	if (!ctl_has_file(c)) {
		ctl_error(c, EX_USAGE, "schedules stand in a configuration file: say -c FILE");
		return;
	}
	if (check_names(c) == -1)
		return;
	while (strcmp((*s)->name, c->args.words[0]) != 0)
		s++;
	q = config_queue(c->config, (*s)->queue);
	message = tick_message(*s, (int64_t)(clock_wall() / SEC), kind_source(q->kind) == SOURCE_IDS);
	push_text(c, q->name, message);
	free(message);
}
