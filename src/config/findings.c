/*
 * The list of findings: added in any order, reported in the order of the files.
 *
 * Names and values come from files, so this file escapes unprintable characters,
 * in one place, before a finding reaches a terminal.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "config/draft.h"

struct finding {
	size_t	 file;			/* its number */
	int	 line;
	size_t	 order;			/* number of the finding; breaks ties */
	bool	 warning;
	char	*text;			/* owned, with its place */
};

char *
place_text(const struct place *p, char *buf)
{
	if (p->line > 0)
		snprintf(buf, PLACE_TEXT_MAX, "%.280s:%d", p->file, p->line);
	else
		snprintf(buf, PLACE_TEXT_MAX, "%.280s", p->file);
	return buf;
}

static size_t
file_number(struct findings *f, const char *name)
{
	size_t i = 0;

	while (i < f->nfiles && strcmp(f->files[i], name) != 0)
		i++;
	if (i == f->nfiles)
		*APPEND(f->files, f->nfiles) = xstrdup(name);
	return i;
}

const char *
findings_file(struct findings *f, const char *name)
{
	size_t n = file_number(f, name);

	return f->files[n];
}

bool
finding_add(struct findings *f, const struct place *at, bool warning, char *text)
{
	struct buf b = BUF_INIT;

	f->nerrors += !warning || f->strict;
	if (f->nfound >= FINDINGS_MAX) {
		f->dropped++;
		free(text);
		return false;
	}
	buf_puts(&b, at->file);
	if (at->line > 0)
		buf_printf(&b, ":%d", at->line);
	buf_puts(&b, ": ");
	for (const char *p = text; *p != '\0'; p++) {
		if (*p == '\n')
			buf_puts(&b, "\\n");
		else if ((unsigned char)*p < 0x20 || *p == 0x7f)
			buf_printf(&b, "\\x%02x", (unsigned char)*p);
		else
			buf_addc(&b, *p);
	}
	free(text);
	(void)buf_str(&b);
	*APPEND(f->found, f->nfound) = (struct finding){
		.file = file_number(f, at->file), .line = at->line, .order = f->nfound,
		.warning = warning && !f->strict, .text = buf_steal(&b),
	};
	return false;
}

static int
compare(const void *va, const void *vb)
{
	const struct finding *a = va, *b = vb;

	if (a->file != b->file)
		return a->file < b->file ? -1 : 1;
	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	return a->order < b->order ? -1 : 1;
}

/* Whether the same text came before: a bad default is found again for each queue. */
static bool
is_repeated(const struct findings *f, size_t i)
{
	for (size_t j = i; j-- > 0 && f->found[j].file == f->found[i].file &&
	    f->found[j].line == f->found[i].line;) {
		if (strcmp(f->found[j].text, f->found[i].text) == 0)
			return true;
	}
	return false;
}

static void
report_add(struct config_report *r, bool warning, char *text)
{
	if (warning)
		lines_add(&r->warnings, text);
	else
		lines_add(&r->errors, text);
}

void
findings_done(struct findings *f, struct config_report *r)
{
	if (f->nfound > 0)
		qsort(f->found, f->nfound, sizeof(*f->found), compare);
	for (size_t i = 0; i < f->nfound; i++) {
		if (!is_repeated(f, i))
			report_add(r, f->found[i].warning,
			    xstrdup(f->found[i].text));
	}
	if (f->dropped > 0)
		report_add(r, f->nerrors == 0,
		    xasprintf("and %zu more", f->dropped));
	for (size_t i = 0; i < f->nfound; i++)
		free(f->found[i].text);
	for (size_t i = 0; i < f->nfiles; i++)
		free(f->files[i]);
	free(f->found);
	free(f->files);
}

/* -- the report ------------------------------------------------------------------------ */

void
lines_add(struct lines *l, char *text)
{
	*APPEND(l->v, l->n) = text;
}

static void
lines_done(struct lines *l)
{
	while (l->n > 0)
		free(l->v[--l->n]);
	free(l->v);
	l->v = NULL;
}

void
config_report_done(struct config_report *r)
{
	lines_done(&r->errors);
	lines_done(&r->warnings);
}
