/*
 * Walking through the dead letters of a queue, page by page.
 */
#ifndef RQD_RQCTL_LETTERS_H
#define RQD_RQCTL_LETTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "rqctl/ask.h"
#include "rqctl/select.h"

struct bytes {
	const char	*data;		/* NULL: not there */
	size_t		 len;
};

/* Borrowed from the page. */
struct letter {
	struct bytes	 name;		/* its id in QDEAD */
	struct bytes	 id, message, reason, attempts, status, error, host;
	size_t		 size;		/* of the whole message */
	double		 died;		/* Redis seconds */
};

struct letters {
	struct ctl		*ctl;
	const struct target	*target;
	const struct select	*select;
	bool			 newest;	/* first */
	long			 cut;		/* bytes of a message that are read; -1: all */
	long			 page;		/* letters in a page at most */
	/* what the walk has found out: */
	int64_t			 total;		/* in the queue, when it began */
	int64_t			 looked;	/* at, so far */
	/* private: */
	struct redisReply	*reply;
	bool			*seen;		/* ids that were found by their letter */
	int			 direct;	/* the next id to be tried as a letter's */
	bool			 scanning;
	bool			 done;
	char			*at;
	char			*end;		/* the newest when it began: later ones are not met */
};

void	letters_init(struct letters *, struct ctl *, const struct target *, const struct select *);
void	letters_done(struct letters *);

/* The next page: how many letters (0 is possible), or -1: at the end, or after an error. */
int	letters_next(struct letters *);
void	letters_get(const struct letters *, int i, struct letter *);

/* Whether a dead letter has one of the ids that are the verb's arguments. */
bool	dead_has(struct ctl *, const struct target *);

#endif
