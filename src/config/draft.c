/*
 * Settings to structs: a queue's own, else of defaults { }, else of the table.
 *
 * For a wrong value the default is taken, after a report, so that all checks run in any
 * case.
 */
#include "config/draft.h"

#include <stdlib.h>
#include <string.h>

#include "policy/shard_keys.h"

/* -- collecting ------------------------------------------------------------------- */

static struct queue_config *
new_queue(struct config *c, const char *name, const struct place *at)
{
	struct queue_config *q = NEW(struct queue_config, .name = xstrdup(name),
	    .file = xstrdup(at->line > 0 ? at->file : ""), .line = at->line);

	c->queues = xreallocarray(c->queues, c->nqueues + 2, sizeof(*c->queues));
	c->queues[c->nqueues++] = q;
	c->queues[c->nqueues] = NULL;
	return q;
}

static struct schedule_config *
new_schedule(struct config *c, const char *name, const struct place *at)
{
	struct schedule_config *s = NEW(struct schedule_config, .name = xstrdup(name),
	    .file = xstrdup(at->file), .line = at->line);

	c->schedules = xreallocarray(c->schedules, c->nschedules + 2, sizeof(*c->schedules));
	c->schedules[c->nschedules++] = s;
	c->schedules[c->nschedules] = NULL;
	return s;
}

struct draft_section *
draft_add(struct draft *d, enum section section, const char *name, const struct place *at)
{
	struct draft_sections *all = section == SECTION_QUEUE ? &d->queues : &d->schedules;
	const char *text = name != NULL ? name : "";
	struct draft_section *s = APPEND(all->list, all->n);

	*s = (struct draft_section){ .section = section, .at = *at, .named = name != NULL };
	if (section == SECTION_QUEUE)
		s->queue = new_queue(d->config, text, at);
	else
		s->schedule = new_schedule(d->config, text, at);
	s->name = section == SECTION_QUEUE ? s->queue->name : s->schedule->name;
	return s;
}

/* Sections other than queues may be spread over files; no option is given twice. */
static void
take_settings(struct draft *d, struct item *item, struct setting **slots)
{
	char first[PLACE_TEXT_MAX];

	for (size_t i = 0; i < item->n; i++) {
		struct setting *s = item->settings[i], **slot = &slots[option_index(s->option)];

		if (*slot == NULL) {
			*slot = s;
			continue;
		}
		finding_error(&d->findings, &s->at, "%s is given twice (first at %s)",
		    s->option->name, place_text(&(*slot)->at, first));
		findings_share(&d->findings, &(*slot)->at);
	}
}

void
draft_take(struct draft *d, struct item *item)
{
	struct draft_section *s;

	switch (item->type) {
	case ITEM_OPTIONS:
		take_settings(d, item, d->given);
		break;
	case ITEM_DEFAULTS:
		take_settings(d, item, d->defaults);
		break;
	case ITEM_QUEUE:
	case ITEM_SCHEDULE:
		s = draft_add(d, item->section, item->title, &item->at);
		s->open = item->open;
		take_settings(d, item, s->given);
		break;
	case ITEM_INCLUDE:
		break;
	}
}

struct setting *
draft_setting_new(struct draft *d, const struct option *o, const struct place *at)
{
	struct setting *s = setting_new(o, at);

	s->list = true;
	return *APPEND(d->extra, d->nextra) = s;
}

/* -- building --------------------------------------------------------------------- */

/* Reports a string where a list is needed: {"/bin/sh", "-c"}. */
static void
not_in_braces(struct draft *d, const struct setting *s)
{
	struct buf b = BUF_INIT;
	char *copy = xstrdup(s->values[0]), *rest = copy, *word;

	while ((word = strsep(&rest, " \t\n")) != NULL) {
		if (*word == '\0')
			continue;
		buf_puts(&b, b.len > 0 ? ", " : "");
		option_print_string(word, &b);
	}
	finding_error(&d->findings, &s->at, "%s is a list of words, and no shell splits it: "
	    "write {%.200s}", s->option->name, buf_str(&b));
	buf_done(&b);
	free(copy);
}

/* Stores the setting, or reports it and marks it as bad; NULL: there is none. */
static void
apply(struct draft *d, struct setting *s, void *base)
{
	struct place at;
	char *cause = NULL;
	size_t bad;

	if (s == NULL || s->bad)
		return;
	if ((s->option->flags & OPTION_BRACES) != 0 && !s->list) {
		not_in_braces(d, s);
		s->bad = true;
	} else if (option_set(s->option, base, s->values, s->n, &bad, &cause) == -1) {
		at = (struct place){ s->at.file, bad < s->n ? s->lines[bad] : s->at.line };
		finding_error(&d->findings, &at, "%s", cause);
		free(cause);
		s->bad = true;
	}
}

/* Reports an option of another kind or mode in the queue itself. */
static void
check_applies(struct draft *d, const struct draft_section *s)
{
	const struct queue_config *q = s->queue;

	EACH_OPTION(o) {
		size_t i = option_index(o);

		if (s->given[i] == NULL || s->given[i] == d->defaults[i] || option_applies(o, q))
			continue;
		finding_error(&d->findings, &s->given[i]->at, "%s has no meaning with kind \"%s\" "
		    "and mode \"%s\"%s", o->name, kind_name(q->kind),
		    config_modes[q->mode], o->batches ? " unless batch is above 1" : "");
	}
}

/* Makes Q.  With shards on a cluster, Q needs a hash tag, as the shards have. */
static char *
make_key(const struct draft *d, const struct queue_config *q)
{
	bool tag = d->config->redis.clusters[0] != NULL && (q->shards > 1 || q->shards_drain > 1);

	if (kind_has(q->kind, TRAIT_SUBSCRIBES))
		return xstrdup(q->name);
	return xasprintf(tag ? "{%s}" : "%s", q->keys[0]);
}

/* Sets Q, and the options whose default depends on others. */
static void
finish_queue(struct draft *d, struct queue_config *q)
{
	if (q->keys[0] == NULL || q->keys[0][0] == '\0') {
		free(q->keys[0]);
		q->keys = xreallocarray(q->keys, 2, sizeof(*q->keys));
		q->keys[0] = xasprintf("%s%s", kind_key_prefix(q->kind), q->name);
		q->keys[1] = NULL;
	}
	q->key = make_key(d, q);
	if (shard_keys_count_ok(q->shards) && shard_keys_count_ok(q->shards_drain))
		shard_keys_set(q);
	if (!kind_has(q->kind, TRAIT_LEASES))
		q->max_attempts = 1;
	if (q->database == -1)
		q->database = d->config->redis.database;
	if (q->foreign_timeout == 0)
		q->foreign_timeout = q->lease;
}

static void
build_section(struct draft *d, struct draft_section *s)
{
	void *base = s->queue != NULL ? (void *)s->queue : s->schedule;

	EACH_OPTION(o) {
		struct setting **given = &s->given[option_index(o)];

		if (o->section != s->section)
			continue;
		if (*given == NULL)
			*given = d->defaults[option_index(o)];
		option_set_default(o, base);
		apply(d, *given, base);
	}
	if (s->queue != NULL) {
		if (!option_applies(option_find(SECTION_QUEUE, "batch"), s->queue))
			s->queue->batch = 1;
		check_applies(d, s);
		finish_queue(d, s->queue);
	}
}

/* Checks defaults { } once, also in a file without queues. */
static void
build_defaults(struct draft *d)
{
	struct place nowhere = { "", 0 };
	struct config *scratch = config_new();
	struct queue_config *q = new_queue(scratch, "", &nowhere);

	for (size_t i = 0; i < OPTIONS_MAX; i++)
		apply(d, d->defaults[i], q);
	config_unref(scratch);
}

void
draft_build(struct draft *d)
{
	EACH_OPTION(o) {
		if (section_has_title(o->section))
			continue;
		option_set_default(o, d->config);
		apply(d, d->given[option_index(o)], d->config);
	}
	build_defaults(d);
	for (size_t i = 0; i < d->queues.n; i++)
		build_section(d, &d->queues.list[i]);
	for (size_t i = 0; i < d->schedules.n; i++)
		build_section(d, &d->schedules.list[i]);
}

/* -- questions -------------------------------------------------------------------- */

struct setting *
draft_setting(const struct draft_section *s, const char *option)
{
	return s->given[option_index(option_find(s->section, option))];
}

bool
draft_is_sound(const struct draft_section *s, const char *option)
{
	const struct setting *given = draft_setting(s, option);

	return given == NULL || !given->bad;
}

const struct place *
draft_place(const struct draft_section *s, const char *option)
{
	const struct setting *given = draft_setting(s, option);

	return given != NULL ? &given->at : &s->at;
}

const struct place *
draft_global_place(const struct draft *d, enum section section, const char *option)
{
	static const struct place nowhere = { "", 0 };
	const struct setting *s = d->given[option_index(option_find(section, option))];

	return s != NULL ? &s->at : &nowhere;
}

void
draft_done(struct draft *d)
{
	for (size_t i = 0; i < d->ntexts; i++)
		parser_done(&d->texts[i]);
	for (size_t i = 0; i < d->nextra; i++)
		setting_free(d->extra[i]);
	free(d->texts);
	free(d->extra);
	free(d->queues.list);
	free(d->schedules.list);
	findings_done(&d->findings);
}
