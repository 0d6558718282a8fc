/*
 * Settings from the command line and the environment, as if they were in a file: -o
 * replaces an option, -q adds a queue, $RQD_SERVER names Redis.
 */
#include "config/draft.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A new setting, given by `from` ("-o"). */
static struct setting *
add_setting(struct draft *d, const struct option *o, const char *from)
{
	struct place at = { findings_file(&d->findings, from), 0 };

	return draft_setting_new(d, o, &at);
}

/* Splits "{a, b}" into the values of a list; each may be quoted. */
static void
split_list(struct setting *s, const char *text)
{
	char *copy = xstrndup(text + 1, strlen(text) - 2), *rest = copy, *word;

	while ((word = strsep(&rest, ",")) != NULL) {
		word += strspn(word, " \t\"'");
		word[strcspn(word, " \t\"'")] = '\0';
		if (*word != '\0')
			setting_add(s, word, 0);
	}
	free(copy);
}

static void
set_override(struct draft *d, const struct option *o, const char *text)
{
	struct setting *s = add_setting(d, o, "-o");
	size_t len = strlen(text);

	if (option_is_list(o) && len >= 2 && text[0] == '{' && text[len - 1] == '}')
		split_list(s, text);
	else
		setting_add(s, text, 0);
	d->given[option_index(o)] = s;
}

/* Notes -o redis.* for RQD_OPTIONS, which tells rqctl in a handler. */
static void
note_override(struct config *c, const char *text)
{
	char *longer = xasprintf("%s%s%s", c->overrides, c->overrides[0] != '\0' ? "\n" : "", text);

	free(c->overrides);
	c->overrides = longer;
}

/* "redis.server=..." or "max_handlers=..." */
static void
take_override(struct draft *d, const char *text)
{
	struct place at = { findings_file(&d->findings, "-o"), 0 };
	enum section section = SECTION_GLOBAL;
	const char *equals = strchr(text, '=');
	const struct option *o = NULL;
	char *name, *dot, *why;

	if (equals == NULL) {
		finding_error(&d->findings, &at, "\"%.60s\" is not OPTION=VALUE", text);
		return;
	}
	name = xstrndup(text, (size_t)(equals - text));
	if ((dot = strchr(name, '.')) != NULL)
		*dot++ = '\0';
	if (dot != NULL && !section_find(name, &section) && strcmp(name, "defaults") != 0) {
		finding_error(&d->findings, &at, "unknown section \"%.60s\"", name);
	} else if (section_has_title(section) || (dot != NULL && section == SECTION_GLOBAL)) {
		finding_error(&d->findings, &at, "%.60s: options of queues and schedules stand in "
		    "the file only", text);
	} else if ((o = option_find(section, dot != NULL ? dot : name)) == NULL) {
		why = option_unknown(section, dot != NULL ? dot : name);
		finding_error(&d->findings, &at, "%s", why);
		free(why);
	} else {
		set_override(d, o, equals + 1);
		if (section == SECTION_REDIS)
			note_override(d->config, text);
	}
	free(name);
}

static void
take_server(struct draft *d)
{
	const char *server = getenv("RQD_SERVER");
	const struct option *o = option_find(SECTION_REDIS, "server");
	struct setting *s;

	if (server == NULL || server[0] == '\0')
		return;
	s = add_setting(d, o, "RQD_SERVER");
	setting_add(s, server, 0);
	d->given[option_index(o)] = s;
}

static struct setting *
add_to_queue(struct draft *d, struct draft_section *queue, const char *option)
{
	const struct option *o = option_find(SECTION_QUEUE, option);

	return queue->given[option_index(o)] = add_setting(d, o, "-q");
}

static void
take_queue(struct draft *d)
{
	const struct config_source *source = d->source;
	struct place at = { findings_file(&d->findings, "-q"), 0 };
	struct draft_section *queue = draft_add(d, SECTION_QUEUE, source->queue, &at);
	struct setting *s = add_to_queue(d, queue, "command");
	const char *const *word;
	char number[16];

	for (word = source->command; word != NULL && *word != NULL; word++)
		setting_add(s, *word, 0);
	if (source->concurrency != 0) {
		snprintf(number, sizeof(number), "%d", source->concurrency);
		setting_add(add_to_queue(d, queue, "concurrency"), number, 0);
	}
	if (source->user != NULL)
		setting_add(add_to_queue(d, queue, "user"), source->user, 0);
}

void
command_line_take(struct draft *d)
{
	const struct config_source *source = d->source;
	size_t i;

	if (source->text == NULL && source->file == NULL)
		take_server(d);
	for (i = 0; source->overrides != NULL && source->overrides[i] != NULL; i++)
		take_override(d, source->overrides[i]);
	if (source->queue != NULL && source->text == NULL)
		take_queue(d);
}
