/* Advice on a queue; see advice.h. */
#include "status/advice.h"

#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "base/util.h"

/* The program of the queue's command; "": not known. */
static const char *
program_of(const struct advice *a)
{
	return a->cfg != NULL && a->cfg->command != NULL && a->cfg->command[0] != NULL ?
	    a->cfg->command[0] : "";
}

/* NULL: the log is no file, or not known. */
static const char *
log_file(const struct advice *a)
{
	return a->config != NULL && a->config->log.target[0] == '/' ? a->config->log.target : NULL;
}

/* -- sentences -------------------------------------------------------------------- */

/* "13.1M" */
static const char *
about(uint64_t bytes, char *text)
{
	const double mib = 1024.0 * 1024.0;

	if (bytes < (uint64_t)mib)
		return units_size(bytes, text);
	snprintf(text, UNITS_TEXT_MAX, "%.1fM", (double)bytes / mib);
	return text;
}

char *
advice_memory(uint64_t used, uint64_t max)
{
	char a[UNITS_TEXT_MAX], b[UNITS_TEXT_MAX];

	if (max == 0 || used <= max)
		return NULL;
	return xasprintf("Redis is full: it uses %s of maxmemory %s, and refuses pushes, "
	    "hand-overs and heartbeats: daemons may run unseen; raise maxmemory (CONFIG SET, "
	    "and redis.conf), or drop messages (rqctl purge, rqctl dead drop)", about(used, a),
	    about(max, b));
}

/* " in /etc/rqd.conf:12", where that is known. */
static void
add_place(struct buf *b, const struct advice *a)
{
	if (a->cfg != NULL && a->cfg->file[0] != '\0')
		buf_printf(b, " in %s:%d", a->cfg->file, a->cfg->line);
}

static void
suspended_hint(const struct service *s, const struct advice *a, struct buf *b)
{
	bool failing = strcmp(s->reason, "cannot_execute") != 0;

	buf_puts(b, failing ?
	    "Its command always failed. rqd tries one message at a time until one succeeds." :
	    "Its command cannot be started. rqd tries again at least once a minute.");
	if (program_of(a)[0] == '\0')
		return;
	buf_printf(b, " Mend %s", program_of(a));
	if (a->cfg->file[0] != '\0')
		buf_puts(b, failing ? ", the command" : ", or command");
	add_place(b, a);
	buf_addc(b, '.');
}

/* If several daemons serve the queue, each may have another share of it. */
static void
busy_hint(const struct facts *f, const struct advice *a, struct buf *b)
{
	buf_printf(b, "All handlers are busy: %lld of %lld. Raise concurrency",
	    (long long)f->depth->in_flight, (long long)f->service->concurrency);
	if (a->cfg != NULL)
		buf_printf(b, ", which is %d", a->cfg->concurrency);
	add_place(b, a);
	if (a->config != NULL && a->cfg != NULL)
		buf_printf(b, " (max_handlers is %d)", a->config->max_handlers);
	buf_puts(b, ", and reload, or start another host.");
}

static void
differ_hint(const struct service *s, const struct advice *a, struct buf *b)
{
	char least[UNITS_TEXT_MAX], most[UNITS_TEXT_MAX];

	buf_puts(b, "Two daemons have different configurations");
	if (s->leases_differ)
		buf_printf(b, ": lease is %s for one and %s for another",
		    units_age(s->lease_least, least), units_age(s->lease_most, most));
	else
		buf_puts(b, ": they have other shards");
	buf_puts(b, ". Make them the same, here");
	add_place(b, a);
	buf_puts(b, ", and reload.");
}

static bool
is_busy(const struct facts *f)
{
	return f->depth->waiting > 0 && f->service->concurrency > 0 &&
	    f->depth->in_flight >= f->service->concurrency;
}

static void
add_hint(const struct facts *f, const struct advice *a, struct buf *b)
{
	const struct depth *d = f->depth;
	const struct service *s = f->service;

	if (d->problem != NULL)
		buf_puts(b, "Redis refuses a command. Often a key has the wrong type.");
	else if (f->unnamed)
		buf_puts(b, "No daemon takes its messages. Configure a queue with this key, or "
		    "delete it.");
	else if (d->partly)
		buf_puts(b, "Some of its keys are paused. Pause it, or resume it, once more.");
	else if (d->paused)
		buf_puts(b, "Its daemons take no message until somebody resumes it.");
	else if (s->daemons == 0 && f->elsewhere) {
		buf_puts(b, "This configuration declares it with concurrency = 0");
		add_place(b, a);
		buf_addc(b, '.');
	} else if (s->daemons == 0 && f->full)
		buf_puts(b, "Redis is full and refuses heartbeats: daemons may run unseen. Make "
		    "room first.");
	else if (s->daemons == 0)
		buf_puts(b, "Start a daemon, or compare the names of the queues in its "
		    "configuration.");
	else if (strcmp(s->state, "suspended") == 0)
		suspended_hint(s, a, b);
	else if (s->state[0] != '\0' && strcmp(s->state, "running") != 0)
		buf_printf(b, "A daemon takes nothing new. Its log%s%s says why.",
		    log_file(a) != NULL ? " " : "", log_file(a) != NULL ? log_file(a) : "");
	else if (s->leases_differ || s->shards_differ)
		differ_hint(s, a, b);
	else if (state_is_late(f))
		busy_hint(f, a, b);
	else if (d->dead > 0)
		buf_puts(b, "Messages have failed for good: they are dead letters.");
	else if (is_busy(f))
		busy_hint(f, a, b);
}

char *
advice_hint(const struct facts *f, const struct advice *a)
{
	struct buf b = BUF_INIT;

	add_hint(f, a, &b);
	return b.len > 0 ? buf_steal(&b) : NULL;
}

/* -- commands --------------------------------------------------------------------- */

static bool
is_plain(const char *text)
{
	return text[0] != '\0' && text[0] != '-' &&
	    text[strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	    "_./:@%+=,-")] == '\0';
}

void
advice_word(struct buf *b, const char *text)
{
	const unsigned char *p = (const unsigned char *)text;
	bool odd = false;

	if (is_plain(text)) {
		buf_puts(b, text);
		return;
	}
	for (; *p != '\0'; p++)
		odd = odd || *p < 0x20 || *p > 0x7e || *p == '\'' || *p == '\\';
	buf_puts(b, odd ? "$'" : "'");
	for (p = (const unsigned char *)text; *p != '\0'; p++)
		if (*p == '\'' || *p == '\\')
			buf_printf(b, "\\%c", *p);
		else if (*p < 0x20 || *p > 0x7e)
			buf_printf(b, "\\x%02x", *p);
		else
			buf_addc(b, (char)*p);
	buf_addc(b, '\'');
}

struct command_list {
	const struct advice	*advice;
	struct buf		*text;
};

/* A line: rqctl, the verb, the queue, and the rest. */
static void
command(const struct command_list *l, const char *verb, const char *rest)
{
	const struct advice *a = l->advice;

	buf_printf(l->text, "%s%s %s%s ", a->indent, a->rqctl, verb,
	    a->queue[0] == '-' ? " --" : "");
	advice_word(l->text, a->queue);
	if (rest[0] != '\0') {
		buf_addc(l->text, ' ');
		advice_word(l->text, rest);
	}
	buf_addc(l->text, '\n');
}

/* The end of the queue's records in a file. */
static void
log_lines(const struct command_list *l, const char *path, const char *name)
{
	bool json = l->advice->config->log.format == LOG_JSON;
	struct buf pattern = BUF_INIT;

	buf_puts(&pattern, json ? "\"level\":\"(warn|error)\".*\"queue\":\"" :
	    "level=(warn|error) .*queue=\"?");
	for (; *name != '\0'; name++)
		buf_printf(&pattern, strchr("^\\", *name) != NULL ? "\\%c" :
		    strchr(".[]()*+?{}$|", *name) != NULL ? "[%c]" : "%c", *name);
	buf_puts(&pattern, json ? "\"" : "\"? ");
	buf_printf(l->text, "%sgrep -E ", l->advice->indent);
	advice_word(l->text, buf_str(&pattern));
	buf_addc(l->text, ' ');
	advice_word(l->text, path);
	buf_puts(l->text, " | tail -n 50\n");
	buf_done(&pattern);
}

static void
journal(const struct command_list *l, const char *name)
{
	if (log_file(l->advice) != NULL) {
		log_lines(l, log_file(l->advice), name);
		return;
	}
	buf_printf(l->text, "%sjournalctl -p warning -n 50 RQD_QUEUE=", l->advice->indent);
	advice_word(l->text, name);
	buf_addc(l->text, '\n');
}

/* A file that is missing, or that the queue's user may not execute. */
static void
program(const struct command_list *l, const struct service *s)
{
	if (strcmp(s->reason, "cannot_execute") != 0 || program_of(l->advice)[0] == '\0')
		return;
	buf_printf(l->text, "%sls -l ", l->advice->indent);
	advice_word(l->text, program_of(l->advice));
	buf_addc(l->text, '\n');
}

/* Adds the commands that end the trouble, or that tell more about it. */
static void
add_remedies(const struct command_list *l, const struct facts *f)
{
	const struct depth *d = f->depth;
	const struct service *s = f->service;

	if (d->problem != NULL || s->leases_differ || s->shards_differ)
		command(l, "check", "");
	if (d->paused || d->partly)
		command(l, "resume", "");
	if (s->daemons == 0 && !f->elsewhere && !f->unnamed && !f->full)
		buf_printf(l->text, "%ssystemctl status rqd\n", l->advice->indent);
	if (s->state[0] != '\0' && strcmp(s->state, "running") != 0)
		journal(l, f->name);
	if (strcmp(s->state, "suspended") == 0) {
		program(l, s);
		command(l, "probe", "");
	}
}

static void
add_dead(const struct command_list *l)
{
	command(l, "dead list", "");
	if (l->advice->newest[0] != '\0')
		command(l, "dead show", l->advice->newest);
	command(l, "dead retry --all", "");
}

void
advice_commands(const struct facts *f, const struct advice *a, struct buf *b)
{
	const struct command_list l = { a, b };
	const struct depth *d = f->depth;

	add_remedies(&l, f);
	if (d->in_flight > 0)
		command(&l, "running", "");
	if (d->waiting > 0 && kind_waits(f->kind))
		command(&l, "peek", "");
	if (d->retry > 0)
		command(&l, "retry list", "");
	if (d->dead > 0)
		add_dead(&l);
	if (f->unnamed)
		command(&l, "forget", "");
	else if (!d->paused)
		command(&l, "pause", "");
}
