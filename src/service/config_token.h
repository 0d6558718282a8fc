/*
 * Configuration text as tokens, each with its true line.
 *
 * libconfuse's own lexer drops what it does not know, counts lines wrongly
 * after comments, and makes of an unclosed comment or string whatever comes.
 * So the text is cut here first: comments are gone, what libconfuse would
 * swallow is reported, and it later sees only tokens that have passed.
 */
#ifndef RQD_SERVICE_CONFIG_TOKEN_H
#define RQD_SERVICE_CONFIG_TOKEN_H

#include <stdbool.h>
#include <stddef.h>

#include "service/findings.h"

enum token_type {
	TOKEN_END,		/* always the last one */
	TOKEN_WORD,		/* letters, digits and harmless punctuation */
	TOKEN_STRING,		/* with its quotes */
	TOKEN_VARIABLE,		/* ${NAME} without quotes */
	TOKEN_PUNCT,		/* { } ( ) = , */
	TOKEN_APPEND		/* += */
};

struct token {
	enum token_type	 type;
	int		 line;
	const char	*text;		/* in the text that was cut; not NUL-terminated */
	size_t		 len;
	bool		 bad;		/* reported: stands for a value, but must not be used */
};

struct tokens {
	struct token	*list;		/* owned */
	size_t		 n;
	bool		 cut;		/* something was not closed: the rest is missing */
};

/* text must not hold a NUL, and must stay. */
void	tokens_scan(struct tokens *, const char *text, size_t len, const char *file,
	    struct findings *);
void	tokens_done(struct tokens *);
bool	token_is(const struct token *, char punct);

#endif
