/*
 * The words of advice: commands to copy, and sentences that rqctl and the daemon share.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "status/judge.h"

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

/*
 * Appends a line for each command: what ends the trouble, or tells more about it, and what lists
 * the messages.  newest: id of the newest dead letter; "": not known.
 */
void		 advice_commands(const struct facts *, const struct judge_context *,
		    const char *newest, struct buf *);

/* Appends a word for a shell, in ASCII: name, 'two words', or $'a\x1bb' (bash, zsh, ksh). */
void		 advice_word(struct buf *, const char *);
