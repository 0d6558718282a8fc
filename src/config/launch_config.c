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
#include "handler/cgroup.h"
#include "handler/privilege.h"
#include "handler/rows.h"

/* -- in both ---------------------------------------------------------------------------- */

/* The descriptor's position is shared, so this begins by setting it. */
static struct config *
read_all(const struct config_source *source, int fd, struct config_report *report)
{
	struct config_source from = {
		.file = source->file, .overrides = source->overrides, .client = true
	};
	struct config_report ignored = { 0 };
	struct config *config = NULL;
	struct queue_config *q;
	struct buf b = BUF_INIT;
	char *p, *nl, *name;
	size_t i = 0;

	if (lseek(fd, 0, SEEK_SET) == -1 || buf_read(&b, fd, SIZE_MAX) == -1)
		buf_clear(&b);
	p = buf_str(&b);
	if (*p == '\n')
		nl = p - 1;
	else
		nl = strstr(p, "\n\n");
	if (nl != NULL) {
		from.text = nl + 2;
		from.text_len = strlen(nl + 2);
		config = config_load(&from, &ignored);
		config_report_done(&ignored);
	}
	for (; *p != '\n' && (nl = strchr(p, '\n')) != NULL; p = nl + 1) {
		*nl = '\0';
		if (*p == 'E') {
			lines_add(&report->errors, xstrdup(p + 1));
		} else if (*p != 'Q') {
			lines_add(&report->warnings, xstrdup(p + 1));
		} else if (config != NULL && i < config->nqueues) {
			q = config->queues[i++];
			q->line = (int)strtol(p + 1, &name, 10);
			free((char *)(uintptr_t)q->file);
			q->file = xstrdup(name + 1);
		}
	}
	buf_done(&b);
	return config;
}

/* -- in the loader --------------------------------------------------------------------- */

bool
launch_config_load(int file, int rows, const struct rows *known, unsigned generation, void *arg)
{
	struct config_source source = *(const struct config_source *)arg;
	struct config_report report = { 0 };
	const struct queue_config *q;
	struct config *config;
	FILE *f;

	if (generation != 0) {
		config = read_all(&source, file, &report);
		if (config != NULL)
			load_rows(config, rows, known, generation);
		return config != NULL;
	}
	source.rows = rows;
	config = config_load(&source, &report);
	if ((f = fdopen(file, "w")) == NULL)
		fatal_os("cannot write a configuration: %s", strerror(errno));
	for (size_t i = 0; i < report.errors.n; i++)
		fprintf(f, "E%s\n", report.errors.v[i]);
	for (size_t i = 0; i < report.warnings.n; i++)
		fprintf(f, "W%s\n", report.warnings.v[i]);
	for (size_t i = 0; config != NULL && i < config->nqueues; i++) {
		q = config->queues[i];
		fprintf(f, "Q%d %s\n", q->line, strpbrk(q->file, "\r\n") == NULL ? q->file : "");
	}
	if (config != NULL) {
		fputc('\n', f);
		config_print(config, f);
	}
	return fclose(f) != EOF && config != NULL;
}

/* -- in the main process ---------------------------------------------------------------- */

struct config *
launch_config_take(const struct config_source *source, struct spawner *s,
    const struct spawner_loaded *loaded, struct config_report *report)
{
	struct config *config = NULL;
	int fd = loaded->config;

	if (fd != -1)
		config = read_all(source, fd, report);
	fd_close(&fd);
	if (config != NULL && loaded->generation != 0) {
		config->generation = loaded->generation;
		return config;
	}
	if (loaded->generation != 0)
		spawner_retire(s, loaded->generation);
	config_unref(config);
	if (report->errors.n == 0)
		lines_add(&report->errors,
		    xasprintf("the spawner cannot read the configuration: %s",
		    strerror(loaded->error != 0 ? loaded->error : EMFILE /* we took none */)));
	return NULL;
}

static struct config *
load_now(const struct config_source *source, struct spawner *s, struct config_report *report,
    char **cause)
{
	struct spawner_loaded loaded;

	if (spawner_load_now(s, &loaded) == 0)
		return launch_config_take(source, s, &loaded, report);
	(void)util_cause(cause, "the spawner died");
	return NULL;
}

struct config *
launch_config_start(const struct config_source *source, struct spawner **s,
    struct config_report *report, char **cause)
{
	struct config *config;
	bool drops;
	uid_t uid;
	gid_t gid;

	cgroup_open(true);
	*s = spawner_fork(launch_config_load, (void *)(uintptr_t)source);
	cgroup_leave_to_spawner();
	drops = privilege_held() && privilege_user(&uid, &gid);
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
	cgroup_give_up("privileged is false");
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
