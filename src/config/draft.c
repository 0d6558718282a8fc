/*
 * Settings to structs: a queue's own, else of defaults { }, else of the table.
 *
 * For a wrong value the default is taken, after a report, so that all checks run.
 */
#include "config/draft.h"

#include <stdlib.h>
#include <string.h>

#include "policy/shard_keys.h"

/* -- collecting ------------------------------------------------------------------- */

struct setting *
setting_new(const struct option *option, const struct place *at)
{
	struct setting *s = NEW(struct setting, .option = option, .at = *at);

	s->values = xcalloc(1, sizeof(*s->values));
	return s;
}

void
setting_add(struct setting *s, const char *value, int line)
{
	s->values = xreallocarray(s->values, s->n + 2, sizeof(*s->values));
	s->lines = xreallocarray(s->lines, s->n + 1, sizeof(*s->lines));
	s->lines[s->n] = line;
	s->values[s->n++] = xstrdup(value);
	s->values[s->n] = NULL;
}

static void
setting_free(struct setting *s)
{
	while (s->n > 0)
		free(s->values[--s->n]);
	free(s->values);
	free(s->lines);
	free(s);
}

struct draft_section *
draft_add(struct draft *d, enum section section, const char *name, const struct place *at)
{
	struct draft_sections *all = &d->schedules;
	struct draft_section *s;
	struct config *c = d->config;
	char *file;

	if (section == SECTION_QUEUE)
		all = &d->queues;
	s = APPEND(all->list, all->n);
	file = xstrdup(at->line > 0 ? at->file : "");
	*s = (struct draft_section){ .section = section, .at = *at };
	if (section == SECTION_QUEUE) {
		s->queue = NEW(struct queue_config, .name = xstrdup(name), .file = file,
		    .line = at->line);
		s->name = s->queue->name;
		c->queues = xreallocarray(c->queues, c->nqueues + 2, sizeof(*c->queues));
		c->queues[c->nqueues++] = s->queue;
		c->queues[c->nqueues] = NULL;
	} else {
		s->schedule = NEW(struct schedule_config, .name = xstrdup(name), .file = file,
		    .line = at->line);
		s->name = s->schedule->name;
		c->schedules = xreallocarray(c->schedules, c->nschedules + 2,
		    sizeof(*c->schedules));
		c->schedules[c->nschedules++] = s->schedule;
		c->schedules[c->nschedules] = NULL;
	}
	return s;
}

/* Where the settings of an item go; a section with a title is a new one. */
static struct setting **
slots_of(struct draft *d, const struct item *item)
{
	enum section section = item->section;

	if (section_has_title(section))
		return draft_add(d, section, or_empty(item->title),
		    &item->at)->given;
	if (section == SECTION_DEFAULTS)
		return d->defaults;
	return d->given;
}

/* Sections other than queues may be spread over files; no option is given twice. */
void
draft_take(struct draft *d, struct item *item)
{
	struct setting **slots = slots_of(d, item);
	char first[PLACE_TEXT_MAX];

	for (size_t i = 0; i < item->n; i++) {
		struct setting *s = item->settings[i], **slot = &slots[option_index(s->option)];

		if (*slot == NULL) {
			*slot = s;
			continue;
		}
		finding_error(&d->findings, &s->at, "%s is given twice (first at %s)",
		    s->option->name, place_text(&(*slot)->at, first));
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

/* Stores the setting, or reports it and marks it as bad; NULL: there is none. */
static void
apply(struct draft *d, struct setting *s, void *base)
{
	struct place at;
	struct buf b = BUF_INIT;
	char *cause = NULL, *copy, *rest, *word;
	size_t bad;

	if (s == NULL || s->bad || (s->n == 0 && !s->list))	/* its value was not reached */
		return;
	if ((s->option->flags & OPTION_BRACES) != 0 && !s->list) {
		copy = rest = xstrdup(s->values[0]);
		while ((word = strsep(&rest, " \t\n")) != NULL) {
			if (*word == '\0')
				continue;
			if (b.len > 0)
				buf_puts(&b, ", ");
			option_print_string(word, &b);
		}
		finding_error(&d->findings, &s->at, "%s is a list of words, and no shell splits "
		    "it: write {%.200s}", s->option->name, buf_str(&b));
		buf_done(&b);
		free(copy);
		s->bad = true;
	} else if (option_set(s->option, base, s->values, s->n, &bad, &cause) == -1) {
		at = s->at;
		if (bad < s->n)
			at.line = s->lines[bad];
		finding_error(&d->findings, &at, "%s", cause);
		free(cause);
		s->bad = true;
	}
}

/* Sets Q, and the options whose default depends on others. */
static void
finish_queue(struct draft *d, struct queue_config *q)
{
	/* With shards on a cluster, Q needs a hash tag, as the shards have. */
	bool tag = d->config->redis.clusters[0] != NULL && (q->shards > 1 || q->shards_drain > 1);

	if (q->keys[0] == NULL || q->keys[0][0] == '\0') {
		free(q->keys[0]);
		q->keys = xreallocarray(q->keys, 2, sizeof(*q->keys));
		q->keys[0] = xasprintf("%s%s", kind_key_prefix(q->kind), q->name);
		q->keys[1] = NULL;
	}
	if (kind_has(q->kind, TRAIT_SUBSCRIBES))
		q->key = xstrdup(q->name);
	else if (tag)
		q->key = xasprintf("{%s}", q->keys[0]);
	else
		q->key = xstrdup(q->keys[0]);
	if (shard_keys_count_ok(q->shards) && shard_keys_count_ok(q->shards_drain))
		shard_keys_set(q);
	if (!kind_has(q->kind, TRAIT_LEASES))
		q->max_attempts = 1;
	if (q->database == -1)
		q->database = d->config->redis.database;
	if (q->foreign_timeout == 0)
		q->foreign_timeout = q->lease;
}

/* When an option that does not apply would. */
static const char *
when_it_applies(const struct option *o, const struct queue_config *q)
{
	if (o->batches)
		return " unless batch is above 1";
	if ((o->flags & OPTION_SINGLE) != 0 && config_has_batches(q))
		return " if batch is above 1";
	return "";
}

static void
build_section(struct draft *d, struct draft_section *s)
{
	void *base = s->schedule;
	const struct queue_config *q = s->queue;

	if (s->queue != NULL)
		base = s->queue;
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
		if (!option_applies(option_named(SECTION_QUEUE, "batch"), s->queue))
			s->queue->batch = 1;
		if (!option_applies(option_named(SECTION_QUEUE, "group_by"), s->queue))
			xreplace(&s->queue->group_by, "");
		/* Reports an option of another kind or mode in the queue itself. */
		EACH_OPTION(o) {
			const struct setting *own = s->given[option_index(o)];

			if (!d->incomplete && own != NULL && own != d->defaults[option_index(o)] &&
			    !option_applies(o, q))
				finding_error(&d->findings, &own->at, "%s has no meaning with kind "
				    "\"%s\" and mode \"%s\"%s", o->name, kind_name(q->kind),
				    config_modes[q->mode],
				    when_it_applies(o, q));
		}
		finish_queue(d, s->queue);
	}
}

void
draft_build(struct draft *d)
{
	struct draft scratch = { .config = config_new() };

	/* Checks defaults { } once, even in a file without queues. */
	draft_add(&scratch, SECTION_QUEUE, "", &(struct place){ "", 0 });
	for (size_t i = 0; i < OPTIONS_MAX; i++)
		apply(d, d->defaults[i], scratch.config->queues[0]);
	config_unref(scratch.config);
	draft_done(&scratch);
	EACH_OPTION(o) {
		if (section_has_title(o->section))
			continue;
		option_set_default(o, d->config);
		apply(d, d->given[option_index(o)], d->config);
	}
	for (size_t i = 0; i < d->queues.n; i++)
		build_section(d, &d->queues.list[i]);
	for (size_t i = 0; i < d->schedules.n; i++)
		build_section(d, &d->schedules.list[i]);
}

/* -- questions -------------------------------------------------------------------- */

struct setting *
draft_setting(const struct draft_section *s, const char *option)
{
	return s->given[option_index(option_named(s->section, option))];
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

	if (given == NULL)
		return &s->at;
	return &given->at;
}

const struct place *
draft_global_place(const struct draft *d, enum section section, const char *option)
{
	static const struct place nowhere = { "", 0 };
	const struct setting *s = d->given[option_index(option_named(section, option))];

	if (s == NULL)
		return &nowhere;
	return &s->at;
}

void
draft_done(struct draft *d)
{
	for (size_t i = 0; i < d->ntexts; i++) {
		for (size_t k = 0; k < d->texts[i].n; k++) {
			struct item *item = &d->texts[i].items[k];

			while (item->n > 0)
				setting_free(item->settings[--item->n]);
			free(item->settings);
			free(item->title);
		}
		free(d->texts[i].items);
	}
	for (size_t i = 0; i < d->nextra; i++)
		setting_free(d->extra[i]);
	free(d->texts);
	free(d->extra);
	free(d->queues.list);
	free(d->schedules.list);
}
