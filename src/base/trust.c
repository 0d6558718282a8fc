/*
 * Folders that only root may write to, and what root opens there; see trust.h.
 *
 * Walks the path from the root.  A folder that was found good cannot be changed by
 * anybody but root, so that the next look at the path, and the caller's open(2), go the
 * same way.
 */
#include "base/trust.h"

#include <sys/stat.h>
#include <sys/xattr.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINKS	16		/* symbolic links in a path */

static int
cannot_look(const char *path, int error, char **cause)
{
	errno = error;
	return util_cause(cause, "%s: %s", path, strerror(error));
}

static int
refuse_owner(const char *path, const struct stat *st, char **cause)
{
	errno = EPERM;
	return util_cause(cause, "%s belongs to user %u, not to root", path, (unsigned)st->st_uid);
}

static int
refuse_mode(const char *path, char **cause)
{
	errno = EPERM;
	return util_cause(cause, "others than root may write to %s", path);
}

/* The path up to a link's last component, which is its target, and the rest; -1: too long. */
static int
follow(char path[PATH_MAX], size_t start, size_t end, const char *target)
{
	char whole[PATH_MAX];
	int n = snprintf(whole, sizeof(whole), "%.*s%s%s", target[0] == '/' ? 0 : (int)start,
	    path, target, path + end);

	if (n >= (int)sizeof(whole))
		return -1;
	strcpy(path, whole);
	return 0;
}

/*
 * Whether others than root may write.  The group of number 0 is root's own; but with an access
 * control list the group's mode is what the list allows to anybody.
 */
static bool
is_open(const char *path, const struct stat *st)
{
	if ((st->st_mode & S_IWOTH) != 0)
		return true;
	return (st->st_mode & S_IWGRP) != 0 && (st->st_gid != 0 ||
	    lgetxattr(path, "system.posix_acl_access", NULL, 0) > 0);
}

/*
 * Looks at each component; after a link it begins again.  With `file` the file itself counts,
 * too.
 */
static int
walk(const char *from, uid_t also, bool file, char **cause)
{
	char path[PATH_MAX] = "", target[PATH_MAX], c;
	size_t start = 0, end = 0;	/* of the last component in `path` so far */
	bool shared = false;		/* the folder is sticky, and others may write to it */
	bool last, folder, ours, open;
	const char *name;
	struct stat st;
	int links = 0;
	ssize_t n;

	if (from[0] != '/' && getcwd(path, sizeof(path)) == NULL)
		return cannot_look(from, errno, cause);
	if (strlen(path) + strlen(from) + 1 >= sizeof(path))
		return cannot_look("a path", ENAMETOOLONG, cause);
	if (from[0] != '/')
		strcat(path, "/");
	strcat(path, from);
	for (;;) {
		last = path[end + strspn(path + end, "/")] == '\0';
		c = path[end];
		path[end] = '\0';
		name = end > 0 ? path : "/";
		if (lstat(name, &st) == -1) {
			if (errno != ENOENT || !last || file)
				return cannot_look(name, errno, cause);
			/* In a shared folder anybody may create it. */
			path[start > 1 ? start - 1 : start] = '\0';
			return shared ? refuse_mode(path, cause) : 0;
		}
		ours = st.st_uid == 0 || st.st_uid == also;
		if (S_ISLNK(st.st_mode)) {
			if (shared && !ours)
				return refuse_owner(name, &st, cause);
			if ((n = readlink(name, target, sizeof(target) - 1)) == -1)
				return cannot_look(name, errno, cause);
			if (++links > LINKS)
				return cannot_look(name, ELOOP, cause);
			target[n] = '\0';
			path[end] = c;
			if (follow(path, start, end, target) == -1)
				return cannot_look("a path", ENAMETOOLONG, cause);
			start = end = 0;
			shared = false;
			continue;
		}
		open = is_open(name, &st);
		folder = S_ISDIR(st.st_mode) || !last;
		if ((folder || file || shared) && !ours)
			return refuse_owner(name, &st, cause);
		if ((folder || file) && open && (!folder || (st.st_mode & S_ISVTX) == 0))
			return refuse_mode(name, cause);
		if (last)
			return 0;
		shared = folder && open;
		path[end] = c;
		start = end + strspn(path + end, "/");
		end = start + strcspn(path + start, "/");
	}
}

int
trust_folders(const char *path, uid_t also, char **cause)
{
	return walk(path, also, false, cause);
}

int
trust_file(const char *path, uid_t also, char **cause)
{
	return walk(path, also, true, cause);
}

/* -- what root opens ---------------------------------------------------------------------- */

static int	(*lender)(enum lend, const char *, void *);
static void	*lender_arg;

void
trust_set_lender(int (*lend)(enum lend, const char *, void *), void *arg)
{
	lender = lend;
	lender_arg = arg;
}

int
trust_lend(enum lend how, const char *path)
{
	return lender != NULL ? lender(how, path, lender_arg) : -1;
}

/* Non-blocking, since opening a fifo could block the daemon. */
int
trust_open(const char *path)
{
	int fd;

	errno = EPERM;
	fd = trust_lend(LEND_READ, path);
	if (fd != -1 || errno != EPERM)
		return fd;
	return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}
