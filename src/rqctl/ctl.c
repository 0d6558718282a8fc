/*
 * The common part of all verbs: where the configuration is, which queue is
 * meant, how errors end, and what the operator is asked.
 *
 * Which configuration: the first of -c FILE, --server, $RQD_CONFIG, $RQD_SERVER
 * and the default file that is there; at last a Redis at 127.0.0.1:6379, as
 * rqd -q has it.  --server beside -c overrides the file's server.  With a file a
 * queue's name must be one of the file's; without one it is the key itself.
 *
 * What $RQD_OPTIONS says belongs to $RQD_CONFIG and $RQD_SERVER: a handler's daemon
 * has set them together.
 */
#include "rqctl/ctl.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/units.h"
#include "config/config_file.h"
#include "redis/reply.h"
#include "rqctl/out.h"

#define LIST_ALL	100000000L	/* more than anybody reads */
#define DEFAULT_FILE	SYSCONFDIR "/rqd.conf"

static volatile sig_atomic_t interrupted;

int
ctl_error(struct ctl *c, int status, const char *fmt, ...)
{
	struct buf line = BUF_INIT;
	char *text;
	va_list ap;

	va_start(ap, fmt);
	text = xvasprintf(fmt, ap);
	va_end(ap);
	out_escape(&line, text, strlen(text));
	buf_str(&line);
	if (c->hold) {
		if (c->held == NULL)
			c->held = buf_steal(&line);
	} else {
		fflush(stdout);
		out_progress_clear();
		fprintf(stderr, "rqctl: %s%s\n", buf_str(&line), c->note);
	}
	if (c->status == 0)
		c->status = status;
	buf_done(&line);
	free(text);
	return -1;
}

void
ctl_note(struct ctl *c UNUSED, const char *fmt, ...)
{
	struct buf line = BUF_INIT;
	char *text;
	va_list ap;

	va_start(ap, fmt);
	text = xvasprintf(fmt, ap);
	va_end(ap);
	out_escape(&line, text, strlen(text));
	fflush(stdout);
	out_progress_clear();
	fprintf(stderr, "rqctl: %s\n", buf_str(&line));
	buf_done(&line);
	free(text);
}

void
ctl_hold(struct ctl *c)
{
	c->hold = true;
}

void
ctl_forget(struct ctl *c)
{
	free(c->held);
	c->held = NULL;
	c->hold = false;
	c->status = 0;
}

bool
ctl_given(const struct ctl *c, enum opt o)
{
	return c->args.value[o] != NULL;
}

const char *
ctl_value(const struct ctl *c, enum opt o)
{
	return c->args.value[o];
}

/* A variable of the environment; NULL: it is not set, or empty. */
static const char *
variable(const char *name)
{
	const char *value = getenv(name);

	return value != NULL && value[0] != '\0' ? value : NULL;
}

/*
 * The file to read, or NULL; *server: what overrides its server, *options: lines of
 * what overrides its options, or NULL.
 */
static const char *
find_file(const struct ctl *c, const char **server, const char **options)
{
	const char *file = ctl_value(c, OPT_CONFIG);

	*server = ctl_value(c, OPT_SERVER);
	*options = NULL;
	if (file != NULL || *server != NULL)
		return file;
	file = variable("RQD_CONFIG");
	if (file == NULL)
		*server = variable("RQD_SERVER");
	if (file != NULL || *server != NULL) {
		*options = variable("RQD_OPTIONS");
		return file;
	}
	/* One that is there but may not be read is an error, not a fallback. */
	return access(DEFAULT_FILE, F_OK) == 0 || errno != ENOENT ? DEFAULT_FILE : NULL;
}

/* -o, and what stands for it. */
struct overrides {
	const char	**at;		/* what counts most last; ends with NULL */
	size_t		  n;
	char		 *server;	/* owned, as lines: at points into them */
	char		 *lines;
};

static void
add_override(struct overrides *o, const char *text)
{
	o->at = xreallocarray(o->at, o->n + 2, sizeof(o->at[0]));
	o->at[o->n++] = text;
	o->at[o->n] = NULL;
}

/* First the environment, then the command line. */
static void
overrides_init(struct overrides *o, const struct ctl *c, const char *server, const char *options)
{
	bool given = ctl_given(c, OPT_SERVER);
	char *rest, *line;
	size_t i;

	*o = (struct overrides){ .lines = xstrdup(options != NULL ? options : "") };
	if (server != NULL)
		o->server = xasprintf("redis.server=%s", server);
	if (server != NULL && !given)
		add_override(o, o->server);
	for (rest = o->lines; options != NULL && (line = strsep(&rest, "\n")) != NULL;)
		add_override(o, line);
	for (i = 0; c->args.set[i] != NULL; i++)
		add_override(o, c->args.set[i]);
	if (given)
		add_override(o, o->server);
}

static void
overrides_done(struct overrides *o)
{
	free(o->at);
	free(o->server);
	free(o->lines);
}

/* One line for each file that has errors. */
static void
say_left_out(struct ctl *c, const struct config_report *r)
{
	size_t i;

	for (i = 0; i < r->nleft_out && i < 5; i++)
		ctl_note(c, "warning: %s", r->left_out[i]);
	if (r->nleft_out > 5)
		ctl_note(c, "warning: and %zu more errors: rqd -t lists them", r->nleft_out - 5);
	if (r->nleft_out > 0)
		ctl_note(c, "warning: %zu file%s with errors %s left out", r->nfiles,
		    r->nfiles == 1 ? "" : "s", r->nfiles == 1 ? "is" : "are");
	c->left_out = r->nleft_out > 0;
}

int
ctl_configure(struct ctl *c)
{
	struct config_report report = { 0 };
	struct config_source source = { .client = true };
	const char *server, *options;
	struct overrides o;

	source.file = find_file(c, &server, &options);
	overrides_init(&o, c, server, options);
	source.overrides = o.at;
	c->config = config_load(&source, &report);
	if (c->config == NULL && report.nerrors > 1)
		ctl_error(c, EX_CONFIG, "%s (and %zu more: rqd -t lists them); "
		    "with --server ADDRESS no file is needed", report.errors[0], report.nerrors - 1);
	else if (c->config == NULL)
		ctl_error(c, EX_CONFIG, "%s; with --server ADDRESS no file is needed",
		    report.nerrors == 1 ? report.errors[0] : "the configuration cannot be read");
	else
		say_left_out(c, &report);
	config_report_done(&report);
	overrides_done(&o);
	return c->config == NULL ? -1 : 0;
}

bool
ctl_has_file(const struct ctl *c)
{
	return c->config->file[0] != '\0';
}

/* Refusals are for an operator to look at; anything else may pass. */
static int
connect_status(const char *cause)
{
	static const char *const refused[] = { "NOAUTH", "WRONGPASS", "NOPERM", "password" };
	size_t i;

	for (i = 0; i < ARRAY_LEN(refused); i++)
		if (strstr(cause, refused[i]) != NULL)
			return EX_NOPERM;
	return EX_UNAVAILABLE;
}

int
ctl_unreachable(struct ctl *c, const char *cause)
{
	const char *hint = reply_hint(cause);

	return ctl_error(c, connect_status(cause), "redis %s%s%s", cause,
	    hint != NULL ? ": " : "", hint != NULL ? hint : "");
}

int
ctl_connect(struct ctl *c)
{
	char *cause = NULL;

	if (c->client != NULL)
		return 0;
	c->client = client_open(&c->config->redis, "rqctl", &cause);
	if (c->client == NULL)
		ctl_unreachable(c, cause);
	free(cause);
	return c->client == NULL ? -1 : 0;
}

void
ctl_disconnect(struct ctl *c)
{
	client_close(c->client);
	c->client = NULL;
}

void
ctl_done(struct ctl *c)
{
	client_close(c->client);
	free(c->held);
	config_unref(c->config);
	args_done(&c->args);
}

/* The error for a name that the file does not have, naming those it has. */
static int
no_such_queue(struct ctl *c, const char *name)
{
	struct queue_config *const *q = c->config->queues;
	struct buf list = BUF_INIT;
	const char *near = NULL;
	size_t i;
	int rc;

	for (i = 0; i < c->config->nqueues; i++) {
		if (util_distance(name, q[i]->name) <= 2)
			near = q[i]->name;
		if (i < 8)
			buf_printf(&list, "%s%s", i > 0 ? ", " : "", q[i]->name);
	}
	if (i > 8)
		buf_printf(&list, " and %zu more", i - 8);
	if (c->left_out)
		rc = ctl_error(c, EX_USAGE, "there is no queue \"%s\" in %s and the files that have no "
		    "errors; with --server ADDRESS the name is taken as the key", name,
		    c->config->file);
	else if (near != NULL)
		rc = ctl_error(c, EX_USAGE, "there is no queue \"%s\" in %s; did you mean %s?",
		    name, c->config->file, near);
	else
		rc = ctl_error(c, EX_USAGE, "there is no queue \"%s\" in %s; it has: %s",
		    name, c->config->file, i > 0 ? buf_str(&list) : "none");
	buf_done(&list);
	return rc;
}

static void
target_init(struct target *t, const struct queue_config *cfg, const char *name)
{
	t->name = name;
	t->cfg = cfg;
	t->kind = cfg != NULL ? cfg->kind : KIND_DEFAULT;
	keys_init(&t->keys, cfg != NULL ? cfg->key : name);
	if (cfg != NULL)
		keys_set_group(&t->keys, cfg->consumer_group);
}

int
ctl_target(struct ctl *c, const char *name, struct target *t)
{
	const struct queue_config *cfg = config_queue(c->config, name);

	if (name[0] == '\0')
		return ctl_error(c, EX_USAGE, "the queue's name is empty");
	if (cfg == NULL && ctl_has_file(c))
		return no_such_queue(c, name);
	target_init(t, cfg, name);
	return 0;
}

void
ctl_target_done(struct target *t)
{
	keys_done(&t->keys);
}

int
ctl_keeping_target(struct ctl *c, const char *name, const char *what, struct target *t)
{
	if (ctl_target(c, name, t) == -1)
		return -1;
	if (kind_has(t->kind, TRAIT_LEASES))
		return 0;
	ctl_target_done(t);
	return ctl_error(c, EX_USAGE, "%s does not serve queues of kind %s, as %s is: their "
	    "messages leave Redis when they are taken", what, kind_name(t->kind), name);
}

int
ctl_list_target(struct ctl *c, const char *name, const char *what, struct target *t)
{
	if (ctl_target(c, name, t) == -1)
		return -1;
	if (kind_waits(t->kind))
		return 0;
	ctl_target_done(t);
	return ctl_error(c, EX_USAGE, "%s does not serve queues of kind %s, as %s is", what,
	    kind_name(t->kind), name);
}

int
ctl_push_target(struct ctl *c, const char *name, struct target *t)
{
	if (ctl_target(c, name, t) == -1)
		return -1;
	if (kind_source(t->kind) == SOURCE_CHANNEL)
		return 0;
	ctl_target_done(t);
	return ctl_list_target(c, name, "push", t);
}

struct target *
ctl_targets(struct ctl *c, int first, size_t *n)
{
	size_t given = c->args.nwords > first ? (size_t)(c->args.nwords - first) : 0;
	size_t i, room = given > 0 ? given : c->config->nqueues;
	struct target *t = xcalloc(room + 1, sizeof(*t));

	for (i = 0; i < room; i++) {
		if (given == 0)
			target_init(&t[i], c->config->queues[i], c->config->queues[i]->name);
		else if (ctl_target(c, c->args.words[(size_t)first + i], &t[i]) == -1) {
			ctl_targets_free(t, i);
			return NULL;
		}
	}
	*n = room;
	return t;
}

void
ctl_targets_free(struct target *t, size_t n)
{
	while (n > 0)
		ctl_target_done(&t[--n]);
	free(t);
}

int
ctl_count(struct ctl *c, enum opt o, long min, long max, long *ret)
{
	const char *text = ctl_value(c, o);
	int64_t n;

	if (text == NULL)
		return 0;
	if (units_parse_int(text, &n) == -1 || n < min || n > max)
		return ctl_error(c, EX_USAGE, "--%s: \"%s\" is not a number from %ld to %ld",
		    opt_table[o].name, text, min, max);
	*ret = (long)n;
	return 0;
}

bool
ctl_is_list(const struct ctl *c)
{
	return (c->args.verb->options & OPT(COUNT)) != 0;
}

int
ctl_list_count(struct ctl *c, long *ret)
{
	if (ctl_given(c, OPT_ALL) && ctl_given(c, OPT_COUNT))
		return ctl_error(c, EX_USAGE, "--all does not go together with --count");
	if (ctl_given(c, OPT_ALL) || ctl_given(c, OPT_JSON))
		*ret = LIST_ALL;
	return ctl_count(c, OPT_COUNT, 1, LIST_ALL, ret);
}

void
ctl_list_cut(struct ctl *c, int64_t shown, int64_t total, const char *what)
{
	char n[OUT_NUMBER_MAX], of[OUT_NUMBER_MAX];

	if (ctl_given(c, OPT_JSON) || (total >= 0 && total <= shown))
		return;
	out_number(shown, n);
	if (total > shown)
		ctl_note(c, "%s of %s %s; --all for all", n, out_number(total, of), what);
	else
		ctl_note(c, "the first %s %s; --all for all", n, what);
}

int
ctl_duration(struct ctl *c, enum opt o, usec_t *ret)
{
	const char *text = ctl_value(c, o);

	if (text == NULL)
		return 0;
	if (units_parse_duration(text, ret) == -1)
		return ctl_error(c, EX_USAGE, "--%s: \"%s\" is not a duration: 30s, 5m, 2h, 1d",
		    opt_table[o].name, text);
	return 0;
}

/* Reads the answer to a question; the end of input is a no. */
static bool
answer_is_yes(void)
{
	char line[16];

	if (fgets(line, sizeof(line), stdin) == NULL) {
		fputc('\n', stderr);
		return false;
	}
	return line[0] == 'y' || line[0] == 'Y';
}

bool
ctl_confirm(struct ctl *c, const char *fmt, ...)
{
	struct buf line = BUF_INIT;
	char *what;
	va_list ap;
	bool yes;

	if (ctl_given(c, OPT_YES))
		return true;
	va_start(ap, fmt);
	what = xvasprintf(fmt, ap);
	va_end(ap);
	out_escape(&line, what, strlen(what));
	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
		ctl_error(c, EX_USAGE, "to %s say -y", what);
		yes = false;
	} else {
		fprintf(stderr, "%s? [y/N] ", buf_str(&line));
		yes = answer_is_yes();
		if (!yes && c->status == 0)
			c->status = EX_NOTHING;
	}
	buf_done(&line);
	free(what);
	return yes;
}

static void
on_signal(int signo)
{
	(void)signo;
	interrupted = 1;
}

void
ctl_catch_signals(void)
{
	struct sigaction sa = { .sa_handler = on_signal };

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
}

bool
ctl_interrupted(void)
{
	return interrupted != 0;
}

bool
ctl_sleep(usec_t usec)
{
	usec_t end = clock_mono() + usec, left;
	struct timespec ts;

	while (!interrupted && (left = end - clock_mono()) > 0) {
		/* A signal just before the sleep is not missed for long. */
		if (left > 100 * MSEC)
			left = 100 * MSEC;
		ts = (struct timespec){ left / SEC, left % SEC * 1000 };
		nanosleep(&ts, NULL);
	}
	return interrupted == 0;
}
