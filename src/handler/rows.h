/*
 * What the spawner may start, and the files that it may open: rows, which the loader makes
 * of a configuration (load_rows.c).  Each configuration is a generation with a number, from its
 * load until the main process retires it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "handler/spawn.h"

/* The row of files: in place of the command line, an enum lend and the path of each. */
#define ROWS_FILES	UINT32_MAX

struct generation;

struct rows {
	struct generation **list;	/* owned */
	size_t		    n;
	unsigned	    last;	/* number given */
};

/*
 * Adds a generation with the rows of this file, and returns its number, from 1; 0: the file
 * cannot be read.  Takes over text, a descriptor: the configuration.
 */
unsigned	 rows_add(struct rows *, int file, int text);
/* Replaces rows that cannot be started by those of this file. */
void		 rows_update(struct rows *, unsigned generation, int file);
void		 rows_retire(struct rows *, unsigned generation);

/* The descriptor of a generation's configuration; -1: there is no such generation. */
int		 rows_text(const struct rows *, unsigned generation);
/* The row of a queue; NULL: there is none. */
const struct spawn_row *rows_find(const struct rows *, unsigned generation, uint32_t queue);

/* Whether a generation names the file: an enum lend, and the path. */
bool		 rows_name_file(const struct rows *, const char *file);

struct config;

/*
 * Appends the rows of the queues that this daemon consumes to a file; only: those for which
 * wanted() is true; NULL: all, and the row of files.  Blocks, 10 s at most: call it in a
 * process of its own.
 */
void	load_rows(const struct config *, int file, bool (*wanted)(uint32_t queue, void *),
	    void *arg);
