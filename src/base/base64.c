/* Base64; see base64.h.  Three bytes are four characters of six bits each. */
#include "base/base64.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

static const char alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char *
base64_encode(const char *data, size_t len)
{
	const unsigned char *p = (const unsigned char *)data;
	char *text = xmalloc((len + 2) / 3 * 4 + 1), *out = text;
	uint32_t bits;
	size_t n, i;

	for (; len > 0; p += n, len -= n) {
		n = len < 3 ? len : 3;
		bits = (uint32_t)p[0] << 16;
		if (n > 1)
			bits |= (uint32_t)p[1] << 8;
		if (n > 2)
			bits |= p[2];
		for (i = 0; i < 4; i++, bits <<= 6)
			*out++ = i <= n ? alphabet[bits >> 18 & 63] : '=';
	}
	*out = '\0';
	return text;
}

/* Puts the bytes of four characters at out; returns how many, or 0: these are no base64. */
static size_t
decode_group(const char *text, char *out)
{
	uint32_t bits = 0;
	const char *at;
	size_t n = 4, i;

	if (text[3] == '=')
		n = text[2] == '=' ? 2 : 3;
	for (i = 0; i < 4; i++) {
		at = i < n ? memchr(alphabet, text[i], 64) : alphabet;
		if (at == NULL)
			return 0;
		bits = bits << 6 | (uint32_t)(at - alphabet);
	}
	if ((bits & ((1U << (4 - n) * 8) - 1)) != 0)
		return 0;
	for (i = 0; i < n - 1; i++, bits <<= 8)
		out[i] = (char)(bits >> 16 & 255);
	return n - 1;
}

char *
base64_decode(const char *text, size_t *len)
{
	size_t n = strlen(text), i, got = 3;
	char *data, *out;

	if (n % 4 != 0)
		return NULL;
	data = out = xmalloc(n / 4 * 3 + 1);
	for (i = 0; i < n; i += 4) {
		/* Only the last group is padded. */
		got = got == 3 ? decode_group(text + i, out) : 0;
		if (got == 0) {
			free(data);
			return NULL;
		}
		out += got;
	}
	*out = '\0';
	*len = (size_t)(out - data);
	return data;
}
