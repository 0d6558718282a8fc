/*
 * The loader: from a source to a configuration and a report.
 *
 *	1  files, with what they include: settings, by option (config_include.c)
 *	2  the command line: -o replaces, -q adds a queue
 *	3  values into structs: a queue's own, else of defaults { }, else the table's
 *	4  what must be right together (config_check.c)
 *
 * A wrong value is reported and its default is taken, so that all steps run
 * whatever is wrong; at the end any error makes the result NULL.
 */
#include "config/config_file.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"
#include "config/config_load.h"

/* -- settings to structs ---------------------------------------------------------- */

static const struct place *
value_place(const struct setting *s, size_t i, struct place *at)
{
	*at = s->at;
	if (i < s->n)
		at->line = s->lines[i];
	return at;
}

/* Reports a string where a list is needed: {"/bin/sh", "-c"}. */
static void
not_in_braces(struct loader *l, const struct setting *s)
{
	struct buf b = BUF_INIT;
	char *copy = xstrdup(s->values[0]), *rest = copy, *word;

	while ((word = strsep(&rest, " \t\n")) != NULL) {
		if (*word == '\0')
			continue;
		buf_puts(&b, b.len > 0 ? ", " : "");
		option_print_string(word, &b);
	}
	finding_error(&l->findings, &s->at, "%s is a list, and no shell takes it apart: "
	    "write {%.200s}", s->option->name, buf_str(&b));
	buf_done(&b);
	free(copy);
}

void
config_apply(struct loader *l, struct setting *s, void *base)
{
	struct place at;
	char *cause = NULL;
	size_t bad;

	if (s->bad)
		return;
	if ((s->option->flags & OPTION_BRACES) != 0 && !s->list) {
		not_in_braces(l, s);
		s->bad = true;
	} else if (option_set(s->option, base, s->values, s->n, &bad, &cause) == -1) {
		finding_error(&l->findings, value_place(s, bad, &at), "%s", cause);
		free(cause);
		s->bad = true;
	}
}

static void
build_globals(struct loader *l)
{
	const struct option *o;

	for (o = option_next(NULL); o != NULL; o = option_next(o)) {
		struct setting *s = l->given[option_index(o)];

		if (section_has_title(o->section))
			continue;
		option_set_default(o, l->config);
		if (s != NULL)
			config_apply(l, s, l->config);
	}
}

/* An option of another kind or mode stands in the queue itself. */
static void
check_applies(struct loader *l, const struct draft *d)
{
	const struct option *o;

	for (o = option_next(NULL); o != NULL; o = option_next(o)) {
		const struct setting *s = d->own[option_index(o)];

		if (s == NULL || option_applies(o, d->queue))
			continue;
		finding_error(&l->findings, &s->at, "%s has no meaning with kind \"%s\" and mode "
		    "\"%s\"", o->name, kind_name(d->queue->kind),
		    config_mode_name(d->queue->mode));
	}
}

/* Sets Q, and the options whose default depends on others. */
static void
build_key(struct queue_config *q)
{
	if (q->keys[0] == NULL || q->keys[0][0] == '\0') {
		free(q->keys[0]);
		q->keys = xreallocarray(q->keys, 2, sizeof(*q->keys));
		q->keys[0] = xasprintf("%s%s", kind_key_prefix(q->kind), q->name);
		q->keys[1] = NULL;
	}
	q->key = xstrdup(kind_has(q->kind, TRAIT_SUBSCRIBES) ? q->name : q->keys[0]);
}

static void
build_queue(struct loader *l, struct draft *d)
{
	struct queue_config *q = d->queue;
	const struct option *o;

	for (o = option_next(NULL); o != NULL; o = option_next(o)) {
		size_t i = option_index(o);

		if (o->section != SECTION_QUEUE)
			continue;
		option_set_default(o, q);
		d->given[i] = d->own[i] != NULL ? d->own[i] : l->defaults[i];
		if (d->given[i] != NULL)
			config_apply(l, d->given[i], q);
	}
	check_applies(l, d);
	build_key(q);
	if (!kind_has(q->kind, TRAIT_LEASES))
		q->max_attempts = 1;
	if (q->database == -1)
		q->database = l->config->redis.database;
	if (q->foreign_timeout == 0)
		q->foreign_timeout = q->lease;
}

/* Checks defaults { } once, also in a file without queues. */
static void
build_defaults(struct loader *l)
{
	struct config *scratch = config_new();
	struct queue_config *q = xcalloc(1, sizeof(*q));
	size_t i;

	scratch->queues = xreallocarray(scratch->queues, 2, sizeof(*scratch->queues));
	scratch->queues[scratch->nqueues++] = q;
	for (i = 0; i < OPTIONS_MAX; i++) {
		if (l->defaults[i] != NULL)
			config_apply(l, l->defaults[i], q);
	}
	config_unref(scratch);
}

/* -- collecting ---------------------------------------------------------------------- */

static struct draft *
add_draft(struct loader *l, const char *name, const struct place *at)
{
	struct config *c = l->config;
	struct queue_config *q = xcalloc(1, sizeof(*q));

	q->name = xstrdup(name != NULL ? name : "");
	q->file = xstrdup(at->line > 0 ? at->file : "");
	q->line = at->line;
	c->queues = xreallocarray(c->queues, c->nqueues + 2, sizeof(*c->queues));
	c->queues[c->nqueues++] = q;
	c->queues[c->nqueues] = NULL;
	l->drafts = xreallocarray(l->drafts, l->ndrafts + 1, sizeof(*l->drafts));
	l->drafts[l->ndrafts] = (struct draft){ .queue = q, .at = *at, .named = name != NULL };
	return &l->drafts[l->ndrafts++];
}

/* Sections other than queues may be spread over files; an option may not. */
void
config_take_settings(struct loader *l, struct item *item, struct setting **slots)
{
	char first[PLACE_TEXT_MAX];
	size_t i;

	for (i = 0; i < item->n; i++) {
		struct setting *s = &item->settings[i], **slot = &slots[option_index(s->option)];

		if (*slot == NULL) {
			*slot = s;
			continue;
		}
		finding_error(&l->findings, &s->at, "%s is given twice (first at %s)",
		    s->option->name, place_text(&(*slot)->at, first));
		findings_share(&l->findings, &(*slot)->at);
	}
}

void
config_collect(struct loader *l, struct item *item)
{
	struct draft *d;

	switch (item->type) {
	case ITEM_OPTIONS:
		config_take_settings(l, item, l->given);
		break;
	case ITEM_DEFAULTS:
		config_take_settings(l, item, l->defaults);
		break;
	case ITEM_QUEUE:
		d = add_draft(l, item->title, &item->at);
		d->open = item->open;
		config_take_settings(l, item, d->own);
		break;
	case ITEM_SCHEDULE:
		config_schedule_collect(l, item);
		break;
	case ITEM_INCLUDE:
		break;
	}
}

/* -- the command line ------------------------------------------------------------------ */

/* Makes a setting as if it stood in a file; text owns it. */
static struct setting *
add_setting(struct loader *l, const struct option *o, const struct place *at,
    const char *const *values, size_t n)
{
	struct config_text *text = xcalloc(1, sizeof(*text));

	text->file = xstrdup(at->file);
	text->items = xcalloc(1, sizeof(*text->items));
	text->items[0].settings = xcalloc(1, sizeof(struct setting));
	text->items[0].n = text->n = 1;
	setting_init(text->items[0].settings, o, at, values, n);
	l->texts = xreallocarray(l->texts, l->ntexts + 1, sizeof(*l->texts));
	l->texts[l->ntexts++] = text;
	return text->items[0].settings;
}

/* Splits "a, b" into the values of a list; each may be quoted. */
static size_t
split_list(char *text, const char **values, size_t max)
{
	size_t n = 0;
	char *word;

	text[strlen(text) - 1] = '\0';
	for (text++; n < max && (word = strsep(&text, ",")) != NULL;) {
		word += strspn(word, " \t\"'");
		word[strcspn(word, " \t\"'")] = '\0';
		if (*word != '\0')
			values[n++] = word;
	}
	return n;
}

/* Notes -o redis.* for RQD_OPTIONS, which tells rqctl in a handler. */
static void
note_override(struct config *c, const char *text)
{
	char *longer = xasprintf("%s%s%s", c->overrides, c->overrides[0] != '\0' ? "\n" : "", text);

	free(c->overrides);
	c->overrides = longer;
}

static void
override(struct loader *l, const struct option *o, const char *text)
{
	struct place at = { findings_file(&l->findings, "-o"), 0 };
	const char *values[64] = { text };
	char *copy = xstrdup(text);
	size_t n = 1, len = strlen(text);

	if (option_is_list(o) && len >= 2 && text[0] == '{' && text[len - 1] == '}')
		n = split_list(copy, values, ARRAY_LEN(values));
	l->given[option_index(o)] = add_setting(l, o, &at, values, n);
	free(copy);
}

/* "redis.server=..." or "max_handlers=..." */
static void
take_override(struct loader *l, const char *text)
{
	struct place at = { findings_file(&l->findings, "-o"), 0 };
	enum section section = SECTION_GLOBAL;
	const char *equals = strchr(text, '=');
	const struct option *o = NULL;
	char *name, *dot, *why;

	if (equals == NULL) {
		finding_error(&l->findings, &at, "\"%.60s\" is not OPTION=VALUE", text);
		return;
	}
	name = xstrndup(text, (size_t)(equals - text));
	if ((dot = strchr(name, '.')) != NULL)
		*dot++ = '\0';
	if (dot != NULL && !section_find(name, &section) && strcmp(name, "defaults") != 0) {
		finding_error(&l->findings, &at, "unknown section \"%.60s\"", name);
	} else if (section_has_title(section) || (dot != NULL && section == SECTION_GLOBAL)) {
		finding_error(&l->findings, &at, "%.60s: options of queues and schedules stand in "
		    "the file only", text);
	} else if ((o = option_find(section, dot != NULL ? dot : name)) == NULL) {
		why = option_unknown(section, dot != NULL ? dot : name);
		finding_error(&l->findings, &at, "%s", why);
		free(why);
	} else {
		override(l, o, equals + 1);
		if (section == SECTION_REDIS)
			note_override(l->config, text);
	}
	free(name);
}

static void
take_server(struct loader *l)
{
	struct place at = { "RQD_SERVER", 0 };
	const char *server = getenv("RQD_SERVER");
	const struct option *o = option_find(SECTION_REDIS, "server");

	if (server == NULL || server[0] == '\0')
		return;
	at.file = findings_file(&l->findings, at.file);
	l->given[option_index(o)] = add_setting(l, o, &at, &server, 1);
}

static void
take_queue(struct loader *l)
{
	const struct config_source *source = l->source;
	struct place at = { findings_file(&l->findings, "-q"), 0 };
	struct draft *d = add_draft(l, source->queue, &at);
	const struct option *o;
	char number[16];
	const char *value = number;
	size_t n = 0;

	while (source->command != NULL && source->command[n] != NULL)
		n++;
	o = option_find(SECTION_QUEUE, "command");
	d->own[option_index(o)] = add_setting(l, o, &at, source->command, n);
	if (source->concurrency != 0) {
		snprintf(number, sizeof(number), "%d", source->concurrency);
		o = option_find(SECTION_QUEUE, "concurrency");
		d->own[option_index(o)] = add_setting(l, o, &at, &value, 1);
	}
	if (source->user != NULL) {
		o = option_find(SECTION_QUEUE, "user");
		d->own[option_index(o)] = add_setting(l, o, &at, &source->user, 1);
	}
}

/* -- all of it ----------------------------------------------------------------------------- */

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
	free(c->name);
	c->name = xstrdup(util_hostname());
	for (p = c->name; *p != '\0' && !utf8_is_valid(c->name, strlen(c->name)); p++) {
		if ((unsigned char)*p >= 0x80)
			*p = '_';
	}
}

/* With -q, -j above max_handlers raises it: no other queue competes. */
static void
make_room(struct loader *l)
{
	const struct option *o = option_find(SECTION_GLOBAL, "max_handlers");

	if (l->given[option_index(o)] == NULL && l->source->concurrency > l->config->max_handlers)
		l->config->max_handlers = l->source->concurrency;
}

/* Includes were followed when it was written. */
static void
collect_text(struct loader *l)
{
	const struct config_source *source = l->source;
	struct config_text *text = config_text_parse(source->text, source->text_len,
	    findings_file(&l->findings, source->file != NULL ? source->file : "-q"), &l->findings);
	size_t i;

	l->texts = xreallocarray(l->texts, l->ntexts + 1, sizeof(*l->texts));
	l->texts[l->ntexts++] = text;
	for (i = 0; i < text->n; i++)
		config_collect(l, &text->items[i]);
}

static void
collect(struct loader *l)
{
	const struct config_source *source = l->source;
	size_t i;

	if (source->text != NULL)
		collect_text(l);
	else if (source->file != NULL)
		config_include_file(l, source->file, NULL);
	else
		take_server(l);
	for (i = 0; source->overrides != NULL && source->overrides[i] != NULL; i++)
		take_override(l, source->overrides[i]);
	if (source->queue != NULL && source->text == NULL)
		take_queue(l);
}

/* Whether a file that is left out has a section redis, or cannot be read. */
static bool
may_name_server(const char *path)
{
	struct buf b = BUF_INIT;
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	bool may = fd == -1 || buf_read(&b, fd, CONFIG_FILE_MAX) == -1 ||
	    memmem(b.data, b.len, "redis", strlen("redis")) != NULL;

	if (fd != -1)
		close(fd);
	buf_done(&b);
	return may;
}

/* Nobody must push to another Redis because the file that names the right one is broken. */
static void
check_server_known(struct loader *l)
{
	struct place at = { NULL, 0 };
	size_t i;

	if (l->nskip == 0 || l->given[option_index(option_find(SECTION_REDIS, "server"))] != NULL)
		return;
	at.file = findings_file(&l->findings, l->source->file);
	for (i = 0; i < l->nskip; i++)
		if (may_name_server(l->skip[i]))
			finding_error(&l->findings, &at, "%s, which has errors, may say where Redis is",
			    l->skip[i]);
}

static void
loader_done(struct loader *l)
{
	size_t i;

	for (i = 0; i < l->ntexts; i++)
		config_text_free(l->texts[i]);
	free(l->texts);
	free(l->drafts);
	free(l->schedules);
	findings_done(&l->findings);
}

static struct config *
load(const struct config_source *source, char *const *skip, size_t nskip,
    struct config_report *report)
{
	struct loader l = {
		.source = source, .skip = skip, .nskip = nskip, .config = config_new(),
		.findings = { .report = report, .strict = source->strict },
	};
	size_t i;

	l.config->file = absolute(source->file);
	collect(&l);
	check_server_known(&l);
	build_globals(&l);
	build_defaults(&l);
	for (i = 0; i < l.ndrafts; i++)
		build_queue(&l, &l.drafts[i]);
	config_schedule_build(&l);
	make_room(&l);
	fill_name(l.config);
	config_check(&l);
	config_schedule_check(&l);
	if (l.findings.nerrors > 0) {
		config_unref(l.config);
		l.config = NULL;
	} else {
		config_print_hash(l.config);
	}
	loader_done(&l);
	return l.config;
}

/* Moves what is on one list behind another. */
static void
move_lines(char ***to, size_t *nto, char ***from, size_t *nfrom)
{
	size_t i;

	if (*nfrom == 0)
		return;
	*to = xreallocarray(*to, *nto + *nfrom, sizeof(**to));
	for (i = 0; i < *nfrom; i++)
		(*to)[(*nto)++] = (*from)[i];
	free(*from);
	*from = NULL;
	*nfrom = 0;
}

/* Whether all errors are those of included files. */
static bool
only_included(const struct config_source *source, const struct config_report *r)
{
	size_t i;

	for (i = 0; i < r->nfiles; i++)
		if (source->file == NULL || strcmp(r->files[i], source->file) == 0 ||
		    strchr(r->files[i], '/') == NULL)
			return false;
	return r->nfiles > 0;
}

struct config *
config_load(const struct config_source *source, struct config_report *report)
{
	struct config *c;
	char **skip = NULL;
	size_t nskip = 0, i;

	while ((c = load(source, skip, nskip, report)) == NULL && source->client &&
	    only_included(source, report)) {
		move_lines(&report->left_out, &report->nleft_out, &report->errors, &report->nerrors);
		move_lines(&skip, &nskip, &report->files, &report->nfiles);
		for (i = 0; i < report->nwarnings; i++)
			free(report->warnings[i]);
		report->nwarnings = 0;
	}
	move_lines(&report->files, &report->nfiles, &skip, &nskip);
	if (c == NULL)	/* what was wrong first is to be mended first */
		move_lines(&report->left_out, &report->nleft_out, &report->errors, &report->nerrors);
	if (c == NULL)
		move_lines(&report->errors, &report->nerrors, &report->left_out, &report->nleft_out);
	return c;
}

void
config_report_done(struct config_report *r)
{
	size_t i;

	for (i = 0; i < r->nerrors; i++)
		free(r->errors[i]);
	for (i = 0; i < r->nwarnings; i++)
		free(r->warnings[i]);
	for (i = 0; i < r->nleft_out; i++)
		free(r->left_out[i]);
	for (i = 0; i < r->nfiles; i++)
		free(r->files[i]);
	free(r->errors);
	free(r->warnings);
	free(r->left_out);
	free(r->files);
	*r = (struct config_report){ .nerrors = 0 };
}
