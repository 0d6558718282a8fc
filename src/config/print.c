/*
 * Prints the configuration as text that reads back to the same values.  rqd -T, the
 * hash in heartbeats and the comparison at a reload all use this text, so they cannot
 * disagree.  The daemon's name is not part of the hash: it differs between daemons.
 */
#include "config/load.h"

#include <inttypes.h>
#include <string.h>

#include "config/options.h"

/* With Sentinels or a cluster `server` says the same again, which would be an error to read. */
static bool
is_short_form(const struct option *o, const struct config *c)
{
	return strcmp(o->name, "server") == 0 &&
	    (c->redis.sentinels[0] != NULL || c->redis.clusters[0] != NULL);
}

/* The options of a section in base; of a queue only those that apply to its kind and mode. */
static void
print_options(enum section section, const void *base, const char *indent, struct buf *b)
{
	const struct option *o;

	for (o = option_next(NULL); o != NULL; o = option_next(o)) {
		if (o->section != section ||
		    (section == SECTION_QUEUE && !option_applies(o, base)) ||
		    (section == SECTION_REDIS && is_short_form(o, base)))
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
print_all(const struct config *c, struct buf *b)
{
	print_options(SECTION_GLOBAL, c, "", b);
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

	print_all(c, &b);
	(void)fwrite(b.data, 1, b.len, fp);
	buf_done(&b);
}

/* FNV-1a of all but the first line, which is the daemon's name. */
void
config_print_hash(struct config *c)
{
	uint64_t h = 0xcbf29ce484222325;
	struct buf b = BUF_INIT;

	print_all(c, &b);
	for (const char *p = strchr(buf_str(&b), '\n') + 1; *p != '\0'; p++)
		h = (h ^ (unsigned char)*p) * 0x100000001b3;
	snprintf(c->hash, sizeof(c->hash), "%016" PRIx64, h);
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
