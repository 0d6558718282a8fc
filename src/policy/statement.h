/*
 * A statement of a handler about its message: one line, without its newline.
 *
 *	[N] ok
 *	[N] retry [DURATION] [REASON]
 *	[N] defer DURATION [REASON]
 *	[N] dead [REASON]
 *	[N] progress [TEXT]
 *	[N] push QUEUE MESSAGE
 *	[N] save [TEXT]
 *	[N] hold [group] DURATION [REASON]
 *
 * Exec handlers write such lines to descriptor 3, without N; handlers of batches may put
 * the number of the message before them.  Persistent handlers answer with them, with N.
 *
 * The reader of the lines bounds them to STATEMENT_LINE_MAX bytes.  Only the line of a
 * push may be as long as the longest message that the queue takes.  A longer line is no
 * statement.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/util.h"

#define STATEMENT_LINE_MAX	((size_t)8 * 1024)
#define STATEMENT_DELAY_MAX	(365 * 24 * HOUR)	/* longer ones are cut to it */
#define STATEMENT_DEFER_MIN	SEC	/* shorter ones of defer and hold are raised to it */

enum statement_word {
	STATEMENT_OK,
	STATEMENT_RETRY,
	STATEMENT_DEFER,
	STATEMENT_DEAD,
	STATEMENT_PROGRESS,
	STATEMENT_PUSH,
	STATEMENT_SAVE,
	STATEMENT_HOLD
};

enum statement_number {
	STATEMENT_BARE,		/* the line has no number */
	STATEMENT_NUMBERED,	/* it begins with one */
	STATEMENT_EITHER	/* it may begin with one */
};

struct statement {
	uint64_t	 number;	/* 0: none */
	enum statement_word word;
	usec_t		 delay;		/* retry, defer, hold; -1: none */
	bool		 group;		/* hold: only the message's group */
	/* In the line: the reason, the text, or push's or save's as it is; NULL: none. */
	const char	*text;
	size_t		 len;
	const char	*queue;		/* push: in the line; else NULL */
	size_t		 queue_len;
};

/*
 * Returns 0, or -1 if the line is not a statement.  Then only ret->number is set: to
 * the number at the beginning of the line, or 0.
 */
int	statement_parse(const char *, size_t, enum statement_number, struct statement *ret)
	    MUSTCHECK;
