/*
 * The configuration from the spawner; see launch_config.h.
 *
 * What the loader writes are lines: "E" or "W" and a finding; "Q LINE FILE", where each
 * queue stands in the files, in order.  If there are no errors, an empty line and the text of
 * the configuration follow.
 */
#include "config/launch_config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/log.h"
#include "handler/privilege.h"
#include "handler/rows.h"

/* -- in both ---------------------------------------------------------------------------- */

/* Replaces the queues' places in this text by those in the files. */
static void
set_places(struct config *config, const char *line)
{
	struct queue_config *q;
	char *name;
	size_t i = 0;

	for (; *line != '\n'; line = strchr(line, '\n') + 1) {
		if (*line != 'Q' || i == config->nqueues)
			continue;
		q = config->queues[i++];
		q->line = (int)strtol(line + 1, &name, 10);
		free((char *)(uintptr_t)q->file);
		q->file = xstrndup(name + 1, strcspn(name + 1, "\n"));
	}
}

/* The descriptor's position is shared, so this begins by setting it. */
static struct config *
read_all(const struct config_source *source, int fd, struct config_report *report)
{
	struct config_source from = {
		.file = source->file, .overrides = source->overrides, .client = true
	};
	struct config_report ignored = { 0 };
	struct config *config = NULL;
	struct buf b = BUF_INIT;
	const char *p, *nl;

	if (lseek(fd, 0, SEEK_SET) == -1 || buf_read(&b, fd, SIZE_MAX) == -1)
		buf_clear(&b);
	for (p = buf_str(&b); *p != '\n' && (nl = strchr(p, '\n')) != NULL; p = nl + 1) {
		if (*p == 'E' || *p == 'W')
			lines_add(*p == 'E' ? &report->errors : &report->warnings,
			    xstrndup(p + 1, (size_t)(nl - p - 1)));
	}
	if (*p == '\n') {
		from.text = p + 1;
		from.text_len = strlen(p + 1);
		config = config_load(&from, &ignored);
		config_report_done(&ignored);
	}
	if (config != NULL)
		set_places(config, b.data);
	buf_done(&b);
	return config;
}

/* -- in the loader --------------------------------------------------------------------- */

static bool
write_all(int out, int rows, const struct config_source *of)
{
	struct config_source source = *of;
	struct config_report report = { 0 };
	FILE *f = fdopen(out, "w");
	const struct queue_config *q;
	struct config *config;
	bool good;

	if (f == NULL)
		fatal_os("cannot write a configuration: %s", strerror(errno));
	source.rows = rows;
	config = config_load(&source, &report);
	for (size_t i = 0; i < report.errors.n; i++)
		fprintf(f, "E%s\n", report.errors.v[i]);
	for (size_t i = 0; i < report.warnings.n; i++)
		fprintf(f, "W%s\n", report.warnings.v[i]);
	config_report_done(&report);
	for (size_t i = 0; config != NULL && i < config->nqueues; i++) {
		q = config->queues[i];
		fprintf(f, "Q%d %s\n", q->line, strpbrk(q->file, "\r\n") == NULL ? q->file : "");
	}
	if (config != NULL) {
		fputc('\n', f);
		config_print(config, f);
	}
	good = fclose(f) != EOF && config != NULL;
	config_unref(config);
	return good;
}

bool
launch_config_load(int file, int rows, bool (*wanted)(uint32_t, void *), void *wanted_arg,
    void *arg)
{
	struct config_report ignored = { 0 };
	struct config *config;
	bool good;

	if (wanted == NULL)
		return write_all(file, rows, arg);
	config = read_all(arg, file, &ignored);
	good = config != NULL;
	if (good)
		load_rows(config, rows, wanted, wanted_arg);
	config_report_done(&ignored);
	config_unref(config);
	return good;
}

/* -- in the main process ---------------------------------------------------------------- */

struct config *
launch_config_take(const struct config_source *source, const struct spawner_loaded *loaded,
    struct config_report *report)
{
	struct config *config = NULL;

	if (loaded->config != -1 && (config = read_all(source, loaded->config, report)) != NULL)
		config->generation = loaded->generation;
	if (config != NULL && loaded->generation != 0)
		return config;
	config_unref(config);
	if (report->errors.n == 0)
		lines_add(&report->errors,
		    xasprintf("the spawner cannot read the configuration: %s",
		    loaded->error != 0 ? strerror(loaded->error) : "no reason given"));
	return NULL;
}

static struct config *
load_now(const struct config_source *source, struct spawner *s, struct config_report *report,
    char **cause)
{
	struct spawner_loaded loaded;
	struct config *config;

	if (spawner_load_now(s, &loaded) == -1) {
		(void)util_cause(cause, "the spawner died");
		return NULL;
	}
	config = launch_config_take(source, &loaded, report);
	fd_close(&loaded.config);
	return config;
}

struct config *
launch_config_start(const struct config_source *source, struct spawner **s,
    struct config_report *report, char **cause)
{
	struct config *config;
	bool drops;
	uid_t uid;
	gid_t gid;

	*s = spawner_fork(launch_config_load, (void *)(uintptr_t)source);
	drops = spawner_is_privileged(*s) && privilege_user(&uid, &gid);
	if (drops && privilege_drop(cause) == -1)
		return NULL;
	config = load_now(source, *s, report, cause);
	if (!drops || config == NULL)
		return config;
	if (config->privileged && privilege_seal(cause) == 0)
		return config;
	config_unref(config);
	if (*cause != NULL)
		return NULL;
	spawner_stop(*s);
	config_report_done(report);
	*s = spawner_fork(launch_config_load, (void *)(uintptr_t)source);
	return load_now(source, *s, report, cause);
}

void
launch_config_log(const struct config_report *report)
{
	for (size_t i = 0; i < report->errors.n; i++)
		log_event(LOG_LV_ERROR, "reload_failed", NULL,
		    LF_STR("error", report->errors.v[i]));
	for (size_t i = 0; i < report->warnings.n; i++)
		log_event(LOG_LV_WARN, "warning", NULL,
		    LF_STR("warning", report->warnings.v[i]));
}
