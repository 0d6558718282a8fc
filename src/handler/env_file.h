/*
 * Reading env_file: lines NAME=value, as in systemd's EnvironmentFile=.
 */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/util.h"

#define ENV_FILE_MAX	((size_t)256 * 1024)

/*
 * Calls set("NAME=value", arg) for each entry, in order.  Returns 0 and the file's
 * state, or -1 with errno: that of reading it, EFBIG beyond ENV_FILE_MAX, or EINVAL if
 * it is no regular file, or has other lines than entries, comments (# or ; at the
 * beginning) and empty ones.
 */
int	env_file_read(const char *path, void (*set)(const char *, void *),
	    void *arg, struct stat *ret) MUSTCHECK;
/* Like env_file_read(), from an open descriptor, which stays open. */
int	env_file_read_fd(int fd, void (*set)(const char *, void *), void *arg,
	    struct stat *ret) MUSTCHECK;

/* Like env_file_read(), from text in memory; for tests and fuzzing. */
int	env_file_parse(const char *, size_t, void (*set)(const char *, void *),
	    void *arg) MUSTCHECK;

/*
 * Parses a text in place, entry by entry.  It allocates nothing and calls nothing, so
 * it may run in a child that shares its parent's memory.
 */
struct env_text {
	char	*p;		/* the text that is not read yet */
	char	*end;
	char	*out;		/* where the next entry is written, never behind p */
	bool	 bad;		/* after the last one: the text has something that is no entry */
};

/* p: n bytes of text, and one more that may be written. */
void	env_file_begin(struct env_text *, char *p, size_t n);
char	*env_file_next(struct env_text *);	/* NULL: no more, see bad */

/* Whether only rqd may set this variable: RQD_ID=... and the like. */
bool	env_file_is_reserved(const char *entry);

/*
 * Opens the file if it is root's own: a regular file of root in folders of root that
 * nobody else may write to, without symbolic links.  It follows nothing that another
 * user owns.  Returns the descriptor, or -1.
 */
int	env_file_open_roots(const char *path) MUSTCHECK;
