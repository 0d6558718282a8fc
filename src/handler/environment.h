/*
 * The environment of a handler.  It is built from nothing: PATH, HOME and so on, locale
 * and time zone, env_file, env, and the variables of the message.  Later ones replace
 * earlier ones.  All but those of the message are made once per queue.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/util.h"
#include "handler/handler.h"
#include "handler/identity.h"

#define ENVIRONMENT_WORDS	16	/* at most, for one message */

struct environment;

/*
 * Returns 0, or -1 with errno if env_file cannot be read (EINVAL: it has a line that is
 * not NAME=value).  Copies everything but cfg, which must live as long.  guarded:
 * leaves an env_file that is not root's own to the child.
 */
int	environment_new(const struct handler_env *, const struct queue_config *,
	    const struct identity *, bool guarded, struct environment **ret) MUSTCHECK;
void	environment_free(struct environment *);	/* NULL is fine */

/* Whether env_file has changed since it was read; costs one stat(2) if there is an env_file. */
bool	environment_is_stale(const struct environment *);

/*
 * The environment for execve(2), valid until the next call: the words of this message,
 * then those that all messages share.  words: "NAME=value" with a NUL after each,
 * ENVIRONMENT_WORDS at most.
 */
char	**environment_with(struct environment *, char *words, size_t len);

/* The env_file that the child must read: see struct spawn.  NULL: none. */
const char *environment_left_file(const struct environment *, size_t *first, size_t *weak);

/*
 * The words of a message.  If it is NULL: those of a batch of so many messages, or,
 * with batch 0, those of a process that gets many messages one by one.
 */
void	environment_words(struct buf *, const struct message *, unsigned batch,
	    const struct queue_config *);
