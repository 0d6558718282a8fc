/*
 * The table of scripts and their names to Redis, which are SHA1 sums
 * (RFC 3174) of their texts.  Nothing secret depends on the sum: a wrong one
 * would be answered by NOSCRIPT, and the text sent instead.
 */
#include "redis/script.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sha1 {
	uint32_t	h[5];
};

static uint32_t
rotate(uint32_t x, unsigned n)
{
	return x << n | x >> (32 - n);
}

/* The round's function plus its constant. */
static uint32_t
sha1_f(unsigned t, uint32_t b, uint32_t c, uint32_t d)
{
	if (t < 20)
		return ((b & c) | (~b & d)) + 0x5a827999;
	if (t < 40)
		return (b ^ c ^ d) + 0x6ed9eba1;
	if (t < 60)
		return ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
	return (b ^ c ^ d) + 0xca62c1d6;
}

/* Takes in one block of 64 bytes. */
static void
sha1_block(struct sha1 *s, const unsigned char *p)
{
	uint32_t a = s->h[0], b = s->h[1], c = s->h[2], d = s->h[3], e = s->h[4];
	uint32_t w[80];

	for (unsigned t = 0; t < 16; t++, p += 4)
		w[t] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
	for (unsigned t = 16; t < 80; t++)
		w[t] = rotate(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
	for (unsigned t = 0; t < 80; t++) {
		uint32_t x = rotate(a, 5) + sha1_f(t, b, c, d) + e + w[t];

		e = d;
		d = c;
		c = rotate(b, 30);
		b = a;
		a = x;
	}
	s->h[0] += a;
	s->h[1] += b;
	s->h[2] += c;
	s->h[3] += d;
	s->h[4] += e;
}

/* The sum of a text as 40 hexadecimal digits. */
static void
sha1_hex(const char *text, size_t len, char *hex)
{
	struct sha1 s = { { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 } };
	unsigned char last[128] = { 0 };
	uint64_t bits = (uint64_t)len * 8;
	size_t rest = len % 64, padded = rest < 56 ? 64 : 128;

	for (size_t i = 0; i + 64 <= len; i += 64)
		sha1_block(&s, (const unsigned char *)text + i);
	if (rest > 0)
		memcpy(last, text + len - rest, rest);
	last[rest] = 0x80;
	for (unsigned i = 0; i < 8; i++)
		last[padded - 1 - i] = (unsigned char)(bits >> (8 * i));
	for (size_t i = 0; i < padded; i += 64)
		sha1_block(&s, last + i);
	for (unsigned i = 0; i < 5; i++)
		snprintf(hex + (size_t)8 * i, 9, "%08x", s.h[i]);
}

void
script_hash(struct script *s)
{
	sha1_hex(s->text, s->len, s->sha);
}

void
script_init(void)
{
	for (struct script *s = script_table; s->name != NULL; s++)
		script_hash(s);
}

struct script *
script_find(const char *name)
{
	for (struct script *s = script_table; s->name != NULL; s++) {
		if (strcmp(s->name, name) == 0)
			return s;
	}
	return NULL;
}

/* -- which command an error is about --------------------------------------------- */

/* The script whose sum stands in the text; NULL: none of the table. */
static const struct script *
script_named(const char *text)
{
	const struct script *s;

	for (s = script_table; s->name != NULL; s++) {
		if (s->sha[0] != '\0' && strstr(text, s->sha) != NULL)
			return s;
	}
	return NULL;
}

/* Line n of a script, from 1 on; NULL: there is none. */
static const char *
script_line(const struct script *s, long n)
{
	const char *line = s->text;

	while (line != NULL && --n > 0) {
		line = strchr(line, '\n');
		if (line != NULL)
			line++;
	}
	return line;
}

/* The length of a command's name at p, behind a quotation mark; 0: it is none. */
static size_t
command_len(const char *p)
{
	size_t n = 0;

	while (isupper((unsigned char)p[n]))
		n++;
	return n >= 3 && p[n] == '\'' ? n : 0;
}

/* Adds a command, unless it is there already. */
static void
commands_add(char *buf, size_t size, const char *command, size_t n)
{
	size_t len = strlen(buf);
	char name[32];

	if (n >= sizeof(name))
		return;
	memcpy(name, command, n);
	name[n] = '\0';
	if (strstr(buf, name) == NULL)
		(void)snprintf(buf + len, size - len, "%s%s", len > 0 ? " or " : "", name);
}

const char *
script_commands(const char *error, char *buf, size_t size)
{
	static const char where[] = "@user_script:";
	const struct script *s = script_named(error);
	const char *at = strstr(error, where), *p, *end;

	buf[0] = '\0';
	if (s == NULL || at == NULL ||
	    (p = script_line(s, strtol(at + strlen(where), NULL, 10))) == NULL)
		return buf;
	end = p + strcspn(p, "\n");
	for (; p < end; p++) {
		if (strncmp(p, "call(\'", 6) == 0 && command_len(p + 6) > 0)
			commands_add(buf, size, p + 6, command_len(p + 6));
	}
	return buf;
}
