/*
 * The id in a payload, exactly as queue/lua/pop.lua reads it; and the members that become
 * variables of a handler.
 *
 * Most payloads begin with {"id":VALUE, and then VALUE is the id; the rest is not read.  The
 * queue says which member is the id; here it is "id".
 * pop.lua decodes all others with Redis' cjson.  jansson cannot do that here, because
 * cjson accepts what jansson refuses: control characters and invalid UTF-8 in strings,
 * numbers as strtod(3) reads them (0x10, nan, 1e999).  jansson also loses the digits of a
 * long integer.  With jansson, rqctl would print other ids than the daemon uses.
 *
 * So this is a parser of cjson's grammar.  It keeps nothing but the members that are wanted.
 */
#include "policy/message.h"

#include <stdlib.h>
#include <string.h>

#define PAYLOAD_MAX	65536
#define DEPTH_MAX	1000

/* TYPE_WORD: true, false, and another number of JSON; TYPE_OTHER has no text. */
enum type { TYPE_STRING, TYPE_INTEGER, TYPE_WORD, TYPE_OTHER };

struct value {
	enum type	 type;
	const char	*start;		/* its text, a string decoded; len bytes */
	size_t		 len;
};

/* A member of the outermost object.  The last one of this name counts. */
struct wanted {
	const char	*name;
	size_t		 name_len;
	enum type	 type;
	size_t		 at;		/* its text in scan.kept */
	size_t		 len;
};

struct scan {
	const char	*p;
	const char	*end;		/* decoding a whole payload: *end is NUL */
	unsigned	 depth;
	char		 text[MESSAGE_MEMBER_MAX + 8];	/* the string scanned last, decoded ... */
	/* ... and cut, if len > MESSAGE_MEMBER_MAX */
	size_t		 len;
	struct wanted	*wanted;	/* at most 32 */
	size_t		 nwanted;
	struct buf	 kept;
};
_Static_assert(CONFIG_MEMBERS_MAX <= 32, "scan_member() has a bit for each");

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

/* Keeps one byte more than a value may have; drops the rest. */
static void
add(struct scan *s, unsigned c)
{
	if (s->len <= MESSAGE_MEMBER_MAX)
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
	size_t n, room;

	s->len = 0;
	for (s->p++; *s->p != '"';) {
		if (s->p == s->end || (*s->p == '\\' && !scan_escape(s)))
			return false;
		n = strcspn(s->p, "\"\\");
		room = MESSAGE_MEMBER_MAX + 1 - s->len;
		memcpy(s->text + s->len, s->p, n < room ? n : room);
		s->len += n < room ? n : room;
		s->p += n;
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
	else if (strspn(v->start, "+-.0123456789Ee") >= v->len)
		v->type = TYPE_WORD;
	s->p = end;
	return v->len > 0;
}

static bool
scan_value(struct scan *s, struct value *v)
{
	skip_blanks(s);
	*v = (struct value){ TYPE_OTHER, s->p, 0 };
	if (peek(s) == '"') {
		if (!scan_string(s))
			return false;
		*v = (struct value){ TYPE_STRING, s->text, s->len };
		return true;
	}
	if (peek(s) == '{' || peek(s) == '[')
		return scan_members(s);
	if (take_word(s, "true") || take_word(s, "false")) {
		*v = (struct value){ TYPE_WORD, v->start, (size_t)(s->p - v->start) };
		return true;
	}
	return take_word(s, "null") || scan_number(s, v);
}

/* A key, its colon and its value. */
static bool
scan_member(struct scan *s)
{
	uint32_t is = 0;	/* which of those that are wanted */
	struct value v;
	struct wanted *w;
	size_t i;

	skip_blanks(s);
	if (peek(s) != '"' || !scan_string(s))
		return false;
	for (i = 0; s->depth == 1 && i < s->nwanted; i++) {
		w = &s->wanted[i];
		if (w->name_len == s->len && memcmp(w->name, s->text, s->len) == 0)
			is |= 1U << i;
	}
	if (!take(s, ':') || !scan_value(s, &v))
		return false;
	for (i = 0; i < s->nwanted; i++) {
		if ((is & 1U << i) == 0)
			continue;
		w = &s->wanted[i];
		w->type = v.type;
		w->at = s->kept.len;
		w->len = v.len;
		if (v.type != TYPE_OTHER)
			buf_add(&s->kept, v.start, v.len);
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

/*
 * Finds the wanted members of a payload; false: it is no object.  The caller frees what was
 * kept.
 */
static bool
scan_payload(struct scan *s, const char *payload, size_t len)
{
	char *text;
	bool found;

	for (size_t i = 0; i < s->nwanted; i++)
		s->wanted[i].type = TYPE_OTHER;
	if (len == 0 || len > PAYLOAD_MAX || memchr(payload, '\0', len) != NULL)
		return false;
	s->p = text = xstrndup(payload, len);
	s->end = text + len;
	skip_blanks(s);
	found = peek(s) == '{' && scan_members(s);
	skip_blanks(s);
	found = found && s->p == s->end;
	free(text);
	return found;
}

/* -- the id ----------------------------------------------------------------------- */

/*
 * The id at the beginning of the payload: that of an object whose first member is the id,
 * a string without escapes or an integer.  The rest is not read.
 */
static bool
scan_leading(struct scan *s, struct value *v)
{
	*v = (struct value){ TYPE_INTEGER, NULL, 0 };
	if (!take_word(s, "{"))
		return false;
	skip_blanks(s);
	if (!take_word(s, "\"") || !take_word(s, s->wanted->name) || !take_word(s, "\"") ||
	    !take(s, ':'))
		return false;
	if (!take(s, '"')) {
		for (v->start = s->p; peek(s) == '-' || (peek(s) >= '0' && peek(s) <= '9');)
			s->p++;
		v->len = (size_t)(s->p - v->start);
	} else {
		for (v->start = s->p; s->p < s->end && *s->p != '"' && *s->p != '\\';)
			s->p++;
		v->len = (size_t)(s->p - v->start);
		if (!take_word(s, "\""))
			return false;
		v->type = TYPE_STRING;
	}
	if (!message_id_ok(v->start, v->len) ||
	    (v->type == TYPE_INTEGER && !is_integer(v->start, v->len)))
		return false;
	skip_blanks(s);
	return peek(s) == ',' || peek(s) == '}';
}

int
message_id(const char *member, const char *payload, size_t len, char *ret)
{
	struct wanted id = { .name = member, .name_len = strlen(member) };
	struct scan s = { .p = payload, .end = payload + len, .wanted = &id, .nwanted = 1 };
	struct value v;
	bool found = len > 0 && len <= PAYLOAD_MAX && scan_leading(&s, &v);

	if (!found && scan_payload(&s, payload, len) && id.type <= TYPE_INTEGER && id.len > 0) {
		v = (struct value){ id.type, s.kept.data + id.at, id.len };
		found = message_id_ok(v.start, v.len);
	}
	if (found) {
		memcpy(ret, v.start, v.len);
		ret[v.len] = '\0';
	}
	buf_done(&s.kept);
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

/* -- members as variables ----------------------------------------------------------- */

#define TRACEPARENT	55	/* "00-", 32 digits, "-", 16 digits, "-", 2 digits */

/* The trace id of a traceparent as the W3C defines it; NULL: it is not valid. */
static char *
trace_id(const char *p, size_t n)
{
	if (n < TRACEPARENT || memcmp(p, "ff", 2) == 0 ||
	    (n > TRACEPARENT && (memcmp(p, "00", 2) == 0 || p[TRACEPARENT] != '-')))
		return NULL;
	for (size_t i = 0; i < TRACEPARENT; i++) {
		if (i == 2 || i == 35 || i == 52 ? p[i] != '-' :
		    p[i] == '\0' || strchr("0123456789abcdef", p[i]) == NULL)
			return NULL;
	}
	return strspn(p + 3, "0") < 32 && strspn(p + 36, "0") < 16 ? xstrndup(p + 3, 32) : NULL;
}

void
message_read(struct message *m, const struct queue_config *cfg)
{
	struct wanted wanted[CONFIG_MEMBERS_MAX], *w;
	struct scan s = { .wanted = wanted, .nwanted = config_members(cfg) };
	const char *text;
	bool found;

	for (w = wanted; w < wanted + s.nwanted; w++) {
		w->name = strchr(cfg->env_message[w - wanted], '=') + 1;
		w->name_len = strlen(w->name);
	}
	found = m->payload != NULL && scan_payload(&s, m->payload, m->len);
	buf_clear(&m->members);
	for (w = wanted; w < wanted + s.nwanted; w++, buf_addc(&m->members, '\0')) {
		if (!found || w->type == TYPE_OTHER || w->len > MESSAGE_MEMBER_MAX)
			continue;
		text = w->len > 0 ? s.kept.data + w->at : "";
		if (memchr(text, '\0', w->len) != NULL)
			continue;
		buf_addc(&m->members, '=');
		buf_add(&m->members, text, w->len);
		if (m->trace == NULL && strcmp(w->name, "traceparent") == 0)
			m->trace = trace_id(text, w->len);
	}
	buf_done(&s.kept);
}
