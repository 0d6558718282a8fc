/*
 * Prints the configuration as text that reads back to the same values.  rqd -T, the
 * hash in heartbeats and the comparison at a reload all use this text, so they cannot
 * disagree.  The daemon's name is not part of the hash: it differs between daemons.
 */
#include "config/config_load.h"

#include <inttypes.h>
#include <string.h>

static void
print_option(const struct option *o, const void *base, const char *indent, struct buf *b)
{
	buf_printf(b, "%s%s = ", indent, o->name);
	option_print(o, base, b);
	buf_addc(b, '\n');
}

static void
print_section(const struct config *c, enum section section, struct buf *b)
{
	const char *indent = section == SECTION_GLOBAL ? "" : "\t";
	const struct option *o;

	if (section != SECTION_GLOBAL)
		buf_printf(b, "\n%s {\n", section_name(section));
	for (o = option_next(NULL); o != NULL; o = option_next(o)) {
		if (o->section == section)
			print_option(o, c, indent, b);
	}
	if (section != SECTION_GLOBAL)
		buf_puts(b, "}\n");
}

/* Leaves out options that do not apply to its kind and mode: the reader refuses them. */
static void
print_queue(const struct queue_config *q, struct buf *b)
{
	const struct option *o;

	buf_puts(b, "\nqueue ");
	option_print_string(q->name, b);
	buf_puts(b, " {\n");
	for (o = option_next(NULL); o != NULL; o = option_next(o)) {
		if (o->section == SECTION_QUEUE && option_applies(o, q))
			print_option(o, q, "\t", b);
	}
	buf_puts(b, "}\n");
}

static void
print_schedule(const struct schedule_config *s, struct buf *b)
{
	const struct option *o;

	buf_puts(b, "\nschedule ");
	option_print_string(s->name, b);
	buf_puts(b, " {\n");
	for (o = option_next(NULL); o != NULL; o = option_next(o)) {
		if (o->section == SECTION_SCHEDULE)
			print_option(o, s, "\t", b);
	}
	buf_puts(b, "}\n");
}

static void
print_rest(const struct config *c, struct buf *b)
{
	enum section s;
	size_t i;

	for (s = SECTION_REDIS; s < SECTION_QUEUE; s++)
		print_section(c, s, b);
	for (i = 0; i < c->nqueues; i++)
		print_queue(c->queues[i], b);
	for (i = 0; i < c->nschedules; i++)
		print_schedule(c->schedules[i], b);
}

void
config_print(const struct config *c, FILE *fp)
{
	struct buf b = BUF_INIT;

	print_section(c, SECTION_GLOBAL, &b);
	print_rest(c, &b);
	(void)fwrite(b.data, 1, b.len, fp);
	buf_done(&b);
}

/* FNV-1a. */
static uint64_t
hash(const struct buf *b)
{
	uint64_t h = 0xcbf29ce484222325;
	size_t i;

	for (i = 0; i < b->len; i++)
		h = (h ^ (unsigned char)b->data[i]) * 0x100000001b3;
	return h;
}

void
config_print_hash(struct config *c)
{
	struct buf b = BUF_INIT;
	const struct option *o;

	for (o = option_next(NULL); o != NULL; o = option_next(o)) {
		if (o->section == SECTION_GLOBAL && strcmp(o->name, "name") != 0)
			print_option(o, c, "", &b);
	}
	print_rest(c, &b);
	snprintf(c->hash, sizeof(c->hash), "%016" PRIx64, hash(&b));
	buf_done(&b);
}

static bool
same(struct buf *a, struct buf *b)
{
	bool equal = strcmp(buf_str(a), buf_str(b)) == 0;

	buf_done(a);
	buf_done(b);
	return equal;
}

bool
config_same_queue(const struct queue_config *a, const struct queue_config *b)
{
	struct buf x = BUF_INIT, y = BUF_INIT;

	print_queue(a, &x);
	print_queue(b, &y);
	return same(&x, &y);
}

bool
config_same_option(const struct option *o, const struct config *a, const struct config *b)
{
	struct buf x = BUF_INIT, y = BUF_INIT;

	option_print(o, a, &x);
	option_print(o, b, &y);
	return same(&x, &y);
}
