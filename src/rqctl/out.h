/* Output: escaped text, colours only on a terminal, JSON, progress. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/util.h"
#include "status/json_bytes.h"

enum colour { COLOUR_NONE, COLOUR_BOLD, COLOUR_DIM, COLOUR_RED, COLOUR_GREEN, COLOUR_YELLOW };

/* Reads the terminal, the locale, $NO_COLOR and $TERM.  Call it once, first. */
void	out_init(void);
int	out_width(void);			/* columns; 0: no terminal */
int	out_height(void);			/* lines; 0: no terminal */
const char *out_colour(enum colour);		/* "" without a terminal; COLOUR_NONE resets */

/*
 * Appends bytes of unknown origin so that they cannot control a terminal.  Writes \n, \r, \t
 * or \xHH for control bytes, for bytes that are not UTF-8, and for characters that hide or
 * reorder text.
 */
void	out_escape(struct buf *, const char *, size_t);
/* Formats text and escapes it as out_escape() does; the caller frees it. */
char	*out_text(const char *, ...) PRINTF(1, 2);
/* out_line(b, fmt, ...) appends such a text and a newline to b; b NULL: prints it. */
#define out_line(b, ...)	out_put_line((b), out_text(__VA_ARGS__))
void	out_put_line(struct buf *, char *);	/* frees the text */
/* A line of another program: escaped on a terminal, except for tabs; else unchanged. */
void	out_foreign(FILE *, const char *, size_t);
size_t	out_columns(const char *);		/* how many escaped text takes */
/* How many bytes from the beginning of escaped text fit into so many columns. */
size_t	out_fit(const char *, size_t columns);

/* How many bytes to drop from the beginning so that the rest fits into so many columns. */
size_t	out_skip(const char *, size_t columns);

/* "1,204", "12.5M" into buf. */
#define OUT_NUMBER_MAX	32
char	*out_number(long long, char *buf);

/* Prints the value, in one line or in several, and a newline, and drops the reference. */
void	out_json(json_t *, bool line);
/* A string, or an object with NAME_base64 if the bytes are not UTF-8. */
json_t	*out_bytes(const char *name, const char *, size_t);
/* A line on stderr that the next one overwrites; nothing if stderr is no terminal. */
void	out_progress(const char *, ...) PRINTF(1, 2);
void	out_progress_clear(void);

/* Flushes stdout.  Returns 0, or -1 with errno if not everything could be written. */
int	out_end(void) MUSTCHECK;
bool	out_failed(void);			/* writing has failed: stop listing */
