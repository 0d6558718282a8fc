/* Base64 (RFC 4648, section 4): the alphabet with + and /, always padded. */
#pragma once

#include <stddef.h>

/* A new text. */
char	*base64_encode(const char *, size_t);
/*
 * New bytes and a NUL, or NULL if the text is not what base64_encode() makes: white space,
 * other alphabets, missing padding, and bits that no byte has are refused.
 */
char	*base64_decode(const char *text, size_t *len);
