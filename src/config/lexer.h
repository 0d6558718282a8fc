/*
 * Configuration text as tokens, each with its true line.
 *
 * libconfuse's own lexer silently drops unknown characters, miscounts lines after
 * comments, and accepts unclosed comments and strings.  So this lexer runs first: it
 * removes comments and reports what libconfuse would swallow.  libconfuse decodes
 * only tokens that passed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "config/findings.h"

enum token_type {
	TOKEN_END,		/* the last token */
	TOKEN_WORD,		/* letters, digits and harmless punctuation */
	TOKEN_STRING,		/* with its quotes */
	TOKEN_VARIABLE,		/* ${NAME} without quotes */
	TOKEN_PUNCT,		/* { } ( ) = , */
	TOKEN_APPEND		/* += */
};

struct token {
	enum token_type	 type;
	int		 line;		/* where it begins */
	char		*text;		/* owned; "" at the end */
	bool		 bad;		/* an error was reported: its value must not be used */
};

struct tokens {
	struct token	*list;		/* owned */
	size_t		 n;
	bool		 cut;		/* something was not closed; the rest was not scanned */
};

/* text holds no NUL; file is from findings_file(). */
void	lexer_scan(struct tokens *, const char *text, size_t len, const char *file,
	    struct findings *);
void	lexer_done(struct tokens *);
bool	token_is(const struct token *, char punct);

/*
 * The value of a token that is not bad, which the caller frees.  NULL with *cause, owned,
 * where libconfuse refuses it.
 *
 * libconfuse decides the meaning of quotes, escapes and ${NAME}.  It gets one value at a
 * time, as text that the lexer has checked, and takes it for a string; types and ranges
 * are ours (value.c).  So its defects cannot show: wrong lines, one error per parse,
 * silent drops, a lexer that fails for ever after a NUL or a bad escape.
 */
char	*token_decode(const struct token *, char **cause);
