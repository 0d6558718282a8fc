/* Advice on a queue; see advice.h. */
#include "status/advice.h"

#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "base/util.h"

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

static const char *
suspended_hint(const struct service *s)
{
	return strcmp(s->reason, "cannot_execute") == 0 ?
	    "Its command cannot be started. rqd tries again at least once a minute." :
	    "Its command always failed. rqd tries one message at a time until one succeeds.";
}

const char *
advice_hint(const struct facts *f)
{
	const struct depth *d = f->depth;
	const struct service *s = f->service;

	if (d->problem != NULL)
		return "Redis refuses a command. Often a key has the wrong type.";
	if (f->unnamed)
		return "No daemon takes its messages. Configure a queue with this key, or delete "
		    "it.";
	if (d->partly)
		return "Some of its keys are paused. Pause it, or resume it, once more.";
	if (d->paused)
		return "Its daemons take no message until somebody resumes it.";
	if (s->daemons == 0 && f->elsewhere)
		return "This configuration declares it with concurrency = 0.";
	if (s->daemons == 0 && f->full)
		return "Redis is full and refuses heartbeats: daemons may run unseen. Make room "
		    "first.";
	if (s->daemons == 0)
		return "Start a daemon, or compare the names of the queues in its configuration.";
	if (strcmp(s->state, "suspended") == 0)
		return suspended_hint(s);
	if (s->state[0] != '\0' && strcmp(s->state, "running") != 0)
		return "A daemon takes nothing new. Its log says why.";
	if (s->leases_differ || s->shards_differ)
		return "Two daemons have different configurations. Make them the same, and reload.";
	if (d->dead > 0)
		return "Messages have failed for good: they are dead letters.";
	if (d->waiting > 0 && s->concurrency > 0 && d->in_flight >= s->concurrency)
		return "All handlers are busy. Raise concurrency and reload, or start another "
		    "host.";
	return NULL;
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

const char *
advice_program(const struct queue_config *q)
{
	return q->command != NULL && q->command[0] != NULL ? q->command[0] : "";
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

static void
journal(const struct command_list *l, const char *name)
{
	buf_printf(l->text, "%sjournalctl -p warning -n 50 RQD_QUEUE=", l->advice->indent);
	advice_word(l->text, name);
	buf_addc(l->text, '\n');
}

/* A file that is missing, or that the queue's user may not execute. */
static void
program(const struct command_list *l, const struct service *s)
{
	if (strcmp(s->reason, "cannot_execute") != 0 || l->advice->program[0] == '\0')
		return;
	buf_printf(l->text, "%sls -l ", l->advice->indent);
	advice_word(l->text, l->advice->program);
	buf_addc(l->text, '\n');
}

/* What ends the trouble, or tells more of it. */
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
