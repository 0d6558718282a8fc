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
#include "policy/message.h"

#define ENVIRONMENT_WORDS	16	/* at most, for one message */

/*
 * Appends all variables but those of the message, "NAME=value" with a NUL after each.
 * env_file: open, or -1: none.  Returns how many there are, or -1 with errno: those of
 * env_file_read().
 */
int	environment_make(const struct config *, const struct queue_config *,
	    const struct identity *, int env_file, struct buf *) MUSTCHECK;

/*
 * The words of a message.  If it is NULL: those of a batch of so many messages, or,
 * with batch 0, those of a process that gets many messages one by one.
 */
void	environment_words(struct buf *, const struct message *, unsigned batch,
	    const struct queue_config *);
