/*
 * Glob patterns as Redis has them (KEYS, PSUBSCRIBE): * ? [abc] [a-z] [^a] and
 * a backslash before what shall stand for itself.
 */
#ifndef RQD_BASE_GLOB_H
#define RQD_BASE_GLOB_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the pattern matches all of these bytes; takes at most len times its length. */
bool	glob_match(const char *pattern, const char *s, size_t len);

#endif
