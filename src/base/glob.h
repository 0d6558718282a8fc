/*
 * Glob patterns as Redis has them (KEYS, PSUBSCRIBE): * ? [abc] [a-z] [^a] and
 * a backslash before a character that stands for itself.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Whether the pattern matches the whole string.  Time: at most len * strlen(pattern) steps. */
bool	glob_match(const char *pattern, const char *s, size_t len);
