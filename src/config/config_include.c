/*
 * Files and the files they include.
 *
 * libconfuse's include() leaks, knows no patterns and breaks after an error.  This
 * file uses glob(3) instead, sorted by byte, relative to the including file.  A
 * pattern may match nothing; a plain name must exist.
 */
#include "config/config_load.h"

#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

static bool
is_open(const struct loader *l, const struct stat *st)
{
	unsigned i;

	for (i = 0; i < l->depth; i++) {
		if (l->open[i].dev == st->st_dev && l->open[i].ino == st->st_ino)
			return true;
	}
	return false;
}

static void
keep_text(struct loader *l, struct config_text *text)
{
	l->texts = xreallocarray(l->texts, l->ntexts + 1, sizeof(*l->texts));
	l->texts[l->ntexts++] = text;
}

/* Puts the including file's folder, escaped for glob(3), in front of the pattern. */
static char *
full_pattern(const char *file, const char *pattern)
{
	const char *slash = strrchr(file, '/'), *p;
	struct buf b = BUF_INIT;

	if (pattern[0] != '/' && slash != NULL) {
		for (p = file; p <= slash; p++) {
			if (strchr("*?[]\\", *p) != NULL)
				buf_addc(&b, '\\');
			buf_addc(&b, *p);
		}
	}
	buf_puts(&b, pattern);
	(void)buf_str(&b);
	return buf_steal(&b);
}

/* For glob(3): a missing folder is no error. */
static int
glob_error(const char *path UNUSED, int error)
{
	return error != ENOENT && error != ENOTDIR;
}

static int
compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void
include(struct loader *l, const struct item *item)
{
	char *pattern = full_pattern(item->at.file, item->title);
	glob_t g;
	size_t i;

	switch (glob(pattern, GLOB_NOSORT, glob_error, &g)) {
	case 0:
		qsort(g.gl_pathv, g.gl_pathc, sizeof(*g.gl_pathv), compare);
		for (i = 0; i < g.gl_pathc; i++)
			config_include_file(l, g.gl_pathv[i], &item->at);
		break;
	case GLOB_NOMATCH:
		if (strpbrk(item->title, "*?[") == NULL)
			finding_error(&l->findings, &item->at, "include: there is no file %s",
			    pattern);
		break;
	default:
		finding_error(&l->findings, &item->at, "include: cannot read the folder of %s: %s",
		    pattern, strerror(errno));
		break;
	}
	globfree(&g);
	free(pattern);
}

/* Takes items in order; an include's files take its place. */
static void
take_items(struct loader *l, struct config_text *text)
{
	size_t i;

	for (i = 0; i < text->n; i++) {
		if (text->items[i].type != ITEM_INCLUDE)
			config_collect(l, &text->items[i]);
		else if (text->items[i].title != NULL)
			include(l, &text->items[i]);
	}
}

void
config_include_file(struct loader *l, const char *path, const struct place *from)
{
	struct config_text *text;
	struct stat st;
	size_t len = 0, i;
	char *bytes;

	for (i = 0; i < l->nskip; i++)
		if (strcmp(l->skip[i], path) == 0)
			return;
	if ((bytes = config_text_read(path, from, &len, &st, &l->findings)) == NULL)
		return;
	if (is_open(l, &st)) {
		finding_error(&l->findings, from, "include: %s is being read already: "
		    "it includes itself", path);
	} else if (l->depth == INCLUDE_DEPTH) {
		finding_error(&l->findings, from, "include: more than %d files deep", INCLUDE_DEPTH);
	} else {
		l->open[l->depth].dev = st.st_dev;
		l->open[l->depth++].ino = st.st_ino;
		text = config_text_parse(bytes, len, findings_file(&l->findings, path),
		    &l->findings);
		keep_text(l, text);
		take_items(l, text);
		l->depth--;
	}
	free(bytes);
}
