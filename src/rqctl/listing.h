/*
 * A verb's list: a table for people, which may be cut, or with --json an array of objects.
 *
 * A table's columns are as wide as they must be.  If the terminal is too narrow, the
 * last column is cut.  With last_min, another column makes room for it.
 */
#pragma once

#include "rqctl/ctl.h"
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
	bool		 middle;		/* it is cut in the middle */
};

/* Heads as "QUEUE|>WAITING|STATE"; a column with > is right-aligned. */
void	table_init(struct table *, const char *heads);
/* table_add(t, fmt, ...) adds the next cell, escaped; rows follow each other. */
#define table_add(t, ...)	table_put((t), out_text(__VA_ARGS__))
void	table_put(struct table *, char *);			/* takes the text */
void	table_bytes(struct table *, const char *, size_t);	/* escaped */
void	table_number(struct table *, long long);
void	table_colour(struct table *, enum colour);		/* of the cell added last */
size_t	table_rows(const struct table *);
/* The lines, without trailing blanks, into b; width 0: not cut. */
void	table_print(const struct table *, struct buf *b, size_t width);
void	table_done(struct table *);

struct listing {
	struct ctl	*ctl;
	struct table	 table;
	json_t		*array;		/* with --json; NULL: the table */
	long		 most;		/* rows at most */
	int64_t		 rows;		/* rows so far */
	bool		 more;		/* there is a row that does not fit; for total -1 */
};

/*
 * Heads as in table_init().  --count, --all and the verb's row of the table of verbs say
 * how much is listed; JSON holds all by default.  Returns 0, or -1 after an error was
 * reported; listing_end() is due in both cases.
 */
int	listing_init(struct listing *, struct ctl *, const char *heads) MUSTCHECK;

/* Begins a row: returns a new object to be filled, or NULL: add the cells to the table. */
json_t	*listing_row(struct listing *);
bool	 listing_is_full(const struct listing *);
/* How many rows still may come, at most. */
long	 listing_room(const struct listing *, long most);

/*
 * listing_end(l, total, what, fmt, ...) prints the list and frees it.  total: how many rows
 * there are, -1 for unknown; what they are, for "50 of 300 letters; --all for all".  The rest
 * is the note for an empty list.
 */
#define listing_end(l, total, what, ...) \
	listing_finish((l), (total), (what), out_text(__VA_ARGS__))
void	listing_finish(struct listing *, int64_t total, const char *what, char *note);
