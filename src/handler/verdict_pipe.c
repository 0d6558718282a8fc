/*
 * Reading descriptor 3.
 *
 * A handler may write as fast as it likes: the loop reads READ_LINES bytes a turn, and
 * READ_WASTE once a line was wrong and the rest is thrown away.  When the command exits,
 * FIONREAD says how much is in the pipe.  So what a process that it left behind goes on
 * writing is not waited for.
 */
#include "handler/verdict_pipe.h"

#include <sys/ioctl.h>
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "base/fd.h"

#define READ_LINES	((size_t)8 * 1024)
#define READ_WASTE	((size_t)64 * 1024)
#define REDIS_WAIT	(20 * MSEC)	/* between two looks */

static char	bytes[READ_WASTE];

/* Returns the fault of a line, or NULL. */
static const char *
fault_of(const struct verdict_pipe *v, int parsed, bool long_line, const struct statement *s)
{
	if (parsed == 0 && s->word == STATEMENT_PUSH)
		return v->batch != NULL && s->number == 0 ?
		    "a push without the number of a message" : NULL;
	if (long_line)
		return "a line of more than 8 KiB";
	return parsed == -1 ? "not a statement" : NULL;
}

static void
take_bare(struct verdict_pipe *v, const struct statement *s, const char *fault, bool cut,
    const char *p, size_t n)
{
	if (fault != NULL)
		result_say_wrong(&v->said, fault, p, n);
	else if (s->word == STATEMENT_PUSH)
		pushes_add_said(v->pushes, v->msg, s, cut, NULL);
	else if (s->word == STATEMENT_PROGRESS)
		run_set_progress(v->run, s->text, s->len);
	else
		result_say(&v->said, s);
}

/* Nothing more can change the verdict.  In a batch other messages' verdicts may follow. */
static bool
is_decided(const struct verdict_pipe *v)
{
	return v->said.said == SAID_WRONG && v->batch == NULL;
}

/* The rest of a line that was too long is skipped. */
static void
line_came(const char *p, size_t n, bool cut, void *arg)
{
	struct verdict_pipe *v = arg;
	bool rest = v->inside;
	const char *fault;
	struct statement s;
	int r;

	v->inside = cut;
	if (rest || is_decided(v))
		return;
	r = statement_parse(p, n, v->batch != NULL ? STATEMENT_EITHER : STATEMENT_BARE, &s);
	if (v->unfinished && r == -1)
		return;
	fault = fault_of(v, r, cut || n > STATEMENT_LINE_MAX, &s);
	if (v->unfinished && s.word == STATEMENT_PUSH)
		fault = "a push without newline, which a process may still be writing";
	if (v->batch == NULL || s.number == 0)
		take_bare(v, &s, fault, cut, p, n);
	else if ((fault = run_batch_say(v->batch, &s, fault, cut, p, n)) != NULL)
		result_say_wrong(&v->said, fault, p, n);
}

static void
pipe_close(struct verdict_pipe *v)
{
	if (v->fd == -1)
		return;
	timer_stop(&v->again);
	io_done(&v->io);
	fd_close(&v->fd);
}

/* Returns the bytes read, at most max; 0: none now, or the end, and then it is closed. */
static size_t
pipe_read(struct verdict_pipe *v, size_t max)
{
	ssize_t n = TEMP_FAILURE_RETRY(read(v->fd, bytes, max));

	if (n > 0 && !is_decided(v))
		line_feed(&v->line, bytes, (size_t)n);
	else if (n == 0 || (n == -1 && errno != EAGAIN))
		pipe_close(v);
	return n > 0 ? (size_t)n : 0;
}

static void
read_again(void *arg)
{
	struct verdict_pipe *v = arg;

	io_start(&v->io);
}

static void
pipe_ready(int what UNUSED, void *arg)
{
	struct verdict_pipe *v = arg;

	if (v->batch != NULL && run_batch_must_wait(v->batch)) {
		io_stop(&v->io);
		timer_set(&v->again, REDIS_WAIT);
		return;
	}
	(void)pipe_read(v, is_decided(v) ? READ_WASTE : READ_LINES);
}

void
verdict_pipe_init(struct verdict_pipe *v, struct run *run,
    const struct message *msg, struct pushes **pushes, struct run_batch *batch)
{
	*v = (struct verdict_pipe){
		.run = run, .msg = msg, .pushes = pushes, .batch = batch, .fd = -1
	};
	line_init(&v->line, pushes_line_max(run->handler->cfg), line_came, v);
}

int
verdict_pipe_open(struct verdict_pipe *v, int *child_end)
{
	return fd_pipe_from(&v->fd, child_end);
}

void
verdict_pipe_listen(struct verdict_pipe *v)
{
	if (v->fd == -1)
		return;
	timer_init(&v->again, v->run->handler->env->loop, read_again, v);
	io_init(&v->io, v->run->handler->env->loop, v->fd, IO_READ, pipe_ready, v);
	io_start(&v->io);
}

static void
read_rest(struct verdict_pipe *v)
{
	size_t n, left;
	int there = 0;

	if (ioctl(v->fd, FIONREAD, &there) == -1)
		return;
	for (left = (size_t)there; left > 0 && v->fd != -1; left -= n) {
		n = pipe_read(v, left < READ_WASTE ? left : READ_WASTE);
		if (n == 0)
			return;
	}
}

/* The end of a pipe shows only in a read after the last byte, or here. */
static bool
has_writers(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == -1 || (p.revents & POLLHUP) == 0;
}

void
verdict_pipe_end(struct verdict_pipe *v, struct result *r)
{
	if (v->fd != -1)
		read_rest(v);
	v->unfinished = v->line.partial.len > 0 &&
	    (r->leftovers || (v->fd != -1 && has_writers(v->fd)));
	pipe_close(v);
	line_end(&v->line);
	r->said = v->said.said;
	r->delay = v->said.delay;
	r->answer = v->said.answer;
	v->said.answer = NULL;
}

void
verdict_pipe_done(struct verdict_pipe *v)
{
	pipe_close(v);
	line_done(&v->line);
	result_done(&v->said);
}
