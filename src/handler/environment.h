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
 * env_file: open, or -1: none.  Returns how many there are, or -1 with errno: that of reading
 * env_file, EFBIG if it is too large, EINVAL if it is no regular file, or environment_parse().
 */
int	environment_make(const struct config *, const struct queue_config *,
	    const struct identity *, int env_file, struct buf *) MUSTCHECK;

/*
 * Appends each entry of a text in the syntax of env_file, with a NUL.  0, or -1 with EINVAL: it
 * has other lines than entries, comments (# or ; at the beginning) and empty ones.
 */
int	environment_parse(const char *, size_t, struct buf *) MUSTCHECK;
