/*
 * Fuzzes what a handler prints: handler/output.c, loop/line.c, and the escapes of
 * base/log_text.c.
 *
 * The first byte: bit 0: records are JSON; bit 1: the output is stderr; bit 2: rqd logs
 * it, else a callback gets lines; the other bits: the output limit in units of 101 bytes,
 * 31: none.  The second byte gives the size of the pieces in which the rest is written.
 *
 * Lines must be those that were printed, up to the limit, and at most OUTPUT_LINE_MAX
 * long.  The tail must be stderr's.  A record must be one line of printable UTF-8.
 */
#include "fuzz.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/buf.h"
#include "base/log.h"
#include "handler/handler.h"
#include "handler/output.h"

FUZZ_MAIN("output")

#define CHECK(what) do { if (!(what)) abort(); } while (0)

static struct buf lines;	/* all that came, with a newline after each line that is not cut */
static bool json, cut;
static size_t records;

static void
line_came(const struct log_ctx *ctx, int fd, const char *p, size_t n, bool goes_on,
    void *arg)
{
	(void)ctx, (void)arg;
	CHECK((fd == 1 || fd == 2) && n <= OUTPUT_LINE_MAX && (!goes_on || n == OUTPUT_LINE_MAX));
	CHECK(memchr(p, '\n', n) == NULL);
	buf_add(&lines, p, n);
	if (!goes_on)
		buf_add(&lines, "\n", 1);
}

static void
limit_passed(const struct log_ctx *ctx, void *arg)
{
	(void)ctx, (void)arg;
	CHECK(!cut);
	cut = true;
}

/* The length of a character that is not a control character; 0: it is one, or bad UTF-8. */
static size_t
printable(const unsigned char *p, size_t n)
{
	if (p[0] < 0x20 || p[0] == 0x7f)
		return 0;
	if (p[0] < 0x80)
		return 1;
	if (p[0] == 0xc2 && n > 1 && p[1] < 0xa0)
		return 0;
	for (size_t len = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2, i = 1; len <= n; i++) {
		if (i == len)
			return len;
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	}
	return 0;
}

static void
record(void *arg, enum log_level level, const char *text, size_t n)
{
	json_t *root;
	size_t i, len;

	(void)arg, (void)level;
	records++;
	for (i = 0; i < n; i += len) {
		len = printable((const unsigned char *)text + i, n - i);
		CHECK(len > 0);
	}
	if (!json)
		return;
	root = json_loadb(text, n, JSON_ALLOW_NUL, NULL);
	CHECK(root != NULL);
	json_decref(root);
}

/*
 * The lines together must be the output up to the limit; a last newline may be added.  Each
 * record counts 100 bytes more; those of lines in pieces are left out.
 */
static void
check_lines(const uint8_t *data, size_t size, size_t limit)
{
	size_t n = 0;

	if (size > OUTPUT_LINE_MAX)
		return;
	for (; n < size && limit > 0; n++) {
		limit--;
		if (data[n] == '\n')
			limit -= limit < 100 ? limit : 100;
	}
	CHECK(cut == (n < size));
	CHECK(lines.len == n || (lines.len == n + 1 && (n == 0 || data[n - 1] != '\n')));
	CHECK(n == 0 || memcmp(lines.data, data, n) == 0);
}

static void
check_tail(struct output *o, bool is_stderr, const uint8_t *data, size_t size)
{
	size_t len, want = size < OUTPUT_TAIL ? size : OUTPUT_TAIL;
	char *tail = output_take_tail(o, &len);

	CHECK(len == (is_stderr ? want : 0));
	CHECK(len == 0 || memcmp(tail, data + size - len, len) == 0);
	free(tail);
}

static void
nothing(struct output *o)
{
	(void)o;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct handler_events taken = {
		.output = line_came, .output_cut = limit_passed
	}, logged = { .output = NULL };
	struct queue_config cfg = { .name = (char[]){ "q" }, .output_limit = UINT64_MAX };
	const struct handler_events *events = &taken;
	struct output o;
	struct loop *l;
	size_t piece, at, n;
	bool is_stderr;
	int fd;

	if (size < 2)
		return 0;
	json = (data[0] & 1) != 0;
	is_stderr = (data[0] & 2) != 0;
	if ((data[0] & 4) != 0)
		events = &logged;
	if (data[0] >> 3 != 31)
		cfg.output_limit = (uint64_t)(data[0] >> 3) * 101;
	piece = 1 + (size_t)data[1] * 40;
	data += 2;
	size -= 2;
	cut = false;
	buf_clear(&lines);
	log_set_format(json ? LOG_JSON : LOG_LOGFMT);
	log_set_sink(record, NULL);
	l = loop_new();
	output_init(&o, l, &cfg, events, NULL, NULL, nothing);
	o.ctx = (struct log_ctx){ .queue = "q", .id = "id", .attempt = 1 };
	CHECK(output_open(&o, is_stderr ? 2 : 1, STREAM_LOG, &fd) == 0);
	for (at = 0; at < size; at += n) {
		n = size - at < piece ? size - at : piece;
		CHECK(write(fd, data + at, n) == (ssize_t)n);
		output_drain(&o);
	}
	close(fd);
	output_drain(&o);
	CHECK(!output_is_open(&o));
	if (events == &taken)
		check_lines(data, size, cfg.output_limit);
	check_tail(&o, is_stderr, data, size);
	output_done(&o);
	loop_free(l);
	log_set_sink(NULL, NULL);
	buf_done(&lines);
	return 0;
}
