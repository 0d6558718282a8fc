/*
 * The list of findings: added in any order, reported in the order of the files.
 *
 * Names and values come from files, so this file escapes unprintable characters,
 * in one place, before a finding reaches a terminal.
 */
#include "config/findings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

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
	size_t i;

	for (i = 0; i < f->nfiles; i++) {
		if (f->files[i] == name || strcmp(f->files[i], name) == 0)
			return i;
	}
	*APPEND(f->files, f->nfiles) = xstrdup(name);
	return i;
}

const char *
findings_file(struct findings *f, const char *name)
{
	size_t n = file_number(f, name);

	return f->files[n];
}

/* Takes text; returns it without control characters. */
static char *
printable(char *text)
{
	struct buf b = BUF_INIT;
	const char *p;

	for (p = text; *p != '\0'; p++) {
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			buf_printf(&b, *p == '\n' ? "\\n" : "\\x%02x", (unsigned char)*p);
		else
			buf_addc(&b, *p);
	}
	free(text);
	return buf_steal(&b);
}

bool
finding_add(struct findings *f, const struct place *at, bool warning, char *text)
{
	struct finding *found;
	char *line;
	size_t file;

	f->nerrors += !warning || f->strict;
	if (f->nfound >= FINDINGS_MAX) {
		f->dropped++;
		free(text);
		return false;
	}
	line = at->line > 0 ? xasprintf("%s:%d: %s", at->file, at->line, text) :
	    xasprintf("%s: %s", at->file, text);
	free(text);
	file = file_number(f, at->file);
	found = APPEND(f->found, f->nfound);
	*found = (struct finding){
		.file = file, .line = at->line, .order = f->nfound,
		.warning = warning && !f->strict, .fault = file, .text = printable(line),
	};
	return false;
}

void
findings_blame(struct findings *f, const char *file)
{
	if (f->nfound > 0 && f->dropped == 0)
		f->found[f->nfound - 1].fault = file_number(f, file);
}

void
findings_share(struct findings *f, const struct place *other)
{
	if (f->nfound > 0 && f->dropped == 0 && f->found[f->nfound - 1].fault == 0)
		f->found[f->nfound - 1].fault = file_number(f, other->file);
}

void
findings_forget(struct findings *f, size_t n)
{
	while (f->nfound > n) {
		f->nfound--;
		f->nerrors -= !f->found[f->nfound].warning;
		free(f->found[f->nfound].text);
	}
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

/* Each file that has an error, once. */
static void
list_files(const struct findings *f, struct config_report *r)
{
	size_t i, k;

	for (i = 0; i < f->nfiles; i++) {
		for (k = 0; k < f->nfound; k++)
			if (!f->found[k].warning && f->found[k].fault == i)
				break;
		if (k < f->nfound)
			lines_add(&r->files, xstrdup(f->files[i]));
	}
}

void
findings_done(struct findings *f)
{
	struct config_report *r = f->report;

	if (f->nfound > 0)
		qsort(f->found, f->nfound, sizeof(*f->found), compare);
	for (size_t i = 0; i < f->nfound; i++) {
		if (is_repeated(f, i))
			continue;
		lines_add(f->found[i].warning ? &r->warnings : &r->errors,
		    xstrdup(f->found[i].text));
	}
	if (f->dropped > 0)
		lines_add(f->nerrors > 0 ? &r->errors : &r->warnings,
		    xasprintf("and %zu more", f->dropped));
	list_files(f, r);
	for (size_t i = 0; i < f->nfound; i++)
		free(f->found[i].text);
	for (size_t i = 0; i < f->nfiles; i++)
		free(f->files[i]);
	free(f->found);
	free(f->files);
}
