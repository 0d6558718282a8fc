/*
 * Tables for people: columns as wide as they must be, the last one cut where
 * the terminal ends; on request another one is cut, too.
 */
#ifndef RQD_RQCTL_TABLE_H
#define RQD_RQCTL_TABLE_H

#include <stddef.h>

#include "base/util.h"
#include "rqctl/out.h"

#define TABLE_COLUMNS	12

struct cell {
	char		*text;		/* escaped; owned */
	enum colour	 colour;
};

struct table {
	size_t		 ncolumns;
	char		*heads;			/* owned; head points into it */
	const char	*head[TABLE_COLUMNS];
	char		 align[TABLE_COLUMNS];	/* 'l' or 'r' */
	struct cell	*cells;			/* row by row */
	size_t		 ncells;
	size_t		 last_min;		/* where the last column has less room than this,
						   another one is cut; 0: never */
	size_t		 cut;			/* that one */
};

/* Heads as "QUEUE|>WAITING|STATE"; a column with > is right-aligned. */
void	table_init(struct table *, const char *heads);
/* The next cell; rows follow each other. */
void	table_add(struct table *, const char *, ...) PRINTF(2, 3);
void	table_bytes(struct table *, const char *, size_t);	/* escaped */
void	table_number(struct table *, long long);
void	table_colour(struct table *, enum colour);		/* of the cell added last */
size_t	table_rows(const struct table *);
/* The lines, without trailing blanks, into b; width 0: not cut. */
void	table_print(const struct table *, struct buf *b, size_t width);
void	table_show(const struct table *);			/* on stdout */
void	table_done(struct table *);

#endif
