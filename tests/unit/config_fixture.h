/*
 * Fixture for tests of the configuration.  The program works in a temporary folder, so
 * tests write files there and load them by short names.  By default they are loaded as
 * rqctl would load them, without a look at this machine's commands, users and files.
 */
#pragma once

#define UNIT_OWN_MAIN
#include "unit.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "config/load.h"
#include "config/options.h"

static char fixture_dir[] = "/tmp/rqd-config.XXXXXX";

static inline int
fixture_setup(void **state UNUSED)
{
	unsetenv("RQD_SERVER");
	umask(022);
	return mkdtemp(fixture_dir) == NULL ? -1 : chdir(fixture_dir);
}

static inline int
fixture_teardown(void **state UNUSED)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", fixture_dir);
	return chdir("/") == 0 ? system(command) : -1;
}

static inline void
put_bytes(const char *file, const void *bytes, size_t len)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd != -1);
	assert_int_equal(write(fd, bytes, len), len);
	close(fd);
}

static inline void
put(const char *file, const char *text)
{
	put_bytes(file, text, strlen(text));
}

static inline struct config *
load_file(const char *file, struct config_report *report)
{
	struct config_source source = { .file = file, .client = true };

	*report = (struct config_report){ .errors = { .n = 0 } };
	return config_load(&source, report);
}

/* Loads a file that must have no errors. */
static inline struct config *
load_good(const char *file)
{
	struct config_report report;
	struct config *c = load_file(file, &report);
	size_t i;

	for (i = 0; i < report.errors.n; i++)
		print_message("# %s\n", report.errors.v[i]);
	assert_non_null(c);
	assert_int_equal(report.errors.n, 0);
	config_report_done(&report);
	return c;
}

/* Loads text as t.conf, which must be good. */
static inline struct config *
load_text(const char *text)
{
	put("t.conf", text);
	return load_good("t.conf");
}

/* A file's whole text; the caller frees it. */
static inline char *
slurp(const char *file)
{
	FILE *fp = fopen(file, "r");
	char *text = xcalloc(1, 1 << 20);
	size_t n;

	assert_non_null(fp);
	n = fread(text, 1, (1 << 20) - 1, fp);
	text[n] = '\0';
	fclose(fp);
	return text;
}

/*
 * Returns the option's value as rqd -T prints it; for SECTION_QUEUE that of the first
 * queue.  The caller frees it.
 */
static inline char *
printed(const struct config *c, enum section section, const char *name)
{
	const struct option *o = option_find(section, name);
	struct buf b = BUF_INIT;

	assert_non_null(o);
	option_print(o, section == SECTION_QUEUE ? (const void *)c->queues[0] : c, &b);
	(void)buf_str(&b);
	return buf_steal(&b);
}

static inline void
assert_printed(const struct config *c, enum section section, const char *name,
    const char *want)
{
	char *got = printed(c, section, name);

	assert_string_equal(got, want);
	free(got);
}

static inline void
print_to(const struct config *c, const char *file)
{
	FILE *fp = fopen(file, "w");

	assert_non_null(fp);
	config_print(c, fp);
	assert_int_equal(fclose(fp), 0);
}

int
main(void)
{
	return unit_run(fixture_setup, fixture_teardown);
}
