/*
 * Configuration files and the files that they include.
 *
 * A file is opened without blocking and then checked by its descriptor: libconfuse exits
 * on a directory, and a FIFO would hang a reload for ever.  As root, the file's owner and
 * mode are checked too: only root may decide what root runs.
 *
 * libconfuse's include() leaks, knows no patterns and breaks after an error.  This file
 * uses glob(3) instead, sorted by byte, relative to the including file.  A pattern may
 * match nothing; a plain name must exist.
 */
#include "config/draft.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX	(16 * 1024 * 1024)
#define INCLUDE_DEPTH	16

/* A file that is being read, and the one that includes it. */
struct open_file {
	struct stat	 st;
	const struct open_file *parent;		/* NULL: the main file */
	unsigned	 depth;
};

static void read_file(struct draft *, const char *path, const struct place *from,
    const struct open_file *parent);

/* -- one file ----------------------------------------------------------------------- */

/* NULL, or why the file is refused. */
static const char *
refuse(const struct stat *st)
{
	if (S_ISDIR(st->st_mode))
		return "is a directory";
	if (!S_ISREG(st->st_mode))
		return "is not a regular file";
	if (st->st_size > FILE_MAX)
		return "is larger than 16M";
	if (geteuid() != 0)
		return NULL;
	if (st->st_uid != 0 && st->st_uid != getuid())
		return "does not belong to root, and rqd runs as root: chown it to root";
	if ((st->st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return "others may write to it, and rqd runs as root: chmod go-w it";
	return NULL;
}

static int
open_file(const char *path)
{
	return open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

/* Reads it whole; NULL, or why not. */
static const char *
read_bytes(const char *path, struct buf *b, struct stat *st)
{
	const char *why = NULL;
	int fd = open_file(path);

	if (fd == -1)
		return strerror(errno);
	if (fstat(fd, st) == -1 || ((why = refuse(st)) == NULL &&
	    buf_read(b, fd, FILE_MAX) == -1))
		why = strerror(errno);
	close(fd);
	return why;
}

/* Reports a NUL byte, which would end the text early, or a known binary format. */
static bool
is_text(const struct buf *b, const char *file, struct findings *f)
{
	const char *nul = b->len > 0 ? memchr(b->data, '\0', b->len) : NULL, *p;
	struct place at = { file, 1 };

	if (b->len >= 2 && (memcmp(b->data, "\xff\xfe", 2) == 0 ||
	    memcmp(b->data, "\xfe\xff", 2) == 0))
		return finding_error(f, &at, "the file is UTF-16: save it as UTF-8");
	if (nul == NULL)
		return true;
	for (p = b->data; p < nul; p++)
		at.line += *p == '\n';
	return finding_error(f, &at, "this line has a NUL byte: save the file as plain text");
}

bool
files_mention(const char *path, const char *word)
{
	struct buf b = BUF_INIT;
	int fd = open_file(path);
	bool may = fd == -1 || buf_read(&b, fd, FILE_MAX) == -1 ||
	    memmem(b.data, b.len, word, strlen(word)) != NULL;

	if (fd != -1)
		close(fd);
	buf_done(&b);
	return may;
}

/* -- includes ----------------------------------------------------------------------- */

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
	return buf_steal(&b);
}

/* The error function for glob(3): a missing folder is no error. */
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
include(struct draft *d, const struct item *item, const struct open_file *parent)
{
	char *pattern = full_pattern(item->at.file, item->title);
	glob_t g;

	switch (glob(pattern, GLOB_NOSORT, glob_error, &g)) {
	case 0:
		qsort(g.gl_pathv, g.gl_pathc, sizeof(*g.gl_pathv), compare);
		for (size_t i = 0; i < g.gl_pathc; i++)
			read_file(d, g.gl_pathv[i], &item->at, parent);
		break;
	case GLOB_NOMATCH:
		if (strpbrk(item->title, "*?[") == NULL)
			finding_error(&d->findings, &item->at, "include: there is no file %s",
			    pattern);
		break;
	default:
		finding_error(&d->findings, &item->at, "include: cannot read the folder of %s: %s",
		    pattern, strerror(errno));
		break;
	}
	globfree(&g);
	free(pattern);
}

/* Whether it may be included here; reports if not. */
static bool
check_nesting(struct draft *d, const char *path, const struct place *from,
    const struct open_file *file)
{
	const struct open_file *f;

	for (f = file->parent; f != NULL; f = f->parent) {
		if (f->st.st_dev == file->st.st_dev && f->st.st_ino == file->st.st_ino)
			return finding_error(&d->findings, from,
			    "include: %s is being read already: it includes itself", path);
	}
	if (file->depth < INCLUDE_DEPTH)
		return true;
	return finding_error(&d->findings, from, "include: more than %d files deep", INCLUDE_DEPTH);
}

/* Takes items in order; an include's files take its place. */
static void
take_text(struct draft *d, const char *name, const struct buf *b, const struct open_file *file)
{
	struct parsed parsed;

	parser_read(&parsed, b->data, b->len, findings_file(&d->findings, name), &d->findings);
	*APPEND(d->texts, d->ntexts) = parsed;
	for (size_t i = 0; i < parsed.n; i++) {
		if (parsed.items[i].type != ITEM_INCLUDE)
			draft_take(d, &parsed.items[i]);
		else if (parsed.items[i].title != NULL && file != NULL)
			include(d, &parsed.items[i], file);
	}
}

/* from: the include; NULL: this is the main file. */
static void
read_file(struct draft *d, const char *path, const struct place *from,
    const struct open_file *parent)
{
	struct open_file file = {
		.parent = parent, .depth = parent != NULL ? parent->depth + 1 : 0
	};
	struct place at = { path, 0 };
	struct buf b = BUF_INIT;
	const char *why;

	if (util_has(d->skip->v, d->skip->n, path))
		return;
	at.file = findings_file(&d->findings, path);
	why = read_bytes(path, &b, &file.st);
	if (why != NULL && from == NULL) {
		finding_error(&d->findings, &at, "%s%s", why, access(path, F_OK) == -1 &&
		    errno == ENOENT ? "; write it, or name another one by -c FILE" : "");
	} else if (why != NULL) {
		finding_error(&d->findings, from, "%s: %s", path, why);
		findings_blame(&d->findings, path);
	} else if (is_text(&b, at.file, &d->findings) && check_nesting(d, path, from, &file)) {
		(void)buf_str(&b);
		take_text(d, path, &b, &file);
	}
	buf_done(&b);
}

void
files_take(struct draft *d)
{
	const struct config_source *source = d->source;
	const struct buf text = {
		.data = (char *)(uintptr_t)source->text, .len = source->text_len
	};

	if (source->text != NULL)	/* the text has no includes any more */
		take_text(d, source->file != NULL ? source->file : "-q", &text, NULL);
	else if (source->file != NULL)
		read_file(d, source->file, NULL, NULL);
}
