/* Reads the dead letters of c->target, page by page. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "rqctl/ask.h"
#include "rqctl/change.h"

struct bytes {
	const char	*data;		/* NULL: not there */
	size_t		 len;
};

/* The fields of a letter, in the order in which JSON has them. */
enum letter_field {
	FIELD_ID, FIELD_REASON, FIELD_STATUS, FIELD_HOST, FIELD_ERROR, FIELD_ANSWER,
	FIELD_MESSAGE, FIELD_ATTEMPTS, FIELD_MAX
};

/* Borrowed from the page. */
struct letter {
	struct bytes	 name;		/* its id in QDEAD */
	struct bytes	 field[FIELD_MAX];
	double		 died;		/* Redis seconds */
};

struct letters {
	struct ctl		*ctl;
	const struct select	*select;
	bool			 newest;	/* the newest come first */
	long			 cut;		/* bytes of a message that are read; -1: all */
	long			 page;		/* letters in a page at most */
	/* Results of the walk: */
	int64_t			 total;		/* letters in the queue when it began */
	int64_t			 looked;	/* letters that it has looked at */
	/* private: */
	struct redisReply	*reply;
	bool			*seen;		/* for each id: found as a letter's number */
	int			 direct;	/* the next id to try as a letter's number */
	size_t			 key;		/* of c->target, which is selected */
	bool			 counted;	/* total includes the letters of this key */
	bool			 scanning;
	bool			 done;
	char			*at;
	char			*end;		/* the newest when it began: the walk ends here */
};

void	letters_init(struct letters *, struct ctl *, const struct select *);
void	letters_done(struct letters *);

/*
 * Reads the next page.  Returns how many letters it has (0 is possible), or -1 at the end and
 * after an error was reported.
 */
int	letters_next(struct letters *);
void	letters_get(const struct letters *, int i, struct letter *);

/* Whether any letter has one of the ids. */
bool	letters_exist(struct ctl *, const struct select *);

/* The names of the fields, by enum letter_field. */
extern const char *const letter_fields[FIELD_MAX];
