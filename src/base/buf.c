/*
 * A growing byte buffer.  It doubles, so that adding is linear over all; it
 * shrinks only in buf_done() and buf_steal().
 */
#include "base/buf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUF_MIN	64
#define READ_MIN	4096

void
buf_done(struct buf *b)
{
	if (b == NULL)
		return;
	free(b->data);
	*b = (struct buf)BUF_INIT;
}

/* Makes room for more bytes after the present ones. */
void
buf_reserve(struct buf *b, size_t more)
{
	size_t need, cap;

	if (more <= b->cap - b->len)
		return;
	if (more > SIZE_MAX / 2 - b->len)
		fatalx("buffer of %zu bytes cannot grow by %zu", b->len, more);
	need = b->len + more;
	cap = b->cap < BUF_MIN ? BUF_MIN : b->cap * 2;
	if (cap < need)
		cap = need;
	b->data = xrealloc(b->data, cap);
	b->cap = cap;
}

void
buf_add(struct buf *b, const void *p, size_t n)
{
	if (n == 0)
		return;
	buf_reserve(b, n);
	memcpy(b->data + b->len, p, n);
	b->len += n;
}

void
buf_addc(struct buf *b, char c)
{
	buf_reserve(b, 1);
	b->data[b->len++] = c;
}

void
buf_puts(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

int
buf_read(struct buf *b, int fd, size_t max)
{
	ssize_t n;

	do {
		buf_reserve(b, READ_MIN);
		n = read(fd, b->data + b->len, b->cap - b->len);
		if (n == -1 && errno != EINTR)
			return -1;
		b->len += n > 0 ? (size_t)n : 0;
		if (b->len > max) {
			errno = EFBIG;
			return -1;
		}
	} while (n != 0);
	return 0;
}

void
buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	size_t room;
	int n;

	buf_reserve(b, BUF_MIN);
	room = b->cap - b->len;
	va_start(ap, fmt);
	n = vsnprintf(b->data + b->len, room, fmt, ap);
	va_end(ap);
	if (n < 0)
		fatalx("buf_printf: bad format");
	if ((size_t)n >= room) {
		buf_reserve(b, (size_t)n + 1);
		va_start(ap, fmt);
		(void)vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
		va_end(ap);
	}
	b->len += (size_t)n;
}

void
buf_drain(struct buf *b, size_t n)
{
	if (n > b->len)
		fatalx("buffer of %zu bytes cannot give %zu", b->len, n);
	if (n == 0)
		return;
	b->len -= n;
	memmove(b->data, b->data + n, b->len);
}

void
buf_clear(struct buf *b)
{
	b->len = 0;
}

char *
buf_str(struct buf *b)
{
	buf_reserve(b, 1);
	b->data[b->len] = '\0';
	return b->data;
}

char *
buf_steal(struct buf *b)
{
	char *s = buf_str(b);

	*b = (struct buf)BUF_INIT;
	return s;
}
