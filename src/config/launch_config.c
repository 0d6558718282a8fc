/*
 * The configuration from the launcher; see launch_config.h.
 *
 * The report is lines, "E" or "W" before each.  The text begins with a comment that
 * holds its hash: both processes make sure that they have the same.  A comment for each queue
 * follows, "# LINE FILE": the main process tells operators where a queue stands.
 */
#include "config/launch_config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/listen_socket.h"
#include "base/log.h"
#include "base/trust.h"
#include "redis/secret.h"

#define HASH_MARK	"# "
#define PLACE_MARK	"# "

/* -- in the process that reads the files ---------------------------------------------------- */

static void
write_report(FILE *f, const struct config_report *report)
{
	for (size_t i = 0; i < report->errors.n; i++)
		fprintf(f, "E%s\n", report->errors.v[i]);
	for (size_t i = 0; i < report->warnings.n; i++)
		fprintf(f, "W%s\n", report->warnings.v[i]);
}

static FILE *
open_stream(int fd)
{
	FILE *f = fdopen(fd, "w");

	if (f == NULL)
		fatal_os("cannot write a configuration: %s", strerror(errno));
	return f;
}

/*
 * Writes the places of the queues; leaves out a file's name that would not stay in its
 * comment.
 */
static void
write_places(FILE *f, const struct config *config)
{
	const struct queue_config *q;

	for (size_t i = 0; i < config->nqueues; i++) {
		q = config->queues[i];
		fprintf(f, PLACE_MARK "%d %s\n", q->line,
		    strpbrk(q->file, "\r\n") == NULL ? q->file : "");
	}
}

static int
load(int text, int report, void *arg)
{
	struct config_report found = { 0 };
	struct config *config = config_load(arg, &found);
	FILE *t = open_stream(text), *r = open_stream(report);
	char hash[CONFIG_HASH_MAX];
	int rc = config != NULL ? 0 : -1;

	write_report(r, &found);
	if (config != NULL) {
		config_print_whole_hash(config, hash);
		fprintf(t, HASH_MARK "%s\n", hash);
		write_places(t, config);
		config_print(config, t);
	}
	if (fclose(r) == EOF || fclose(t) == EOF)
		rc = -1;
	config_report_done(&found);
	config_unref(config);
	return rc;
}

/* -- in both ---------------------------------------------------------------------------------- */

/* The whole file from its beginning; the descriptor's position is shared. */
static int
read_all(int fd, struct buf *b)
{
	if (lseek(fd, 0, SEEK_SET) == -1 || buf_read(b, fd, SIZE_MAX) == -1)
		return -1;
	(void)buf_str(b);
	return 0;
}

/* Replaces the queues' places in this text by those in the files. */
static void
read_places(struct config *config, const char *text)
{
	const char *p = text, *end;
	struct queue_config *q;
	char *name;

	for (size_t i = 0; i < config->nqueues; i++) {
		if ((p = strchr(p, '\n')) == NULL ||
		    strncmp(++p, PLACE_MARK, strlen(PLACE_MARK)) != 0)
			return;
		q = config->queues[i];
		q->line = (int)strtol(p + strlen(PLACE_MARK), &name, 10);
		name += *name == ' ';
		end = name + strcspn(name, "\n");
		free((char *)(uintptr_t)q->file);
		q->file = xstrndup(name, (size_t)(end - name));
	}
}

static struct config *
parse(const struct config_source *source, const struct buf *b)
{
	struct config_source from = {
		.file = source->file, .overrides = source->overrides, .client = true,
		.text = b->data, .text_len = b->len
	};
	struct config_report ignored = { 0 };
	struct config *config = config_load(&from, &ignored);
	char hash[CONFIG_HASH_MAX];

	config_report_done(&ignored);
	if (config != NULL)
		config_print_whole_hash(config, hash);
	if (config != NULL && strncmp(b->data + strlen(HASH_MARK), hash, strlen(hash)) == 0) {
		read_places(config, b->data);
		return config;
	}
	config_unref(config);
	return NULL;
}

static struct config *
read_config(int text, void *arg)
{
	struct buf b = BUF_INIT;
	struct config *config = read_all(text, &b) == 0 && b.len > 0 ? parse(arg, &b) : NULL;

	buf_done(&b);
	return config;
}

/* -- in the launcher: what the main process may not open ------------------- */

static struct listen_socket made = LISTEN_SOCKET_INIT;	/* its descriptor is the main process' */

static int
open_log(const struct config *config)
{
	const char *path = config->log.target;

	errno = EINVAL;
	if (path[0] != '/' || trust_folders(path, 0, NULL) == -1)
		return -1;
	return log_open_file(path);
}

static void
unlisten(void)
{
	listen_socket_close(&made);
}

/* Makes the listening socket, and removes the file of an earlier one at another place. */
static int
make_listener(const struct config *config)
{
	const char *where = config->http.listen;
	struct listen_socket l;
	int fd;

	errno = EINVAL;
	if (strncmp(where, "unix:", 5) != 0 || trust_folders(where + 5, 0, NULL) == -1 ||
	    listen_socket_open(&l, where, NULL) == -1)
		return -1;
	unlisten();
	fd = l.fd;
	l.fd = -1;
	made = l;
	return fd;
}

const struct launcher_ops launch_config_ops = {
	.load = load, .read = read_config, .open_log = open_log, .listen = make_listener,
	.unlisten = unlisten,
};

/* -- in the main process --------------------------------------------------- */

static void
read_report(int fd, struct config_report *r)
{
	struct buf b = BUF_INIT;
	const char *p, *nl;

	if (read_all(fd, &b) == 0) {
		for (p = b.data; p != NULL && (nl = strchr(p, '\n')) != NULL; p = nl + 1) {
			if (*p == 'E' || *p == 'W')
				lines_add(*p == 'E' ? &r->errors : &r->warnings,
				    xstrndup(p + 1, (size_t)(nl - p - 1)));
		}
	}
	buf_done(&b);
}

struct config *
launch_config_take(const struct config_source *source, struct launcher_loaded *loaded,
    struct config_report *report)
{
	struct config *config = NULL;

	if (loaded->report != -1)
		read_report(loaded->report, report);
	if (loaded->text != -1 && (config = read_config(loaded->text,
	    (void *)(uintptr_t)source)) != NULL)
		config->generation = loaded->generation;
	if (config == NULL && report->errors.n == 0)
		lines_add(&report->errors,
		    xasprintf("the launcher cannot read the configuration: %s",
		    loaded->error != 0 ? strerror(loaded->error) : "no reason given"));
	fd_close(&loaded->text);
	fd_close(&loaded->report);
	return config;
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

static const struct config *in_force;	/* borrowed; names the log and the socket */

static int
lend_secret(const char *path, void *arg)
{
	return launcher_open(arg, path);
}

/*
 * Asks the launcher for the log.  It may be an earlier configuration's, whose path the
 * launcher no longer opens.
 */
static int
lend_log(const char *path, void *arg)
{
	if (strcmp(path, in_force->log.target) == 0)
		return launcher_open_log(arg, in_force->generation);
	errno = EACCES;
	return -1;
}

static int
lend_listener(const char *where, void *arg)
{
	if (strcmp(where, in_force->http.listen) == 0)
		return launcher_listen(arg, in_force->generation);
	errno = EACCES;
	return -1;
}

static void
give_back_listener(void *arg)
{
	launcher_unlisten(arg);
}

void
launch_config_borrow(struct launcher *l, const struct config *config)
{
	in_force = config;
	secret_set_opener(l != NULL ? lend_secret : NULL, l);
	log_set_opener(l != NULL ? lend_log : NULL, l);
	listen_socket_set_opener(l != NULL ? lend_listener : NULL,
	    l != NULL ? give_back_listener : NULL,
	    l);
}

/*
 * The launcher has ended, and its guardian ends the handlers: the daemon ends, to be
 * started again.
 */
void
launch_config_lost(void *arg UNUSED)
{
	log_event(LOG_LV_ERROR, "stopped", NULL,
	    LF_STR("error", "the launcher died: rqd cannot start handlers without it"));
	log_close();
	exit(EX_OSERR);
}
