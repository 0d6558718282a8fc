/*
 * A verb's list: a table for people, which may be cut, or with --json an array of objects.
 *
 * A column is as wide as its widest cell.  If the terminal is too narrow, the last column is
 * cut; with last_min, another column is cut first.
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
	size_t		 last_min;		/* columns that the last one needs: if it has
						   fewer, another one is cut; 0: never */
	size_t		 cut;			/* the column that is cut for the last one */
	bool		 middle;		/* all but the last are cut in the middle */
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
/* Appends the lines, without trailing blanks, to b.  width 0: nothing is cut. */
void	table_print(const struct table *, struct buf *b, size_t width);
void	table_done(struct table *);

struct listing {
	struct ctl	*ctl;
	struct table	 table;
	json_t		*array;		/* with --json; NULL: the table */
	long		 most;		/* rows at most */
	int64_t		 rows;		/* rows so far */
	bool		 more;		/* more rows exist than are listed */
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
/* How many rows still fit; `most` at most. */
long	 listing_room(const struct listing *, long most);

/*
 * listing_end(l, total, what, fmt, ...) prints the list and frees it.  total: how many rows
 * exist; -1: not known.  what: their name, for "50 of 300 letters; --all for all".  The format
 * is printed if the list is empty.
 */
#define listing_end(l, total, what, ...) \
	listing_finish((l), (total), (what), out_text(__VA_ARGS__))
void	listing_finish(struct listing *, int64_t total, const char *what, char *note);
