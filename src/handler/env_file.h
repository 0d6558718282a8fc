/*
 * Reading env_file: lines NAME=value, as in systemd's EnvironmentFile=.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/util.h"

#define ENV_FILE_MAX	((size_t)256 * 1024)

/*
 * Calls set("NAME=value", arg) for each entry of an open file, in order.  Returns 0, or -1
 * with errno: that of reading it, EFBIG beyond ENV_FILE_MAX, or EINVAL if it is no regular
 * file, or has other lines than entries, comments (# or ; at the beginning) and empty ones.
 */
int	env_file_read(int fd, void (*set)(const char *, void *), void *arg) MUSTCHECK;

/* The same from text in memory. */
int	env_file_parse(const char *, size_t, void (*set)(const char *, void *),
	    void *arg) MUSTCHECK;

/* Whether only rqd may set this variable: RQD_ID=... and the like. */
bool	env_file_is_reserved(const char *entry);
