/*
 * What a verb lists: as a table for people, which may be cut, or with --json as an
 * array of objects.
 */
#ifndef RQD_RQCTL_LISTING_H
#define RQD_RQCTL_LISTING_H

#include "rqctl/ctl.h"
#include "rqctl/out.h"
#include "rqctl/table.h"

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
 * Prints the list and frees it.  total: how many rows there are, -1 for unknown; what they
 * are, for "50 of 300 letters; --all for all".  The rest is the note for an empty list.
 */
void	listing_end(struct listing *, int64_t total, const char *what, const char *, ...)
	    PRINTF(4, 5);

#endif
