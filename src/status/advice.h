/*
 * Advice to the operator of a queue: a sentence, and commands to copy, for the page.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "status/queue_state.h"

/* How commands are written, and what the reader knows of the configuration; borrowed. */
struct advice {
	const char	*rqctl;		/* "rqctl -c FILE": with the options that it needs */
	const char	*queue;		/* as rqctl needs it */
	const char	*newest;	/* id of the newest dead letter; "": not known */
	const struct config *config;	/* of the daemon */
	const struct queue_config *cfg;	/* the queue there; NULL: it has none */
};

/* "Redis is full: ...", if it is; the caller frees it.  NULL: it is not.  max 0: no limit. */
char		*advice_memory(uint64_t used, uint64_t max);

/* Formats of a daemon's problems: its instance, and the error in its heartbeat. */
#define ADVICE_RELOAD	"daemon %s: reload failed: %s: the old configuration is in use"
#define ADVICE_LOG	"daemon %s cannot write its log: %s"

/* "2 runs take far longer than usual: 20m, usually 4s at most"; the caller frees it. */
char		*advice_slow(const struct facts *);

/*
 * "8 messages have only failed; nothing else to try: ...", if the queue is suspended for that;
 * the caller frees it.  NULL: it is not, or has other messages to try.
 */
char		*advice_only_failed(const struct facts *, const char *queue);

/*
 * A sentence or two: the meaning of the state, the option to change, its value and its place.
 * NULL: nothing is unusual.
 * The caller frees it.  Reads config and cfg only.
 */
char		*advice_hint(const struct facts *, const struct advice *);

/* Appends a line for each command. */
void		 advice_commands(const struct facts *, const struct advice *, struct buf *);

/* Appends a word for a shell, in ASCII: name, 'two words', or $'a\x1bb' (bash, zsh, ksh). */
void		 advice_word(struct buf *, const char *);
