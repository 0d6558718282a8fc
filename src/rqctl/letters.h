/*
 * The selection of messages, by id, --match, and for dead letters --reason, --since and
 * --until: a selected message meets all conditions; and the dead letters of c->target, page by
 * page.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "rqctl/ask.h"

struct select {
	const char *const	*ids;		/* borrowed; of messages, letters, or tags */
	int			 nids;		/* 0: any */
	const char		*reason;	/* "": any */
	const char		*match;		/* "": anything */
	wall_t			 since;		/* 0: from the first */
	wall_t			 until;		/* 0: to the last */
};

/*
 * Reads the arguments after the queue and the options.  With VERB_SELECTS one
 * of them must be given, or --all.  A number that letters of several shards
 * have is an error.  Returns 0, or -1 after an error was reported.
 */
int	select_parse(struct ctl *, struct select *) MUSTCHECK;
/* Whether there is any condition. */
bool	select_is_narrow(const struct select *);

/* Whether this could be a letter's id in QDEAD: digits, a dash, digits. */
bool	select_is_letter(const char *);
/*
 * The number of a letter of the shard that t->keys are of, if the id is NUMBER
 * or, with its key in front, KEY:NUMBER; otherwise NULL.
 */
const char *select_number(const struct target *, const char *id);

struct bytes {
	const char	*data;		/* NULL: not there */
	size_t		 len;
};

/* The fields of a letter, in the order in which JSON has them. */
enum letter_field {
	FIELD_ID, FIELD_REASON, FIELD_STATUS, FIELD_HOST, FIELD_ERROR, FIELD_ANSWER,
	FIELD_SAVED, FIELD_MESSAGE, FIELD_ATTEMPTS, FIELD_CPU, FIELD_MAXRSS, FIELD_MAX
};
extern const char *const letter_fields[FIELD_MAX];

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
	int			 n;		/* letters in it */
	bool			*seen;		/* for each id: found as a letter's number */
	int			 direct;	/* the next id to try as a letter's number */
	size_t			 key;		/* of c->target, which is selected */
	bool			 counted;	/* total includes the letters of this key */
	bool			 done;
	char			*at;
	char			*end;		/* the newest when it began: the walk ends here */
						/* NULL: the walk of this key has not begun */
};

void	letters_init(struct letters *, struct ctl *, const struct select *);
void	letters_done(struct letters *);

/*
 * Reads the next page.  Returns how many letters it has (0 is possible), or -1 at the end and
 * after an error was reported.
 */
int	letters_next(struct letters *);
void	letters_get(const struct letters *, int i, struct letter *);

/*
 * What the last run has used, if the letter has it: as members cpu and maxrss, and as text
 * "cpu 0.312s, maxrss 84M" that is appended.  Either may be NULL.
 */
bool	letter_usage(const struct letter *, json_t *, struct buf *text);
