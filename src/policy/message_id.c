/*
 * The id in a payload, exactly as queue/lua/pop.lua reads it.
 *
 * Most payloads begin with {"id":VALUE, and then VALUE is the id; the rest is
 * not read.  pop.lua decodes all others with cjson.  jansson cannot stand in for
 * that: cjson accepts more than JSON allows (control characters in strings,
 * invalid UTF-8, 0x10, nan), refuses nesting deeper than 1000, and keeps an
 * integer of any length as text; rqctl would print ids that the daemon does not
 * use.  So this follows cjson's grammar, as a scanner without recursion or
 * allocation: one pass, one byte of memory per level.
 *
 * The scanner reads the payload in place and stops at `end`.  There peek()
 * returns NUL; before the decoding of a whole payload NUL in it is refused.
 */
#include "policy/message.h"

#include <string.h>
#include <strings.h>

#define PAYLOAD_MAX	65536
#define DEPTH_MAX	1000

/* A first-level member "id" as last seen. */
enum found { FOUND_NONE, FOUND_STRING, FOUND_INTEGER, FOUND_OTHER };

struct scan {
	const char	*p;
	const char	*end;
	unsigned	 depth;
	unsigned char	 is_object[DEPTH_MAX + 1];	/* by depth */
	/* The string scanned last, decoded; text is full where len > max. */
	char		 text[MESSAGE_ID_MAX + 8];
	size_t		 len;
};

struct value {
	enum found	 type;
	const char	*start;		/* FOUND_INTEGER */
	size_t		 len;
};

static int
peek(const struct scan *s)
{
	return s->p < s->end ? (unsigned char)*s->p : '\0';
}

static bool
is_digit(int c)
{
	return c >= '0' && c <= '9';
}

static int
hex_value(int c)
{
	if (is_digit(c))
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void
skip_blanks(struct scan *s)
{
	while (peek(s) == ' ' || peek(s) == '\t' || peek(s) == '\n' ||
	    peek(s) == '\r')
		s->p++;
}

static void
skip_digits(struct scan *s)
{
	while (is_digit(peek(s)))
		s->p++;
}

/* Takes the word, in any case, if it is next. */
static bool
take_word(struct scan *s, const char *word, bool any_case)
{
	size_t n = strlen(word);

	if ((size_t)(s->end - s->p) < n)
		return false;
	if ((any_case ? strncasecmp(s->p, word, n) : strncmp(s->p, word, n)) != 0)
		return false;
	s->p += n;
	return true;
}

/* Beyond the longest id only the length goes on. */
static void
text_add(struct scan *s, unsigned c)
{
	if (s->len <= MESSAGE_ID_MAX)
		s->text[s->len++] = (char)c;
}

static void
text_add_utf8(struct scan *s, unsigned c)
{
	if (c < 0x80) {
		text_add(s, c);
		return;
	}
	if (c < 0x800) {
		text_add(s, 0xc0 | c >> 6);
	} else {
		if (c < 0x10000) {
			text_add(s, 0xe0 | c >> 12);
		} else {
			text_add(s, 0xf0 | c >> 18);
			text_add(s, 0x80 | (c >> 12 & 0x3f));
		}
		text_add(s, 0x80 | (c >> 6 & 0x3f));
	}
	text_add(s, 0x80 | (c & 0x3f));
}

/* "\uXXXX" at p: the number, or -1. */
static int
unit16(const struct scan *s)
{
	int i, n = 0;

	if (s->end - s->p < 6 || s->p[0] != '\\' || s->p[1] != 'u')
		return -1;
	for (i = 2; i < 6; i++) {
		if (hex_value((unsigned char)s->p[i]) < 0)
			return -1;
		n = n << 4 | hex_value((unsigned char)s->p[i]);
	}
	return n;
}

/* Surrogates come in pairs, the high one first. */
static bool
scan_unicode(struct scan *s)
{
	int c = unit16(s), low;

	if (c < 0 || (c & 0xfc00) == 0xdc00)
		return false;
	s->p += 6;
	if ((c & 0xfc00) == 0xd800) {
		low = unit16(s);
		if (low < 0 || (low & 0xfc00) != 0xdc00)
			return false;
		s->p += 6;
		c = 0x10000 + ((c & 0x3ff) << 10) + (low & 0x3ff);
	}
	text_add_utf8(s, (unsigned)c);
	return true;
}

static bool
scan_escape(struct scan *s)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *at;

	if (s->end - s->p < 2)
		return false;
	if (s->p[1] == 'u')
		return scan_unicode(s);
	at = strchr(from, s->p[1]);
	if (at == NULL)
		return false;
	text_add(s, (unsigned char)to[at - from]);
	s->p += 2;
	return true;
}

/* p stands on the opening quote; the text is decoded into s->text. */
static bool
scan_string(struct scan *s)
{
	s->len = 0;
	for (s->p++; peek(s) != '"';) {
		if (s->p >= s->end)
			return false;
		if (peek(s) == '\\') {
			if (!scan_escape(s))
				return false;
		} else {
			text_add(s, (unsigned char)*s->p++);
		}
	}
	s->p++;
	return true;
}

/* strtod(3)'s "0x1.8p3"; at least one digit, or only the 0 is the number. */
static void
scan_hex(struct scan *s)
{
	const char *zero = s->p + 1;
	bool any = false;

	for (s->p += 2; hex_value(peek(s)) >= 0; s->p++)
		any = true;
	if (peek(s) == '.') {
		for (s->p++; hex_value(peek(s)) >= 0; s->p++)
			any = true;
	}
	if (!any) {
		s->p = zero;
		return;
	}
	if ((peek(s) | 0x20) == 'p') {
		const char *mark = s->p++;

		if (peek(s) == '+' || peek(s) == '-')
			s->p++;
		if (!is_digit(peek(s)))
			s->p = mark;
		skip_digits(s);
	}
}

static void
scan_decimal(struct scan *s)
{
	const char *mark;

	skip_digits(s);
	if (peek(s) == '.') {
		s->p++;
		skip_digits(s);
	}
	mark = s->p;
	if ((peek(s) | 0x20) != 'e')
		return;
	s->p++;
	if (peek(s) == '+' || peek(s) == '-')
		s->p++;
	if (!is_digit(peek(s)))
		s->p = mark;
	skip_digits(s);
}

/* strtod(3)'s "nan(chars)": the part in parentheses. */
static void
scan_nan_chars(struct scan *s)
{
	const char *mark = s->p;

	if (peek(s) != '(')
		return;
	for (s->p++; is_digit(peek(s)) || peek(s) == '_' ||
	    ((peek(s) | 0x20) >= 'a' && (peek(s) | 0x20) <= 'z');)
		s->p++;
	if (peek(s) == ')')
		s->p++;
	else
		s->p = mark;
}

/* What strtod(3) reads, but not a bare ".5"; false where it reads nothing. */
static bool
scan_number(struct scan *s)
{
	if (peek(s) == '.')
		return false;
	if (peek(s) == '-' || peek(s) == '+')
		s->p++;
	if (take_word(s, "infinity", true) || take_word(s, "inf", true))
		return true;
	if (take_word(s, "nan", true)) {
		scan_nan_chars(s);
		return true;
	}
	if (peek(s) == '.' && s->end - s->p > 1 && is_digit(s->p[1])) {
		scan_decimal(s);
		return true;
	}
	if (!is_digit(peek(s)))
		return false;
	if (peek(s) == '0' && s->end - s->p > 1 && (s->p[1] | 0x20) == 'x')
		scan_hex(s);
	else
		scan_decimal(s);
	return true;
}

/* An integer literal of JSON, whole: "-0" yes, "01" "1.0" "1e3" no. */
static bool
is_integer(const char *p, size_t n)
{
	size_t i = n > 0 && p[0] == '-' ? 1 : 0, first = i;

	for (; i < n; i++) {
		if (!is_digit((unsigned char)p[i]))
			return false;
	}
	return n > first && (p[first] != '0' || n == first + 1);
}

/* A value that holds no other: string, number or word. */
static bool
scan_scalar(struct scan *s, struct value *v)
{
	const char *start = s->p;

	*v = (struct value){ FOUND_OTHER, start, 0 };
	if (peek(s) == '"') {
		v->type = FOUND_STRING;
		return scan_string(s);
	}
	if (take_word(s, "true", false) || take_word(s, "false", false) ||
	    take_word(s, "null", false))
		return true;
	if (!scan_number(s))
		return false;
	v->len = (size_t)(s->p - start);
	if (is_integer(start, v->len))
		v->type = FOUND_INTEGER;
	return true;
}

/* A key and its colon; *is_id where it is "id". */
static bool
scan_key(struct scan *s, bool *is_id)
{
	skip_blanks(s);
	if (peek(s) != '"' || !scan_string(s))
		return false;
	*is_id = s->len == 2 && memcmp(s->text, "id", 2) == 0;
	skip_blanks(s);
	if (peek(s) != ':')
		return false;
	s->p++;
	return true;
}

/* Enters '{' or '['; *empty where it closes at once (and is left again). */
static bool
scan_open(struct scan *s, bool *empty)
{
	bool object = *s->p++ == '{';

	if (++s->depth > DEPTH_MAX)
		return false;
	s->is_object[s->depth] = object;
	skip_blanks(s);
	*empty = peek(s) == (object ? '}' : ']');
	if (*empty) {
		s->p++;
		s->depth--;
	}
	return true;
}

/* After a value: closes what closes, up to a comma or the end of it all. */
static bool
scan_close(struct scan *s)
{
	while (s->depth > 0) {
		skip_blanks(s);
		if (peek(s) == ',') {
			s->p++;
			return true;
		}
		if (peek(s) != (s->is_object[s->depth] ? '}' : ']'))
			return false;
		s->p++;
		s->depth--;
	}
	return true;
}

/* Keeps what a first-level "id" holds; FOUND_OTHER takes back an earlier one. */
static void
keep(const struct scan *s, const struct value *v, char *id, size_t *len)
{
	const char *from = v->type == FOUND_STRING ? s->text : v->start;
	size_t n = v->type == FOUND_STRING ? s->len : v->len;

	if (v->type == FOUND_OTHER || !message_id_ok(from, n))
		n = 0;
	memcpy(id, from, n);
	*len = n;
}

/* The whole payload; *len is 0 where there is no id.  false: no JSON. */
static bool
scan_payload(struct scan *s, char *id, size_t *len)
{
	struct value v;
	bool is_id, empty;

	do {
		is_id = false;
		if (s->depth > 0 && s->is_object[s->depth] &&
		    !scan_key(s, &is_id))
			return false;
		is_id = is_id && s->depth == 1;
		skip_blanks(s);
		v = (struct value){ FOUND_OTHER, s->p, 0 };
		if (peek(s) == '{' || peek(s) == '[') {
			if (!scan_open(s, &empty))
				return false;
			if (is_id)
				*len = 0;
			if (!empty)
				continue;
		} else if (!scan_scalar(s, &v)) {
			return false;
		} else if (is_id) {
			keep(s, &v, id, len);
		}
		if (!scan_close(s))
			return false;
	} while (s->depth > 0);
	skip_blanks(s);
	return s->p == s->end;
}

/* A string without escapes at p: its text in *v; false where it cannot be an id. */
static bool
scan_plain(struct scan *s, struct value *v)
{
	v->type = FOUND_STRING;
	v->start = ++s->p;
	while (s->p < s->end && *s->p != '"' && *s->p != '\\')
		s->p++;
	v->len = (size_t)(s->p - v->start);
	return take_word(s, "\"", false);
}

/* An integer's digits at p. */
static bool
scan_integer(struct scan *s, struct value *v)
{
	v->type = FOUND_INTEGER;
	v->start = s->p;
	if (peek(s) == '-')
		s->p++;
	skip_digits(s);
	v->len = (size_t)(s->p - v->start);
	return is_integer(v->start, v->len);
}

/*
 * The id that the payload begins with: an object whose first member is "id", a
 * string without escapes or an integer.  Nothing behind it is read.
 */
static bool
scan_leading(struct scan *s, struct value *v)
{
	if (!take_word(s, "{", false))
		return false;
	skip_blanks(s);
	if (!take_word(s, "\"id\"", false))
		return false;
	skip_blanks(s);
	if (!take_word(s, ":", false))
		return false;
	skip_blanks(s);
	if (!(peek(s) == '"' ? scan_plain(s, v) : scan_integer(s, v)) ||
	    !message_id_ok(v->start, v->len))
		return false;
	skip_blanks(s);
	return peek(s) == ',' || peek(s) == '}';
}

int
message_id(const char *payload, size_t len, char *ret)
{
	struct scan s = { .p = payload, .end = payload + len };
	struct value v;
	char id[MESSAGE_ID_MAX + 1];
	size_t n = 0;

	if (len == 0 || len > PAYLOAD_MAX)
		return -1;
	if (scan_leading(&s, &v)) {
		memcpy(ret, v.start, v.len);
		ret[v.len] = '\0';
		return 0;
	}
	s.p = payload;
	if (memchr(payload, '\0', len) != NULL)
		return -1;
	skip_blanks(&s);
	if (peek(&s) != '{' || !scan_payload(&s, id, &n) || n == 0)
		return -1;
	memcpy(ret, id, n);
	ret[n] = '\0';
	return 0;
}
