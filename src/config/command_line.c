/*
 * Settings from the command line and the environment, as if they were in a file: -o
 * replaces an option, -q adds a queue, $RQD_SERVER names Redis.
 */
#include "config/draft.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPACE	" \t\r\n"

/* "redis.server=..." or "max_handlers=..." */
static void
take_override(struct draft *d, const char *text)
{
	struct place at = { findings_file(&d->findings, "-o"), 0 };
	enum section section = SECTION_GLOBAL;
	const char *equals = strchr(text, '=');
	const struct option *o = NULL;
	char *name, *dot, *option, *why, *rest, *word;
	struct setting *s;
	size_t len;

	if (equals == NULL) {
		finding_error(&d->findings, &at, "\"%.60s\" is not OPTION=VALUE", text);
		return;
	}
	name = option = xstrndup(text, (size_t)(equals - text));
	if ((dot = strchr(name, '.')) != NULL) {
		*dot++ = '\0';
		option = dot;
	}
	if (dot != NULL && (section = section_find(name)) == SECTION_MAX) {
		finding_error(&d->findings, &at, "unknown section \"%.60s\"", name);
	} else if (section >= SECTION_QUEUE) {
		finding_error(&d->findings, &at, "%.60s: options of queues and schedules stand in "
		    "the file only", text);
	} else if ((o = option_find(section, option)) == NULL) {
		why = option_unknown(section, option);
		finding_error(&d->findings, &at, "%s", why);
		free(why);
	} else {
		s = draft_setting_new(d, o, &at);
		len = strlen(++equals);
		if (option_is_list(o) && len >= 2 && equals[0] == '{' && equals[len - 1] == '}') {
			/* "{a, b}": each may be quoted. */
			why = rest = xstrndup(equals + 1, len - 2);
			while ((word = strsep(&rest, ",")) != NULL) {
				word += strspn(word, " \t\"'");
				word[strcspn(word, " \t\"'")] = '\0';
				if (*word != '\0')
					setting_add(s, word, 0);
			}
			free(why);
		} else {
			setting_add(s, equals, 0);
		}
		d->given[option_index(o)] = s;
		/* RQD_OPTIONS tells rqctl in a handler. */
		if (section == SECTION_REDIS) {
			why = d->config->overrides;
			d->config->overrides = xasprintf("%s%s%s", why,
			    text_if(why[0] != '\0', "\n"), text);
			free(why);
		}
	}
	free(name);
}

static struct setting *
add_to_queue(struct draft *d, struct draft_section *queue, const char *option)
{
	const struct option *o = option_named(SECTION_QUEUE, option);

	return queue->given[option_index(o)] = draft_setting_new(d, o, &queue->at);
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

/* White space around the address comes from a file that sets the variable. */
static void
take_server(struct draft *d)
{
	const char *text = getenv("RQD_SERVER");
	const struct option *o = option_named(SECTION_REDIS, "server");
	struct place at = { findings_file(&d->findings, "RQD_SERVER"), 0 };
	struct setting *s;
	char *server;
	size_t len;

	text = text != NULL ? text + strspn(text, SPACE) : "";
	for (len = strlen(text); len > 0 && strchr(SPACE, text[len - 1]) != NULL; len--)
		;
	if (len == 0)
		return;
	server = xstrndup(text, len);
	s = d->given[option_index(o)] = draft_setting_new(d, o, &at);
	setting_add(s, server, 0);
	free(server);
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
