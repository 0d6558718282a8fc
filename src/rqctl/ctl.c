/*
 * The common part of all verbs: the configuration, the connection, errors, questions,
 * and the verb's queue.
 *
 * rqctl reads the first of -c FILE, --server, $RQD_CONFIG, $RQD_SERVER and the default
 * file.  If there is none, it uses Redis at 127.0.0.1:6379, as rqd -q does.  --server
 * together with -c overrides the file's server.
 *
 * $RQD_OPTIONS counts only with $RQD_CONFIG and $RQD_SERVER, because rqd sets all of
 * them for its handlers.
 */
#include "rqctl/ctl.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/units.h"
#include "config/load.h"
#include "policy/shard_keys.h"
#include "redis/reply.h"
#include "redis/slots.h"
#include "rqctl/ask.h"
#include "status/fleet.h"

#define DEFAULT_FILE	SYSCONFDIR "/rqd.conf"
#define NAMED		8	/* queues that the error for an unknown name lists */

static volatile sig_atomic_t interrupted;

int
ctl_put_error(struct ctl *c, int status, char *line)
{
	if (!c->hold)
		ctl_put_note(xasprintf("%s%s", line, c->note));
	else if (c->held == NULL)
		c->held = xstrdup(line);
	if (c->status == 0)
		c->status = status;
	free(line);
	return -1;
}

void
ctl_put_note(char *line)
{
	fflush(stdout);
	out_progress_clear();
	fprintf(stderr, "rqctl: %s\n", line);
	free(line);
}

void
ctl_put_result(const struct ctl *c, json_t *o, char *line)
{
	if (ctl_given(c, OPT_JSON))
		out_json(json_incref(o), c->args.verb->flags & VERB_LINES);
	else
		puts(line);
	json_decref(o);
	free(line);
}

void
ctl_forget(struct ctl *c)
{
	xreplace(&c->held, NULL);
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
	return or_empty(c->args.value[o]);
}

/* A variable of the environment; NULL: not set, or blank. */
static const char *
variable(const char *name)
{
	const char *value = getenv(name);

	if (value == NULL || value[strspn(value, " \t\r\n")] == '\0')
		return NULL;
	return value;
}

void
ctl_add_lines(struct words *w, const char *text)
{
	size_t n;

	for (; *text != '\0'; text += n + (text[n] == '\n')) {
		n = strcspn(text, "\n");
		if (n > 0)
			words_own(w, xstrndup(text, n), n);
	}
}

void
ctl_make_plain(char *text, const char *others)
{
	for (; *text != '\0'; text++)
		if (!isalnum((unsigned char)*text) && strchr(others, *text) == NULL)
			*text = '_';
}

void
ctl_note_unknown(const struct ctl *c)
{
	unsigned flags = c->args.verb->flags;
	bool buries = (flags & VERB_BURIES) != 0 || ctl_given(c, OPT_LETTER);

	if (c->target.known || c->target.name == NULL || c->status != 0)
		return;
	if ((flags & VERB_ORDER) != 0)
		ctl_note("no configuration is read and no daemon has served %s: rqctl takes "
		    "its right end for the oldest", c->target.name);
	else if (buries)
		ctl_note("no configuration is read and no daemon has served %s: its on_dead is "
		    "not known, nothing is announced", c->target.name);
}

/*
 * Reports the first error of the configuration; file NULL: none was read.  If
 * the error is in a file, --server may help; if it is in -o, it cannot.
 */
static void
report_config(struct ctl *c, const struct config_report *report,
    const char *file)
{
	const char *server = c->args.value[OPT_SERVER];
	const char *error = "the configuration cannot be read";
	struct buf more = BUF_INIT;
	bool line;

	if (report->errors.n > 0)
		error = report->errors.v[0];
	line = strncmp(error, "-o: ", 4) == 0 ||
	    strncmp(error, "RQD_SERVER: ", 12) == 0;
	if (line && server != NULL && c->args.set[0] == NULL) {
		ctl_error(c, EX_CONFIG, "--server: %s", error + 4);
		return;
	}
	if (report->errors.n > 1)
		buf_printf(&more, " (and %zu more: rqd -t%s%s lists them)",
		    report->errors.n - 1, text_if(file != NULL, " -c "),
		    or_empty(file));
	if (!line)
		buf_puts(&more, "; with --server ADDRESS no file is needed");
	ctl_error(c, EX_CONFIG, "%s%s", error, buf_str(&more));
	buf_done(&more);
}

int
ctl_configure(struct ctl *c)
{
	struct config_report report = { 0 };
	struct config_source source = { .client = true, .file = c->args.value[OPT_CONFIG] };
	const char *server = c->args.value[OPT_SERVER], *options = NULL;
	unsigned serves = c->args.verb->flags & VERB_TARGET;
	struct words overrides = { .n = 0 };

	/* Which file, and which server instead of the file's: see above. */
	if (source.file == NULL && server == NULL) {
		source.file = variable("RQD_CONFIG");
		if (source.file != NULL || variable("RQD_SERVER") != NULL)
			options = variable("RQD_OPTIONS");
		/* A file that exists but may not be read is an error later. */
		else if (access(DEFAULT_FILE, F_OK) == 0 || errno != ENOENT)
			source.file = DEFAULT_FILE;
	}

	/* What overrides the file: of the environment, then of the command line. */
	ctl_add_lines(&overrides, or_empty(options));
	for (size_t i = 0; c->args.set[i] != NULL; i++)
		words_add(&overrides, c->args.set[i]);
	if (server != NULL)
		words_fmt(&overrides, "redis.server=%s", server);
	words_mem(&overrides, NULL, 0);
	source.overrides = overrides.v;
	c->config = config_load(&source, &report);

	if (c->config == NULL)
		report_config(c, &report, source.file);
	config_report_done(&report);
	words_done(&overrides);
	if (c->config == NULL)
		return -1;
	if (serves == 0 || c->args.nwords == 0)
		return 0;
	if (target_find(c, c->args.words[0], serves, &c->target) == -1)
		return -1;
	/* target_find() may have connected before the queue was known. */
	if (c->client != NULL)
		ask_master_of(c, NULL);
	return 0;
}

bool
ctl_has_file(const struct ctl *c)
{
	return c->config->file[0] != '\0';
}

bool
ctl_is_cluster(const struct ctl *c)
{
	return c->config->redis.clusters[0] != NULL;
}

int
ctl_unreachable(struct ctl *c, const char *cause)
{
	static const struct { const char *text; int status; } known[] = {
		{ "NOAUTH", EX_NOPERM }, { "WRONGPASS", EX_NOPERM }, { "NOPERM", EX_NOPERM },
		{ "password", EX_NOPERM }, { "BUSY ", EX_TEMPFAIL }, { "LOADING ", EX_TEMPFAIL },
		{ "MASTERDOWN ", EX_TEMPFAIL }, { "CLUSTERDOWN ", EX_TEMPFAIL },
		{ "max number of clients", EX_TEMPFAIL },
	};
	const char *hint = reply_hint(cause);
	int status = EX_UNAVAILABLE;

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (strstr(cause, known[i].text) != NULL)
			status = known[i].status;
	return ctl_error(c, status, "redis %s%s%s", cause,
	    text_if(hint != NULL, ": "), or_empty(hint));
}

int
ctl_connect(struct ctl *c)
{
	char *cause = NULL;
	int rc = 0;

	if (c->client != NULL)
		return 0;
	c->client = sync_open(&c->config->redis, "rqctl", &cause);
	if (c->client == NULL)
		rc = ctl_unreachable(c, cause);
	else if (c->target.name != NULL)
		sync_choose_key(c->client, c->target.keys.name[KEY_QUEUE]);
	free(cause);
	return rc;
}

void
ctl_disconnect(struct ctl *c)
{
	sync_close(c->client);
	c->client = NULL;
}

void
ctl_done(struct ctl *c)
{
	sync_close(c->client);
	free(c->held);
	target_done(&c->target);
	config_unref(c->config);
	args_done(&c->args);
}

int
ctl_count(struct ctl *c, enum opt o, long max, long *ret)
{
	const char *text = ctl_value(c, o);
	int64_t n;

	if (!ctl_given(c, o))
		return 0;
	if (units_parse_int(text, &n) == -1 || n < 1 || n > max)
		return ctl_error(c, EX_USAGE, "--%s: \"%s\" is not a number from 1 to %ld",
		    opt_table[o].name, text, max);
	*ret = (long)n;
	return 0;
}

int
ctl_duration(struct ctl *c, enum opt o, usec_t *ret)
{
	const char *text = ctl_value(c, o);

	if (!ctl_given(c, o))
		return 0;
	if (units_parse_duration(text, ret) == -1)
		return ctl_error(c, EX_USAGE,
		    "--%s: \"%s\" is not a duration: write 30s, 5m, 2h or 1d",
		    opt_table[o].name, text);
	return 0;
}

int
ctl_wrong(struct ctl *c, enum opt o, char *cause)
{
	ctl_error(c, EX_USAGE, "--%s: %s", opt_table[o].name, cause);
	free(cause);
	return -1;
}

bool
ctl_ask(struct ctl *c, char *what)
{
	bool yes = ctl_given(c, OPT_YES);
	char line[16];

	if (!yes && (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))) {
		ctl_error(c, EX_USAGE, "cannot ask without a terminal: add -y to %s", what);
	} else if (!yes) {
		fprintf(stderr, "%s? [y/N] ", what);
		/* The end of input is a no. */
		if (fgets(line, sizeof(line), stdin) == NULL) {
			line[0] = '\0';
			(void)fputc('\n', stderr);
		}
		yes = line[0] == 'y' || line[0] == 'Y';
		if (!yes && c->status == 0)
			c->status = EX_NOTHING;
	}
	free(what);
	return yes;
}

static void
on_signal(int signo UNUSED)
{
	interrupted = 1;
}

void
ctl_catch_signals(void)
{
	struct sigaction sa = { .sa_handler = on_signal }, old;

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	/* Under nohup(1) the work continues when the terminal is closed. */
	if (sigaction(SIGHUP, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &sa, NULL);
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

	/* Short sleeps: a signal may come just before usleep(). */
	while (!interrupted && (left = end - clock_mono()) > 0)
		(void)usleep((useconds_t)int64_min(left, 100 * MSEC));
	return interrupted == 0;
}

/* -- queues ----------------------------------------------------------------------- */

static int
no_such_queue(struct ctl *c, const char *name)
{
	struct queue_config *const *q = c->config->queues;
	struct nearest near = { name, 3, NULL };
	const char *file = c->config->file;
	struct buf list = BUF_INIT;
	size_t i;
	int rc;

	for (i = 0; i < c->config->nqueues; i++) {
		util_nearest(&near, q[i]->name);
		if (i < NAMED)
			buf_printf(&list, "%s%s", text_if(i > 0, ", "),
			    q[i]->name);
	}
	if (i == 0)
		buf_puts(&list, "none");
	if (i > NAMED)
		buf_printf(&list, " and %zu more", i - NAMED);
	if (near.best != NULL)
		rc = ctl_error(c, EX_USAGE, "there is no queue \"%s\" in %s; did you mean %s?",
		    name, file, near.best);
	else
		rc = ctl_error(c, EX_USAGE, "there is no queue \"%s\" in %s; it has: %s",
		    name, file, buf_str(&list));
	buf_done(&list);
	return rc;
}

size_t
target_shards(const struct target *t)
{
	if (t->cfg == NULL)
		return t->nkeys - 1;
	if (t->cfg->shards <= 1)
		return 0;
	return (size_t)t->cfg->shards;
}

bool
target_select(struct target *t, size_t i)
{
	if (i < t->nkeys)
		t->keys = t->all[i];
	else
		target_unselect(t);
	return i < t->nkeys;
}

void
target_unselect(struct target *t)
{
	t->keys = t->all[t->nkeys - 1];
}

int64_t
target_count(struct ctl *c, struct target *t, const char *command, enum key key)
{
	int64_t sum = 0, n = 0;

	EACH_KEY(i, t) {
		n = ask_number(ask(c, "%s %s", command, t->keys.name[key]));
		if (n == -1)
			break;
		sum += n;
	}
	target_unselect(t);
	if (n == -1)
		return -1;
	return sum;
}

/* A key, as long as nothing else is known about it. */
static void
target_set_key(struct target *t, const char *key, int64_t shards)
{
	char **keys = shard_keys_all(key, shards);

	t->kind = KIND_DEFAULT;
	t->id = xstrdup("id");
	t->group_by = xstrdup("");
	for (size_t i = 0; keys != NULL && keys[i] != NULL; i++)
		keys_init(APPEND(t->all, t->nkeys), keys[i]);
	util_free_list(keys);
	if (t->nkeys == 0)
		keys_init(APPEND(t->all, t->nkeys), key);
}

static void
target_set_config(struct target *t, const struct queue_config *cfg)
{
	struct keys *last;

	t->cfg = cfg;
	t->known = true;
	t->kind = cfg->kind;
	t->left = config_pops_left(cfg);
	t->id = xstrdup(cfg->id);
	t->group_by = xstrdup(cfg->group_by);
	if (cfg->dead_key != NULL) {
		xreplace(&t->dead_key, cfg->dead_key);
		xreplace(&t->dead_tell, cfg->dead_tell);
	}
	for (size_t i = 0; i < config_key_count(cfg); i++)
		keys_init(APPEND(t->all, t->nkeys), config_key_at(cfg, i));
	last = &t->all[t->nkeys - 1];
	keys_set_group(last, cfg->consumer_group);
	keys_set_delayed(last, cfg->delayed_key);
}

void
target_init(struct target *t, const struct queue_config *cfg, const char *key,
    int64_t shards)
{
	*t = (struct target){
		.dead_key = xstrdup(""), .dead_tell = xstrdup("")
	};
	if (cfg != NULL)
		target_set_config(t, cfg);
	else
		target_set_key(t, key, shards);
	t->source = kind_source(t->kind);
	target_unselect(t);
	t->key = t->keys.name[KEY_QUEUE];
	t->name = t->key;
	if (cfg != NULL)
		t->name = cfg->name;
}

void
target_told(struct target *t, const char *key, const json_t *told)
{
	const char *id = fleet_text(told, "id"), *tell = fleet_text(told, "dead_tell");

	target_init(t, NULL, key, fleet_count(told, "shards"));
	t->known = told != NULL;
	t->kind = fleet_kind(told);
	t->source = kind_source(t->kind);
	t->left = strcmp(fleet_text(told, "pop"), "left") == 0;
	if (id[0] != '\0')
		xreplace(&t->id, id);
	xreplace(&t->group_by, fleet_text(told, "group_by"));
	/* The command goes to Redis, and everybody may write to the index. */
	if (strncmp(tell, "LPUSH:", 6) == 0 || strncmp(tell, "RPUSH:", 6) == 0) {
		xreplace(&t->dead_key, fleet_text(told, "dead_key"));
		xreplace(&t->dead_tell, tell);
	}
	keys_set_group(&t->all[t->nkeys - 1], fleet_text(told, "consumer_group"));
	keys_set_delayed(&t->all[t->nkeys - 1], fleet_text(told, "delayed_key"));
	target_unselect(t);
}

int
target_add_dead_key(const struct target *t, struct words *w)
{
	if (t->dead_tell[0] == '\0')
		return 0;
	words_mem(w, t->dead_key, strlen(t->dead_key));
	return 1;
}

bool
target_is_elsewhere(const struct target *t)
{
	return t->cfg != NULL && !config_consumes(t->cfg);
}

void
target_done(struct target *t)
{
	while (t->nkeys > 0)
		keys_done(&t->all[--t->nkeys]);
	free(t->all);
	free(t->id);
	free(t->group_by);
	free(t->dead_key);
	free(t->dead_tell);
	*t = (struct target){ .nkeys = 0 };
}

/*
 * Takes what daemons have written about this key into the index of queues; the latest counts.
 * Returns 0, even if they have written nothing or Redis denies it; -1 after an error was
 * reported.
 */
static int
ask_told(struct ctl *c, const char *key, struct target *t)
{
	json_t *text = json_string(key), *member, *told = NULL;
	char *quoted = json_dumps(text, JSON_ENCODE_ANY | JSON_COMPACT);
	const struct redisReply *list;
	struct redisReply *reply;
	double at, latest = -1;
	struct buf match = BUF_INIT;
	char cursor[24] = "0";
	const char *next;

	/* Mistakes in the arguments come first: the verb reports that Redis is down. */
	if (c->client == NULL)
		c->client = sync_open(&c->config->redis, "rqctl", NULL);
	/* A member begins with its key: see heartbeat.c. */
	buf_puts(&match, "{\"key\":");
	for (const char *p = quoted; p != NULL && *p != '\0'; p++) {
		if (strchr("*?[]\\", *p) != NULL)
			buf_addc(&match, '\\');
		buf_addc(&match, *p);
	}
	buf_puts(&match, ",*");
	while (c->client != NULL) {
		reply = ask_any(c, "ZSCAN %s %s MATCH %s COUNT 20000", KEYS_QUEUES, cursor,
		    buf_str(&match));
		list = reply_at(reply, 1);
		for (size_t i = 0; i + 1 < reply_len(list); i += 2) {
			member = fleet_member(reply_at(list, i));
			at = reply_double_at(list, i + 1);
			if (at > latest && strcmp(fleet_text(member, "key"), key) == 0) {
				latest = at;
				json_decref(told);
				told = json_incref(member);
			}
			json_decref(member);
		}
		next = "0";
		if (list != NULL)
			next = reply_str_at(reply, 0);
		snprintf(cursor, sizeof(cursor), "%s", next);
		reply_free(reply);
		if (strcmp(cursor, "0") == 0)
			break;
	}
	target_told(t, key, told);
	json_decref(told);
	json_decref(text);
	free(quoted);
	buf_done(&match);
	if (c->status != 0)
		return -1;
	return 0;
}

int
target_find(struct ctl *c, const char *name, unsigned serves, struct target *t)
{
	const struct queue_config *cfg = config_queue(c->config, name);
	const char *why = "";

	memset(t, 0, sizeof(*t));
	if (name[0] == '\0')
		return ctl_error(c, EX_USAGE, "the name of the queue is empty");
	if (cfg == NULL && ctl_has_file(c))
		return no_such_queue(c, name);
	if (cfg != NULL)
		target_init(t, cfg, name, 0);
	else if (serves == VERB_ANY)
		target_told(t, name, NULL);
	else if (ask_told(c, name, t) == -1)
		return -1;
	if (cfg == NULL && ctl_is_cluster(c) && !slot_has_tag(name, strlen(name)))
		return ctl_error(c, EX_USAGE, "the key %s has no hash tag, and on a cluster all "
		    "keys of a queue must be in one slot: such as {%s}", name, name);
	if (serves == 0 || serves == VERB_ANY || kind_has(t->kind, TRAIT_LEASES) ||
	    (kind_waits(t->kind) && serves != VERB_KEEPING) ||
	    (t->source == SOURCE_CHANNEL && serves == VERB_PUSHES && cfg != NULL))
		return 0;
	if (serves == VERB_KEEPING)
		why = ": their messages leave Redis when they are taken";
	return ctl_error(c, EX_USAGE, "%s does not serve queues of kind %s, as %s is%s",
	    c->args.verb->name, kind_name(t->kind), name, why);
}

struct target *
targets_find(struct ctl *c, size_t *n)
{
	size_t given = (size_t)c->args.nwords, i;
	struct target *t;

	*n = given;
	if (given == 0)
		*n = c->config->nqueues;
	t = xcalloc(*n + 1, sizeof(*t));
	for (i = 0; i < *n; i++) {
		if (given == 0)
			target_init(&t[i], c->config->queues[i], NULL, 0);
		else if (target_find(c, c->args.words[i], 0, &t[i]) == -1) {
			targets_free(t, i);
			return NULL;
		}
	}
	return t;
}

void
targets_free(struct target *t, size_t n)
{
	while (n > 0)
		target_done(&t[--n]);
	free(t);
}
