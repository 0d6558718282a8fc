/*
 * One process of a persistent handler.
 *
 *	WORKING -> RETIRING -> CLOSING -> STOPPING -> TAIL -> GONE
 *
 * Each state may be skipped, none is gone back to.  A message that is answered
 * before it has been read whole stays until it has.
 *
 * What rqd or the process itself broke off is settled when the process has
 * exited, so that no message runs beside itself.  After SIGTERM only "ok" counts
 * of what it still answers: it says that work was done, while "retry" and "dead"
 * may be no more than a trap's way to give up.  It does not count for the message
 * whose limit was exceeded, nor after a breach of the protocol.
 */
#include "handler/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "handler/answer.h"
#include "handler/guardian.h"
#include "handler/launcher.h"

#define TAIL_TIME	SEC
#define READ_SIZE	((size_t)64 * 1024)
#define DRAIN_READS	32
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
	TAILQ_REMOVE(&w->feeds, f, entry);
	w->outstanding--;
	f->worker = NULL;
	f->result.pid = f->base.pid;
	if (f->base.pid != 0)
		f->result.duration = clock_mono() - f->started;
	if (f->base.pid != 0 && f->result.duration == 0)
		f->result.duration = 1;
	name_output(w);
	w->finished(w, f);
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

/* NULL: not outstanding, or nothing of it has been written. */
static struct feed *
find(const struct worker *w, uint64_t number)
{
	struct feed *f;

	TAILQ_FOREACH(f, &w->feeds, entry) {
		if (f == w->feeder.next && w->feeder.sent == 0)
			return NULL;
		if (f->number == number)
			return f->answered ? NULL : f;
		if (f == w->feeder.next)
			return NULL;
	}
	return NULL;
}

/* -- its end ----------------------------------------------------------------------- */

static void
close_stdout(struct worker *w)
{
	if (w->out == -1)
		return;
	io_done(&w->out_io);
	(void)close(w->out);
	w->out = -1;
}

static void
begin_close(struct worker *w)
{
	if (w->state >= WORKER_CLOSING)
		return;
	w->state = WORKER_CLOSING;
	feeder_stop(&w->feeder);
	timer_set(&w->timer, w->cfg->kill_grace);
	w->changed(w);
}

static void
close_when_empty(struct worker *w)
{
	if (w->state == WORKER_RETIRING && w->outstanding == 0)
		begin_close(w);
}

void
worker_stop(struct worker *w, const char *why)
{
	if (w->state >= WORKER_STOPPING)
		return;
	w->state = WORKER_STOPPING;
	if (w->why == NULL)
		w->why = why;
	feeder_stop(&w->feeder);
	w->child.kill_leftovers = true;
	(void)child_kill(&w->child, SIGTERM);
	(void)child_kill(&w->child, SIGCONT);
	timer_set(&w->timer, w->cfg->kill_grace);
	w->changed(w);
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
	w->changed(w);
	close_when_empty(w);
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

/* The timer runs on while messages come and go, and is looked at when it goes off. */
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

/* -- messages in ---------------------------------------------------------------------- */

/* The feeder's: f is in the pipe to its last byte. */
static void
written(struct feed *f)
{
	struct worker *w = f->worker;

	if (!f->answered)
		return;
	feed_over(w, f);
	close_when_empty(w);
}

/* The feeder's: it has closed its stdin. */
static void
stdin_broken(struct feeder *e)
{
	begin_close(CONTAINER_OF(e, struct worker, feeder));
}

void
worker_give(struct worker *w, struct feed *f)
{
	f->worker = w;
	f->base.pid = w->pid;
	f->number = ++w->messages;
	f->started = f->written = clock_mono();
	TAILQ_INSERT_TAIL(&w->feeds, f, entry);
	w->outstanding++;
	name_output(w);
	feeder_add(&w->feeder, f);
	if (w->cfg->time_limit > 0 && !timer_is_set(&w->timer))
		timer_set(&w->timer, w->cfg->time_limit);
	if (w->cfg->max_messages > 0 && w->messages >= (uint64_t)w->cfg->max_messages)
		worker_retire(w, "max_messages");
}

/* -- answers out ----------------------------------------------------------------------- */

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
	w->answers++;
	f->answered = true;
	if (f != w->feeder.next)
		feed_over(w, f);
	close_when_empty(w);
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
	struct feed *f;

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

/*
 * What it said on stderr before it answered is there when the answer is read, and
 * belongs to that message.  False: nothing there now, or the end.
 */
static bool
read_answers(struct worker *w)
{
	static char bytes[READ_SIZE];
	ssize_t n;

	do {
		n = read(w->out, bytes, sizeof(bytes));
	} while (n == -1 && errno == EINTR);
	output_drain(&w->output);
	if (n > 0)
		line_feed(&w->line, bytes, (size_t)n);
	else if (n == 0 || errno != EAGAIN)
		close_stdout(w);
	return n > 0;
}

static void
stdout_ready(int what UNUSED, void *arg)
{
	struct worker *w = arg;

	(void)read_answers(w);
	if (w->out == -1)
		begin_close(w);
}

/* -- the exit -------------------------------------------------------------------------------- */

static void
broken_off(struct worker *w, struct feed *f, const struct child_exit *x)
{
	struct result *r = &f->result;

	r->end = x->signaled ? END_SIGNAL : END_EXIT;
	r->status = x->signaled ? 0 : x->code;
	r->signo = x->signaled ? x->code : 0;
	if (f != w->culprit) {
		if (r->stop == STOP_NONE)
			r->stop = STOP_PEER;
		return;
	}
	r->leftovers = x->leftovers;
	r->output_cut = w->output.cut;
	r->error_tail = output_take_tail(&w->output, &r->error_len);
	if (w->protocol != NULL && r->stop == STOP_NONE) {
		r->end = END_PROTOCOL;
		r->reason = xstrdup(w->protocol);
	}
}

/* What never left for the pipe was never begun, and has nothing to do with its end. */
static void
not_begun(struct feed *f)
{
	f->base.pid = 0;
	f->result.end = END_NOT_RUN;
	if (f->result.stop == STOP_NONE)
		f->result.stop = STOP_PEER;
}

static void
settle_feeds(struct worker *w, const struct child_exit *x, bool stopped)
{
	struct feed *f, *next, *unsent = w->feeder.next;
	bool begun = true;

	if (unsent != NULL && w->feeder.sent > 0)
		unsent = TAILQ_NEXT(unsent, entry);
	if (w->culprit == NULL && !stopped)
		w->culprit = oldest(w);
	TAILQ_FOREACH_SAFE(f, &w->feeds, entry, next) {
		begun = begun && f != unsent;
		if (!begun && f != w->culprit)
			not_begun(f);
		else if (!f->answered)
			broken_off(w, f, x);
		feed_over(w, f);
	}
}

/* It could not be executed. */
static void
give_back_feeds(struct worker *w, int error, const char *step)
{
	struct feed *f, *next;

	TAILQ_FOREACH_SAFE(f, &w->feeds, entry, next) {
		f->base.pid = 0;
		f->result.end = END_NOT_STARTED;
		f->result.error = error;
		f->result.step = step;
		feed_over(w, f);
	}
}

static void
log_exit(const struct worker *w, const struct child_exit *x)
{
	char signal[UTIL_SIGNAL_MAX];
	struct log_ctx ctx = { .queue = w->cfg->name, .pid = w->pid };
	bool bad = w->protocol != NULL || w->culprit != NULL ||
	    (w->why == NULL && (x->signaled || x->code != 0));
	enum log_level level = bad ? LOG_LV_WARN : LOG_LV_INFO;

	log_event(level, "handler_exited", &ctx,
	    x->signaled ? LF_STR("signal", util_signal(x->code, signal)) : LF_INT("status", x->code),
	    LF_USEC("duration", clock_mono() - w->started),
	    LF_INT("messages", (int64_t)w->messages), LF_STR("reason", w->why),
	    LF_STR("cause", w->protocol));
}

static void
exited(struct child *child, const struct child_exit *x)
{
	struct worker *w = CONTAINER_OF(child, struct worker, child);
	bool stopped = w->state == WORKER_STOPPING;
	const char *step;
	int i, error = command_exited(&w->start, w->pid, &step);

	output_drain(&w->output);
	for (i = 0; i < DRAIN_READS && w->out != -1 && read_answers(w); i++)
		continue;
	close_stdout(w);
	feeder_close(&w->feeder);
	timer_stop(&w->age);
	w->state = WORKER_TAIL;
	if (w->env->guardian != NULL)
		guardian_release(w->env->guardian, w->slot);
	w->slot = NULL;
	launcher_finish(&w->start);
	if (w->outstanding > 0)
		child_hurry(w->env->loop);
	if (error != 0)
		give_back_feeds(w, error, step);
	else
		settle_feeds(w, x, stopped);
	log_exit(w, x);
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

static int
open_stdout(struct worker *w, int *child_end)
{
	int fd[2];

	if (pipe2(fd, O_CLOEXEC) == -1)
		return -1;
	(void)fcntl(fd[0], F_SETFL, O_NONBLOCK);
	w->out = fd[0];
	io_init(&w->out_io, w->env->loop, w->out, IO_READ, stdout_ready, w);
	io_start(&w->out_io);
	*child_end = fd[1];
	return 0;
}

static int
open_fds(struct worker *w, int fd[3])
{
	if (feeder_open(&w->feeder, &fd[0]) == -1 || open_stdout(w, &fd[1]) == -1)
		return -1;
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
	w->out = -1;
	feeder_init(&w->feeder, w->env->loop, written, stdin_broken);
	line_init(&w->line, OUTPUT_LINE_MAX, line_came, w);
	timer_init(&w->timer, w->env->loop, time_is_up, w);
	timer_init(&w->age, w->env->loop, too_old, w);
	output_init(&w->output, w->env->loop, w->handler, w->cfg->output_limit,
	    stderr_ended);
	w->output.ctx.queue = w->cfg->name;
}

static void
watch(struct worker *w, pid_t pid)
{
	struct log_ctx ctx = { .queue = w->cfg->name, .pid = pid };
	struct feed *f;

	w->pid = pid;
	w->output.ctx.pid = pid;
	TAILQ_FOREACH(f, &w->feeds, entry)
		f->base.pid = pid;
	child_watch(w->env->loop, &w->child, pid);
	log_event(LOG_LV_INFO, "handler_started", &ctx);
}

/* The launcher's. */
static void
started(struct start *start, pid_t pid)
{
	watch(CONTAINER_OF(start, struct worker, start), pid);
}

/* The launcher's: there was no process. */
static void
failed(struct start *start, int error, enum spawn_step step)
{
	struct worker *w = CONTAINER_OF(start, struct worker, start);

	close_stdout(w);
	feeder_close(&w->feeder);
	timer_stop(&w->age);
	w->state = WORKER_TAIL;
	give_back_feeds(w, error, spawn_step_name(step));
	timer_set(&w->timer, 0);
	w->changed(w);
}

/* child.c's: the launcher signals its own. */
static void
kill_by_launcher(struct child *child, int signo)
{
	launcher_signal(&CONTAINER_OF(child, struct worker, child)->start, signo);
}

/* It is running, or soon will be. */
static void
begin(struct worker *w, pid_t pid)
{
	w->state = WORKER_WORKING;
	w->started = clock_mono();
	w->child.exited = exited;
	w->child.leader = true;
	w->child.kill_leftovers = w->cfg->leftovers == LEFTOVERS_KILL;
	if (w->cfg->max_age > 0)
		timer_set(&w->age, w->cfg->max_age);
	if (w->start.launcher != NULL)
		w->child.kill = kill_by_launcher;
	else
		watch(w, pid);
}

int
worker_start(struct worker *w, struct command *command, const char **step)
{
	int fd[3] = { -1, -1, -1 };
	enum spawn_step what;
	pid_t pid = -1;

	init(w);
	w->start = (struct start){ .started = started, .failed = failed };
	*step = "pipe";
	if (open_fds(w, fd) == 0) {
		if (w->env->guardian != NULL)
			w->slot = guardian_slot(w->env->guardian);
		pid = command_start(command, NULL, fd, w->slot, &w->start, &what);
		*step = spawn_step_name(what);
	}
	spawn_close(fd);
	if (pid == -1)
		return -1;
	begin(w, pid);
	return 0;
}

void
worker_free(struct worker *w)
{
	worker_kill(w);
	feeder_close(&w->feeder);
	close_stdout(w);
	timer_stop(&w->timer);
	timer_stop(&w->age);
	child_forget(w->env->loop, &w->child);
	if (w->env->guardian != NULL)
		guardian_release(w->env->guardian, w->slot);
	launcher_forget(&w->start);
	output_done(&w->output);
	line_done(&w->line);
	free(w->protocol);
	free(w);
}
