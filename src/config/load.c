/*
 * The loader: from a source to a configuration and a report.
 *
 *	1  files, with what they include, and the command line: settings, by option
 *	2  settings and defaults into structs
 *	3  what must be right together, and on this machine
 *
 * All steps run whatever is wrong; at the end any error makes the result NULL.
 */
#include "config/load.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"
#include "config/draft.h"

/* The path for RQD_CONFIG: absolute, symbolic links kept. */
static char *
absolute(const char *file)
{
	char *cwd, *path;

	if (file == NULL || file[0] == '/')
		return xstrdup(file != NULL ? file : "");
	if ((cwd = getcwd(NULL, 0)) == NULL)
		return xstrdup(file);
	path = xasprintf("%s/%s", cwd, file);
	free(cwd);
	return path;
}

/* Heartbeats are JSON, so bytes of a host name that are not UTF-8 are replaced. */
static void
fill_name(struct config *c)
{
	char *p;

	if (c->name[0] != '\0')
		return;
	xreplace(&c->name, util_hostname());
	for (p = c->name; *p != '\0' && !utf8_is_valid(c->name, strlen(c->name)); p++) {
		if ((unsigned char)*p >= 0x80)
			*p = '_';
	}
}

static bool
is_given(const struct draft *d, enum section section, const char *option)
{
	return d->given[option_index(option_find(section, option))] != NULL;
}

/*
 * Refuses to guess the server: with a broken file nobody must push to another Redis by
 * mistake.
 */
static void
check_server_known(struct draft *d)
{
	struct place at = { NULL, 0 };

	if (d->skip->n == 0 || is_given(d, SECTION_REDIS, "server") ||
	    is_given(d, SECTION_REDIS, "sentinel") || is_given(d, SECTION_REDIS, "cluster"))
		return;
	at.file = findings_file(&d->findings, d->source->file);
	for (size_t i = 0; i < d->skip->n; i++)
		if (files_mention(d->skip->v[i], "redis"))
			finding_error(&d->findings, &at,
			    "%s, which has errors, may say where Redis is",
			    d->skip->v[i]);
}

static struct config *
load(const struct config_source *source, const struct lines *skip, struct config_report *report)
{
	struct config *config = config_new();
	struct draft d = {
		.source = source, .skip = skip, .config = config,
		.findings = { .report = report, .strict = source->strict },
	};
	bool failed;

	config->file = absolute(source->file);
	files_take(&d);
	command_line_take(&d);
	check_server_known(&d);
	servers_choose(&d);
	draft_build(&d);
	servers_finish(&config->redis);
	/* With -q, -j above max_handlers raises it: no other queue competes. */
	if (!is_given(&d, SECTION_GLOBAL, "max_handlers") &&
	    source->concurrency > config->max_handlers)
		config->max_handlers = source->concurrency;
	fill_name(config);
	consistency_check(&d);
	if (!source->client)
		machine_check(&d);
	failed = d.findings.nerrors > 0;
	draft_done(&d);
	if (!failed) {
		config_print_hash(config);
		return config;
	}
	config_unref(config);
	return NULL;
}

/* Whether all errors are those of included files. */
static bool
only_included(const struct config_source *source, const struct config_report *r)
{
	for (size_t i = 0; i < r->files.n; i++)
		if (source->file == NULL || strcmp(r->files.v[i], source->file) == 0 ||
		    strchr(r->files.v[i], '/') == NULL)
			return false;
	return r->files.n > 0;
}

struct config *
config_load(const struct config_source *source, struct config_report *r)
{
	struct lines skip = { .n = 0 };
	struct config *c;

	while ((c = load(source, &skip, r)) == NULL && source->client &&
	    only_included(source, r)) {
		lines_move(&r->left_out, &r->errors);
		lines_move(&skip, &r->files);
		lines_done(&r->warnings);
	}
	lines_move(&r->files, &skip);
	if (c == NULL) {	/* lists the first errors first */
		lines_move(&r->left_out, &r->errors);
		lines_move(&r->errors, &r->left_out);
	}
	return c;
}
