/*
 * Describes for people why a command cannot be started: what is wrong, with which file,
 * and what to do about it.
 */
#pragma once

#include "policy/config.h"

/*
 * Says what is wrong with the "#!"  line of a file, so that the kernel does not execute
 * it.  NULL: that line is right, or the file cannot be read.  The caller frees it.
 */
char	*start_error_first_line(const char *path);

/*
 * The text for a start that failed at this step, see spawn_step_name(), with this
 * errno.  The caller frees it.
 */
char	*start_error_text(const struct queue_config *, const char *step, int error);
