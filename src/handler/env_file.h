/*
 * Reading env_file: lines NAME=value, as in systemd's EnvironmentFile=.
 */
#ifndef RQD_HANDLER_ENV_FILE_H
#define RQD_HANDLER_ENV_FILE_H

#include <sys/stat.h>

#include "base/buf.h"
#include "base/util.h"

#define ENV_FILE_MAX	((size_t)256 * 1024)

/*
 * Calls set("NAME=value", arg) for each entry, in order.  Returns 0 and the
 * file's state, or -1 with errno: that of reading it, EFBIG beyond ENV_FILE_MAX,
 * or EINVAL where it is no regular file or holds anything but entries, comments
 * (# or ; at the beginning of a line) and empty lines.
 */
int	env_file_read(const char *path, void (*set)(const char *, void *),
	    void *arg, struct stat *ret) MUSTCHECK;

/* The same for text in memory; for tests and fuzzing. */
int	env_file_parse(const char *, size_t, void (*set)(const char *, void *),
	    void *arg) MUSTCHECK;

#endif
