/* Advice on a queue; see advice.h. */
#include "status/advice.h"

#include <stdio.h>
#include <stdlib.h>
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
	return a->config->log.target[0] == '/' ? a->config->log.target : NULL;
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

/* If several daemons serve the queue, each may have another share of it. */
static void
busy_hint(const struct facts *f, const struct advice *a, struct buf *b)
{
	buf_printf(b, "All handlers are busy: %lld of %lld. Raise concurrency",
	    (long long)f->depth->in_flight, (long long)f->service->concurrency);
	if (a->cfg != NULL)
		buf_printf(b, ", which is %d", a->cfg->concurrency);
	add_place(b, a);
	if (a->cfg != NULL)
		buf_printf(b, " (max_handlers is %d)", a->config->max_handlers);
	buf_puts(b, ", and reload, or start another host.");
}

char *
advice_slow(const struct facts *f)
{
	const struct service *s = f->service;
	char oldest[UNITS_TEXT_MAX], usual[UNITS_TEXT_MAX];

	return xasprintf("%lld run%s far longer than usual: %s, usually %s at most",
	    (long long)s->slow, s->slow == 1 ? " takes" : "s take", units_age(s->oldest, oldest),
	    units_age(s->usual, usual));
}

char *
advice_only_failed(const struct facts *f, const char *queue)
{
	const struct depth *d = f->depth;
	const struct service *s = f->service;
	int64_t tried = d->retry + d->in_flight, n = s->failed < tried ? s->failed : tried;
	struct buf b = BUF_INIT;

	if (strcmp(s->state, "suspended") != 0 || d->waiting > 0 || n <= 0)
		return NULL;
	buf_printf(&b, "%lld message%s only failed; nothing else to try: mend the command, or "
	    "rqctl bury ", (long long)n, n == 1 ? " has" : "s have");
	advice_word(&b, queue);
	buf_puts(&b, " --all");
	return buf_steal(&b);
}

char *
advice_hint(const struct facts *f, const struct advice *a)
{
	const struct depth *d = f->depth;
	const struct service *s = f->service;
	bool failing = strcmp(s->reason, "cannot_execute") != 0;
	char least[UNITS_TEXT_MAX], most[UNITS_TEXT_MAX];
	bool busy = d->waiting > 0 && s->concurrency > 0 && d->in_flight >= s->concurrency;
	struct buf b = BUF_INIT;
	char *slow, *only;

	if (d->problem != NULL)
		buf_puts(&b, "Redis refuses a command. Often a key has the wrong type.");
	else if (d->partly)
		buf_puts(&b, "Some of its keys are paused. Pause it, or resume it, once more.");
	else if (d->paused)
		buf_puts(&b, "Its daemons take no message until somebody resumes it.");
	else if (s->daemons == 0 && f->elsewhere) {
		buf_puts(&b, "This configuration declares it with concurrency = 0");
		add_place(&b, a);
		buf_addc(&b, '.');
	} else if (s->daemons == 0 && f->full)
		buf_puts(&b, "Redis is full and refuses heartbeats: daemons may run unseen. Make "
		    "room first.");
	else if (s->daemons == 0)
		buf_puts(&b, "Start a daemon, or compare the names of the queues in its "
		    "configuration.");
	else if (strcmp(s->state, "suspended") == 0) {
		buf_puts(&b, failing ? "Its command always failed. rqd tries one message every "
		    "5 s until one succeeds." :
		    "Its command cannot be started. rqd tries again every 5 s.");
		if (program_of(a)[0] != '\0') {
			buf_printf(&b, " Mend %s%s", program_of(a), a->cfg->file[0] == '\0' ? "" :
			    failing ? ", the command" : ", or command");
			add_place(&b, a);
			buf_addc(&b, '.');
		}
		if ((only = advice_only_failed(f, a->queue)) != NULL)
			buf_printf(&b, " %s.", only);
		free(only);
	} else if (s->state[0] != '\0' && strcmp(s->state, "running") != 0)
		buf_printf(&b, "A daemon takes nothing new. Its log%s%s says why.",
		    log_file(a) != NULL ? " " : "", log_file(a) != NULL ? log_file(a) : "");
	else if (s->leases_differ || s->shards_differ || s->groups_differ) {
		buf_puts(&b, "Two daemons have different configurations");
		if (s->leases_differ)
			buf_printf(&b, ": lease is %s for one and %s for another",
			    units_age(s->lease_least, least), units_age(s->lease_most, most));
		buf_printf(&b, "%s. Make them the same, here",
		    s->leases_differ ? "" : s->shards_differ ? ": they have other shards" :
		    ": they have other groups, so messages of one group run in any order");
		add_place(&b, a);
		buf_puts(&b, ", and reload.");
	} else if (state_is_slow(f)) {
		slow = advice_slow(f);
		buf_printf(&b, "All handlers are busy, and %s. If they hang, cancel them: their "
		    "messages are tried again.", slow);
		free(slow);
	} else if (state_is_late(f) || (busy && d->dead <= 0))
		busy_hint(f, a, &b);
	else if (d->dead > 0)
		buf_puts(&b, "Messages have failed for good: they are dead letters.");
	return b.len > 0 ? buf_steal(&b) : NULL;
}

/* -- commands --------------------------------------------------------------------- */

void
advice_word(struct buf *b, const char *text)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	    "0123456789_./:@%+=,-";
	const unsigned char *p = (const unsigned char *)text;
	bool odd = false;

	if (text[0] != '\0' && text[0] != '-' && text[strspn(text, plain)] == '\0') {
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

/* A line: rqctl, the verb, the queue, and the rest. */
static void
command(const struct advice *a, struct buf *b, const char *verb, const char *rest)
{
	buf_printf(b, "%s %s%s ", a->rqctl, verb, a->queue[0] == '-' ? " --" : "");
	advice_word(b, a->queue);
	if (rest[0] != '\0') {
		buf_addc(b, ' ');
		advice_word(b, rest);
	}
	buf_addc(b, '\n');
}

/* The end of the queue's records: in a file, or in the journal. */
static void
log_lines(const struct advice *a, struct buf *b, const char *name)
{
	bool json = a->config->log.format == LOG_JSON;
	struct buf pattern = BUF_INIT;

	if (log_file(a) == NULL) {
		buf_puts(b, "journalctl -p warning -n 50 RQD_QUEUE=");
		advice_word(b, name);
		buf_addc(b, '\n');
		return;
	}
	buf_puts(&pattern, json ? "\"level\":\"(warn|error)\".*\"queue\":\"" :
	    "level=(warn|error) .*queue=\"?");
	for (; *name != '\0'; name++)
		buf_printf(&pattern, strchr("^\\", *name) != NULL ? "\\%c" :
		    strchr(".[]()*+?{}$|", *name) != NULL ? "[%c]" : "%c", *name);
	buf_puts(&pattern, json ? "\"" : "\"? ");
	buf_puts(b, "grep -E ");
	advice_word(b, buf_str(&pattern));
	buf_addc(b, ' ');
	advice_word(b, log_file(a));
	buf_puts(b, " | tail -n 50\n");
	buf_done(&pattern);
}

void
advice_commands(const struct facts *f, const struct advice *a, struct buf *b)
{
	const struct depth *d = f->depth;
	const struct service *s = f->service;
	bool suspended = strcmp(s->state, "suspended") == 0;

	/* What ends the trouble, or tells more about it. */
	if (d->problem != NULL || s->leases_differ || s->shards_differ || s->groups_differ)
		command(a, b, "check", "");
	if (d->paused || d->partly)
		command(a, b, "resume", "");
	if (s->daemons == 0 && !f->elsewhere && !f->full)
		buf_puts(b, "systemctl status rqd\n");
	if (s->state[0] != '\0' && strcmp(s->state, "running") != 0)
		log_lines(a, b, f->name);
	/* A file that is missing, or that the queue's user may not execute. */
	if (suspended && strcmp(s->reason, "cannot_execute") == 0 && program_of(a)[0] != '\0') {
		buf_puts(b, "ls -l ");
		advice_word(b, program_of(a));
		buf_addc(b, '\n');
	}
	if (state_is_slow(f) && s->oldest_tag[0] != '\0')
		command(a, b, "cancel --retry", s->oldest_tag);
	if (d->in_flight > 0)
		command(a, b, "running", "");
	if (d->waiting > 0 && kind_waits(f->kind))
		command(a, b, "peek", "");
	if (d->retry > 0)
		command(a, b, "retry list", "");
	if (d->dead > 0) {
		command(a, b, "dead list", "");
		if (a->newest[0] != '\0')
			command(a, b, "dead show", a->newest);
		command(a, b, "dead retry --all", "");
	}
	if (!d->paused)
		command(a, b, "pause", "");
}
