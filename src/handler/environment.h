/*
 * The environment of a handler.  It is built from nothing: PATH, HOME and so on, locale
 * and time zone, env_file, env, and the variables of the message.  Later ones replace
 * earlier ones.  All but those of the message are made once, by the loader.
 */
#pragma once

#include "base/buf.h"
#include "base/util.h"
#include "handler/identity.h"
#include "policy/config.h"

#define ENVIRONMENT_FILE_MAX	((size_t)256 * 1024)

/*
 * Appends all variables but those of the message, "NAME=value" with a NUL after each.  The
 * last config_members() are those of env_message, as spawn_row.members wants them.
 * env_file: open, or -1: none.  Returns how many there are, or -1 with an errno for
 * environment_error(): that of reading env_file; EFBIG: it is too large; EINVAL: it is no
 * regular file; one of environment_parse(); E2BIG: with the command line they are too large
 * for execve(2), whatever the message.
 */
int	environment_make(const struct config *, const struct queue_config *,
	    const struct identity *, int env_file, struct buf *) MUSTCHECK;

/*
 * Appends each entry of a text in the syntax of env_file, with a NUL.  0, or -1 with an errno
 * for environment_error(): a line that is no entry, comment (# or ; at the beginning) or empty.
 */
int	environment_parse(const char *, size_t, struct buf *) MUSTCHECK;

/*
 * What is wrong with env_file, for people; never a text from the file, which may be secret:
 * "FILE: No such file or directory", "FILE:3: no \"=\" ...".  The caller frees it.
 */
char	*environment_error(const char *file, int error);
/* As strerror(3), for these and other errors of a start: without the file and the line. */
const char *environment_strerror(int error);
