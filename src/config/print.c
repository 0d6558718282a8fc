/*
 * Prints the configuration as text that reads back to the same values.  rqd -T, the
 * hash in heartbeats and the comparison at a reload all use this text, so they cannot
 * disagree.  The daemon's name is not part of the hash: it differs between daemons.
 */
#include "config/load.h"

#include <inttypes.h>
#include <string.h>

#include "config/options.h"

/* The options of a section in base; of a queue only those that apply to its kind and mode. */
static void
print_options(enum section section, const void *base, const char *indent, struct buf *b)
{
	const struct option *o;

	for (o = option_next(NULL); o != NULL; o = option_next(o)) {
		if (o->section != section ||
		    (section == SECTION_QUEUE && !option_applies(o, base)))
			continue;
		buf_printf(b, "%s%s = ", indent, o->name);
		option_print(o, base, b);
		buf_addc(b, '\n');
	}
}

static void
print_section(enum section section, const char *title, const void *base, struct buf *b)
{
	buf_printf(b, "\n%s ", section_name(section));
	if (title != NULL) {
		option_print_string(title, b);
		buf_addc(b, ' ');
	}
	buf_puts(b, "{\n");
	print_options(section, base, "\t", b);
	buf_puts(b, "}\n");
}

static void
print_sections(const struct config *c, struct buf *b)
{

	for (enum section s = SECTION_REDIS; s < SECTION_QUEUE; s++)
		print_section(s, NULL, c, b);
	for (size_t i = 0; i < c->nqueues; i++)
		print_section(SECTION_QUEUE, c->queues[i]->name, c->queues[i], b);
	for (size_t i = 0; i < c->nschedules; i++)
		print_section(SECTION_SCHEDULE, c->schedules[i]->name, c->schedules[i], b);
}

void
config_print(const struct config *c, FILE *fp)
{
	struct buf b = BUF_INIT;

	print_options(SECTION_GLOBAL, c, "", &b);
	print_sections(c, &b);
	(void)fwrite(b.data, 1, b.len, fp);
	buf_done(&b);
}

/* FNV-1a. */
static uint64_t
hash(const struct buf *b)
{
	uint64_t h = 0xcbf29ce484222325;

	for (size_t i = 0; i < b->len; i++)
		h = (h ^ (unsigned char)b->data[i]) * 0x100000001b3;
	return h;
}

void
config_print_hash(struct config *c)
{
	struct buf b = BUF_INIT;
	const struct option *o;

	for (o = option_next(NULL); o != NULL; o = option_next(o)) {
		if (o->section != SECTION_GLOBAL || strcmp(o->name, "name") == 0)
			continue;
		buf_printf(&b, "%s = ", o->name);
		option_print(o, c, &b);
		buf_addc(&b, '\n');
	}
	print_sections(c, &b);
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

	print_section(SECTION_QUEUE, a->name, a, &x);
	print_section(SECTION_QUEUE, b->name, b, &y);
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
