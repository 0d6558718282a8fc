/*
 * Configuration text as tokens, each with its true line.
 *
 * libconfuse's own lexer silently drops unknown characters, miscounts lines after
 * comments, and accepts unclosed comments and strings.  So this lexer runs first: it
 * removes comments and reports what libconfuse would swallow.  libconfuse later sees
 * only tokens that passed.
 */
#ifndef RQD_CONFIG_CONFIG_TOKEN_H
#define RQD_CONFIG_CONFIG_TOKEN_H

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
	int		 line;
	const char	*text;		/* points into the scanned text; not NUL-terminated */
	size_t		 len;
	bool		 bad;		/* an error was reported: its value must not be used */
};

struct tokens {
	struct token	*list;		/* owned */
	size_t		 n;
	bool		 cut;		/* something was not closed; the rest was not scanned */
};

/* text holds no NUL, and must live as long as the tokens. */
void	tokens_scan(struct tokens *, const char *text, size_t len, const char *file,
	    struct findings *);
void	tokens_done(struct tokens *);
bool	token_is(const struct token *, char punct);

#endif
