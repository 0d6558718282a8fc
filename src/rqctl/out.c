/*
 * The output of rqctl; see out.h.  All text from Redis passes out_escape() before it
 * reaches a table or an error.  Only --raw and export write bytes unchanged.
 */
#include "rqctl/out.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "base/clock.h"
#include "base/utf8.h"

static bool utf8;		/* the locale's encoding */
static bool colours;
static bool progress_shown;	/* stderr shows a line without newline */

void
out_init(void)
{
	const char *term = getenv("TERM"), *no = getenv("NO_COLOR");

	setlocale(LC_CTYPE, "");
	utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	colours = isatty(STDOUT_FILENO) && term != NULL && strcmp(term, "dumb") != 0 &&
	    (no == NULL || no[0] == '\0');
}

/* The size that the kernel knows: 0 if it does not.  False: no terminal. */
static bool
terminal_size(struct winsize *ws)
{
	memset(ws, 0, sizeof(*ws));
	if (!isatty(STDOUT_FILENO))
		return false;
	(void)ioctl(STDOUT_FILENO, TIOCGWINSZ, ws);
	return true;
}

/* The number, else that of the environment, else the usual one. */
static int
size_known(int n, const char *variable, int usual)
{
	const char *env = getenv(variable);

	if (n <= 0 && env != NULL)
		n = atoi(env);
	if (n <= 0)
		return usual;
	return n;
}

int
out_width(void)
{
	struct winsize ws;

	if (!terminal_size(&ws))
		return 0;
	return size_known(ws.ws_col, "COLUMNS", 80);
}

int
out_height(void)
{
	struct winsize ws;

	if (!terminal_size(&ws))
		return 0;
	return size_known(ws.ws_row, "LINES", 24);
}

const char *
out_colour(enum colour c)
{
	static const char *const codes[] = {
		[COLOUR_NONE] = "\033[0m", [COLOUR_BOLD] = "\033[1m", [COLOUR_DIM] = "\033[2m",
		[COLOUR_RED] = "\033[31m", [COLOUR_GREEN] = "\033[32m",
		[COLOUR_YELLOW] = "\033[33m"
	};

	return text_if(colours, codes[c]);
}

/* Columns of a character; -1: do not show it, it is a control, invisible or reorders text. */
static int
columns_of(uint32_t c)
{
	if (c < 0x20 || c == 0x7f)
		return -1;
	if (c < 0x80)
		return 1;
	if (!utf8 || !utf8_is_visible(c))
		return -1;
	return wcwidth((wchar_t)c);
}

char *
out_text(const char *fmt, ...)
{
	struct buf b = BUF_INIT;
	char *text;
	va_list ap;

	va_start(ap, fmt);
	text = xvasprintf(fmt, ap);
	va_end(ap);
	out_escape(&b, text, strlen(text));
	free(text);
	return buf_steal(&b);
}

void
out_put_line(struct buf *b, char *text)
{
	if (b != NULL)
		buf_printf(b, "%s\n", text);
	else
		puts(text);
	free(text);
}

static void
escape(struct buf *b, const char *text, size_t len, bool tabs)
{
	uint32_t c;
	size_t n, i;

	for (; len > 0; text += n, len -= n) {
		n = utf8_decode(text, len, &c);
		if ((n > 0 && columns_of(c) >= 0) || (tabs && *text == '\t')) {
			buf_add(b, text, n);
			continue;
		}
		if (n == 0)
			n = 1;
		if (*text == '\n')
			buf_puts(b, "\\n");
		else if (*text == '\t')
			buf_puts(b, "\\t");
		else if (*text == '\r')
			buf_puts(b, "\\r");
		else
			for (i = 0; i < n; i++)
				buf_printf(b, "\\x%02x", (unsigned char)text[i]);
	}
}

void
out_escape(struct buf *b, const char *text, size_t len)
{
	escape(b, text, len, false);
}

void
out_foreign(FILE *f, const char *text, size_t len)
{
	struct buf b = BUF_INIT;

	if (isatty(fileno(f)))
		escape(&b, text, len, true);
	else
		buf_add(&b, text, len);
	fwrite(b.data, 1, b.len, f);
	buf_done(&b);
}

/* Returns how many bytes fit into `room` columns; *used: how many columns these take. */
static size_t
measure(const char *text, size_t room, size_t *used)
{
	size_t len = strlen(text), at = 0, n;
	uint32_t c = 0;
	int w;

	*used = 0;
	while (at < len) {
		n = utf8_decode(text + at, len - at, &c);
		w = -1;
		if (n > 0)
			w = columns_of(c);
		if (w < 0)
			w = 1;
		if (*used + (size_t)w > room)
			break;
		*used += (size_t)w;
		at += size_max(n, 1);
	}
	return at;
}

size_t
out_columns(const char *text)
{
	size_t used;

	measure(text, SIZE_MAX / 2, &used);
	return used;
}

size_t
out_fit(const char *text, size_t columns)
{
	size_t used;

	return measure(text, columns, &used);
}

size_t
out_skip(const char *text, size_t columns)
{
	size_t all = out_columns(text), at;

	if (all <= columns)
		return 0;
	at = out_fit(text, all - columns);
	if (out_columns(text + at) > columns)	/* a wide character did not fit */
		at = out_fit(text, all - columns + 1);
	return at;
}

char *
out_number(long long n, char *buf)
{
	char digits[OUT_NUMBER_MAX], *to = buf;
	const char *from = digits;

	if (n >= 10000000) {
		snprintf(buf, OUT_NUMBER_MAX, "%.1fM", (double)n / 1e6);
		return buf;
	}
	snprintf(digits, sizeof(digits), "%lld", n);
	if (*from == '-')
		*to++ = *from++;
	for (size_t len = strlen(from); len > 0; len--) {
		*to++ = *from++;
		if (len > 1 && len % 3 == 1)
			*to++ = ',';
	}
	*to = '\0';
	return buf;
}

/* JSON is for programs: it is UTF-8 in every locale. */
void
out_json(json_t *json, bool line)
{
	size_t flags = JSON_ENCODE_ANY;
	char *text;

	if (line)
		flags |= JSON_COMPACT;
	else
		flags |= JSON_INDENT(2);
	/* On a terminal, no byte of a message may act as a control character. */
	if (isatty(STDOUT_FILENO))
		flags |= JSON_ENSURE_ASCII;
	text = json_dumps(json, flags);
	if (text == NULL)
		fatalx("cannot make JSON");
	puts(text);
	free(text);
	json_decref(json);
}

json_t *
out_bytes(const char *name, const char *data, size_t len)
{
	json_t *o;

	if (utf8_is_valid(data, len))
		return json_stringn(data, len);
	o = json_object();
	json_set_bytes(o, name, data, len);
	return o;
}

void
out_progress(const char *fmt, ...)
{
	static usec_t last;
	usec_t now = clock_mono();
	va_list ap;

	if (!isatty(STDERR_FILENO) || (progress_shown && now - last < 200 * MSEC))
		return;
	last = now;
	progress_shown = true;
	fputs("\r\033[K", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fflush(stderr);
}

void
out_progress_clear(void)
{
	if (!progress_shown)
		return;
	fputs("\r\033[K", stderr);
	progress_shown = false;
}

int
out_end(void)
{
	out_progress_clear();
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	if (errno == 0)
		errno = EIO;
	return -1;
}

bool
out_failed(void)
{
	return ferror(stdout) != 0;
}
