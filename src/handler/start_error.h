/*
 * Why a command cannot be started, in words for a person: what is wrong, with which
 * file, and what to do about it.
 */
#ifndef RQD_HANDLER_START_ERROR_H
#define RQD_HANDLER_START_ERROR_H

#include "policy/config.h"

/*
 * Says why the kernel does not execute a file that exists, where its "#!" line is wrong.
 * NULL: that line is right, or the file cannot be read.  The caller frees it.
 */
char	*start_error_first_line(const char *path);

/* Why a start failed at step, see spawn_step_name(), with this errno.  The caller frees it. */
char	*start_error_text(const struct queue_config *, const char *step, int error);

#endif
