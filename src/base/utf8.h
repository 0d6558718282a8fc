/* Strict UTF-8: overlong forms, surrogates and codes above U+10FFFF are invalid. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decodes the first character of len >= 1 bytes.  Returns its length in bytes; 0: invalid. */
size_t	utf8_decode(const char *, size_t len, uint32_t *code);

/*
 * Whether a reader of a log or a terminal can see this character: false for controls, and for
 * characters that are invisible or change the order of others.  Escape those.
 */
bool	utf8_is_visible(uint32_t code);
/*
 * Copies text so that anybody may see it: a question mark replaces what is not visible.  Ends
 * before the first character that does not fit into `max` bytes; `to` has one more, for a NUL.
 */
void	utf8_copy_visible(char *to, size_t max, const char *from, size_t len);

/* Whether the whole string is valid. */
bool	utf8_is_valid(const char *, size_t);
