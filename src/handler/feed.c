/*
 * The frames of messages in the input of a process that gets several: the header line
 * "N ATTEMPT LENGTH ID", the payload, and a newline; or, raw, only the payload and a newline.
 * Before the header of a message with a saved text comes the line "N saved TEXT".
 *
 * Headers and small payloads are copied into one buffer; larger payloads are written from
 * where they are.  The buffer keeps nothing between calls.  If a message was written in
 * part, the next call frames it again and skips its first bytes.
 */
#include <sys/uio.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "handler/process.h"

#define HEADER_MAX	((size_t)96 + MESSAGE_ID_MAX + MESSAGE_SAVED_MAX)
#define COPY_MAX	((size_t)2048)		/* a larger payload has a vector of its own */
#define BATCH_MAX	((size_t)64 * 1024)	/* bytes that a pipe holds */
#define VECTORS		64

/* The arguments of one writev(2). */
struct vector {
	struct iovec	v[VECTORS];
	int		n;
	size_t		bytes;		/* of all vectors */
	size_t		used;		/* of text */
};

static char text[BATCH_MAX];

static char *
put_number(char *p, uint64_t n)
{
	char digits[20];
	size_t i = sizeof(digits);

	do {
		digits[--i] = (char)('0' + n % 10);
		n /= 10;
	} while (n > 0);
	memcpy(p, digits + i, sizeof(digits) - i);
	return p + sizeof(digits) - i;
}

static size_t
put_saved(char *to, uint64_t number, const char *saved)
{
	char *p = stpcpy(put_number(to, number), " saved ");

	return (size_t)(stpcpy(stpcpy(p, saved), "\n") - to);
}

/* Without snprintf(3), which would cost more than all the rest. */
static size_t
put_header(char *to, uint64_t number, const struct message *msg, size_t len)
{
	size_t id_len = strlen(msg->id);
	char *p = put_number(to, number);

	*p++ = ' ';
	p = put_number(p, (uint64_t)msg->attempts + 1);
	*p++ = ' ';
	p = put_number(p, len);
	*p++ = ' ';
	memcpy(p, msg->id, id_len);
	p += id_len;
	*p++ = '\n';
	return (size_t)(p - to);
}

/* Adds bytes; joins them with the last ones if they follow in memory. */
static void
add(struct vector *b, const char *p, size_t len)
{
	struct iovec *last = b->n > 0 ? &b->v[b->n - 1] : NULL;

	b->bytes += len;
	if (last != NULL && (char *)last->iov_base + last->iov_len == p)
		last->iov_len += len;
	else if (len > 0)
		b->v[b->n++] = (struct iovec){ (char *)(uintptr_t)p, len };
}

static void
add_frame(struct vector *b, struct feed *f, bool raw)
{
	size_t before = b->bytes, len = f->msg->payload != NULL ? f->msg->len : 0;
	char *p = text + b->used, *to = p;

	if (f->msg->saved != NULL && !f->in_batch)
		to += put_saved(to, f->number, f->msg->saved);
	if (!raw)
		to += put_header(to, f->number, f->msg, len);
	if (len <= COPY_MAX) {
		if (len > 0)
			memcpy(to, f->msg->payload, len);
		to += len;
	} else {
		add(b, p, (size_t)(to - p));
		add(b, f->msg->payload, len);
		p = to;
	}
	*to++ = '\n';
	add(b, p, (size_t)(to - p));
	b->used = (size_t)(to - text);
	f->len = b->bytes - before;
}

/* Leaves out the first n bytes. */
static void
skip(struct vector *b, size_t n)
{
	struct iovec *v = b->v;

	b->bytes -= n;
	while (n > 0 && n >= v->iov_len) {
		n -= v->iov_len;
		v->iov_len = 0;
		v++;
	}
	if (n > 0) {
		v->iov_base = (char *)v->iov_base + n;
		v->iov_len -= n;
	}
}

int
feed_write(int fd, struct feed **next, size_t *sent, bool raw)
{
	struct vector b = { .n = 0 };
	usec_t now;
	ssize_t n;

	for (struct feed *f = *next; f != NULL && b.n + 3 <= VECTORS && b.bytes < BATCH_MAX &&
	    b.used + HEADER_MAX + COPY_MAX + 1 <= BATCH_MAX; f = TAILQ_NEXT(f, entry))
		add_frame(&b, f, raw);
	skip(&b, *sent);
	n = RETRY(writev(fd, b.v, b.n));
	if (n == -1)
		return errno == EAGAIN ? 0 : -1;
	*sent += (size_t)n;
	now = clock_mono();
	while (*next != NULL && *sent >= (*next)->len && (*next)->len > 0) {
		*sent -= (*next)->len;
		(*next)->written = now;
		*next = TAILQ_NEXT(*next, entry);
	}
	return n == (ssize_t)b.bytes;
}
