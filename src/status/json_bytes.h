/*
 * Bytes in JSON: a string where they are UTF-8, else base64 in a member NAME_base64.
 */
#ifndef RQD_STATUS_JSON_BYTES_H
#define RQD_STATUS_JSON_BYTES_H

#include <jansson.h>
#include <stddef.h>

/* Sets name to a string; where the bytes are not UTF-8, NAME_base64. */
void	json_set_bytes(json_t *, const char *name, const char *, size_t);

/* The inverse: bytes and a NUL that the caller frees, or NULL where there are none. */
char	*json_get_bytes(const json_t *, const char *name, size_t *len);

#endif
