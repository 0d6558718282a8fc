/*
 * Folders that only root may write to; see trust.h.
 *
 * Walks the path from the root.  A folder that was found good cannot be changed by
 * anybody but root, so that the next look at the path, and the caller's open(2), go the
 * same way.
 */
#include "base/trust.h"

#include <sys/stat.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define LINKS	16		/* symbolic links in a path */

struct trust_walk {
	char	 done[PATH_MAX];	/* without links; "" is the root */
	char	 rest[PATH_MAX];	/* to be walked from there */
	bool	 shared;		/* done is sticky, and others may write to it */
	int	 links;
	uid_t	 also;
	bool	 file;			/* the file itself counts, too */
	char	**cause;
};

static bool
is_ours(const struct trust_walk *w, uid_t uid)
{
	return uid == 0 || uid == w->also;
}

static int
refuse_owner(const struct trust_walk *w, const struct stat *st)
{
	errno = EPERM;
	return util_cause(w->cause, "%s belongs to user %u, not to root", w->done,
	    (unsigned)st->st_uid);
}

static int
refuse_mode(const struct trust_walk *w)
{
	errno = EPERM;
	return util_cause(w->cause, "others than root may write to %s",
	    w->done[0] != '\0' ? w->done : "/");
}

/* The group of that number is root's own. */
static bool
others_write(const struct stat *st)
{
	return (st->st_mode & S_IWOTH) != 0 || ((st->st_mode & S_IWGRP) != 0 && st->st_gid != 0);
}

static int
cannot_look(const struct trust_walk *w, int error)
{
	errno = error;
	return util_cause(w->cause, "%s: %s", w->done[0] != '\0' ? w->done : "/",
	    strerror(error));
}

/* Notes whether it is shared. */
static int
check_folder(struct trust_walk *w, const struct stat *st)
{
	if (!is_ours(w, st->st_uid))
		return refuse_owner(w, st);
	w->shared = others_write(st);
	return w->shared && (st->st_mode & S_ISVTX) == 0 ? refuse_mode(w) : 0;
}

static int
check_last(const struct trust_walk *w, const struct stat *st)
{
	if (!w->file)
		return 0;
	if (!is_ours(w, st->st_uid))
		return refuse_owner(w, st);
	return others_write(st) ? refuse_mode(w) : 0;
}

/* Moves the next component from the rest to what is done; false: there is none. */
static bool
next(struct trust_walk *w, char parent[PATH_MAX])
{
	char *p = w->rest + strspn(w->rest, "/");
	size_t n = strcspn(p, "/"), len = strlen(w->done);

	if (n == 0)
		return false;
	memcpy(parent, w->done, len + 1);
	if (n == 2 && memcmp(p, "..", 2) == 0) {
		w->done[len > 0 ? (size_t)(strrchr(w->done, '/') - w->done) : 0] = '\0';
	} else if (n != 1 || *p != '.') {
		/* walk() and follow() checked that both parts together are shorter than this. */
		w->done[len] = '/';
		memcpy(w->done + len + 1, p, n);
		w->done[len + 1 + n] = '\0';
	}
	memmove(w->rest, p + n, strlen(p + n) + 1);
	return true;
}

static int
begin(struct trust_walk *w)
{
	struct stat st;

	w->done[0] = '\0';
	return lstat("/", &st) == -1 ? cannot_look(w, errno) : check_folder(w, &st);
}

/* The path walked so far is a link: goes on in the link's folder, or at the root. */
static int
follow(struct trust_walk *w, const char *parent)
{
	char target[PATH_MAX];
	ssize_t n = readlink(w->done, target, sizeof(target) - 1);
	size_t rest = strlen(w->rest);

	if (n == -1)
		return cannot_look(w, errno);
	target[n] = '\0';
	if (++w->links > LINKS)
		return cannot_look(w, ELOOP);
	if (strlen(parent) + (size_t)n + 1 + rest + 2 > sizeof(w->rest))
		return cannot_look(w, ENAMETOOLONG);
	memmove(w->rest + n + 1, w->rest, rest + 1);
	memcpy(w->rest, target, (size_t)n);
	w->rest[n] = '/';
	if (rest == 0)
		w->rest[n] = '\0';
	strcpy(w->done, parent);
	return target[0] == '/' ? begin(w) : 0;
}

/* Checks the component that next() has appended. */
static int
step(struct trust_walk *w, const char *parent)
{
	bool last = w->rest[strspn(w->rest, "/")] == '\0';
	struct stat st;

	if (lstat(w->done[0] != '\0' ? w->done : "/", &st) == -1) {
		if (errno != ENOENT || !last || w->file)
			return cannot_look(w, errno);
		if (!w->shared)
			return 0;
		strcpy(w->done, parent);	/* anybody may create it */
		return refuse_mode(w);
	}
	if (w->shared && !is_ours(w, st.st_uid))
		return refuse_owner(w, &st);
	if (S_ISLNK(st.st_mode))
		return follow(w, parent);
	if (!S_ISDIR(st.st_mode) && last)
		return check_last(w, &st);
	return check_folder(w, &st);
}

static int
walk(struct trust_walk *w, const char *path)
{
	char parent[PATH_MAX];

	if (path[0] != '/' || strlen(path) + 2 > sizeof(w->rest))
		return cannot_look(w, ENAMETOOLONG);
	strcpy(w->rest, path);
	if (begin(w) == -1)
		return -1;
	while (next(w, parent)) {
		if (step(w, parent) == -1)
			return -1;
	}
	return 0;
}

int
trust_folders(const char *path, uid_t also, char **cause)
{
	struct trust_walk w = { .also = also, .cause = cause };

	return walk(&w, path);
}

int
trust_file(const char *path, uid_t also, char **cause)
{
	struct trust_walk w = { .also = also, .file = true, .cause = cause };

	return walk(&w, path);
}
