/*
 * Prints the configuration as text that reads back to the same values.  rqd -T, the
 * hashes in heartbeats and the comparison at a reload all use this text, so they cannot
 * disagree.  A hash leaves out options by which daemons of one fleet may differ.
 */
#include "config/load.h"

#include <inttypes.h>
#include <string.h>

#include "config/options.h"

/*
 * Whether `server` is the short form of Sentinels or a cluster: printed beside them, it
 * would be an error to read.
 */
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
	EACH_OPTION(o) {
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

#define FNV_BASIS	0xcbf29ce484222325

/* FNV-1a */
static uint64_t
hash_of(struct buf *b)
{
	uint64_t h = FNV_BASIS;

	for (const char *p = buf_str(b); *p != '\0'; p++)
		h = (h ^ (unsigned char)*p) * 0x100000001b3;
	buf_clear(b);
	return h;
}

/*
 * Whether the option is one of the host, and does not change how queues are served: a
 * name, an address, a log, a password.
 */
static bool
is_of_host(const struct option *o)
{
	if (o->section == SECTION_GLOBAL)
		return strcmp(o->name, "name") == 0;
	if (o->section == SECTION_REDIS)
		return strcmp(o->name, "database") != 0;
	return o->section == SECTION_LOG || o->section == SECTION_HTTP;
}

/* Sets the hashes; that of the whole configuration is made of those of the queues. */
void
config_print_hash(struct config *c)
{
	struct buf b = BUF_INIT, all = BUF_INIT;
	struct queue_config *q;

	for (size_t i = 0; i < c->nqueues; i++) {
		q = c->queues[i];
		print_section(SECTION_QUEUE, q->name, q, &b);
		snprintf(q->hash, sizeof(q->hash), "%08" PRIx32, (uint32_t)hash_of(&b));
		buf_puts(&all, q->hash);
	}
	EACH_OPTION(o) {
		if (section_has_title(o->section) || is_of_host(o))
			continue;
		buf_printf(&all, "\n%s = ", o->name);
		option_print(o, c, &all);
	}
	for (size_t i = 0; i < c->nschedules; i++)
		print_section(SECTION_SCHEDULE, c->schedules[i]->name, c->schedules[i], &all);
	snprintf(c->hash, sizeof(c->hash), "%016" PRIx64, hash_of(&all));
	buf_done(&b);
	buf_done(&all);
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
