/*
 * Splits bytes into lines.
 *
 * A line that is whole in one feed is passed on without a copy; only an unfinished line
 * is copied.  A piece is marked as cut only when a further byte of the same line has
 * arrived, so a line of exactly max bytes is never cut.
 */
#include "loop/line.h"

#include <string.h>

void
line_init(struct line *l, size_t max,
    void (*fn)(const char *, size_t, bool, void *), void *arg)
{
	*l = (struct line){ .partial = BUF_INIT, .max = max, .fn = fn,
	    .arg = arg };
}

/* Completes or fills the unfinished line from p; returns how many bytes it took. */
static size_t
go_on(struct line *l, const char *p, size_t n)
{
	size_t room = l->max - l->partial.len, len;
	const char *nl = memchr(p, '\n', n <= room ? n : room + 1);
	bool full = nl == NULL && n > room;

	len = n;
	if (nl != NULL)
		len = (size_t)(nl - p);
	else if (full)
		len = room;
	buf_add(&l->partial, p, len);
	if (nl == NULL && !full)
		return len;
	l->fn(l->partial.data, l->partial.len, full, l->arg);
	buf_clear(&l->partial);
	return full ? len : len + 1;
}

void
line_feed(struct line *l, const char *p, size_t n)
{
	const char *end = p + n, *nl;
	size_t len;

	while (p < end) {
		if (l->partial.len > 0) {
			p += go_on(l, p, (size_t)(end - p));
			continue;
		}
		nl = memchr(p, '\n', (size_t)(end - p));
		for (len = (size_t)((nl == NULL ? end : nl) - p); len > l->max; len -= l->max) {
			l->fn(p, l->max, true, l->arg);
			p += l->max;
		}
		if (nl == NULL) {
			buf_add(&l->partial, p, len);
			return;
		}
		l->fn(p, len, false, l->arg);
		p = nl + 1;
	}
}

void
line_end(struct line *l)
{
	if (l->partial.len == 0)
		return;
	l->fn(l->partial.data, l->partial.len, false, l->arg);
	buf_clear(&l->partial);
}

void
line_done(struct line *l)
{
	buf_done(&l->partial);
}
