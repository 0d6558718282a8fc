/*
 * One queue in full, for status -w: its problem, the last error, its dead letters by
 * reason, its daemons, and commands that help.
 */
#pragma once

#include "base/buf.h"
#include "rqctl/picture.h"
#include "status/history.h"

/* A summary of a queue's dead letters, as read from Redis. */
struct detail {
	char		*key;		/* of the queue; NULL: nothing was read; owned */
	int64_t		 dead;		/* how many there were then */
	char		*newest;	/* id of the newest letter's message; "": none; owned */
	struct buf	 text;		/* lines about them */
};

/*
 * Reads the latest dead letters of queue i, unless their number is as before.  Returns 0, or
 * -1 after an error was reported.
 */
int	detail_read(struct ctl *, struct detail *, const struct picture *, size_t i) MUSTCHECK;
void	detail_done(struct detail *);

/* Appends the lines about queue i.  Call detail_read() before. */
void	detail_print(const struct ctl *, const struct detail *, const struct picture *, size_t i,
	    const struct history *, struct buf *);
