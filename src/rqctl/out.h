/*
 * What is written: escaped text, colours only on a terminal, JSON, progress.
 */
#ifndef RQD_RQCTL_OUT_H
#define RQD_RQCTL_OUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/util.h"

enum colour { COLOUR_NONE, COLOUR_BOLD, COLOUR_DIM, COLOUR_RED, COLOUR_GREEN, COLOUR_YELLOW };

/* Looks at the terminal, the locale, $NO_COLOR and $TERM; once, before all else. */
void	out_init(void);
int	out_width(void);			/* columns; 0: no terminal */
int	out_height(void);			/* lines; 0: no terminal */
const char *out_colour(enum colour);		/* "" where there are none; COLOUR_NONE ends one */

/*
 * Appends bytes of unknown origin so that they cannot drive a terminal: \n, \t
 * and \xHH stand for control bytes, for what is not UTF-8, and for characters
 * that hide or reorder text.
 */
void	out_escape(struct buf *, const char *, size_t);
void	out_escaped_line(const char *);		/* on stdout */
/* A line that another program wrote: escaped, but for tabs, on a terminal; else as it is. */
void	out_foreign(FILE *, const char *, size_t);
size_t	out_columns(const char *);		/* that escaped text takes */
/* Bytes of the longest beginning of escaped text that fits into so many columns. */
size_t	out_fit(const char *, size_t columns);

/* "1,204", "12.5M" into buf. */
#define OUT_NUMBER_MAX	32
char	*out_number(long long, char *buf);
/* Seconds for people: "4.2s", "-" for less than 0. */
char	*out_age(double seconds, char *buf);

/* Prints it and a newline, and drops the reference. */
void	out_json(json_t *);
void	out_json_line(json_t *);		/* in one line */
/* Sets name to a string; where the bytes are not UTF-8, NAME_base64. */
void	out_set_bytes(json_t *, const char *name, const char *, size_t);
/* The same in a list: a string, or an object with NAME_base64. */
json_t	*out_element(const char *name, const char *, size_t);

/* A line on stderr that is overwritten by the next; nothing where stderr is no terminal. */
bool	out_progress_is_on(void);
void	out_progress(const char *, ...) PRINTF(1, 2);
void	out_progress_clear(void);

/* Flushes; 0, or -1 with errno when not everything could be written. */
int	out_end(void) MUSTCHECK;
bool	out_failed(void);			/* nobody reads any more: stop listing */

#endif
