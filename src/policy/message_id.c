/*
 * The id in a payload, exactly as queue/lua/pop.lua reads it.
 *
 * Most payloads begin with {"id":VALUE, and then VALUE is the id; the rest is not read.  The
 * queue says which member is the id; here it is "id".
 * pop.lua decodes all others with Redis' cjson.  jansson cannot do that here, because
 * cjson accepts what jansson refuses: control characters and invalid UTF-8 in strings,
 * numbers as strtod(3) reads them (0x10, nan, 1e999).  jansson also loses the digits of a
 * long integer.  With jansson, rqctl would print other ids than the daemon uses.
 *
 * So this is a parser of cjson's grammar.  It keeps nothing but the id.
 */
#include "policy/message.h"

#include <stdlib.h>
#include <string.h>

#define PAYLOAD_MAX	65536
#define DEPTH_MAX	1000

enum type { TYPE_STRING, TYPE_INTEGER, TYPE_OTHER };

struct value {
	enum type	 type;
	const char	*start;		/* TYPE_INTEGER: its digits; len of them */
	size_t		 len;
};

struct scan {
	const char	*member;	/* that is the id */
	const char	*p;
	const char	*end;		/* decoding a whole payload: *end is NUL */
	unsigned	 depth;
	char		 text[MESSAGE_ID_MAX + 8];	/* the string scanned last, decoded ... */
	/* ... and cut, if len > MESSAGE_ID_MAX */
	size_t		 len;
	char		 id[MESSAGE_ID_MAX + 1];
	size_t		 id_len;	/* 0: none */
};

bool
message_id_ok(const char *id, size_t len)
{
	if (len < 1 || len > MESSAGE_ID_MAX)
		return false;
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)id[i] < 0x20 || id[i] == 0x7f)
			return false;
	}
	return true;
}

static char
peek(const struct scan *s)
{
	return s->p < s->end ? *s->p : '\0';
}

static void
skip_blanks(struct scan *s)
{
	while (peek(s) == ' ' || peek(s) == '\t' || peek(s) == '\n' || peek(s) == '\r')
		s->p++;
}

/* Takes this character, after blanks, if it is next. */
static bool
take(struct scan *s, char c)
{
	skip_blanks(s);
	if (s->p == s->end || *s->p != c)
		return false;
	s->p++;
	return true;
}

static bool
take_word(struct scan *s, const char *word)
{
	size_t n = strlen(word);

	if ((size_t)(s->end - s->p) < n || memcmp(s->p, word, n) != 0)
		return false;
	s->p += n;
	return true;
}

/* An integer literal of JSON, whole: "-0" yes, "01" "1.0" "1e3" no. */
static bool
is_integer(const char *p, size_t n)
{
	size_t i = n > 0 && p[0] == '-' ? 1 : 0, first = i;

	while (i < n && p[i] >= '0' && p[i] <= '9')
		i++;
	return i == n && n > first && (p[first] != '0' || n == first + 1);
}

/* -- strings --------------------------------------------------------------------- */

/* Keeps one byte more than an id may have; drops the rest. */
static void
add(struct scan *s, unsigned c)
{
	if (s->len <= MESSAGE_ID_MAX)
		s->text[s->len++] = (char)c;
}

static void
add_utf8(struct scan *s, unsigned c)
{
	if (c < 0x80) {
		add(s, c);
		return;
	}
	if (c < 0x800) {
		add(s, 0xc0 | c >> 6);
	} else {
		add(s, c < 0x10000 ? 0xe0 | c >> 12 : 0xf0 | c >> 18);
		if (c >= 0x10000)
			add(s, 0x80 | (c >> 12 & 0x3f));
		add(s, 0x80 | (c >> 6 & 0x3f));
	}
	add(s, 0x80 | (c & 0x3f));
}

/* Takes "\uXXXX": the number, or -1. */
static int
take_unit(struct scan *s)
{
	char hex[5] = "";

	if (s->p[0] != '\\' || s->p[1] != 'u' ||
	    strspn(s->p + 2, "0123456789abcdefABCDEF") < 4)
		return -1;
	memcpy(hex, s->p + 2, 4);
	s->p += 6;
	return (int)strtol(hex, NULL, 16);
}

/* Surrogates come in pairs, the high one first. */
static bool
scan_unicode(struct scan *s)
{
	int c = take_unit(s), low;

	if (c < 0 || (c & 0xfc00) == 0xdc00)
		return false;
	if ((c & 0xfc00) == 0xd800) {
		low = take_unit(s);
		if (low < 0 || (low & 0xfc00) != 0xdc00)
			return false;
		c = 0x10000 + ((c & 0x3ff) << 10) + (low & 0x3ff);
	}
	add_utf8(s, (unsigned)c);
	return true;
}

static bool
scan_escape(struct scan *s)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *at;

	if (s->p[1] == 'u')
		return scan_unicode(s);
	if (s->p[1] == '\0' || (at = strchr(from, s->p[1])) == NULL)
		return false;
	add(s, (unsigned char)to[at - from]);
	s->p += 2;
	return true;
}

/* Decodes the string at its opening quote into s->text. */
static bool
scan_string(struct scan *s)
{
	s->len = 0;
	for (s->p++; *s->p != '"';) {
		if (s->p == s->end)
			return false;
		if (*s->p != '\\')
			add(s, (unsigned char)*s->p++);
		else if (!scan_escape(s))
			return false;
	}
	s->p++;
	return true;
}

/* -- values ---------------------------------------------------------------------- */

static bool	scan_members(struct scan *);

/*
 * Reads a number as strtod(3) does, but rejects a bare ".5" and blanks that JSON does
 * not know.
 */
static bool
scan_number(struct scan *s, struct value *v)
{
	char *end;

	if (peek(s) == '\0' || strchr("+-0123456789iInN", *s->p) == NULL)
		return false;
	(void)strtod(s->p, &end);
	v->len = (size_t)(end - s->p);
	if (is_integer(v->start, v->len))
		v->type = TYPE_INTEGER;
	s->p = end;
	return v->len > 0;
}

static bool
scan_value(struct scan *s, struct value *v)
{
	skip_blanks(s);
	*v = (struct value){ TYPE_OTHER, s->p, 0 };
	if (peek(s) == '"') {
		v->type = TYPE_STRING;
		return scan_string(s);
	}
	if (peek(s) == '{' || peek(s) == '[')
		return scan_members(s);
	return take_word(s, "true") || take_word(s, "false") || take_word(s, "null") ||
	    scan_number(s, v);
}

/* A key, its colon and its value. */
static bool
scan_member(struct scan *s)
{
	const char *from;
	struct value v;
	bool is_id;
	size_t n;

	skip_blanks(s);
	if (peek(s) != '"' || !scan_string(s))
		return false;
	is_id = s->depth == 1 && s->len == strlen(s->member) &&
	    memcmp(s->text, s->member, s->len) == 0;
	if (!take(s, ':') || !scan_value(s, &v))
		return false;
	if (!is_id)
		return true;
	/* One of another type takes back an earlier id. */
	s->id_len = 0;
	from = v.type == TYPE_STRING ? s->text : v.start;
	n = v.type == TYPE_STRING ? s->len : v.len;
	if (v.type != TYPE_OTHER && message_id_ok(from, n)) {
		memcpy(s->id, from, n);
		s->id_len = n;
	}
	return true;
}

/* An object or array, from its opening to its closing bracket. */
static bool
scan_members(struct scan *s)
{
	bool object = *s->p++ == '{';
	char close = object ? '}' : ']';
	struct value v;

	if (++s->depth > DEPTH_MAX)
		return false;
	if (!take(s, close)) {
		do {
			if (!(object ? scan_member(s) : scan_value(s, &v)))
				return false;
		} while (take(s, ','));
		if (!take(s, close))
			return false;
	}
	s->depth--;
	return true;
}

/* -- the id ----------------------------------------------------------------------- */

/*
 * The id at the beginning of the payload: that of an object whose first member is the id,
 * a string without escapes or an integer.  The rest is not read.
 */
static bool
scan_leading(struct scan *s)
{
	struct value v = { TYPE_INTEGER, NULL, 0 };

	if (!take_word(s, "{"))
		return false;
	skip_blanks(s);
	if (!take_word(s, "\"") || !take_word(s, s->member) || !take_word(s, "\"") || !take(s, ':'))
		return false;
	if (!take(s, '"')) {
		for (v.start = s->p; peek(s) == '-' || (peek(s) >= '0' && peek(s) <= '9');)
			s->p++;
		v.len = (size_t)(s->p - v.start);
	} else {
		for (v.start = s->p; s->p < s->end && *s->p != '"' && *s->p != '\\';)
			s->p++;
		v.len = (size_t)(s->p - v.start);
		if (!take_word(s, "\""))
			return false;
		v.type = TYPE_STRING;
	}
	if (!message_id_ok(v.start, v.len) ||
	    (v.type == TYPE_INTEGER && !is_integer(v.start, v.len)))
		return false;
	memcpy(s->id, v.start, v.len);
	s->id_len = v.len;
	skip_blanks(s);
	return peek(s) == ',' || peek(s) == '}';
}

int
message_id(const char *member, const char *payload, size_t len, char *ret)
{
	struct scan s = { .member = member, .p = payload, .end = payload + len };
	char *text = NULL;
	bool found;

	if (len == 0 || len > PAYLOAD_MAX)
		return -1;
	found = scan_leading(&s);
	if (!found && memchr(payload, '\0', len) == NULL) {
		text = xstrndup(payload, len);
		s.p = text;
		s.end = text + len;
		s.id_len = 0;
		skip_blanks(&s);
		found = peek(&s) == '{' && scan_members(&s);
		skip_blanks(&s);
		found = found && s.p == s.end && s.id_len > 0;
	}
	if (found) {
		memcpy(ret, s.id, s.id_len);
		ret[s.id_len] = '\0';
	}
	free(text);
	return found ? 0 : -1;
}

int
message_id_of(enum kind kind, const char *member, const char *payload, size_t len, char *ret)
{
	if (!kind_has(kind, TRAIT_ID_ONLY))
		return message_id(member, payload, len, ret);
	if (!message_id_ok(payload, len))
		return -1;
	memcpy(ret, payload, len);
	ret[len] = '\0';
	return 0;
}
