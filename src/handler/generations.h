/*
 * The configurations that a launcher keeps: each is a generation with a number, from
 * its load until the main process retires it.
 */
#pragma once

#include <stddef.h>

#include "policy/config.h"

struct command;
struct generation;

struct generations {
	struct generation **list;	/* owned */
	size_t		    n;
	unsigned	    last;	/* number given */
};

/* Takes over the caller's reference; returns the number, from 1. */
unsigned	 generations_add(struct generations *, struct config *);
void		 generations_retire(struct generations *, unsigned number);

/* NULL: there is no such generation. */
const struct config *generations_config(const struct generations *, unsigned number);
/* The command of its queue number queue; NULL: there is none. */
struct command	*generations_command(const struct generations *, unsigned number, unsigned queue);

/*
 * Opens a file or connects to a unix socket that a generation names, or opens
 * redis-password of $CREDENTIALS_DIRECTORY.  Returns a descriptor, or -1 with errno;
 * EACCES: no generation names the path.
 */
int		 generations_open(const struct generations *, const char *path);
