/*
 * Bytes in JSON.
 */
#ifndef RQD_SERVICE_JSON_BYTES_H
#define RQD_SERVICE_JSON_BYTES_H

#include <jansson.h>
#include <stddef.h>

/* Sets name to a string; where the bytes are not UTF-8, NAME_base64. */
void	json_set_bytes(json_t *, const char *name, const char *, size_t);

#endif
