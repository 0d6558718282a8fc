/*
 * Writing messages into a pipe.
 *
 * Headers and small payloads are copied into a buffer that all feeders share; larger
 * payloads are written from where they are.  The buffer keeps nothing between calls.  If a
 * message was written in part, the next call frames it again and skips its first `sent` bytes.
 */
#include "handler/feed.h"

#include <sys/uio.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "handler/frame.h"

#define COPY_MAX	((size_t)2048)		/* a larger payload has a vector of its own */
#define BATCH_MAX	((size_t)64 * 1024)	/* bytes that a pipe holds */
#define VECTORS		64
#define WRITES_MAX	16

/* The arguments of one writev(2). */
struct vector {
	struct iovec	v[VECTORS];
	int		n;
	size_t		bytes;		/* of all vectors */
	size_t		used;		/* of text */
};

static char text[BATCH_MAX];

/* -- putting together -------------------------------------------------------------- */

static size_t
frame_len(const struct feed *f)
{
	char header[FRAME_HEADER_MAX];

	return frame_header(header, f->number, f->msg) + frame_payload_len(f->msg) + 1;
}

/* Adds bytes; joins them with the last ones if they follow in memory. */
static void
vector_add(struct vector *b, const char *p, size_t len)
{
	struct iovec *last = b->n > 0 ? &b->v[b->n - 1] : NULL;

	b->bytes += len;
	if (last != NULL && (char *)last->iov_base + last->iov_len == p)
		last->iov_len += len;
	else if (len > 0)
		b->v[b->n++] = (struct iovec){ (char *)(uintptr_t)p, len };
}

static void
vector_text(struct vector *b, const char *p, size_t len)
{
	memcpy(text + b->used, p, len);
	vector_add(b, text + b->used, len);
	b->used += len;
}

static bool
vector_has_room(const struct vector *b)
{
	return b->n + 3 <= VECTORS && b->bytes < BATCH_MAX &&
	    b->used + FRAME_HEADER_MAX + COPY_MAX + 1 <= BATCH_MAX;
}

static void
vector_feed(struct vector *b, const struct feed *f)
{
	size_t n = frame_header(text + b->used, f->number, f->msg);

	vector_add(b, text + b->used, n);
	b->used += n;
	if (frame_payload_len(f->msg) > COPY_MAX)
		vector_add(b, f->msg->payload, f->msg->len);
	else if (frame_payload_len(f->msg) > 0)
		vector_text(b, f->msg->payload, f->msg->len);
	vector_text(b, "\n", 1);
}

/* Leaves out the first n bytes. */
static void
vector_skip(struct vector *b, size_t n)
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

/* -- writing ------------------------------------------------------------------------ */

static void
written(struct feeder *e, size_t n)
{
	usec_t now = clock_mono();
	struct feed *f;
	size_t len;

	e->sent += n;
	while ((f = e->next) != NULL && e->sent >= (len = frame_len(f))) {
		e->sent -= len;
		e->next = TAILQ_NEXT(f, entry);
		f->written = now;
		e->written(f);
	}
}

/* Makes one call of writev(2); false: the pipe is full, or closed. */
static bool
write_batch(struct feeder *e)
{
	struct vector b = { .n = 0 };
	const struct feed *f;
	ssize_t n;

	for (f = e->next; f != NULL && vector_has_room(&b); f = TAILQ_NEXT(f, entry))
		vector_feed(&b, f);
	vector_skip(&b, e->sent);
	n = TEMP_FAILURE_RETRY(writev(e->fd, b.v, b.n));
	if (n == -1 && errno != EAGAIN) {
		feeder_close(e);
		e->broken(e);
	} else if (n > 0) {
		written(e, (size_t)n);
	}
	return n == (ssize_t)b.bytes;
}

/* Writes at most one share per turn, even if the process reads as fast as that. */
static void
flush(void *arg)
{
	struct feeder *e = arg;

	for (int i = 0; i < WRITES_MAX && e->next != NULL && !e->stopped; i++) {
		if (!write_batch(e))
			break;
	}
	if (e->fd == -1)
		return;
	if (e->next != NULL && !e->stopped)
		io_start(&e->io);
	else
		io_stop(&e->io);
}

static void
pipe_ready(int what UNUSED, void *arg)
{
	flush(arg);
}

void
feeder_add(struct feeder *e, struct feed *f)
{
	if (e->next == NULL)
		e->next = f;
	loop_defer_feed(e->loop, &e->flush, flush, e);
}

/* -- life ----------------------------------------------------------------------------- */

void
feeder_init(struct feeder *e, struct loop *loop, void (*on_written)(struct feed *),
    void (*on_broken)(struct feeder *))
{
	*e = (struct feeder){ .loop = loop, .written = on_written, .broken = on_broken,
	    .fd = -1 };
}

int
feeder_open(struct feeder *e, int *child_end)
{
	if (fd_pipe_to(&e->fd, child_end) == -1)
		return -1;
	io_init(&e->io, e->loop, e->fd, IO_WRITE, pipe_ready, e);
	return 0;
}

void
feeder_stop(struct feeder *e)
{
	e->stopped = true;
	loop_defer_cancel(e->loop, &e->flush);
	if (e->sent == 0)
		feeder_close(e);
	else if (e->fd != -1)
		io_stop(&e->io);
}

void
feeder_close(struct feeder *e)
{
	e->stopped = true;
	loop_defer_cancel(e->loop, &e->flush);
	if (e->fd == -1)
		return;
	io_done(&e->io);
	fd_close(&e->fd);
}
