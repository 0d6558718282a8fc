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
#include "base/log.h"

#include <inttypes.h>
#include <string.h>

#include "base/utf8.h"

/* How many characters s begins with that no format escapes or quotes: most of most values. */
static size_t
plain_run(const char *s, size_t n)
{
	size_t i = 0;

	while (i < n && s[i] > ' ' && s[i] < 0x7f && s[i] != '"' && s[i] != '\\' && s[i] != '=')
		i++;
	return i;
}

static void
put_hex(struct buf *b, const char *prefix, const char *s, size_t n)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < n; i++) {
		buf_puts(b, prefix);
		buf_addc(b, digits[(unsigned char)s[i] >> 4]);
		buf_addc(b, digits[s[i] & 15]);
	}
}

/* Writes the n bytes of one character; valid: they are UTF-8 with this code. */
static void
put_escaped(struct buf *b, enum log_format format, const char *s, size_t n, uint32_t code,
    bool valid)
{
	static const char plain[] = "\n\t\r\"\\", letters[] = "ntr\"\\";
	const char *p = valid && n == 1 ? memchr(plain, (int)code, sizeof(plain) - 1) : NULL;

	if (p != NULL) {
		buf_addc(b, '\\');
		buf_addc(b, letters[p - plain]);
	} else if (format == LOG_LOGFMT) {
		put_hex(b, "\\x", s, n);
	} else if (!valid) {
		put_hex(b, "\\\\x", s, n);
	} else if (code <= 0xffff) {
		buf_printf(b, "\\u%04x", (unsigned)code);
	} else {		/* two surrogates */
		buf_printf(b, "\\u%04x\\u%04x", (unsigned)(0xd800 + ((code - 0x10000) >> 10)),
		    (unsigned)(0xdc00 + (code & 0x3ff)));
	}
}

/* Copies runs at once: almost all values are one run.  False: logfmt must quote the text. */
static bool
put_text(struct buf *b, enum log_format format, const char *s, size_t n)
{
	size_t i = 0, from = 0, len;
	bool simple = n > 0;
	uint32_t code;

	while ((i += plain_run(s + i, n - i)) < n) {
		code = (unsigned char)s[i];
		len = utf8_decode(s + i, n - i, &code);
		if (len == 0 || !utf8_is_visible(code) || code == '"' || code == '\\') {
			buf_add(b, s + from, i - from);
			from = i + (len > 0 ? len : 1);
			put_escaped(b, format, s + i, from - i, code, len > 0);
			simple = false;
		} else if (code == ' ' || code == '=') {
			simple = false;
		}
		i += len > 0 ? len : 1;
	}
	buf_add(b, s + from, n - from);
	return simple;
}

static void
put_string(struct buf *b, enum log_format format, const char *s, size_t n)
{
	size_t start = b->len;

	buf_addc(b, '"');
	if (!put_text(b, format, s, n) || format == LOG_JSON) {
		buf_addc(b, '"');
		return;
	}
	memmove(b->data + start, b->data + start + 1, b->len - start - 1);
	b->len--;
}

/* Keys are the program's own words: nothing in them needs escaping. */
static void
put_field(struct buf *b, enum log_format format, const struct log_field *f, bool first)
{
	if (f->type == LOG_T_STR && f->str == NULL)
		return;
	if (format == LOG_JSON) {
		buf_puts(b, first ? "{\"" : ",\"");
		buf_puts(b, f->key);
		buf_puts(b, "\":");
	} else {
		buf_puts(b, first ? "" : " ");
		buf_puts(b, f->key);
		buf_addc(b, '=');
	}
	if (f->type == LOG_T_STR)
		put_string(b, format, f->str, strlen(f->str));
	else if (f->type == LOG_T_MEM)
		put_string(b, format, f->str, f->len);
	else
		log_number(b, f);
}

/*
 * Seconds have three decimals, cut and not rounded.  Below one second they have six where
 * three are not exact, because many handlers take less than a millisecond.
 */
void
log_number(struct buf *b, const struct log_field *f)
{
	uint64_t n = f->num < 0 ? 0 - (uint64_t)f->num : (uint64_t)f->num;
	const char *sign = f->num < 0 ? "-" : "";

	if (f->type != LOG_T_USEC)
		buf_printf(b, "%" PRId64, f->num);
	else if (n < (uint64_t)SEC && n % (uint64_t)MSEC != 0)
		buf_printf(b, "%s0.%06u", sign, (unsigned)n);
	else
		buf_printf(b, "%s%" PRIu64 ".%03u", sign, n / (uint64_t)SEC,
		    (unsigned)(n / (uint64_t)MSEC % 1000));
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
		if (ctx->trace != NULL)
			f[n++] = LF_STR("trace", ctx->trace);
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
