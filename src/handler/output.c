/*
 * Reads the output of handlers.
 *
 * No handler may take more than its share of a turn.  So each stream is read once a
 * turn.  It reads READ_LINES bytes while lines are handed out: they may be empty, and
 * each costs a record.  It reads READ_WASTE bytes after the limit, when lines are
 * dropped.  A handler that prints faster must wait for its pipe.
 *
 * The limit counts the bytes of both streams.  After it stderr is still read for its
 * tail.
 */
#include "handler/output.h"

#include <sys/ioctl.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

#define READ_LINES	((size_t)8 * 1024)
#define READ_WASTE	((size_t)64 * 1024)
#define DRAIN_MAX	((size_t)128 * 1024)	/* a full pipe, twice */

/* -- handing out ------------------------------------------------------------------ */

static void
line_came(const char *p, size_t n, bool cut, void *arg)
{
	struct output_stream *s = arg;
	const struct handler *h = s->output->handler;

	if (h->events->output != NULL)
		h->events->output(&s->output->ctx, s->number, p, n, cut, h->arg);
	else
		log_event(LOG_LV_INFO, "output", &s->output->ctx,
		    LF_INT("fd", s->number), LF_MEM("line", p, n));
}

/* -- collecting messages ----------------------------------------------------------- */

/* Whether lines of this stream are messages for a queue, or were. */
static bool
stream_collects(const struct output_stream *s)
{
	return s->number == 1 && (s->output->msg != NULL || s->output->collected);
}

static void
message_came(const char *p, size_t n, bool cut, void *arg)
{
	struct output_stream *s = arg;
	struct output_pair *o = s->output;
	const char *name;

	if (o->collected || n == 0)
		return;
	name = config_output_queue(o->msg->cfg);
	pushes_add(o->pushes, o->msg->config, o->msg->cfg, name, strlen(name), cut ? NULL : p,
	    cut ? 0 : n);
}

void
output_collect(struct output_pair *o, const struct message *msg, struct pushes **pushes)
{
	struct output_stream *s = &o->stream[0];

	o->msg = msg;
	o->pushes = pushes;
	line_done(&s->line);
	line_init(&s->line, pushes_longest(msg->config, config_output_queue(msg->cfg)) + 1,
	    message_came, s);
}

void
output_end_collect(struct output_pair *o, bool leftovers)
{
	if (o->msg == NULL)
		return;
	if ((leftovers || o->stream[0].fd != -1) && o->stream[0].line.partial.len > 0)
		pushes_add_cut(o->pushes);
	line_end(&o->stream[0].line);
	o->collected = true;
	o->msg = NULL;
	o->pushes = NULL;
}

/* -- the limit ----------------------------------------------------------------------- */

static void
pass_limit(struct output_pair *o)
{
	const struct handler *h = o->handler;

	o->cut = true;
	for (size_t i = 0; i < ARRAY_LEN(o->stream); i++) {
		if (!stream_collects(&o->stream[i]))
			line_end(&o->stream[i].line);
	}
	if (h->events->output_cut != NULL)
		h->events->output_cut(&o->ctx, h->arg);
	else
		log_event(LOG_LV_WARN, "output_cut", &o->ctx);
}

/* Keeps at least the last OUTPUT_TAIL bytes; it rarely needs to move them. */
static void
keep_tail(struct buf *b, const char *p, size_t n)
{
	if (n > OUTPUT_TAIL) {
		p += n - OUTPUT_TAIL;
		n = OUTPUT_TAIL;
	}
	if (b->len + n > 2 * OUTPUT_TAIL)
		buf_drain(b, b->len + n - OUTPUT_TAIL);
	buf_add(b, p, n);
}

static void
bytes_came(struct output_stream *s, const char *p, size_t n)
{
	struct output_pair *o = s->output;
	size_t take = n < o->left ? n : (size_t)o->left;

	if (stream_collects(s)) {
		line_feed(&s->line, p, n);
		return;
	}
	if (s->number == 2)
		keep_tail(&o->tail, p, n);
	if (o->cut)
		return;
	o->left -= take;
	line_feed(&s->line, p, take);
	if (take < n)
		pass_limit(o);
}

/* -- reading ---------------------------------------------------------------------- */

static void
stream_close(struct output_stream *s)
{
	if (s->fd == -1)
		return;
	io_done(&s->io);
	fd_close(&s->fd);
}

static void
stream_end(struct output_stream *s)
{
	stream_close(s);
	/* The end may be that of a killed process: see output_end_collect(). */
	if (s->number != 1 || s->output->msg == NULL)
		line_end(&s->line);
}

/* Returns the bytes read; 0: none now, or the end, which closes the stream. */
static size_t
stream_read(struct output_stream *s)
{
	static char bytes[READ_WASTE];
	size_t max = s->output->cut || stream_collects(s) ? READ_WASTE : READ_LINES;
	ssize_t n = TEMP_FAILURE_RETRY(read(s->fd, bytes, max));

	if (n > 0)
		bytes_came(s, bytes, (size_t)n);
	else if (n == 0 || errno != EAGAIN)
		stream_end(s);
	return n > 0 ? (size_t)n : 0;
}

static void
stream_ready(int what UNUSED, void *arg)
{
	struct output_stream *s = arg;
	struct output_pair *o = s->output;

	(void)stream_read(s);
	if (!output_is_open(o))
		o->eof(o);
}

/*
 * The most to read at the exit.  If lines are messages: all that is in the pipe,
 * whatever its size.
 */
static size_t
drain_max(const struct output_stream *s)
{
	int there;

	if (!stream_collects(s) || ioctl(s->fd, FIONREAD, &there) == -1)
		return DRAIN_MAX;
	return (size_t)there;
}

static void
stream_drain(struct output_stream *s)
{
	size_t n, total, max = s->fd != -1 ? drain_max(s) : 0;

	for (total = 0; s->fd != -1 && total <= max; total += n) {
		n = stream_read(s);
		if (n == 0)
			return;
	}
}

void
output_drain(struct output_pair *o)
{
	bool was_open = output_is_open(o);

	for (size_t i = 0; i < ARRAY_LEN(o->stream); i++)
		stream_drain(&o->stream[i]);
	if (was_open && !output_is_open(o))
		o->eof(o);
}

/* -- life -------------------------------------------------------------------------- */

void
output_init(struct output_pair *o, struct loop *loop, const struct handler *h,
    uint64_t limit, void (*eof)(struct output_pair *))
{
	*o = (struct output_pair){ .loop = loop, .handler = h, .eof = eof,
	    .left = limit };
	for (size_t i = 0; i < ARRAY_LEN(o->stream); i++) {
		o->stream[i].output = o;
		o->stream[i].number = (int)i + 1;
		o->stream[i].fd = -1;
		line_init(&o->stream[i].line, OUTPUT_LINE_MAX, line_came,
		    &o->stream[i]);
	}
}

int
output_open(struct output_pair *o, int number, int *child_end)
{
	return fd_pipe_from(&o->stream[number - 1].fd, child_end);
}

void
output_listen(struct output_pair *o)
{
	struct output_stream *s;

	for (size_t i = 0; i < ARRAY_LEN(o->stream); i++) {
		s = &o->stream[i];
		if (s->fd == -1 || s->io.on)
			continue;
		io_init(&s->io, o->loop, s->fd, IO_READ, stream_ready, s);
		io_start(&s->io);
	}
}

bool
output_is_open(const struct output_pair *o)
{
	return o->stream[0].fd != -1 || o->stream[1].fd != -1;
}

char *
output_take_tail(struct output_pair *o, size_t *len)
{
	struct buf *b = &o->tail;

	if (b->len > OUTPUT_TAIL)
		buf_drain(b, b->len - OUTPUT_TAIL);
	*len = b->len;
	return b->len > 0 ? buf_steal(b) : NULL;
}

void
output_renew(struct output_pair *o, uint64_t limit, bool forget)
{
	o->left = limit;
	o->cut = false;
	if (forget)
		buf_clear(&o->tail);
}

void
output_close(struct output_pair *o)
{
	for (size_t i = 0; i < ARRAY_LEN(o->stream); i++)
		stream_end(&o->stream[i]);
}

void
output_done(struct output_pair *o)
{
	for (size_t i = 0; i < ARRAY_LEN(o->stream); i++) {
		stream_close(&o->stream[i]);
		line_done(&o->stream[i].line);
	}
	buf_done(&o->tail);
}
