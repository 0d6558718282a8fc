/*
 * Members of JSON objects; bytes are a string where they are UTF-8, else base64 in a
 * member NAME_base64.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "base/buf.h"

/* Sets name to a string; if the bytes are not UTF-8, sets NAME_base64. */
void	json_set_bytes(json_t *, const char *name, const char *, size_t);

/*
 * Sets members of an object and returns it: json_set(o, "queue:s count:i", name, n).  The
 * name "*" is an argument before the value.  The types of the values are
 *
 *	s	const char *; NULL: null.  As with b, NAME_base64 where it is not UTF-8.
 *	b	const char *, size_t
 *	i	int64_t
 *	n	int64_t; negative: null
 *	f	double; NAN and INFINITY: null
 *	p	the same; negative: null, too
 *	t	bool
 *	j	json_t *, whose reference it takes; NULL: null
 */
json_t	*json_set(json_t *, const char *fmt, ...);

/*
 * The inverse of json_set_bytes(): bytes and a NUL that the caller frees, or NULL if
 * there are none.
 */
char	*json_get_bytes(const json_t *, const char *name, size_t *len);

/* Appends the value as compact text and a newline. */
void	json_add_text(const json_t *, struct buf *);
