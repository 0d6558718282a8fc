/* UTF-8; see utf8.h. */
#include "base/utf8.h"

#include <string.h>

size_t
utf8_decode(const char *s, size_t len, uint32_t *code)
{
	static const unsigned char lead[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *p = (const unsigned char *)s;
	size_t n, i;
	uint32_t c;

	if (p[0] < 0x80)
		n = 1;
	else if (p[0] < 0xc2 || p[0] >= 0xf5)
		return 0;	/* no sequence begins with such a byte */
	else if (p[0] < 0xe0)
		n = 2;
	else if (p[0] < 0xf0)
		n = 3;
	else
		n = 4;
	if (n > len)
		return 0;
	c = p[0] & lead[n];
	for (i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3f);
	}
	if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 0;
	*code = c;
	return n;
}

bool
utf8_is_visible(uint32_t code)
{
	/* Unicode's format characters, fillers, separators and noncharacters; sorted. */
	static const struct { uint32_t first, last; } hidden[] = {
		{ 0, 0x1f }, { 0x7f, 0x9f }, { 0xad, 0xad }, { 0x34f, 0x34f }, { 0x600, 0x605 },
		{ 0x61c, 0x61c }, { 0x6dd, 0x6dd }, { 0x70f, 0x70f }, { 0x115f, 0x1160 },
		{ 0x17b4, 0x17b5 }, { 0x180b, 0x180f }, { 0x200b, 0x200f }, { 0x2028, 0x202e },
		{ 0x2060, 0x206f }, { 0x3164, 0x3164 }, { 0xfdd0, 0xfdef }, { 0xfeff, 0xfeff },
		{ 0xffa0, 0xffa0 }, { 0xfff0, 0xfffb }, { 0x1bca0, 0x1bca3 }, { 0x1d173, 0x1d17a },
		{ 0xe0000, 0xe0fff },
	};
	size_t i;

	if ((code & 0xfffe) == 0xfffe)
		return false;
	for (i = 0; i < sizeof(hidden) / sizeof(hidden[0]) && code >= hidden[i].first; i++)
		if (code <= hidden[i].last)
			return false;
	return true;
}

void
utf8_copy_visible(char *to, size_t max, const char *from, size_t len)
{
	size_t n, used = 0;
	uint32_t code;

	for (; len > 0; from += n, len -= n) {
		n = utf8_decode(from, len, &code);
		if (used + (n > 0 ? n : 1) > max)
			break;
		if (n > 0 && utf8_is_visible(code)) {
			memcpy(to + used, from, n);
			used += n;
		} else {
			to[used++] = '?';
			n = n > 0 ? n : 1;
		}
	}
	to[used] = '\0';
}

bool
utf8_is_valid(const char *s, size_t len)
{
	uint32_t code;
	size_t n;

	for (; len > 0; s += n, len -= n) {
		if ((n = utf8_decode(s, len, &code)) == 0)
			return false;
	}
	return true;
}
