/*
 * The words of advice: commands to copy, and sentences that rqctl and the daemon share.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "policy/config.h"

/* "Redis is full: ...", if it is; the caller frees it.  NULL: it is not.  max 0: no limit. */
char		*advice_memory(uint64_t used, uint64_t max);

/* Formats of a daemon's problems: its instance, and the error in its heartbeat. */
#define ADVICE_RELOAD	"daemon %s: reload failed: %s: the old configuration is in use"
#define ADVICE_LOG	"daemon %s cannot write its log: %s"

/* Of the daemon with this configuration; NULL: it is no file, or not known. */
const char	*advice_log_file(const struct config *);

/* Appends a line: rqctl, the verb, the queue, and the rest unless that is "". */
void		 advice_command(struct buf *, const char *rqctl, const char *verb,
		    const char *queue, const char *rest);

/* Appends a command that shows the end of the queue's records, in a file or in the journal. */
void		 advice_log_lines(struct buf *, const struct config *, const char *queue);

/* Appends a word for a shell, in ASCII: name, 'two words', or $'a\x1bb' (bash, zsh, ksh). */
void		 advice_word(struct buf *, const char *);
