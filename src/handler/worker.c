/*
 * One process of a persistent handler.
 *
 *	WORKING -> RETIRING -> CLOSING -> STOPPING -> TAIL -> GONE
 *
 * Each state may be skipped, none is gone back to.  Messages go out by writev(2)
 * from where they are; what the pipe does not take waits for the loop.  A message
 * that is answered before it has been read whole stays until it has.
 *
 * What rqd or the process itself broke off is settled when the process has
 * exited, so that no message runs beside itself.  After SIGTERM only "ok" counts
 * of what it still answers, and after a breach of the protocol nothing does.
 */
#include "handler/worker.h"

#include <sys/uio.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "handler/answer.h"
#include "handler/guardian.h"

#define TAIL_TIME	SEC
#define READ_SIZE	((size_t)64 * 1024)
#define DRAIN_READS	32
#define VECTORS		48
#define QUOTE_MAX	200

bool
worker_is_live(const struct worker *w)
{
	return w->state < WORKER_TAIL;
}

bool
worker_has_room(const struct worker *w)
{
	return w->state == WORKER_WORKING &&
	    w->outstanding < (unsigned)w->cfg->pipeline;
}

/* -- its messages ---------------------------------------------------------------- */

static size_t
payload_len(const struct feed *f)
{
	return f->msg->payload != NULL ? f->msg->len : 0;
}

static size_t
feed_size(const struct feed *f)
{
	return f->header_len + payload_len(f) + 1;
}

/* Records of stderr name the message where there is only one. */
static void
name_output(struct worker *w)
{
	const struct feed *f = TAILQ_FIRST(&w->feeds);
	bool one = w->outstanding == 1;

	w->output.ctx.id = one ? f->msg->id : NULL;
	w->output.ctx.attempt = one ? f->msg->attempts + 1 : 0;
}

static void
feed_over(struct worker *w, struct feed *f)
{
	if (w->next == f) {
		w->next = TAILQ_NEXT(f, entry);
		w->sent = 0;
	}
	TAILQ_REMOVE(&w->feeds, f, entry);
	w->outstanding--;
	f->worker = NULL;
	f->result.pid = w->pid;
	f->result.duration = clock_mono() - f->started;
	if (f->result.duration == 0)
		f->result.duration = 1;
	name_output(w);
	w->finished(f);
}

static struct feed *
oldest(const struct worker *w)
{
	struct feed *f;

	TAILQ_FOREACH(f, &w->feeds, entry) {
		if (!f->answered)
			return f;
	}
	return NULL;
}

/* -- its end ----------------------------------------------------------------------- */

static void
close_stdin(struct worker *w)
{
	loop_defer_cancel(w->env->loop, &w->flush);
	if (w->in == -1)
		return;
	io_done(&w->in_io);
	(void)close(w->in);
	w->in = -1;
}

static void
close_stdout(struct worker *w)
{
	if (w->out == -1)
		return;
	io_done(&w->out_io);
	(void)close(w->out);
	w->out = -1;
}

/* A pipe that ends inside a message would show the process a cut one. */
static void
stop_writing(struct worker *w)
{
	loop_defer_cancel(w->env->loop, &w->flush);
	if (w->sent == 0)
		close_stdin(w);
	else if (w->in != -1)
		io_stop(&w->in_io);
}

static void
begin_close(struct worker *w)
{
	if (w->state >= WORKER_CLOSING)
		return;
	w->state = WORKER_CLOSING;
	stop_writing(w);
	timer_set(&w->timer, w->cfg->kill_grace);
}

void
worker_stop(struct worker *w, const char *why)
{
	if (w->state >= WORKER_STOPPING)
		return;
	w->state = WORKER_STOPPING;
	if (w->why == NULL)
		w->why = why;
	stop_writing(w);
	w->child.kill_leftovers = true;
	(void)child_kill(&w->child, SIGTERM);
	(void)child_kill(&w->child, SIGCONT);
	timer_set(&w->timer, w->cfg->kill_grace);
}

void
worker_kill(struct worker *w)
{
	if (worker_is_live(w))
		(void)child_kill(&w->child, SIGKILL);
}

void
worker_retire(struct worker *w, const char *why)
{
	if (w->state != WORKER_WORKING)
		return;
	w->why = why;
	w->state = WORKER_RETIRING;
	if (w->outstanding == 0)
		begin_close(w);
}

/* What it says can no longer be told apart: the oldest has failed. */
static void
breach(struct worker *w, const char *what, const char *p, size_t n)
{
	if (w->state >= WORKER_STOPPING || w->protocol != NULL)
		return;
	w->protocol = p == NULL ? xstrdup(what) :
	    xasprintf("%s: %.*s", what, (int)(n < QUOTE_MAX ? n : QUOTE_MAX), p);
	w->culprit = oldest(w);
	worker_stop(w, "protocol");
}

static void
check_limit(struct worker *w)
{
	struct feed *f = TAILQ_FIRST(&w->feeds);
	usec_t due;

	if (f == NULL || w->cfg->time_limit == 0)
		return;
	due = (f->written > w->answered_at ? f->written : w->answered_at) +
	    w->cfg->time_limit;
	if (due > clock_mono()) {
		timer_set_at(&w->timer, due);
		return;
	}
	w->culprit = f;
	if (!f->answered)
		f->result.stop = STOP_TIME_LIMIT;
	worker_stop(w, "time_limit");
}

static void
tail_over(struct worker *w)
{
	output_close(&w->output);
	timer_stop(&w->timer);
	w->state = WORKER_GONE;
	w->changed(w);
}

static void
time_is_up(void *arg)
{
	struct worker *w = arg;

	switch (w->state) {
	case WORKER_WORKING:
	case WORKER_RETIRING:
		check_limit(w);
		return;
	case WORKER_CLOSING:
		if (w->outstanding > 0)
			breach(w, "closed its pipes and went on", NULL, 0);
		else
			worker_stop(w, "closed");
		return;
	case WORKER_STOPPING:
		worker_kill(w);
		return;
	case WORKER_TAIL:
		output_drain(&w->output);
		if (w->state == WORKER_TAIL)
			tail_over(w);
		return;
	case WORKER_GONE:
		return;
	}
}

static void
too_old(void *arg)
{
	worker_retire(arg, "max_age");
}

/* -- writing -------------------------------------------------------------------------- */

/* Adds what is left of len bytes at p after skip; returns what is left of skip. */
static size_t
add_vector(struct iovec *v, int *n, const char *p, size_t len, size_t skip)
{
	if (skip >= len)
		return skip - len;
	v[(*n)++] = (struct iovec){ (char *)(uintptr_t)p + skip, len - skip };
	return 0;
}

static int
gather(const struct worker *w, struct iovec *v)
{
	const struct feed *f;
	size_t skip = w->sent;
	int n = 0;

	for (f = w->next; f != NULL && n + 3 <= VECTORS; f = TAILQ_NEXT(f, entry)) {
		skip = add_vector(v, &n, f->header, f->header_len, skip);
		skip = add_vector(v, &n, f->msg->payload, payload_len(f), skip);
		skip = add_vector(v, &n, "\n", 1, skip);
	}
	return n;
}

static void
retire_when_empty(struct worker *w)
{
	if (w->state == WORKER_RETIRING && w->outstanding == 0)
		begin_close(w);
}

/* n bytes more are in the pipe. */
static void
written(struct worker *w, size_t n)
{
	struct feed *f;
	usec_t now = clock_mono();

	w->sent += n;
	while ((f = w->next) != NULL && w->sent >= feed_size(f)) {
		w->sent -= feed_size(f);
		w->next = TAILQ_NEXT(f, entry);
		f->written = now;
		if (f->answered)
			feed_over(w, f);
	}
	retire_when_empty(w);
}

static void
flush(void *arg)
{
	struct worker *w = arg;
	struct iovec v[VECTORS];
	ssize_t n;

	if (w->in == -1 || w->next == NULL)
		return;
	n = writev(w->in, v, gather(w, v));
	if (n > 0) {
		written(w, (size_t)n);
	} else if (n == -1 && errno != EAGAIN && errno != EINTR) {
		close_stdin(w);
		begin_close(w);
		return;
	}
	if (w->in == -1)
		return;
	if (w->next != NULL)
		io_start(&w->in_io);
	else
		io_stop(&w->in_io);
}

static void
stdin_ready(int what UNUSED, void *arg)
{
	flush(arg);
}

void
worker_give(struct worker *w, struct feed *f)
{
	f->worker = w;
	f->number = ++w->messages;
	f->header_len = (size_t)snprintf(f->header, sizeof(f->header),
	    "%llu %u %zu %s\n", (unsigned long long)f->number,
	    f->msg->attempts + 1, payload_len(f), f->msg->id);
	f->started = f->written = clock_mono();
	TAILQ_INSERT_TAIL(&w->feeds, f, entry);
	w->outstanding++;
	if (w->next == NULL)
		w->next = f;
	name_output(w);
	if (w->cfg->time_limit > 0 && !timer_is_set(&w->timer))
		timer_set(&w->timer, w->cfg->time_limit);
	if (w->cfg->max_messages > 0 && w->messages >= (uint64_t)w->cfg->max_messages)
		worker_retire(w, "max_messages");
	loop_defer(w->env->loop, &w->flush, flush, w);
}

/* -- answers ------------------------------------------------------------------------------ */

/* NULL: not outstanding, or nothing of it has been written. */
static struct feed *
find(const struct worker *w, uint64_t number)
{
	struct feed *f;

	TAILQ_FOREACH(f, &w->feeds, entry) {
		if (f == w->next && w->sent == 0)
			return NULL;
		if (f->number == number)
			return f->answered ? NULL : f;
		if (f == w->next)
			return NULL;
	}
	return NULL;
}

static void
answer(struct worker *w, struct feed *f, const struct answer *a)
{
	struct result *r = &f->result;

	r->end = a->end;
	r->delay = a->delay;
	r->stop = STOP_NONE;
	if (a->reason != NULL)
		r->reason = xstrndup(a->reason, a->reason_len);
	r->output_cut = w->output.cut;
	if (a->end != END_ANSWER_OK)
		r->error_tail = output_take_tail(&w->output, &r->error_len);
	output_renew(&w->output, w->cfg->output_limit, w->outstanding == 1);
	w->answered_at = clock_mono();
	f->answered = true;
	if (f != w->next)
		feed_over(w, f);
	retire_when_empty(w);
	if (worker_has_room(w))
		w->changed(w);
}

/* Once it was signalled. */
static bool
still_counts(const struct worker *w, const struct feed *f, const struct answer *a)
{
	return w->protocol == NULL && f != NULL && f != w->culprit &&
	    a->end == END_ANSWER_OK && f->result.stop != STOP_LOST;
}

static void
line_came(const char *p, size_t n, bool cut, void *arg)
{
	struct worker *w = arg;
	struct answer a;
	struct feed *f = NULL;

	if (w->protocol != NULL)
		return;
	if (cut || answer_parse(p, n, &a) == -1) {
		breach(w, "not an answer", p, n);
		return;
	}
	f = find(w, a.number);
	if (w->state == WORKER_STOPPING && !still_counts(w, f, &a))
		return;
	if (f == NULL)
		breach(w, "not outstanding", p, n);
	else
		answer(w, f, &a);
}

/* False: nothing there now, or the end. */
static bool
read_answers(struct worker *w)
{
	static char bytes[READ_SIZE];
	ssize_t n;

	do {
		n = read(w->out, bytes, sizeof(bytes));
	} while (n == -1 && errno == EINTR);
	if (n > 0)
		line_feed(&w->line, bytes, (size_t)n);
	else if (n == 0 || errno != EAGAIN)
		close_stdout(w);
	return n > 0;
}

/* What it said on stderr before it answered is there first. */
static void
stdout_ready(int what UNUSED, void *arg)
{
	struct worker *w = arg;

	output_drain(&w->output);
	(void)read_answers(w);
	if (w->out == -1)
		begin_close(w);
}

/* -- the exit -------------------------------------------------------------------------------- */

static void
fail(struct worker *w, struct feed *f, const struct child_exit *x)
{
	struct result *r = &f->result;

	r->leftovers = x->leftovers;
	r->output_cut = w->output.cut;
	r->error_tail = output_take_tail(&w->output, &r->error_len);
	r->end = x->signaled ? END_SIGNAL : END_EXIT;
	r->status = x->signaled ? 0 : x->code;
	r->signo = x->signaled ? x->code : 0;
	if (r->stop != STOP_NONE)
		return;
	if (w->protocol != NULL || (!x->signaled && x->code == 0)) {
		r->end = END_ANSWER_RETRY;
		r->delay = -1;
		r->reason = xstrdup(w->protocol != NULL ? w->protocol :
		    "exited without an answer");
	}
}

static void
settle_feeds(struct worker *w, const struct child_exit *x, bool stopped)
{
	struct feed *f, *next;

	if (w->culprit == NULL && !stopped)
		w->culprit = oldest(w);
	TAILQ_FOREACH_SAFE(f, &w->feeds, entry, next) {
		if (!f->answered && f == w->culprit)
			fail(w, f, x);
		else if (!f->answered && f->result.stop == STOP_NONE)
			f->result.stop = STOP_PEER;
		feed_over(w, f);
	}
}

static void
exited(struct child *child, const struct child_exit *x)
{
	struct worker *w = CONTAINER_OF(child, struct worker, child);
	struct log_ctx ctx = { .queue = w->cfg->name, .pid = w->pid };
	bool stopped = w->state == WORKER_STOPPING;
	int i;

	output_drain(&w->output);
	for (i = 0; i < DRAIN_READS && w->out != -1 && read_answers(w); i++)
		continue;
	close_stdout(w);
	close_stdin(w);
	timer_stop(&w->age);
	w->state = WORKER_TAIL;
	if (w->env->guardian != NULL)
		guardian_release(w->env->guardian, w->slot);
	w->slot = NULL;
	settle_feeds(w, x, stopped);
	log_event(LOG_LV_INFO, "handler_exited", &ctx,
	    LF_INT(x->signaled ? "signal" : "status", x->code),
	    LF_INT("messages", (int64_t)w->messages), LF_STR("reason", w->why),
	    LF_STR("cause", w->protocol));
	timer_set(&w->timer, output_is_open(&w->output) ? TAIL_TIME : 0);
	w->changed(w);
}

static void
stderr_ended(struct output_pair *o)
{
	struct worker *w = CONTAINER_OF(o, struct worker, output);

	if (w->state == WORKER_TAIL)
		timer_set(&w->timer, 0);
}

/* -- the start ----------------------------------------------------------------------------------- */

static void
close_all(int fd[3])
{
	int i, error = errno;

	for (i = 0; i < 3; i++) {
		if (fd[i] != -1)
			(void)close(fd[i]);
	}
	errno = error;
}

static int
open_fds(struct worker *w, int fd[3])
{
	int p[2];

	if (pipe2(p, O_CLOEXEC) == -1)
		return -1;
	fd[0] = p[0];
	w->in = p[1];
	(void)fcntl(w->in, F_SETFL, O_NONBLOCK);
	io_init(&w->in_io, w->env->loop, w->in, IO_WRITE, stdin_ready, w);
	if (pipe2(p, O_CLOEXEC) == -1)
		return -1;
	w->out = p[0];
	fd[1] = p[1];
	(void)fcntl(w->out, F_SETFL, O_NONBLOCK);
	io_init(&w->out_io, w->env->loop, w->out, IO_READ, stdout_ready, w);
	io_start(&w->out_io);
	if (w->cfg->output == OUTPUT_NONE)
		return 0;
	if (output_open(&w->output, 2, &fd[2]) == -1)
		return -1;
	output_listen(&w->output);
	return 0;
}

static void
init(struct worker *w)
{
	TAILQ_INIT(&w->feeds);
	w->state = WORKER_GONE;
	w->in = w->out = -1;
	line_init(&w->line, OUTPUT_LINE_MAX, line_came, w);
	timer_init(&w->timer, w->env->loop, time_is_up, w);
	timer_init(&w->age, w->env->loop, too_old, w);
	output_init(&w->output, w->env->loop, w->handler, w->cfg->output_limit,
	    stderr_ended);
	w->output.ctx.queue = w->cfg->name;
}

static void
watch(struct worker *w)
{
	struct log_ctx ctx = { .queue = w->cfg->name, .pid = w->pid };

	w->state = WORKER_WORKING;
	w->output.ctx.pid = w->pid;
	w->child.exited = exited;
	w->child.leader = true;
	w->child.kill_leftovers = w->cfg->leftovers == LEFTOVERS_KILL;
	child_watch(w->env->loop, &w->child, w->pid);
	if (w->cfg->max_age > 0)
		timer_set(&w->age, w->cfg->max_age);
	log_event(LOG_LV_INFO, "handler_started", &ctx);
}

int
worker_start(struct worker *w, struct command *command, const char **step)
{
	int fd[3] = { -1, -1, -1 };

	init(w);
	*step = "pipe";
	w->pid = -1;
	if (open_fds(w, fd) == 0) {
		if (w->env->guardian != NULL)
			w->slot = guardian_slot(w->env->guardian);
		w->pid = command_spawn(command, NULL, fd, w->slot, step);
	}
	close_all(fd);
	if (w->pid == -1)
		return -1;
	watch(w);
	return 0;
}

void
worker_free(struct worker *w)
{
	worker_kill(w);
	close_stdin(w);
	close_stdout(w);
	timer_stop(&w->timer);
	timer_stop(&w->age);
	child_forget(w->env->loop, &w->child);
	if (w->env->guardian != NULL)
		guardian_release(w->env->guardian, w->slot);
	output_done(&w->output);
	line_done(&w->line);
	free(w->protocol);
	free(w);
}
