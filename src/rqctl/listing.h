/*
 * A verb's list: objects, which --json prints as an array, and of which a table for people has
 * some members.  A member whose name begins with "." is for the table only.
 *
 * The columns of a table are "QUEUE=queue|>PID=#pid|STATE=.state": head and member.  One with >
 * is right-aligned.  Texts are escaped, numbers get commas but for those with #, reals are
 * ages in seconds, the words of an array stand side by side, and all else is "-".
 *
 * A column is as wide as its widest cell.  If the terminal is too narrow, columns that have
 * nothing but zeros are left out, then the columns of `shed`, in this order; with last_min,
 * another column is then cut; the last one is cut at the end.  Without last_min, a table whose
 * last column has too little room is printed as records: a block of lines for each row.
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
	char		*columns;		/* owned; head and member point into it */
	const char	*head[TABLE_COLUMNS];
	const char	*member[TABLE_COLUMNS];
	char		 align[TABLE_COLUMNS];	/* 'l' or 'r' */
	struct cell	*cells;			/* row by row */
	size_t		 ncells;
	size_t		 last_min;		/* columns that the last one needs: if it has
						   fewer, another one is cut; 0: never */
	size_t		 cut;			/* the column that is cut for the last one */
	const char	*shed;			/* digits: columns by number; NULL: none */
};

void	table_init(struct table *, const char *columns);
void	table_row(struct table *, const json_t *);
void	table_colour(struct table *, size_t column, enum colour);	/* of the last row */
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
 * Columns as in table_init().  --count, --all and the verb's row of the table of verbs say
 * how much is listed; JSON holds all by default.  Returns 0, or -1 after an error was
 * reported; listing_end() is due in both cases.
 */
int	listing_init(struct listing *, struct ctl *, const char *columns) MUSTCHECK;

void	 listing_row(struct listing *, json_t *);	/* takes the object */
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
