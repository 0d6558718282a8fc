/*
 * libconfuse decodes the values that the parser has passed.
 *
 * It gets the options of one item at a time, as well-formed text, and treats all of
 * them as strings or lists of strings.  It decides the meaning of quotes, escapes and
 * ${NAME}.  Types, ranges and errors are ours.  So its defects cannot show: wrong
 * lines, one error per parse, silent drops, a lexer that fails for ever after a NUL
 * or a bad escape.
 */
#include "config/config_text.h"

#include <confuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* libconfuse's last error; its callback takes no argument. */
static char *complaint;

static void PRINTF(2, 0)
complain(cfg_t *cfg UNUSED, const char *fmt, va_list ap)
{
	free(complaint);
	complaint = xvasprintf(fmt, ap);
}

/* Describes a section to libconfuse: its options, and "title" for titles. */
static void
make_opts(enum section section, cfg_opt_t *opts)
{
	const cfg_opt_t title = CFG_STR("title", NULL, CFGF_NODEFAULT);
	const cfg_opt_t end = CFG_END();
	const struct option *o;

	*opts++ = title;
	for (o = option_next(NULL); o != NULL; o = option_next(o)) {
		const cfg_opt_t one = CFG_STR(o->name, NULL, CFGF_NODEFAULT);
		const cfg_opt_t list = CFG_STR_LIST(o->name, NULL, CFGF_NODEFAULT);

		if (o->section == section)
			*opts++ = option_is_list(o) ? list : one;
	}
	*opts = end;
}

static void
take_values(struct setting *s, cfg_opt_t *opt)
{
	size_t i;

	s->values = xcalloc(s->n + 1, sizeof(*s->values));
	if (opt == NULL || cfg_opt_size(opt) != s->n) {
		s->bad = true;
		return;
	}
	for (i = 0; i < s->n; i++) {
		const char *value = cfg_opt_getnstr(opt, (unsigned)i);

		s->values[i] = xstrdup(value != NULL ? value : "");
	}
}

static void
take(struct item *item, cfg_t *cfg)
{
	const char *title = cfg_getstr(cfg, "title");
	size_t i;

	if (title != NULL)
		item->title = xstrdup(title);
	for (i = 0; i < item->n; i++) {
		if (!item->settings[i].bad)
			take_values(&item->settings[i],
			    cfg_getopt(cfg, item->settings[i].option->name));
	}
}

/* libconfuse found an error that our lexer did not: no value of the item counts. */
static void
give_up(struct item *item, struct findings *f)
{
	size_t i;

	finding_error(f, &item->at, "%s", complaint != NULL ? complaint : "syntax error");
	for (i = 0; i < item->n; i++)
		item->settings[i].bad = true;
}

void
config_value_fill(struct item *item, struct findings *f)
{
	cfg_opt_t opts[OPTIONS_MAX + 2];
	cfg_t *cfg;
	FILE *fp;
	int rc;

	if (item->text.len == 0)
		return;
	make_opts(item->section, opts);
	if ((cfg = cfg_init(opts, CFGF_NONE)) == NULL)
		fatal_os("cfg_init: out of memory");
	(void)cfg_set_error_function(cfg, complain);
	if ((fp = fmemopen(item->text.data, item->text.len, "r")) == NULL)
		fatal_os("fmemopen: out of memory");
	rc = cfg_parse_fp(cfg, fp);
	fclose(fp);
	if (rc == CFG_SUCCESS)
		take(item, cfg);
	else
		give_up(item, f);
	free(complaint);
	complaint = NULL;
	cfg_free(cfg);
}
