/*
 * Records to text: logfmt and JSON.
 *
 * Visible UTF-8 stays as it is.  Both formats write \n, \t, \r, \" and \\ for these five
 * characters.  They also escape the other controls, characters that are invisible or
 * reorder others (utf8_is_visible()), and bytes that are not valid UTF-8: logfmt writes
 * each byte as \xHH.  JSON writes characters as \uHHHH.  A JSON string cannot hold bytes,
 * so JSON writes them as the text "\\xHH".
 *
 * A logfmt value is quoted where it is empty or holds a space, a quote, an
 * equals sign or anything escaped; the backslash counts as escaped.
 */
#include "base/log_private.h"

#include <inttypes.h>
#include <string.h>

#include "base/utf8.h"

/* One character of a value: its bytes and, where they are valid UTF-8, its code. */
struct glyph {
	size_t		len;
	uint32_t	code;
	bool		valid;
	bool		escape;		/* must not be written as it is */
};

/* Whether no format escapes or quotes it: most characters of most values. */
static bool
is_plain(char c)
{
	return c > ' ' && c < 0x7f && c != '"' && c != '\\' && c != '=';
}

/* How many plain characters s begins with.  Most bytes of all records pass here. */
static size_t
plain_run(const char *s, size_t n)
{
	size_t i = 0;

	while (i < n && is_plain(s[i]))
		i++;
	return i;
}

static struct glyph
next_glyph(const char *s, size_t n)
{
	struct glyph g = { .code = (unsigned char)s[0] };
	size_t len = utf8_decode(s, n, &g.code);

	g.valid = len > 0;
	g.len = len > 0 ? len : 1;
	g.escape = !g.valid || !utf8_is_visible(g.code) || g.code == '"' || g.code == '\\';
	return g;
}

/* The letter behind the backslash in the escape of both formats; 0: they have none. */
static char
short_escape(uint32_t code)
{
	switch (code) {
	case '\n':
		return 'n';
	case '\t':
		return 't';
	case '\r':
		return 'r';
	case '"':
		return '"';
	case '\\':
		return '\\';
	}
	return 0;
}

static void
put_hex(struct buf *b, const char *prefix, const char *s, size_t n)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];

		buf_puts(b, prefix);
		buf_addc(b, digits[c >> 4]);
		buf_addc(b, digits[c & 15]);
	}
}

/* Writes \uHHHH for JSON; two of them, surrogates, for a code beyond U+FFFF. */
static void
put_code(struct buf *b, uint32_t code)
{
	if (code > 0xffff) {
		buf_printf(b, "\\u%04x", (unsigned)(0xd800 + ((code - 0x10000) >> 10)));
		code = 0xdc00 + (code & 0x3ff);
	}
	buf_printf(b, "\\u%04x", (unsigned)code);
}

static void
put_escaped(struct buf *b, enum log_format format, const char *s, struct glyph g)
{
	char letter = g.valid ? short_escape(g.code) : 0;

	if (letter != 0) {
		buf_addc(b, '\\');
		buf_addc(b, letter);
	} else if (format == LOG_LOGFMT) {
		put_hex(b, "\\x", s, g.len);
	} else if (g.valid) {
		put_code(b, g.code);
	} else {
		put_hex(b, "\\\\x", s, g.len);
	}
}

/* Copies runs at once: almost all values are one run. */
static void
put_text(struct buf *b, enum log_format format, const char *s, size_t n)
{
	size_t i = 0, from = 0;
	struct glyph g;

	while ((i += plain_run(s + i, n - i)) < n) {
		g = next_glyph(s + i, n - i);
		if (g.escape) {
			buf_add(b, s + from, i - from);
			put_escaped(b, format, s + i, g);
			from = i + g.len;
		}
		i += g.len;
	}
	buf_add(b, s + from, n - from);
}

static bool
needs_quotes(const char *s, size_t n)
{
	struct glyph g;
	size_t i = 0;

	while ((i += plain_run(s + i, n - i)) < n) {
		g = next_glyph(s + i, n - i);
		if (g.escape || g.code == ' ' || g.code == '=')
			return true;
		i += g.len;
	}
	return n == 0;
}

static void
put_string(struct buf *b, enum log_format format, const char *s, size_t n)
{
	bool quotes = format == LOG_JSON || needs_quotes(s, n);

	if (quotes)
		buf_addc(b, '"');
	put_text(b, format, s, n);
	if (quotes)
		buf_addc(b, '"');
}

/* Keys are the program's own words: nothing in them needs escaping. */
static void
put_key(struct buf *b, enum log_format format, const char *key, bool first)
{
	if (format == LOG_JSON) {
		buf_puts(b, first ? "{\"" : ",\"");
		buf_puts(b, key);
		buf_puts(b, "\":");
	} else {
		if (!first)
			buf_addc(b, ' ');
		buf_puts(b, key);
		buf_addc(b, '=');
	}
}

/*
 * Writes seconds with three decimals, cut and not rounded.  Below one second it writes six
 * where three are not exact, because many handlers take less than a millisecond.  JSON has
 * it as a number, too.
 */
static void
put_usec(struct buf *b, int64_t usec)
{
	uint64_t n = usec < 0 ? 0 - (uint64_t)usec : (uint64_t)usec;

	if (n < (uint64_t)SEC && n % (uint64_t)MSEC != 0)
		buf_printf(b, "%s0.%06u", usec < 0 ? "-" : "", (unsigned)n);
	else
		buf_printf(b, "%s%" PRIu64 ".%03u", usec < 0 ? "-" : "",
		    n / (uint64_t)SEC, (unsigned)(n / (uint64_t)MSEC % 1000));
}

static void
put_field(struct buf *b, enum log_format format, const struct log_field *f,
    bool first)
{
	if (f->type == LOG_T_STR && f->str == NULL)
		return;
	put_key(b, format, f->key, first);
	switch (f->type) {
	case LOG_T_END:
		break;
	case LOG_T_STR:
		put_string(b, format, f->str, strlen(f->str));
		break;
	case LOG_T_MEM:
		put_string(b, format, f->str, f->len);
		break;
	case LOG_T_INT:
	case LOG_T_USEC:
		log_number(b, f);
		break;
	}
}

void
log_number(struct buf *b, const struct log_field *f)
{
	if (f->type == LOG_T_USEC)
		put_usec(b, f->num);
	else
		buf_printf(b, "%" PRId64, f->num);
}

void
log_context(const struct log_ctx *ctx, struct log_field f[LOG_CONTEXT_MAX])
{
	size_t n = 0;

	if (ctx != NULL) {
		f[n++] = LF_STR("queue", ctx->queue);
		f[n++] = LF_STR("id", ctx->id);
		if (ctx->attempt != 0)
			f[n++] = LF_INT("attempt", ctx->attempt);
		if (ctx->pid != 0)
			f[n++] = LF_INT("pid", ctx->pid);
	}
	f[n] = LF_END;
}

static void
put_fields(struct buf *b, enum log_format format, const struct log_field *f)
{
	for (; f != NULL && f->type != LOG_T_END; f++)
		put_field(b, format, f, false);
}

void
log_text(struct buf *b, enum log_format format, bool with_ts,
    enum log_level level, const char *event, const struct log_ctx *ctx,
    const struct log_field *fields)
{
	struct log_field context[LOG_CONTEXT_MAX];
	char ts[CLOCK_TEXT_MAX];

	if (with_ts)
		put_field(b, format, &LF_STR("ts", clock_text(clock_wall(), ts)),
		    true);
	put_field(b, format, &LF_STR("level", log_level_name(level)), !with_ts);
	put_field(b, format, &LF_STR("event", event), false);
	log_context(ctx, context);
	put_fields(b, format, context);
	put_fields(b, format, fields);
	if (format == LOG_JSON)
		buf_addc(b, '}');
}
