/*
 * Configuration files and the files that they include.
 *
 * A file is opened without blocking and then checked by its descriptor: libconfuse exits
 * on a directory, and a FIFO would hang a reload for ever.  As root, the file's owner and
 * mode are checked too: only root may decide what root runs.  So are the folders of an
 * included file: a user's link would have root print parts of a file that only root may read.
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

#include "base/trust.h"

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

/* Reads it whole; NULL, or why not. */
static const char *
read_bytes(const char *path, struct buf *b, struct stat *st)
{
	const char *why = NULL;
	bool root = geteuid() == 0;
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd == -1)
		return strerror(errno);
	if (fstat(fd, st) == -1)
		why = strerror(errno);
	else if (S_ISDIR(st->st_mode))
		why = "is a directory";
	else if (!S_ISREG(st->st_mode))
		why = "is not a regular file";
	else if (st->st_size > FILE_MAX)
		why = "is larger than 16M";
	else if (root && st->st_uid != 0 && st->st_uid != getuid())
		why = "does not belong to root, and rqd runs as root: chown it to root";
	else if (root && (st->st_mode & (S_IWGRP | S_IWOTH)) != 0)
		why = "others may write to it, and rqd runs as root: chmod go-w it";
	else if (buf_read(b, fd, FILE_MAX) == -1)
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

/* -- includes ----------------------------------------------------------------------- */

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
	const char *file = item->at.file, *slash = strrchr(file, '/');
	struct buf b = BUF_INIT;
	char *pattern;
	glob_t g;

	/* The including file's folder, escaped for glob(3). */
	for (; item->title[0] != '/' && slash != NULL && file <= slash; file++) {
		if (strchr("*?[]\\", *file) != NULL)
			buf_addc(&b, '\\');
		buf_addc(&b, *file);
	}
	buf_puts(&b, item->title);
	pattern = buf_steal(&b);

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
		finding_error(&d->findings, &item->at,
		    "include: cannot read the directory of %s: %s", pattern,
		    strerror(errno));
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
take_text(struct draft *d, const char *name, char *text, const struct open_file *file)
{
	struct parsed parsed;

	if (parse_text(&parsed, text, findings_file(&d->findings, name), &d->findings) == -1)
		d->incomplete = true;
	*APPEND(d->texts, d->ntexts) = parsed;
	for (size_t i = 0; i < parsed.n; i++) {
		if (parsed.items[i].section != SECTION_MAX)
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
	struct open_file file = { .parent = parent };
	struct place at = { path, 0 };
	struct buf b = BUF_INIT;
	char *distrust = NULL;
	const char *why, *hint = "";
	bool taken = false;

	if (parent != NULL)
		file.depth = parent->depth + 1;
	at.file = findings_file(&d->findings, path);
	if (geteuid() == 0 && trust_folders(path, getuid(), &distrust) == -1 &&
	    (from != NULL || errno == EPERM))
		why = distrust;
	else
		why = read_bytes(path, &b, &file.st);
	if (why != NULL && from == NULL) {
		if (access(path, F_OK) == -1 && errno == ENOENT)
			hint = "; write it, or name another one by -c FILE";
		finding_error(&d->findings, &at, "%s%s", why, hint);
	} else if (why != NULL) {
		finding_error(&d->findings, from, "%s: %s", path, why);
	} else if (is_text(&b, at.file, &d->findings) && check_nesting(d, path, from, &file)) {
		take_text(d, path, buf_str(&b), &file);
		taken = true;
	}
	d->incomplete |= !taken;
	free(distrust);
	buf_done(&b);
}

void
files_take(struct draft *d)
{
	const struct config_source *source = d->source;
	char *text;

	if (source->text != NULL) {	/* the text has no includes any more */
		text = xstrndup(source->text, source->text_len);
		take_text(d, draft_source_name(source), text, NULL);
		free(text);
	} else if (source->file != NULL) {
		read_file(d, source->file, NULL, NULL);
	}
}
