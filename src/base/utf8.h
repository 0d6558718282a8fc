/*
 * UTF-8, strictly: overlong forms, surrogates and what lies beyond U+10FFFF are none.
 */
#ifndef RQD_BASE_UTF8_H
#define RQD_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first character of len bytes, 1 or more: how many are its, and its code; 0: none. */
size_t	utf8_decode(const char *, size_t len, uint32_t *code);

/* Whether all of them are UTF-8. */
bool	utf8_is_valid(const char *, size_t);

#endif
