/*
 * The terminal as a full screen: single keys, frames, and the signals that concern it.
 *
 *	screen_open()
 *	do { screen_draw(...); } while ((key = screen_key(interval)) != SCREEN_END)
 *	screen_close()
 *
 * There is one screen.  It needs a terminal that knows the sequences of ECMA-48, as all of
 * today's do.  ncurses would support others, but it is a dependency, and it measures wide
 * characters in its own way.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/util.h"

/* The values of screen_key() besides bytes of text, which are 1 to 255. */
enum {
	SCREEN_TIMEOUT = 256,	/* no key in this time */
	SCREEN_CHANGED,		/* draw again: the size has changed, or rqctl continues */
	SCREEN_END,		/* a signal, or the terminal is gone */
	SCREEN_UP, SCREEN_DOWN, SCREEN_LEFT, SCREEN_RIGHT, SCREEN_PAGE_UP, SCREEN_PAGE_DOWN,
	SCREEN_HOME, SCREEN_LAST,
	SCREEN_ESCAPE, SCREEN_ENTER, SCREEN_BACKSPACE,
	SCREEN_OTHER		/* a key that has no name here */
};

/* Whether standard input and output are terminals that a screen can use. */
bool	screen_is_possible(void);

/*
 * Takes over the terminal, and SIGINT, SIGTERM, SIGQUIT, SIGHUP, SIGTSTP, SIGCONT and
 * SIGWINCH.  The signals that end or stop rqctl interrupt a command that waits for Redis.
 * Returns 0, or -1 with errno.
 */
int	screen_open(void) MUSTCHECK;
/* Gives the terminal back as it was. */
void	screen_close(void);

/*
 * Draws lines, which may have the sequences of out_colour(), in one write.  Lines are cut at
 * the right edge, and at the bottom.  False: the terminal is gone.
 */
bool	screen_draw(const struct buf *);

/* Waits for a key, at most this long; returns it, or a SCREEN_ value. */
int	screen_key(usec_t);
/* Whether a signal that ends or stops rqctl has come, and may have interrupted a command. */
bool	screen_is_asked(void);
