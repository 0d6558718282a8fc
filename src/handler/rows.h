/*
 * What the spawner may start, and the files that it may open: rows, which the loader makes
 * of a configuration (load_rows.c).  Each configuration is a generation with a number, from its
 * load until the main process retires it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "handler/spawn.h"

/* The row of files: in place of the command line, an enum lend and the path of each. */
#define ROWS_FILES	UINT32_MAX

/* A configuration, by its number from 1. */
struct generation {
	LIST_ENTRY(generation) entry;
	unsigned	   number;
	int		   text;	/* owned: the configuration */
	struct spawn_row **rows;	/* that of files, and of each queue; NULL: there is none */
	size_t		   nrows;
};

struct rows {
	LIST_HEAD(, generation) list;
	unsigned	   last;	/* number given */
};

/*
 * Adds a generation with the rows of this file, and returns its number; 0: the file
 * cannot be read.  Takes over text, a descriptor: the configuration.
 */
unsigned	 rows_add(struct rows *, int file, int text);
/* Replaces rows by those of this file.  0, or -1: it cannot be read. */
int		 rows_update(struct generation *, int file);
void		 rows_retire(struct generation *);		/* NULL is fine */

/* NULL: there is no such generation, or no such row. */
struct generation *rows_generation(const struct rows *, unsigned);
const struct spawn_row *rows_find(const struct rows *, unsigned generation, uint32_t queue);

/* The row's variables of env_message. */
const char	*rows_members(const struct spawn_row *);

/* Whether a generation names the file: an enum lend, and the path. */
bool		 rows_name_file(const struct rows *, const char *file);

struct config;

/*
 * Appends the rows of the queues that this daemon consumes to a file, and the row of files;
 * with a generation only those of its rows that cannot be started.  Blocks, 10 s at most:
 * call it in a process of its own.
 */
void	load_rows(const struct config *, int file, const struct rows *, unsigned generation);
