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

/* With -q, -j above max_handlers raises it: no other queue competes. */
static void
raise_max_handlers(struct draft *d)
{
	if (!is_given(d, SECTION_GLOBAL, "max_handlers") &&
	    d->source->concurrency > d->config->max_handlers)
		d->config->max_handlers = d->source->concurrency;
}

/* Nobody must push to another Redis because the file that names the right one is broken. */
static void
check_server_known(struct draft *d)
{
	struct place at = { NULL, 0 };

	if (d->nskip == 0 || is_given(d, SECTION_REDIS, "server") ||
	    is_given(d, SECTION_REDIS, "sentinel") || is_given(d, SECTION_REDIS, "cluster"))
		return;
	at.file = findings_file(&d->findings, d->source->file);
	for (size_t i = 0; i < d->nskip; i++)
		if (files_mention(d->skip[i], "redis"))
			finding_error(&d->findings, &at,
			    "%s, which has errors, may say where Redis is",
			    d->skip[i]);
}

static struct config *
load(const struct config_source *source, char *const *skip, size_t nskip,
    struct config_report *report)
{
	struct config *config = config_new();
	struct draft d = {
		.source = source, .skip = skip, .nskip = nskip, .config = config,
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
	raise_max_handlers(&d);
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

/* -- reports ---------------------------------------------------------------------------- */

static void
free_lines(char ***lines, size_t *n)
{
	while (*n > 0)
		free((*lines)[--*n]);
	free(*lines);
	*lines = NULL;
}

/* Moves the lines of one list behind those of another. */
static void
move_lines(char ***to, size_t *nto, char ***from, size_t *nfrom)
{
	if (*nfrom == 0)
		return;
	*to = xreallocarray(*to, *nto + *nfrom, sizeof(**to));
	memcpy(*to + *nto, *from, *nfrom * sizeof(**to));
	*nto += *nfrom;
	*nfrom = 0;
	free_lines(from, nfrom);
}

/* Whether all errors are those of included files. */
static bool
only_included(const struct config_source *source, const struct config_report *r)
{
	for (size_t i = 0; i < r->nfiles; i++)
		if (source->file == NULL || strcmp(r->files[i], source->file) == 0 ||
		    strchr(r->files[i], '/') == NULL)
			return false;
	return r->nfiles > 0;
}

struct config *
config_load(const struct config_source *source, struct config_report *r)
{
	struct config *c;
	char **skip = NULL;
	size_t nskip = 0;

	while ((c = load(source, skip, nskip, r)) == NULL && source->client &&
	    only_included(source, r)) {
		move_lines(&r->left_out, &r->nleft_out, &r->errors, &r->nerrors);
		move_lines(&skip, &nskip, &r->files, &r->nfiles);
		free_lines(&r->warnings, &r->nwarnings);
	}
	move_lines(&r->files, &r->nfiles, &skip, &nskip);
	if (c == NULL) {	/* lists the first errors first */
		move_lines(&r->left_out, &r->nleft_out, &r->errors, &r->nerrors);
		move_lines(&r->errors, &r->nerrors, &r->left_out, &r->nleft_out);
	}
	return c;
}

void
config_report_add(char ***lines, size_t *n, const char *text, size_t len)
{
	*APPEND(*lines, *n) = xstrndup(text, len);
}

void
config_report_done(struct config_report *r)
{
	free_lines(&r->errors, &r->nerrors);
	free_lines(&r->warnings, &r->nwarnings);
	free_lines(&r->left_out, &r->nleft_out);
	free_lines(&r->files, &r->nfiles);
}
