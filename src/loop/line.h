/*
 * Splits bytes into lines, with a bound: a line longer than max comes in pieces of max
 * bytes (cut is set on all but the last piece).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct line {
	struct buf	  partial;	/* the bytes since the last newline */
	size_t		  max;
	/* without the newline; not NUL-terminated */
	void		(*fn)(const char *, size_t, bool cut, void *arg);
	void		 *arg;
};

void	line_init(struct line *, size_t max,
	    void (*fn)(const char *, size_t, bool, void *), void *arg);
void	line_feed(struct line *, const char *, size_t);
void	line_end(struct line *);	/* hands out the last line, which has no newline */
void	line_done(struct line *);
