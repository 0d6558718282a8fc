/*
 * Reads what handlers write.
 *
 * No handler may take more than its share of a turn.  So each stream is read once a turn:
 * READ_LOG bytes while lines are handed out for the log, since they may be empty, and each
 * costs a record; otherwise READ_MAX bytes.  A handler that prints faster must wait for its
 * pipe.
 *
 * The limit counts the bytes of both streams that are logged.  After it stderr is still
 * read for its tail.
 *
 * When the child has exited, FIONREAD says how much is in a pipe whose lines count for the
 * result.  So what a process that it left behind goes on writing is not waited for.
 */
#include "handler/output.h"

#include <sys/ioctl.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

#define READ_LOG	((size_t)8 * 1024)
#define READ_MAX	((size_t)64 * 1024)
#define DRAIN_MAX	((size_t)128 * 1024)	/* a full pipe, twice */
#define REDIS_WAIT	(20 * MSEC)	/* between two looks at the debt */

/* -- lines -------------------------------------------------------------------------- */

static void
log_line(const char *p, size_t n, bool cut, void *arg)
{
	const struct output_stream *s = arg;
	const struct output *o = s->output;

	if (o->events->output != NULL)
		o->events->output(&o->ctx, s->number, p, n, cut, o->arg);
	else
		log_event(LOG_LV_INFO, "output", &o->ctx,
		    LF_INT("fd", s->number), LF_MEM("line", p, n));
}

static void
message_line(const char *p, size_t n, bool cut, void *arg)
{
	const struct output *o = ((struct output_stream *)arg)->output;
	const char *name = config_pushed_queue(o->msg->cfg->output);

	if (n > 0)
		pushes_add(o->pushes, o->msg->config, o->msg->cfg, name, strlen(name),
		    cut ? NULL : p, cut ? 0 : n);
}

static void
pass_limit(struct output *o)
{
	o->cut = true;
	for (size_t i = 0; i < ARRAY_LEN(o->stream); i++) {
		if (o->stream[i].use == STREAM_LOG)
			line_end(&o->stream[i].line);
	}
	if (o->events->output_cut != NULL)
		o->events->output_cut(&o->ctx, o->arg);
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
log_bytes(struct output_stream *s, const char *p, size_t n)
{
	struct output *o = s->output;
	size_t take = n < o->left ? n : (size_t)o->left;

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

/* The end of other lines may be that of a killed process: see output_end(). */
static void
stream_end(struct output_stream *s)
{
	stream_close(s);
	if (s->use == STREAM_LOG)
		line_end(&s->line);
}

static void stream_drain(struct output_stream *);

/* Returns the bytes read; 0: none now, or the end, which closes the stream. */
static size_t
stream_read(struct output_stream *s)
{
	static char log[READ_MAX], others[READ_MAX];
	struct output *o = s->output;
	char *bytes = s->use == STREAM_LOG ? log : others;
	size_t max = s->use == STREAM_LOG && !o->cut ? READ_LOG : READ_MAX;
	ssize_t n = RETRY(read(s->fd, bytes, max));

	if (n == 0 || (n == -1 && errno != EAGAIN))
		stream_end(s);
	if (n <= 0)
		return 0;
	if (s->use == STREAM_LOG) {
		log_bytes(s, bytes, (size_t)n);
	} else if (s->use != STREAM_DROPPED) {
		/* What a persistent process wrote to stderr before an answer belongs to that. */
		if (s->use == STREAM_STATEMENTS && s->number == 1)
			stream_drain(&o->stream[1]);
		line_feed(&s->line, bytes, (size_t)n);
	}
	return (size_t)n;
}

static void
stream_drain(struct output_stream *s)
{
	size_t n, total, max = DRAIN_MAX;
	int there;

	if (s->fd == -1 || stream_read(s) == 0)
		return;
	if (s->use != STREAM_LOG && s->fd != -1 && ioctl(s->fd, FIONREAD, &there) == 0)
		max = (size_t)there;
	for (total = 0; s->fd != -1 && total <= max; total += n) {
		if ((n = stream_read(s)) == 0)
			return;
	}
}

static void
stream_ready(int what UNUSED, void *arg)
{
	struct output_stream *s = arg;
	struct output *o = s->output;

	if (s->use == STREAM_STATEMENTS && pushes_debt_is_large(o->debt)) {
		io_stop(&s->io);
		timer_set(&o->again, REDIS_WAIT);
		o->waited = clock_mono();
		return;
	}
	(void)stream_read(s);
	if (s->fd == -1)
		o->ended(o);
}

void
output_listen(struct output *o)
{
	for (size_t i = 0; i < ARRAY_LEN(o->stream); i++) {
		struct output_stream *s = &o->stream[i];

		if (s->fd == -1)
			continue;
		if (s->io.event == NULL)
			io_init(&s->io, o->loop, s->fd, IO_READ, stream_ready, s);
		io_start(&s->io);
	}
}

static void
listen_again(void *arg)
{
	output_listen(arg);
}

void
output_drain(struct output *o)
{
	for (size_t i = 0; i < ARRAY_LEN(o->stream); i++)
		stream_drain(&o->stream[i]);
}

void
output_end(struct output *o, bool left)
{
	for (size_t i = 0; i < ARRAY_LEN(o->stream); i++) {
		struct output_stream *s = &o->stream[i];
		bool part = s->line.partial.len > 0 && (left || s->fd != -1);

		if (s->use == STREAM_MESSAGES) {
			if (part)
				pushes_add_cut(o->pushes);
			line_end(&s->line);
			s->use = STREAM_DROPPED;
		} else if (s->use == STREAM_STATEMENTS) {
			stream_close(s);
			o->unfinished = part;
			if (s->number == 3)
				line_end(&s->line);
		}
	}
}

/* -- life -------------------------------------------------------------------------- */

void
output_init(struct output *o, struct loop *loop, const struct queue_config *cfg,
    const struct handler_events *events, void *arg,
    void (*statement)(const char *, size_t, bool, void *), void (*ended)(struct output *))
{
	*o = (struct output){ .loop = loop, .cfg = cfg, .events = events, .arg = arg,
	    .statement = statement, .ended = ended, .ctx.queue = cfg->name,
	    .left = cfg->output_limit };
	timer_init(&o->again, loop, listen_again, o);
	for (int i = 0; i < (int)ARRAY_LEN(o->stream); i++) {
		o->stream[i].output = o;
		o->stream[i].number = i + 1;
		o->stream[i].fd = -1;
	}
}

int
output_open(struct output *o, int number, enum stream_use use, int *child_end)
{
	struct output_stream *s = &o->stream[number - 1];

	s->use = use;
	if (use == STREAM_STATEMENTS)
		line_init(&s->line, pushes_line_max(o->cfg), o->statement, o);
	else if (use == STREAM_MESSAGES)
		line_init(&s->line, pushes_longest(o->msg->config,
		    config_pushed_queue(o->msg->cfg->output)) + 1, message_line, s);
	else
		line_init(&s->line, OUTPUT_LINE_MAX, log_line, s);
	return fd_pipe_from(&s->fd, child_end);
}

bool
output_is_open(const struct output *o)
{
	return output_has(o, 1) || output_has(o, 2) || output_has(o, 3);
}

char *
output_take_tail(struct output *o, size_t *len)
{
	struct buf *b = &o->tail;

	if (b->len > OUTPUT_TAIL)
		buf_drain(b, b->len - OUTPUT_TAIL);
	*len = b->len;
	return b->len > 0 ? buf_steal(b) : NULL;
}

void
output_renew(struct output *o, bool forget)
{
	o->left = o->cfg->output_limit;
	o->cut = false;
	if (forget)
		buf_clear(&o->tail);
}

void
output_close(struct output *o)
{
	for (size_t i = 0; i < ARRAY_LEN(o->stream); i++)
		stream_end(&o->stream[i]);
}

void
output_done(struct output *o)
{
	for (size_t i = 0; i < ARRAY_LEN(o->stream); i++) {
		stream_close(&o->stream[i]);
		line_done(&o->stream[i].line);
	}
	timer_stop(&o->again);
	pushes_debt_unref(o->debt);
	buf_done(&o->tail);
}
