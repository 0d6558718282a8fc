/*
 * The loader: from a source to a configuration and a report.
 *
 *	1  files, with what they include, and the command line: settings, by option
 *	2  settings and defaults into structs
 *	3  what must be right together, and on this machine
 *
 * At the end any error makes the result NULL.
 */
#include "config/load.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"
#include "config/draft.h"

struct config *
config_load(const struct config_source *source, struct config_report *report)
{
	struct config *config = config_new();
	struct draft d = {
		.source = source, .config = config, .findings = { .strict = source->strict },
	};
	char *cwd = NULL, *p;
	bool failed;

	/* For RQD_CONFIG the path is absolute; symbolic links are kept. */
	if (source->file != NULL && source->file[0] != '/')
		cwd = getcwd(NULL, 0);
	if (cwd != NULL)
		config->file = xasprintf("%s/%s", cwd, source->file);
	else
		config->file = xstrdup(or_empty(source->file));
	free(cwd);
	files_take(&d);
	command_line_take(&d);
	/* Where parts are missing, what depends on several options may be right after all. */
	if (!d.incomplete)
		servers_choose(&d);
	draft_build(&d);
	if (!d.incomplete) {
		servers_finish(&config->redis);
		/* With -q, -j above max_handlers raises it: no other queue competes. */
		if (d.given[option_index(option_named(SECTION_GLOBAL, "max_handlers"))] == NULL &&
		    source->concurrency > config->max_handlers)
			config->max_handlers = source->concurrency;
		/* Heartbeats are JSON: bytes of a host name that are not UTF-8 are replaced. */
		if (config->name[0] == '\0') {
			xreplace(&config->name, util_hostname());
			for (p = config->name; *p != '\0' && !utf8_is_valid(config->name,
			    strlen(config->name)); p++) {
				if ((unsigned char)*p >= 0x80)
					*p = '_';
			}
		}
		consistency_check(&d);
		if (!source->client)
			machine_check(&d);
	}
	failed = d.findings.nerrors > 0;
	draft_done(&d);
	findings_done(&d.findings, report);
	if (!failed) {
		config_print_hash(config);
		return config;
	}
	config_unref(config);
	return NULL;
}
