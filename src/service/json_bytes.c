/*
 * Bytes in JSON: a string where they are UTF-8, else base64 under another name,
 * so that nothing is lost and nothing is mistaken.
 */
#include "service/json_bytes.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/util.h"

static char *
base64(const char *data, size_t len)
{
	static const char digit[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char *text = xmalloc((len + 2) / 3 * 4 + 1), *to = text;
	const unsigned char *p = (const unsigned char *)data;
	uint32_t v;

	for (; len > 0; p += 3, len -= len < 3 ? len : 3) {
		v = (uint32_t)p[0] << 16 | (len > 1 ? (uint32_t)p[1] << 8 : 0) |
		    (len > 2 ? p[2] : 0);
		*to++ = digit[v >> 18];
		*to++ = digit[v >> 12 & 63];
		*to++ = len > 1 ? digit[v >> 6 & 63] : '=';
		*to++ = len > 2 ? digit[v & 63] : '=';
		if (len < 3)
			break;
	}
	*to = '\0';
	return text;
}

void
json_set_bytes(json_t *object, const char *name, const char *data, size_t len)
{
	json_t *value = json_stringn(data, len);
	char *key, *text;

	if (value != NULL) {
		json_object_set_new(object, name, value);
		return;
	}
	key = xasprintf("%s_base64", name);
	text = base64(data, len);
	json_object_set_new(object, key, json_string(text));
	free(text);
	free(key);
}
