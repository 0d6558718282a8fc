/*
 * Fuzzes the reader of configurations: the pass over the text, libconfuse, options,
 * checks, printing.  An accepted configuration must print as text that is accepted, too,
 * and has the same hash.
 */
#include "fuzz.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/load.h"

FUZZ_MAIN("config")

/* Loads a file by its descriptor. */
static struct config *
load(int fd)
{
	struct config_report report = { 0 };
	struct config_source source = { .client = true };
	struct config *c;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	source.file = path;
	c = config_load(&source, &report);
	if ((c == NULL) != (report.errors.n > 0))
		abort();
	config_report_done(&report);
	return c;
}

/* Returns the descriptor of a file in memory with these bytes. */
static int
make_file(const uint8_t *data, size_t size)
{
	int fd = memfd_create("config", MFD_CLOEXEC);

	if (fd == -1 || fchmod(fd, 0600) == -1 || write(fd, data, size) != (ssize_t)size)
		abort();
	return fd;
}

static void
print_again(const struct config *c)
{
	char *text = NULL;
	size_t len = 0;
	FILE *fp = open_memstream(&text, &len);
	struct config *d;
	int fd;

	if (fp == NULL)
		abort();
	config_print(c, fp);
	fclose(fp);
	fd = make_file((const uint8_t *)text, len);
	d = load(fd);
	if (d == NULL || strcmp(c->hash, d->hash) != 0)
		abort();
	config_unref(d);
	close(fd);
	free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config *c;
	int fd;

	/* An include would read files of this machine. */
	if (memmem(data, size, "include", 7) != NULL)
		return 0;
	fd = make_file(data, size);
	c = load(fd);
	close(fd);
	if (c != NULL)
		print_again(c);
	config_unref(c);
	return 0;
}
