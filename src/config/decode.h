/*
 * The value of a token that passed the lexer.
 *
 * libconfuse decides the meaning of quotes, escapes and ${NAME}.  It gets one value at a
 * time, as text that the lexer has checked, and takes it for a string; types and ranges
 * are ours (value.c).  So its defects cannot show: wrong lines, one error per parse,
 * silent drops, a lexer that fails for ever after a NUL or a bad escape.
 */
#ifndef RQD_CONFIG_DECODE_H
#define RQD_CONFIG_DECODE_H

#include "config/lexer.h"

/* The caller frees it.  NULL with *cause, owned, where libconfuse refuses the token. */
char	*decode_token(const struct token *, char **cause);

#endif
